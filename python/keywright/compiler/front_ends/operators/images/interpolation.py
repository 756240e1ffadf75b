"""Linear and cubic interpolation along an axis: sums of neighbouring pixels with constant weights."""

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector


def linear_weights(old: int, positions: Vector) -> Vector:
    """Return the matrix, (new, old), of linear interpolation at positions, between 0 and ``old`` - 1."""
    places = np.clip(positions, 0, old - 1)
    low = np.floor(places).astype(np.int64)
    share = places - low
    weights = np.zeros((len(places), old))
    rows = np.arange(len(places))
    np.add.at(weights, (rows, low), 1 - share)
    np.add.at(weights, (rows, np.minimum(low + 1, old - 1)), share)
    return weights


def cubic_weights(old: int, positions: Vector, a: float, *, exclude_outside: bool) -> Vector:
    """Return the matrix, (new, old), of cubic convolution at positions (Keys, 1981).

    Args:
        a: the kernel's coefficient.
        exclude_outside: whether pixels outside the image have no weight, instead of those at its ends.
    """
    low = np.floor(positions).astype(np.int64)
    weights = np.zeros((len(positions), old))
    rows = np.arange(len(positions))
    for step in (-1, 0, 1, 2):
        distance = np.abs(positions - (low + step))
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        share = np.where(distance <= 1, near, far)
        inside = (low + step >= 0) & (low + step < old)
        kept = share * inside if exclude_outside else share
        np.add.at(weights, (rows, np.clip(low + step, 0, old - 1)), kept)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) if exclude_outside else weights)


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
