"""Convolutions as kernels: linear maps that do the same at every pixel of an image, or token of a text."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Vector

from .sparse import Indices, SparseMatrix

UNSHARED = 1 << 18
"""Multiply-adds of the largest product that is computed by itself, unless a kernel has more weights. OpenBLAS
computes such products on one thread; its threads wait for each other actively, which takes more processor
time than small products themselves."""

MOST_PIXELS = 1 << 10
"""Pixels of all images whose product with a kernel of more weights is computed at a time."""


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
    """The matrix with ``kernel[o, c, t]`` at row ``rows[o, p]`` and column ``columns[c, q]`` for all pixels p
    and q that meet at tap t. It has the methods of `SparseMatrix`, but stores no entry per pixel.

    Attributes:
        kernel: (outputs, inputs / groups, taps).
        groups: the outputs of each read the inputs of their own group only.
        window: of both images.
        numbers: of the elements of result and operand, (channels, pixels) each; by default row-major.
    """

    kernel: NDArray[np.float64]
    groups: int
    window: Window
    numbers: tuple[Indices, Indices] | None = None

    @cached_property
    def rows(self) -> Indices:
        """The numbers of the result's elements, (outputs, pixels)."""
        shape = len(self.kernel), self.window.outputs
        return np.arange(math.prod(shape)).reshape(shape) if self.numbers is None else self.numbers[0]

    @cached_property
    def columns(self) -> Indices:
        """The numbers of the operand's elements, (inputs, pixels)."""
        shape = self.kernel.shape[1] * self.groups, self.window.inputs
        return np.arange(math.prod(shape)).reshape(shape) if self.numbers is None else self.numbers[1]

    @cached_property
    def of_places(self) -> dict[object, Any]:
        """Results that depend on the places of entries alone."""
        return {}

    @classmethod
    def everywhere(cls, weights: Vector, rows: Indices, columns: Indices) -> "Self | SparseMatrix":
        """Return the map that multiplies by the same matrix at every place, such as a dense layer on every
        token.

        Args:
            weights: (outputs, inputs).
            rows, columns: numbers of the elements of result and operand, (outputs, places) and (inputs,
                places), each once.
        """
        every = np.arange(rows.shape[1])
        window = Window(every.size, every.size, 1, every, np.zeros_like(every), every)
        matrix = cls(np.asarray(weights, np.float64)[:, :, None], 1, window, (rows, columns))
        # One that may be diagonal is explicit: the rewriting rules look for it.
        return matrix.explicit() if np.count_nonzero(weights) <= len(weights) else matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (outputs) and columns (inputs) of the matrix."""
        return self.rows.size, self.columns.size

    @property
    def values(self) -> Vector:
        """The weights that are not 0."""
        weights: Vector = self.kernel[self.kernel != 0]
        return weights

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
        require_at_most("the matrix of all pixels or tokens", "entries", self.entries, MAX_ENTRIES)
        into, origin = (channel[:, None] for channel in self.channels())
        return SparseMatrix.from_distinct(
            self.shape,
            self.rows[into, window.into].ravel(),
            self.columns[origin, window.origin].ravel(),
            self.kernel.reshape(-1, window.taps)[:, window.tap].ravel(),
        )

    def apply(self, x: Vector) -> Vector:
        """Multiply each row of ``x``: (..., columns) to (..., rows)."""
        outputs, members, taps = self.kernel.shape
        window = self.window
        images = np.asarray(x, np.float64).reshape(-1, self.columns.size)
        kernel = self.kernel.reshape(self.groups, outputs // self.groups, members * taps)
        block = UNSHARED // kernel[0].size or MOST_PIXELS
        together = max(1, block // window.outputs)
        out = np.empty((len(images), self.rows.size))
        for start in range(0, len(images), together):
            part = images[start : start + together]
            padded = np.zeros((len(self.columns), window.inputs + 1, len(part)))
            padded[:, :-1] = part.T[self.columns]
            products = np.empty((*kernel.shape[:2], window.outputs, len(part)))
            for first in range(0, window.outputs, block):
                seen = np.take(padded, window.table[:, first : first + block], axis=1, mode="clip")
                into = products[:, :, first : first + block]
                into[...] = (kernel @ seen.reshape(len(kernel), members * taps, -1)).reshape(into.shape)
            out[start : start + together].T[self.rows] = products.reshape(*self.rows.shape, -1)
        return out.reshape(*np.shape(x)[:-1], self.shape[0])

    def scaled(self, rows: Vector | float = 1.0, columns: Vector | float = 1.0) -> "Self | SparseMatrix":
        """Return diag(rows) @ self @ diag(columns): a convolution if every channel has one factor."""
        scaled = self.channels_scaled(rows, columns)
        return self.explicit().scaled(rows, columns) if scaled is None else scaled

    def channels_scaled(self, rows: Vector | float = 1.0, columns: Vector | float = 1.0) -> Self | None:
        """Return diag(rows) @ self @ diag(columns) if every channel has one factor, otherwise None."""
        left, right = _by_channel(rows, self.rows), _by_channel(columns, self.columns)
        if left is None or right is None:
            return None
        into, origin = self.channels()
        factors = (left[into] * right[origin]).reshape(*self.kernel.shape[:2], 1)
        return replace(self, kernel=self.kernel * factors)

    def picked(self, numbers: Indices) -> Self | None:
        """Return the rows with these numbers, if they are all pixels of some channels, each once; otherwise
        None."""
        places = np.full(self.rows.size, -1)
        places[numbers] = np.arange(len(numbers))
        rows = places[self.rows]
        kept = (rows >= 0).any(axis=1)
        if (rows[kept] < 0).any() or np.count_nonzero(kept) * rows.shape[1] != len(numbers):
            return None
        if self.groups > 1 and not kept.all():
            return None
        return replace(self, kernel=self.kernel[kept], numbers=(rows[kept], self.columns))

    def row_counts(self) -> Indices:
        """Entries of every row."""
        images = np.zeros(self.rows.shape, np.int64)
        result = np.count_nonzero(self.kernel, axis=1)
        np.add.at(images.T, self.window.into, result.T[self.window.tap])
        counts = np.zeros(self.rows.size, np.int64)
        counts[self.rows] = images
        return counts

    def column_counts(self, read: NDArray[np.bool_] | None = None) -> Indices:
        """Entries of every column, in all rows or in those that are read."""
        window, (into, origin) = self.window, self.channels()
        images = np.zeros((window.inputs, len(self.columns)))
        for tap in range(window.taps):
            weights = np.zeros((len(self.columns), len(self.rows)))
            weights[origin, into] = self.kernel[:, :, tap].ravel() != 0
            met = window.tap == tap
            places = self.rows[:, window.into[met]]
            counted = weights.sum(axis=1) if read is None else (weights @ read[places]).T
            np.add.at(images, window.origin[met], counted)
        counts = np.zeros(self.columns.size, np.int64)
        counts[self.columns] = images.T
        return counts

    def is_diagonal(self) -> bool:
        """Return False: a diagonal matrix is stored as a `SparseMatrix`."""
        return False

    def scalar(self) -> None:
        """Return None: it is not a multiple of the identity."""
        return


def _by_channel(factors: Vector | float, numbers: Indices) -> Vector | None:
    """Return one factor for each channel, if all pixels of each have the same."""
    if np.ndim(factors) == 0:
        return np.full(len(numbers), float(factors))
    images = np.asarray(factors, np.float64)[numbers]
    return images[:, 0] if (images == images[:, :1]).all() else None


Matrix = SparseMatrix | Convolution


def product_entries(left: Matrix, right: Matrix) -> int:
    """Return the number of terms that ``left @ right`` sums: a bound on its entries and on the work."""
    return int(left.column_counts() @ right.row_counts())


def product(left: Matrix, right: Matrix) -> Matrix:
    """Return left @ right."""
    if (kernels := product_of_kernels(left, right)) is not None:
        return kernels
    if isinstance(right, SparseMatrix) and right.is_diagonal():
        return left.scaled(columns=right.values)
    if isinstance(left, SparseMatrix) and left.is_diagonal():
        return right.scaled(rows=left.values)
    return left.explicit() @ right.explicit()


def product_of_kernels(left: Matrix, right: Matrix) -> Convolution | None:
    """Return left @ right if that is known to be a convolution, otherwise None."""
    if isinstance(left, Convolution) and isinstance(right, SparseMatrix):
        if right.is_diagonal():
            return left.channels_scaled(columns=right.values)
        if right.moves is not None and right.shape[0] == right.shape[1] == len(np.unique(right.moves)):
            return replace(left, numbers=(left.rows, right.moves[left.columns]))
    if isinstance(left, SparseMatrix) and isinstance(right, Convolution):
        if left.is_diagonal():
            return right.channels_scaled(rows=left.values)
        if left.moves is not None:
            return right.picked(left.moves)
    return None


def total(left: Matrix, right: Matrix) -> SparseMatrix:
    """Return left + right."""
    return left.explicit() + right.explicit()
