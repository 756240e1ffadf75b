"""The choices worth their bytes, among ever larger and faster ones."""

from collections.abc import Sequence

Cost = tuple[int, float]
"""Bytes and seconds of a choice."""


def hull(costs: Sequence[Cost]) -> list[int]:
    """Return the indices of choices each of which saves less time per byte than the one before, from the
    first on.

    Args:
        costs: by rising bytes.
    """
    kept: list[int] = []
    for index, cost in enumerate(costs):
        if kept and cost[1] >= costs[kept[-1]][1]:
            continue
        while len(kept) > 1 and savings(costs[kept[-1]], cost) >= savings(costs[kept[-2]], costs[kept[-1]]):
            kept.pop()
        kept.append(index)
    return kept


def savings(before: Cost, after: Cost) -> float:
    """Return the seconds saved per byte."""
    return (before[1] - after[1]) / max(1, after[0] - before[0])
