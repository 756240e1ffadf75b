"""Sparse matrices in coordinate form: every linear layer between flattened tensors is one of these."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from keywright.program.arrays import Vector

Indices = NDArray[np.int64]

DENSE_SHARE = 8
"""A matrix is multiplied as a dense one if at least one entry in so many is non-zero."""


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix given by its nonzero entries, each position at most once.

    Attributes:
        shape: rows (outputs) and columns (inputs).
        rows, columns, values: the entries.
    """

    shape: tuple[int, int]
    rows: Indices
    columns: Indices
    values: Vector

    @classmethod
    def from_entries(cls, shape: tuple[int, int], rows: Indices, columns: Indices, values: Vector) -> Self:
        """Return the matrix with these entries; repeated positions are summed, zeros dropped."""
        keys, place = np.unique(rows * shape[1] + columns, return_inverse=True)
        sums = np.bincount(place.ravel(), weights=values, minlength=len(keys)).astype(np.float64)
        kept = sums != 0
        keys = keys[kept]
        return cls(shape, keys // shape[1], keys % shape[1], sums[kept])

    @classmethod
    def from_distinct(cls, shape: tuple[int, int], rows: Indices, columns: Indices, values: Vector) -> Self:
        """Return the matrix with these entries at distinct positions; zeros are dropped."""
        kept = values != 0
        return cls(shape, rows[kept], columns[kept], _shared(np.asarray(values, np.float64)[kept]))

    @classmethod
    def from_dense(cls, matrix: NDArray[np.floating]) -> Self:
        """Return the non-zero entries of a dense matrix."""
        rows, columns = np.nonzero(matrix)
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        return cls(
            shape, rows.astype(np.int64), columns.astype(np.int64), matrix[rows, columns].astype(np.float64)
        )

    @classmethod
    def diagonal(cls, values: Vector) -> Self:
        """Return the square matrix with these values on its diagonal. Zeros are kept, so that its pattern is
        the identity's."""
        index = np.arange(len(values), dtype=np.int64)
        return cls((len(values), len(values)), index, index, np.asarray(values, np.float64))

    def apply(self, x: Vector) -> Vector:
        """Multiply each row of ``x``: (..., columns) to (..., rows)."""
        flat = np.asarray(x, np.float64).reshape(-1, self.shape[1])
        return self._applied(flat).reshape(*np.shape(x)[:-1], self.shape[0])

    def _applied(self, flat: Vector) -> Vector:
        kind = self.kind
        if kind == "diagonal":
            return np.asarray(flat * self.values, np.float64)
        if kind == "dense":
            dense = np.zeros(self.shape)
            dense[self.rows, self.columns] = self.values
            return np.asarray(flat @ dense.T, np.float64)
        if kind == "moves":
            return np.take(flat, self.columns, axis=1)
        result = np.zeros((len(flat), self.shape[0]))
        if kind == "picks":
            result[:, self.rows] = flat[:, self.columns] * self.values
        else:
            for row, sums in zip(flat, result, strict=True):
                sums[:] = np.bincount(self.rows, self.values * row[self.columns], self.shape[0])
        return result

    @cached_property
    def kind(self) -> str:
        """How the matrix is multiplied: as a "diagonal", as a "dense" matrix, as one that "moves" or "picks"
        elements, or as an "other" one."""
        if self.is_diagonal():
            return "diagonal"
        if DENSE_SHARE * len(self.values) >= self.shape[0] * self.shape[1]:
            return "dense"
        if self.moves is not None:
            return "moves"
        return "picks" if self.row_counts().max(initial=0) <= 1 else "other"

    @cached_property
    def of_places(self) -> dict[object, Any]:
        """Results that depend on the places of entries alone: scaled matrices share them."""
        return {}

    @property
    def moves(self) -> Indices | None:
        """Which element of the operand each row is, if the matrix only moves elements; otherwise None."""
        whole = np.array_equal(self.rows, np.arange(self.shape[0])) and bool((self.values == 1).all())
        return self.columns if whole else None

    def scaled(self, rows: Vector | float = 1.0, columns: Vector | float = 1.0) -> Self:
        """Return diag(rows) @ self @ diag(columns)."""
        values = self.values
        for factors, places in ((rows, self.rows), (columns, self.columns)):
            if np.ndim(factors) == 0 and len(values) and values.strides == (0,):
                values = np.broadcast_to(values[0] * factors, values.shape)
            else:
                every = factors if np.ndim(factors) == 0 else np.asarray(factors, np.float64)[places]
                values = values * every
        result = type(self)(self.shape, self.rows, self.columns, values)
        result.__dict__["of_places"] = self.of_places
        return result

    @property
    def entries(self) -> int:
        return len(self.values)

    def explicit(self) -> Self:
        """Return the matrix itself."""
        return self

    def row_counts(self) -> Indices:
        """Return the number of entries of every row."""
        return np.bincount(self.rows, minlength=self.shape[0])

    def column_counts(self, read: NDArray[np.bool_] | None = None) -> Indices:
        """Return the number of entries of every column, in all rows or in those that are read."""
        columns = self.columns if read is None else self.columns[read[self.rows]]
        return np.bincount(columns, minlength=self.shape[1])

    def __matmul__(self, other: "SparseMatrix") -> "SparseMatrix":
        order = np.argsort(other.rows, kind="stable")
        counts = np.bincount(other.rows, minlength=other.shape[0])
        starts = np.concatenate(([0], np.cumsum(counts)))
        repeats = counts[self.columns]
        entry = np.repeat(np.arange(len(self.values)), repeats)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        partner = order[starts[self.columns[entry]] + within]
        return SparseMatrix.from_entries(
            (self.shape[0], other.shape[1]),
            self.rows[entry],
            other.columns[partner],
            self.values[entry] * other.values[partner],
        )

    def __add__(self, other: "SparseMatrix") -> "SparseMatrix":
        return SparseMatrix.from_entries(
            self.shape,
            np.concatenate((self.rows, other.rows)),
            np.concatenate((self.columns, other.columns)),
            np.concatenate((self.values, other.values)),
        )

    def is_diagonal(self) -> bool:
        """Whether the matrix is square with entries exactly at all places of its diagonal, in order."""
        size = self.shape[0]
        every = np.arange(size)
        return (
            self.shape[1] == size
            and len(self.values) == size > 0
            and np.array_equal(self.rows, every)
            and np.array_equal(self.columns, every)
        )

    def scalar(self) -> float | None:
        """Return the factor c if the matrix is c times the identity, otherwise None."""
        if not self.is_diagonal() or (self.values != self.values[0]).any():
            return None
        return float(self.values[0])


def _shared(values: Vector) -> Vector:
    """Return values that are all equal as a view of one number. Maps that spread or sum have millions."""
    alike = len(values) > 0 and bool((values == values[0]).all())
    return np.broadcast_to(values[0], values.shape) if alike else values
