"""Linear and cubic interpolation along an axis: sums of neighbouring pixels with constant weights."""

import math
from collections.abc import Callable

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

BLOCK = 1 << 18
"""Weights to compute at a time."""


def linear(distance: Vector) -> Vector:
    """Return the weights of linear interpolation by the distance from a pixel, in pixels."""
    return np.asarray(np.clip(1 - np.abs(distance), 0, 1))


def cubic(distance: Vector, a: float) -> Vector:
    """Return the weights of cubic convolution with the coefficient a (Keys, 1981)."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x**2 + 1
    return np.where(x <= 1, near, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


def weights_at(
    positions: Vector,
    old: int,
    kernel: Callable[[Vector], Vector],
    reach: int,
    *,
    stretch: float,
    exclude_outside: bool,
) -> Vector:
    """Return the matrix, (new, old), of interpolation at positions.

    Args:
        kernel: weights by the distance from a pixel, 0 from ``reach`` on.
        stretch: factor of the distances; below 1, each result is a mean of more pixels.
        exclude_outside: whether pixels outside the image have no weight, instead of those at its ends.
    """
    low = np.floor(positions).astype(np.int64)
    weights = np.zeros((len(positions), old))
    rows, last = np.arange(len(positions)), math.ceil(reach / stretch)
    some = max(1, BLOCK // len(rows))  # neighbours at a time: a small image is made of many
    for first in range(1 - last, last + 1, some):
        pixel = low[:, None] + np.arange(first, min(first + some, last + 1))
        kept = (pixel >= 0) & (pixel < old) if exclude_outside else 1
        terms = kernel((positions[:, None] - pixel) * stretch) * kept
        np.add.at(weights, (rows[:, None], np.clip(pixel, 0, old - 1)), terms)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def resample(context: OperatorContext, source: EncryptedValue, axis: int, weights: Vector) -> EncryptedValue:
    """Return the product of a matrix, (new, old), with the values along an axis."""
    shape = (*source.shape[:axis], len(weights), *source.shape[axis + 1 :])
    targets = np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), axis, 0).reshape(len(weights), -1)
    origins = np.moveaxis(source.indices(), axis, 0).reshape(source.shape[axis], -1)
    rows, columns = np.nonzero(weights)
    matrix = SparseMatrix.from_distinct(
        (targets.size, source.size),
        targets[rows].ravel(),
        origins[columns].ravel(),
        np.repeat(weights[rows, columns], targets.shape[1]),
    )
    return context.linear(source, shape, matrix)
