"""The picture of a record: time against depth and against alpha, bytes against depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.pages.plot import new_figure

from studies.bootstrapping_keys import paper
from studies.bootstrapping_keys.report import Tables

NAMES = ("alpha = 1", "maximum", "dynamic", "dynamic, dropped primes")


def draw(tables: Tables, title: str, path: Path) -> None:
    """Write three plots side by side.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(14, 4.8)
    latency, sweep, memory = figure.subplots(1, 3)
    for index, name in enumerate(NAMES):
        cells = {depth: tables.four(depth)[index] for depth in tables.depths()}
        points = [(depth, one.seconds) for depth, one in cells.items() if one is not None]
        line(latency, points, name)
    latency.set(xlabel="levels left", ylabel="seconds of a bootstrap", title="Figures 4 and 8: time")
    chosen = [tables.timed(depth, "most", "maximum") for depth in tables.depths()]
    line(sweep, [(int(one.alpha), one.seconds) for one in chosen if one is not None], "static, most levels")
    sweep.set(xlabel="alpha: primes of a digit", ylabel="seconds of a bootstrap", title="Figure 7: time")
    aware = [(depth, row.level_aware) for depth, row in paper.TABLE_5.items() if row.level_aware]
    line(memory, [(depth, row.alpha_1) for depth, row in paper.TABLE_5.items()], "paper, alpha = 1")
    line(memory, aware, "paper, dynamic + level-aware")
    for label, key, special, alpha, levels in (
        ("here, alpha = 1", "formula_bytes", 1, 1, "top"),
        ("here, dynamic + level-aware", "formula_bytes", "most", "dynamic_dropped", "needed"),
        ("the same as stored, all keys", "key_bytes", "most", "dynamic_dropped", "needed"),
    ):
        planned = {depth: tables.planned(depth, special, alpha, levels) for depth in paper.TABLE_5}
        points = [(depth, one.raw[key] / paper.GB) for depth, one in planned.items() if one is not None]
        line(memory, points, label)
    memory.set(xlabel="levels left", ylabel="GB of rotation keys", title="Table 5: paper and here")
    memory.set_yscale("log")
    # Room for the legend below the lines.
    memory.set_ylim(bottom=memory.get_ylim()[0] / 8)
    for axes in (latency, sweep, memory):
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def line(axes: Any, points: list[tuple[int, float]], label: str) -> None:
    """A line, if there are points."""
    if points:
        axes.plot(*zip(*sorted(points), strict=True), marker="o", markersize=4, label=label)
