"""Matrices as linear transforms of slots."""

from typing import TYPE_CHECKING

import numpy as np

from keywright._core import LinearTransform, Parameters
from keywright.errors import EncodeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def matrix_transform(
    parameters: Parameters, matrix: "ArrayLike", slots: int, level: int | None = None
) -> LinearTransform:
    """The transform that multiplies the values of slots, as a row, with a matrix: ``x @ matrix``.

    Its `rotations` are those that need keys; `Encrypted.__matmul__` takes it in the place of the matrix, and
    nothing is encoded again then.

    Args:
        matrix: real, (rows, columns), of up to ``slots`` rows and columns. Slots behind the rows are ignored,
            results behind the columns are 0.
        slots: of the ciphertexts.
        level: of the ciphertexts, or above; the top one where not given.

    Raises:
        EncodeError: another shape.
    """
    values = np.asarray(matrix, np.float64)
    if values.ndim != 2 or max(values.shape) > slots or min(values.shape) == 0:
        raise EncodeError(
            f"a matrix of shape {values.shape} does not multiply {slots} slots; give one of (rows, columns) "
            f"from 1 to {slots} each, or encrypt with more slots"
        )
    square = np.zeros((slots, slots))
    square[: values.shape[0], : values.shape[1]] = values
    columns = np.arange(slots)
    diagonals = {step: square[(columns + step) % slots, columns] for step in range(slots)}
    kept = {step: diagonal for step, diagonal in diagonals.items() if diagonal.any()}
    return LinearTransform(parameters, kept or {0: np.zeros(slots)}, slots, level)
