"""Convolutions as kernels: linear maps between images that do the same at every pixel."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Vector

from .sparse import Indices, SparseMatrix

UNSHARED = 1 << 18
"""Multiply-adds of the largest product that OpenBLAS computes on one thread. Its threads wait for each other
actively, which takes more processor time than the products themselves."""


@dataclass(frozen=True, eq=False)
class Window:
    """Which pixel meets which tap of a kernel.

    Attributes:
        outputs, inputs: pixels of the result and of the operand.
        taps: of the kernel.
        into, tap, origin: pixel of the result, tap and pixel of the operand of every pair; a pixel of the
            result meets a tap at most once.
    """

    outputs: int
    inputs: int
    taps: int
    into: Indices
    tap: Indices
    origin: Indices

    @cached_property
    def table(self) -> Indices:
        """Return the pixel of the operand by tap and pixel of the result, (taps, outputs); ``inputs`` if
        there is none."""
        table = np.full((self.taps, self.outputs), self.inputs, np.int64)
        table[self.tap, self.into] = self.origin
        return table


@dataclass(frozen=True, eq=False)
class Convolution:
    """The matrix with ``kernel[o, c, t]`` at row (o, p) and column (c, q) for all pixels p and q that meet at
    tap t. It has the methods of `SparseMatrix`, but stores no entry per pixel.

    Attributes:
        kernel: (outputs, inputs / groups, taps).
        groups: the outputs of each read the inputs of their own group only.
        window: of both images.
    """

    kernel: NDArray[np.float64]
    groups: int
    window: Window

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (outputs) and columns (inputs) of the matrix."""
        outputs, members, _ = self.kernel.shape
        return outputs * self.window.outputs, members * self.groups * self.window.inputs

    @property
    def entries(self) -> int:
        """Number of non-zero entries."""
        pairs = np.bincount(self.window.tap, minlength=self.window.taps)
        return int(np.count_nonzero(self.kernel, axis=(0, 1)) @ pairs)

    def channels(self) -> tuple[Indices, Indices]:
        """Return output channel and input channel of every pair with a row of taps, in the order of
        ``kernel.reshape(-1, taps)``."""
        outputs, members, _ = self.kernel.shape
        into, member = (a.ravel() for a in np.indices((outputs, members)))
        return into, into // (outputs // self.groups) * members + member

    def explicit(self) -> SparseMatrix:
        """Return the same matrix, entry by entry. Raises `RefusalError`."""
        window = self.window
        require_at_most("a convolution whose pixels differ", "entries", self.entries, MAX_ENTRIES)
        into, origin = (channel[:, None] for channel in self.channels())
        return SparseMatrix.from_distinct(
            self.shape,
            (into * window.outputs + window.into).ravel(),
            (origin * window.inputs + window.origin).ravel(),
            self.kernel.reshape(-1, window.taps)[:, window.tap].ravel(),
        )

    def apply(self, x: Vector) -> Vector:
        """Multiply each row of ``x``: (..., columns) to (..., rows)."""
        outputs, members, taps = self.kernel.shape
        window = self.window
        images = np.asarray(x, np.float64).reshape(-1, members * self.groups, window.inputs)
        kernel = self.kernel.reshape(self.groups, outputs // self.groups, members * taps)
        block = max(1, UNSHARED // kernel[0].size)
        padded = np.zeros((images.shape[1], window.inputs + 1))
        out = np.empty((len(images), self.groups, outputs // self.groups, window.outputs))
        for image, result in zip(images, out, strict=True):
            padded[:, :-1] = image
            for first in range(0, window.outputs, block):
                seen = np.take(padded, window.table[:, first : first + block], axis=1, mode="clip")
                columns = seen.reshape(self.groups, members * taps, -1)
                result[..., first : first + block] = kernel @ columns
        return out.reshape(*np.shape(x)[:-1], self.shape[0])

    def scaled(self, rows: Vector | float = 1.0, columns: Vector | float = 1.0) -> "Self | SparseMatrix":
        """Return diag(rows) @ self @ diag(columns): a convolution if every channel has one factor."""
        outputs, members, _ = self.kernel.shape
        left = _by_channel(rows, outputs)
        right = _by_channel(columns, members * self.groups)
        if left is None or right is None:
            return self.explicit().scaled(rows, columns)
        into, origin = self.channels()
        factors = (left[into] * right[origin]).reshape(outputs, members, 1)
        return replace(self, kernel=self.kernel * factors)

    def row_counts(self) -> Indices:
        """Entries of every row."""
        counts = np.zeros((len(self.kernel), self.window.outputs), np.int64)
        result = np.count_nonzero(self.kernel, axis=1)
        np.add.at(counts.T, self.window.into, result.T[self.window.tap])
        return counts.ravel()

    def column_counts(self) -> Indices:
        """Entries of every column."""
        outputs, members, taps = self.kernel.shape
        counts = np.zeros((members * self.groups, self.window.inputs), np.int64)
        groups = self.kernel.reshape(self.groups, outputs // self.groups, members, taps)
        result = np.count_nonzero(groups, axis=1).reshape(-1, taps)
        np.add.at(counts.T, self.window.origin, result.T[self.window.tap])
        return counts.ravel()

    def is_diagonal(self) -> bool:
        """Return False: a diagonal matrix is stored as a `SparseMatrix`."""
        return False

    def scalar(self) -> None:
        """Return None: it is not a multiple of the identity."""
        return


def _by_channel(factors: Vector | float, channels: int) -> Vector | None:
    """Return one factor for each channel, if all pixels of each have the same."""
    if np.ndim(factors) == 0:
        return np.full(channels, float(factors))
    images = np.asarray(factors, np.float64).reshape(channels, -1)
    return images[:, 0] if (images == images[:, :1]).all() else None


Matrix = SparseMatrix | Convolution


def product_entries(left: Matrix, right: Matrix) -> int:
    """Return the number of terms that ``left @ right`` sums: a bound on its entries and on the work."""
    return int(left.column_counts() @ right.row_counts())


def product(left: Matrix, right: Matrix) -> Matrix:
    """Return left @ right."""
    if isinstance(right, SparseMatrix) and right.is_diagonal():
        return left.scaled(columns=right.values)
    if isinstance(left, SparseMatrix) and left.is_diagonal():
        return right.scaled(rows=left.values)
    return left.explicit() @ right.explicit()


def total(left: Matrix, right: Matrix) -> SparseMatrix:
    """Return left + right."""
    return left.explicit() + right.explicit()
