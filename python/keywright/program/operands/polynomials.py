"""Polynomials as programs store them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from keywright.program.arrays import Vector

Basis = Literal["monomial", "chebyshev"]

BLOCK = 1 << 14
"""Values that are evaluated together: their sums stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class PolynomialSpec:
    """A polynomial with real coefficients by ascending degree; Chebyshev polynomials are those on [-1, 1]."""

    coefficients: Vector
    basis: Basis = "chebyshev"

    @property
    def degree(self) -> int:
        """Highest index of a coefficient."""
        return len(self.coefficients) - 1

    def evaluate(self, values: Vector) -> Vector:
        """Return the polynomial's values."""
        if self.basis == "chebyshev":
            return chebyshev(values, self.coefficients)
        return np.asarray(np.polynomial.polynomial.polyval(values, self.coefficients), np.float64)


def chebyshev(values: Vector, coefficients: Vector) -> Vector:
    """Return a Chebyshev series at values on [-1, 1], bit for bit as `numpy.polynomial.chebyshev.chebval`,
    which moves whole arrays for every coefficient.

    Clenshaw's recurrence, in blocks.
    """
    values = np.asarray(values, np.float64, order="C")
    if len(coefficients) < 3 or values.ndim == 0:
        return np.asarray(np.polynomial.chebyshev.chebval(values, coefficients), np.float64)
    result = np.empty_like(values)
    flat, sums, rows = values.reshape(-1), result.reshape(-1), np.empty((3, min(BLOCK, values.size)))
    for first in range(0, len(flat), BLOCK):
        x, total = flat[first : first + BLOCK], sums[first : first + BLOCK]
        twice, last, next_ = rows[:, : len(x)]
        np.multiply(x, 2, out=twice)
        last.fill(coefficients[-2])
        next_.fill(coefficients[-1])
        for coefficient in coefficients[-3::-1]:
            np.multiply(next_, twice, out=total)
            np.subtract(coefficient, next_, out=next_)
            np.add(last, total, out=last)
            last, next_ = next_, last
        np.multiply(next_, x, out=total)
        np.add(last, total, out=total)
    return result
