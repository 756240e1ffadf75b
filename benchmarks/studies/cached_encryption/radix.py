"""Chem's additions: section 3.4 of its paper, in the worst case and on data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def powers(radix: int, bits: int) -> int:
    """Cached powers: `floor(log_r (2^bits - 1)) + 1`, exactly."""
    count, left = 0, (1 << bits) - 1
    while left:
        count, left = count + 1, left // radix
    return count


def worst_case(radix: int, bits: int) -> int:
    """Return the maximum number of additions for the digits of one value."""
    largest, count = (1 << bits) - 1, powers(radix, bits)
    leading: int = largest // radix ** (count - 1)
    # Either all of it, or one less in front and nothing but r - 1 behind.
    below = (leading - 1) + (radix - 1) * (count - 1)
    return max(digit_sum(largest, radix), below) - 1


def digit_sum(value: int, radix: int) -> int:
    """Sum of the digits of one value."""
    total = 0
    while value:
        value, digit = divmod(value, radix)
        total += digit
    return total


def additions(values: NDArray[np.int64], radix: int) -> float:
    """Mean additions for the digits of a value: one less than their sum, none for zero."""
    left, total = values.copy(), np.zeros_like(values)
    while left.any():
        left, digits = np.divmod(left, radix)
        total += digits
    return float(np.maximum(total - 1, 0).mean())
