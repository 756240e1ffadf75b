"""Affine maps at the ends of a program: the client's first step and its last one."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from keywright.program.arrays import Vector

WIDE, FAR, LARGE = 16.0, 8.0, 16.0
"""Values are normalised if the half-widths of elements differ by more than the first factor, if an element is
further from 0 than so many half-widths, or if values exceed the last number or stay below its inverse."""

MARGIN = 2.0
"""Ciphertexts of inputs declare so many times the larger end of their range, rounded up to a power of two: a
single input may leave the range without harm, and the ends, which calibration data measured, stay unsaid."""

HEADROOM = 16.0
"""Inputs may be so many times as large as the largest calibrated one where no range says otherwise: nothing
depends on it but the magnitude that ciphertexts declare. Normalised calibration data are at most 1."""

ROUNDED = 2.0**-40
"""An element that varies by less than this share of its size is constant: what varies is the rounding of
double precision."""

WIDE_TENSOR = 1024.0
"""The first factor for tensors, whose elements have a common scale: a scale of its own for every pixel costs
the structure of a convolution."""

WIDE_THIN = 256.0
"""The first factor for thin clients. Those in Python give each element a scale of its own; others divide all
by one number, so that the smallest element loses as many bits."""

WIDE_RESULT = 2.0**16
"""The first factor for results of products and polynomials, where a separate scale costs a level. Other
elements may cost the result as many bits of precision."""


@dataclass(frozen=True, eq=False)
class Normalisation:
    """``value = offset + scale * normalised``, element by element.

    Attributes:
        offset, scale: of every element, or one number for all, (1,); scales are powers of two.
    """

    offset: Vector
    scale: Vector

    def apply(self, values: Vector) -> Vector:
        """Return values (..., elements), normalised."""
        return np.asarray((values - self.offset) / self.scale, np.float64)

    def invert(self, values: Vector) -> Vector:
        """Return values (..., elements) from normalised ones."""
        return np.asarray(values * self.scale + self.offset, np.float64)

    def to_json(self) -> dict[str, list[float]]:
        """Return offsets and scales as lists."""
        return {"offset": self.offset.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def of(
        cls, values: Vector, *, factor: float = WIDE, far: float = FAR, small_only: bool = False
    ) -> Self | None:
        """Return the normalisation of measured values, (count, elements); None if they need none.

        Args:
            factor: by which the half-widths of elements of a common scale may differ.
            far: how many half-widths an element may be away from 0.
            small_only: whether large values of one scale are left as they are.
        """
        if not values.size:
            return None
        low, high = values.min(axis=0), values.max(axis=0)
        half, middle = (high - low) / 2, low + (high - low) / 2
        size = np.maximum(np.abs(low), np.abs(high))
        live = half > ROUNDED * size
        if not live.any() or not np.isfinite(size).all():
            return None
        largest = float(size.max())
        wide = float(half[live].max() / half[live].min()) > factor
        distant = bool((np.abs(middle[live]) > far * half[live]).any())
        if not (wide or distant):
            if largest < 1 / LARGE or (largest > LARGE and not small_only):
                return cls(np.zeros(1), np.asarray([_power_of_two(largest)]))
            return None
        scale = np.asarray([_power_of_two(each) for each in np.where(live, half, np.median(half[live]))])
        shifted = live | (size > LARGE) | (size > scale)
        return cls(np.where(shifted, middle, 0.0), scale)


def declared_magnitude(
    input_range: tuple[float, float] | None, divisor: float, normalisation: Normalisation | None
) -> float | None:
    """Return the magnitude that ciphertexts of a program's inputs declare: the power of two above `MARGIN`
    times the larger end of their range, normalised and divided, or `HEADROOM` if elements have scales of
    their own. It depends on the program alone, never on a sample. None if there is no range: then it is
    `Parameters.default_magnitude`."""
    if input_range is None:
        return None if normalisation is None else HEADROOM / divisor
    ends = np.asarray(input_range)[:, None]
    if normalisation is not None:
        if normalisation.scale.size > 1:
            return HEADROOM / divisor
        ends = normalisation.apply(ends)
    return _power_of_two(MARGIN * float(np.abs(ends).max())) / divisor


def _power_of_two(value: float) -> float:
    """Return the least power of two that is at least a positive number."""
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(1.0, int(exponent) - (mantissa == 0.5)))
