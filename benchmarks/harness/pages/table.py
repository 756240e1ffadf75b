"""Text of a record: its heading, tables in Markdown, medians with extremes, times in a unit that suits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from harness.folders import today
from harness.measurement import machine

MISSING = "-"
"""Text of a cell without a figure."""


@dataclass(frozen=True)
class Spread:
    """Median and extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise at least one value."""
        numbers = list(values)
        return cls(median(numbers), min(numbers), max(numbers))


def spread(values: Iterable[float]) -> str:
    """Median with extremes, as text."""
    spread = Spread.of(values)
    return f"{spread.median:.4g} ({spread.low:.4g} to {spread.high:.4g})"


def quotients(above: Iterable[float], below: Iterable[float]) -> list[float]:
    """Ratios pair by pair: what slows a machine down for a turn slows both."""
    return [a / b for a, b in zip(above, below, strict=True)]


def heading(title: str, *facts: str) -> list[str]:
    """A record's first lines: title with date, the machine, what else a reader needs, a line of space."""
    return [f"# {title}, {today()}", "", *(f"* {fact}" for fact in (*machine.describe(), *facts)), ""]


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], *, aligned: bool = True) -> list[str]:
    """Lines of a table; `aligned` puts all columns but the first to the right."""
    under = "---:|" if aligned else "---|"
    return [markdown_line(head), "|---|" + under * (len(head) - 1), *map(markdown_line, rows)]


def markdown_line(cells: Sequence[object]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def times(ratio: Spread) -> str:
    """A ratio with its extremes: `9.4x (9.1-9.8)`."""
    return f"{ratio.median:.3g}x ({ratio.low:.3g}-{ratio.high:.3g})"


def duration(seconds: float) -> str:
    """Three significant digits in a unit that suits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{significant(seconds * factor)} {unit}"
    return f"{significant(seconds * 1e6)} us"


def significant(value: float) -> str:
    """Three significant digits without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f}"
