"""What the paper states about bootstrapping at N = 2^16 and scale 2^50, as printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """A row of table 5: GB of the rotation keys of a bootstrapping. None where alpha can only be 1."""

    alpha_1: float
    maximum: float | None = None
    dynamic: float | None = None
    level_aware: float | None = None


TABLE_5 = {
    16: Memory(40.802, 48.318, 61.641, 25.535),
    15: Memory(38.292),
    14: Memory(35.861, 35.861, 56.741, 18.895),
    13: Memory(33.510),
    12: Memory(31.239, 10.239, 56.063, 10.305),
    11: Memory(29.048, 12.316, 10.400, 10.273),
    10: Memory(26.936, 16.562, 13.986, 13.413),
    9: Memory(24.904, 6.842, 5.778, 5.557),
    8: Memory(22.951, 5.474, 24.864, 6.250),
    7: Memory(21.078),
    6: Memory(19.285, 11.938, 17.094, 9.597),
    5: Memory(17.572, 3.822, 9.643, 4.448),
    4: Memory(15.938, 2.737, 35.024, 4.452),
    3: Memory(14.384),
    2: Memory(12.910, 2.454, 29.327, 4.05),
    1: Memory(11.515),
}

CONSUMED = 15
"""Levels that their bootstrapping takes (section 5), as ours does."""

DYNAMIC_OVER_1 = 1.41
"""Mean speed-up of dynamic alpha over alpha = 1 (section 5.3, figure 8)."""

DYNAMIC_OVER_MAXIMUM = 1.12
"""Mean speed-up of dynamic alpha over the maximum (section 5.3, figure 8)."""

DEPTH_16 = {"all": 1.52, "slots_to_coeffs": 1.27, "coeffs_to_slots": 1.67}
"""Speed-ups of dynamic alpha over alpha = 1 (section 3.1, figure 4)."""

ALPHA_5_OVER_1 = 1.65
"""Speed-up of alpha = 5, depth 9, over alpha = 1, depth 16 (section 3.1)."""

SECONDS = 3.335
"""A bootstrap with alpha = 1, 64 threads (table 2)."""

GB = 10**9
"""Their GB: with it every figure of alpha = 1 is a whole number of keys."""


def key_bytes(depth: int, alpha: int) -> int:
    """Bytes of one key of the highest level as their tables have it: 2 N dnum (l + alpha) 8.

    The text (section 5.1) has 1 + l + alpha, which is the number of primes of a key.
    """
    top = depth + CONSUMED
    return 2 * 2**16 * -(-(top + 1) // alpha) * (top + alpha) * 8


def implied_keys(depth: int, gigabytes: float, alpha: int) -> float:
    """How many keys of the highest level have these GB."""
    return gigabytes * GB / key_bytes(depth, alpha)


PRIMES = 1747 // 50
"""Primes of 50 bits that 128 bits of security leave room for at N = 2^16."""


def alphas(depth: int) -> list[int]:
    """The alphas that their rule allows: divisors of the number of primes with room for as many more."""
    primes = depth + CONSUMED + 1
    return [alpha for alpha in range(1, PRIMES - primes + 1) if primes % alpha == 0]


LARGEST_DEPTH = 16
"""With alpha = 1 (section 5)."""

ALPHAS_STATED = range(1, 12)
"""Alphas that the text or table 5 names, or that their rule gives between them."""
