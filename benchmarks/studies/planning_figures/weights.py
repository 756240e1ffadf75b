"""Table 3 of KDS: the cost of a rotation by the Hamming weight of its index, with keys for powers of two."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

LOG_SLOTS = 15
WEIGHTS = range(1, 8)
"""As in the table."""


def hops(log_slots: int, signed: bool) -> Sequence[int]:
    """The fewest rotations by powers of two for each rotation, by its index; of both signs if ``signed``."""
    slots = 1 << log_slots
    steps = [sign << bit for bit in range(log_slots) for sign in ((1, -1) if signed else (1,))]
    counts = [-1] * slots
    counts[0] = 0
    waiting = deque([0])
    while waiting:
        here = waiting.popleft()
        for step in steps:
            there = (here + step) % slots
            if counts[there] < 0:
                counts[there] = counts[here] + 1
                waiting.append(there)
    return counts


def rows(log_slots: int = LOG_SLOTS) -> Iterator[dict[str, float]]:
    """For each weight: the number of indices that have it, and the mean number of consecutive key switches,
    with keys for positive powers of two and for both signs. This number is the relative latency, because
    every hop has another ciphertext and so shares nothing.
    """
    plain, signed = hops(log_slots, signed=False), hops(log_slots, signed=True)
    for weight in WEIGHTS:
        indices = [index for index in range(1 << log_slots) if index.bit_count() == weight]
        yield {
            "weight": weight,
            "indices": len(indices),
            "binary": sum(plain[index] for index in indices) / len(indices),
            "signed": sum(signed[index] for index in indices) / len(indices),
        }
