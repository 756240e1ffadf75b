"""Values of Chebyshev series."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BLOCK = 1 << 14
"""Values that are evaluated together: their sums stay in the processor's cache."""


def chebyshev(values: Vector, coefficients: Vector) -> Vector:
    """Return a Chebyshev series at values on [-1, 1], bit for bit as `numpy.polynomial.chebyshev.chebval`,
    which moves whole arrays for every coefficient.

    Clenshaw's recurrence, in blocks; complex values go to that function.
    """
    if np.iscomplexobj(values):
        return np.asarray(np.polynomial.chebyshev.chebval(values, coefficients))
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
