"""Formats bytes and seconds with units, for tables and messages."""

import math
from collections.abc import Sequence

SHOWN_ROWS = 5
"""Rows that a message names."""


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 key, 2 keys."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_bytes(count: float) -> str:
    """Format a number of bytes with a decimal unit (kB = 1000 bytes) and three significant digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:
            return f"{_three_digits(count)} {unit}"
        count /= 1000
    return f"{_three_digits(count)} TB"


def format_seconds(seconds: float) -> str:
    """Format a time with ns, us, ms, s or min and three significant digits."""
    if abs(seconds) >= 99.95:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02d} s"
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if abs(seconds) * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def rounded_up(bound: float) -> str:
    """Return a positive number rounded up to two significant digits."""
    step = 10.0 ** (math.floor(math.log10(bound)) - 1)
    return f"{math.ceil(bound / step) * step:.2g}"


def _three_digits(value: float) -> str:
    if not math.isfinite(value) or float(value).is_integer():
        return f"{value:.0f}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def numbered(rows: Sequence[int]) -> str:
    """Return the first of some rows as text."""
    shown = ", ".join(map(str, rows[:SHOWN_ROWS]))
    more = f" and {len(rows) - SHOWN_ROWS} more" if len(rows) > SHOWN_ROWS else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {shown}{more}"
