"""Table 3 of KDS: what a rotation takes by the Hamming weight of its index, with keys for powers of two."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

LOG_SLOTS = 15
WEIGHTS = range(1, 8)
"""As in the table."""


def hops(log_slots: int, signed: bool) -> Sequence[int]:
    """Fewest rotations by powers of two that make each rotation, by its index; both directions if signed."""
    slots = 1 << log_slots
    steps = [sign << bit for bit in range(log_slots) for sign in ((1, -1) if signed else (1,))]
    found = [-1] * slots
    found[0] = 0
    waiting = deque([0])
    while waiting:
        here = waiting.popleft()
        for step in steps:
            there = (here + step) % slots
            if found[there] < 0:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


def rows(log_slots: int = LOG_SLOTS) -> Iterator[dict[str, float]]:
    """For each weight how many indices have it, and the mean number of key switches, one after another,
    with keys for positive powers of two and for both signs. Relative latency is that number: every hop is of
    another ciphertext, so that nothing is shared."""
    plain, signed = hops(log_slots, signed=False), hops(log_slots, signed=True)
    for weight in WEIGHTS:
        indices = [index for index in range(1 << log_slots) if index.bit_count() == weight]
        yield {
            "weight": weight,
            "indices": len(indices),
            "binary": sum(plain[index] for index in indices) / len(indices),
            "signed": sum(signed[index] for index in indices) / len(indices),
        }
