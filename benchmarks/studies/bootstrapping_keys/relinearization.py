"""Figure 5: a multiplication with relinearization against the level, for each alpha."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.pages.plot import new_figure
from harness.pages.table import MISSING, markdown
from harness.record import BadRecord

SHOWN = (1, 2, 4, 8, 16)
"""The alphas of the paper's dotted lines."""

ALPHAS = tuple(range(1, 17))
QUICK_ALPHAS = (1, 4, 16)
ONE_KEY = 4
"""Digits of the single key that is drawn, which may be used with coarser ones."""


@dataclass(frozen=True)
class Point:
    """A level of one alpha; `coalescing` says whether the one key may be used with coarser digits."""

    log_n: int
    alpha: int
    coalescing: bool
    level: int


@dataclass(frozen=True)
class Measured:
    """Median seconds on a processor, and the level of the key."""

    seconds: float
    top: int


Points = Mapping[Point, Measured]


def parse(text: str) -> tuple[Point, Measured]:
    """A line of the program, or of a record.

    Raises:
        BadRecord: it is malformed, or the product was wrong.
    """
    try:
        fields = json.loads(text)
        point = Point(fields["log_n"], fields["alpha"], fields["coalescing"], fields["level"])
        measured = Measured(statistics.median(fields["processor_seconds"]), fields["top"])
        checked = fields["checked"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadRecord(f"not a multiplication: {text[:80]!r}: {error}") from error
    if checked is not True:
        raise BadRecord(f"the product of {asdict(point)} is not within its bound")
    return point, measured


def read(path: Path) -> dict[Point, Measured]:
    """Read a record; empty if there is none.

    Raises:
        BadRecord: a line is malformed.
    """
    return dict(map(parse, path.read_text().splitlines())) if path.exists() else {}


def chosen(points: Points, level: int) -> int | None:
    """Return the alpha that a count of transforms chooses for a key at this level, as `DigitRule::Dynamic`
    does.

    It minimises the `digits + 2` transforms for each prime of the level and of the special ones, among the
    alphas measured there.
    """
    alphas = {point.alpha for point in points if point.level == level and not point.coalescing}

    def transforms(alpha: int) -> tuple[int, int]:
        return (-(-(level + 1) // alpha) + 2) * (level + 1 + alpha), alpha

    return min(alphas, key=transforms, default=None)


def levels(points: Points) -> list[int]:
    """All levels, from the highest."""
    return sorted({point.level for point in points}, reverse=True)


def at(points: Points, level: int, *, coalescing: bool) -> dict[int, float]:
    """Seconds of each alpha at a level."""
    return {
        point.alpha: measurement.seconds
        for point, measurement in points.items()
        if point.level == level and point.coalescing == coalescing
    }


def table(points: Points) -> list[str]:
    """Milliseconds at every third level; the fastest alpha, the chosen one, and a single key."""
    if not points:
        return []
    names = [*(f"alpha = {alpha}" for alpha in SHOWN), "fastest", "chosen by count", "over alpha = 1"]
    names.append("one key, coarser digits")
    rows = []
    for level in levels(points)[::3]:
        static, one_key = at(points, level, coalescing=False), at(points, level, coalescing=True)
        if not static:
            continue
        cells = [f"{static[alpha] * 1e3:.1f}" if alpha in static else MISSING for alpha in SHOWN]
        best = min(static, key=lambda alpha: static[alpha])
        pick = chosen(points, level)
        cells.append(f"{static[best] * 1e3:.1f} ({best})")
        cells.append(MISSING if pick is None else f"{static[pick] * 1e3:.1f} ({pick})")
        cells.append(MISSING if pick is None or 1 not in static else f"{static[1] / static[pick]:.2f}x")
        coarse = min(one_key, key=lambda alpha: one_key[alpha], default=None)
        cells.append(MISSING if coarse is None else f"{one_key[coarse] * 1e3:.1f} ({coarse})")
        rows.append([str(level), *cells])
    return markdown(["level", *names], rows)


def summary(points: Points) -> str:
    """How far the choice by count is from the fastest, over the levels."""
    losses = []
    for level in levels(points):
        static, pick = at(points, level, coalescing=False), chosen(points, level)
        if static and pick is not None:
            losses.append(static[pick] / min(static.values()))
    if not losses:
        return ""
    return (
        f"The alpha of fewest transforms takes {statistics.median(losses):.2f} times as long as the fastest "
        f"(median over {len(losses)} levels; at worst {max(losses):.2f})."
    )


def draw(points: Points, title: str, path: Path) -> None:
    """Write the picture: the paper's dotted lines, the choice, and one key with coarser digits.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(8, 4.5)
    axes = figure.subplots()
    for alpha in SHOWN:
        line = [(level, at(points, level, coalescing=False).get(alpha)) for level in levels(points)]
        series(axes, line, f"alpha = {alpha}", ":")
    picks = []
    for level in levels(points):
        pick = chosen(points, level)
        picks.append((level, None if pick is None else at(points, level, coalescing=False)[pick]))
    series(axes, picks, "dynamic, by count of transforms", MISSING)
    one_key = [(level, at(points, level, coalescing=True).get(ONE_KEY)) for level in levels(points)]
    series(axes, one_key, f"one key of alpha = {ONE_KEY}, coarser digits below", "--")
    axes.set(xlabel="level", ylabel="ms of a product with relinearization", ylim=(0, None), title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def series(axes: Any, line: Sequence[tuple[int, float | None]], label: str, style: str) -> None:
    """A line of what was measured, if anything was."""
    series = [(level, seconds * 1e3) for level, seconds in line if seconds is not None]
    if series:
        axes.plot(*zip(*series, strict=True), style, label=label)
