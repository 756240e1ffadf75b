"""The spread of outputs, in which a few outliers do not count."""

import numpy as np
from numpy.typing import NDArray

from keywright.program.arrays import Vector

CONSTANT = 2.0**-44
"""Values that vary by less than this share of their size, a few hundred roundings of double precision, are
constant."""

QUANTILES = (0.16, 0.84)
"""Between them lie two standard deviations of a normal distribution."""

ORDINARY = 4.0
"""Half the range of ordinary values is at most so many spreads: all but 6e-5 of a normal distribution."""

FAR = 16.0
"""Values that are so many spreads from the median are outliers."""

FEW = 1 / 16
"""Outliers are a smaller share of the samples than this."""


def spread_of(values: Vector) -> Vector:
    """Return the spread of each column, (columns,): the smaller of the standard deviation and half the
    distance of the quantiles of 16 % and 84 %, which a few outliers do not change. Where that distance is 0
    it is the standard deviation, and the size of a constant column.

    Args:
        values: (count, columns).
    """
    size, deviation = np.abs(values).max(axis=0), values.std(axis=0)
    deviation = np.where(deviation > CONSTANT * size, deviation, np.where(size > 0, size, 1.0))
    half = _half_distance(values)
    return np.asarray(np.where(half > 0, np.minimum(half, deviation), deviation), np.float64)


def half_range_of(values: Vector) -> Vector:
    """Return half the range of each column without outliers, (columns,); 0 for a constant one."""
    half, size = np.ptp(values, axis=0) / 2, np.abs(values).max(axis=0)
    return np.where(half > CONSTANT * size, np.minimum(half, ORDINARY * spread_of(values)), 0.0)


def outliers_of(samples: Vector) -> tuple[NDArray[np.int64], float]:
    """Return the rows with a value far from the others of its column, (count,), and by how many spreads the
    furthest is away. There are none if they are no small share of the samples.

    Args:
        samples: (count, columns).
    """
    half = _half_distance(samples)
    distance = np.abs(samples - np.median(samples, axis=0))
    furthest = (distance[:, half > 0] / half[half > 0]).max(axis=1, initial=0.0)
    rows = np.flatnonzero(furthest >= FAR)
    if len(rows) > FEW * len(samples):
        rows = rows[:0]
    return rows, float(furthest[rows].max(initial=0.0))


def without_outliers(values: Vector) -> Vector:
    """Return the rows that are no outliers, (rows, columns)."""
    return np.delete(values, outliers_of(values)[0], axis=0) if len(values) else values


def _half_distance(values: Vector) -> Vector:
    """Return half the distance of the quantiles of each column; 0 if rounding could be all of it."""
    low, high = np.quantile(values, QUANTILES, axis=0)
    varies = high - low > CONSTANT * np.maximum(np.abs(low), np.abs(high))
    return np.asarray(np.where(varies, (high - low) / 2, 0.0), np.float64)
