"""Categories of the columns of a data frame, which boosters know by their places."""

from collections.abc import Iterable, Sequence
from typing import Any

from keywright.errors.network import unsupported_attribute

SHOWN = 4
"""Categories in a message."""


def require_places(columns: Iterable[Sequence[Any]]) -> None:
    """Refuse trees with categories that are numbers, or read as such, and not their own places: a sample
    with the number of a category would be taken for one with the place.

    Args:
        columns: the categories of each column, in their order.

    Raises:
        RefusalError: names the categories.
    """
    for known in columns:
        places = [place for place, each in enumerate(known) if _read_as(each) not in (None, place)]
        if places:
            shown = ", ".join(map(str, [*known[:SHOWN], *["..."][: len(known) - SHOWN]]))
            needed = "0, 1, 2 and so on, by which its trees know them; fit it to frame[column].cat.codes"
            raise unsupported_attribute("", "Booster", "the categories of a column", shown, needed)


def _read_as(category: Any) -> float | None:
    """Return the number that a sample with a category would have; None for another text."""
    try:
        return float(category)
    except (TypeError, ValueError):
        return None
