"""The picture of a record: every library's time for each work at the top level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.pages.plot import new_figure
from harness.record import Row

from studies.operations.ratios import Table


def top_rows(table: Table) -> list[Row]:
    """For each work the row with the largest ring, the largest digits and the highest level."""
    best: dict[str, Row] = {}
    for row in table:
        rank = (row.log_n, row.alpha, row.level)
        known = best.get(row.work)
        if known is None or rank > (known.log_n, known.alpha, known.level):
            best[row.work] = row
    return list(best.values())


def draw(table: Table, targets: Sequence[str], title: str, path: Path) -> None:
    """Write a dot plot: seconds on a logarithmic axis, extremes over rounds as whiskers.

    Raises:
        ImportError: matplotlib is not installed.
    """
    rows = top_rows(table)
    figure = new_figure(9, 1.6 + 0.45 * len(rows))
    axes = figure.add_subplot()
    shown = [name for name in targets if any(name in table[row] for row in rows)]
    for index, name in enumerate(shown):
        points = [(place, table[row][name].seconds) for place, row in enumerate(rows) if name in table[row]]
        shift = 0.5 * (index / max(1, len(shown) - 1) - 0.5)
        medians = [seconds.median for _, seconds in points]
        whiskers = [
            [seconds.median - seconds.low for _, seconds in points],
            [seconds.high - seconds.median for _, seconds in points],
        ]
        places = [place + shift for place, _ in points]
        axes.errorbar(medians, places, xerr=whiskers, fmt="o", markersize=5, capsize=2, label=name)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [label(row) for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.set_xlabel("seconds per operation (lower is better)")
    axes.set_title(title)
    figure.legend(loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(path, dpi=150)


def label(row: Row) -> str:
    """Name of a row on the axis."""
    where = "" if row.alpha == 0 else f", level {row.level}, alpha {row.alpha}"
    return f"{row.work}, 2^{row.log_n}{where}"
