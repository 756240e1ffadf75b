"""Positions of a tensor's elements: multiplexed packing in the slots of one or several ciphertexts.

An image with gaps g and h between rows and columns keeps g h channels interleaved on one grid of pixels: a
strided convolution leaves its result spread over the grid of its input instead of compacting it (Lee et al.,
ICML 2022, section 4, whose g and h are equal: strides of an axis alone would leave slots empty). Content
smaller than a ciphertext repeats with a period, so that rotations wrap around inside the period.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Stated
from keywright.program.arrays import Shape, Vector

Positions = NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """The pixels of an image: channel c is at row y * g + (c mod g h) // h, column x * h + c mod h, grid
    c // (g h) with ``gap`` (g, h); grids are ``height * width`` slots or the next power of two."""

    gap: tuple[int, int]
    height: int
    width: int
    aligned: bool

    @property
    def size(self) -> int:
        """Slots from one grid to the next."""
        return next_power_of_two(self.height * self.width) if self.aligned else self.height * self.width

    def positions(self, shape: tuple[int, int, int]) -> tuple[Positions, Positions]:
        """Return grid number and slot inside the grid of every element of an image, in row-major order."""
        c, y, x = (axis.ravel() for axis in np.indices(shape))
        rows, columns = self.gap
        number, within = divmod(c, rows * columns)
        slot = (y * rows + within // columns) * self.width + x * columns + within % columns
        return number.astype(np.int32), slot.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Layout(Stated):
    """The place of every element of a flattened tensor, of one sample or of several.

    Attributes:
        slots: slots per ciphertext, a power of two.
        period: the content of a single ciphertext repeats after this many slots; equal to ``slots`` if there
            are several.
        positions: for each element of the first sample, ciphertext number times slots plus slot; slots below
            ``period``. The same element of sample b is b slots further.
        grid: of one sample's image; None for a vector.
        batch: samples, interleaved: a power of two. See `keywright.compiler.layout.batches`.
        parts: 1; or 2 if the second half of the samples has ciphertexts of its own behind those of the first
            half, at the same places. See `keywright.compiler.joining`.
    """

    slots: int
    period: int
    positions: Positions
    grid: Grid | None = None
    batch: int = 1
    parts: int = 1

    @cached_property
    def ciphertexts(self) -> int:
        """Number of ciphertexts of the tensor."""
        return (int(self.positions.max()) // self.slots + 1) * self.parts

    @cached_property
    def digest(self) -> bytes:
        """Hash of the positions of the first sample, which layouts of several periods share."""
        return blake2b(self.positions.astype(np.int32).tobytes(), digest_size=16).digest()

    def separated(self, numbers: NDArray[np.int64]) -> tuple[Positions, Positions] | None:
        """Return the position of every channel's first pixel, and the offset of each of its pixels, modulo
        the period; None if positions are not such sums, or a channel spans several ciphertexts.

        Args:
            numbers: of the elements, (channels, pixels).
        """
        images = self.positions[numbers]
        first, added = images[:, 0], images[0] - images[0, 0]
        sums = (images - first[:, None] - added) & (self.period - 1)
        if sums.any() or (images // self.slots != first[:, None] // self.slots).any():
            return None
        return first, added

    def pack(self, values: Vector) -> Vector:
        """Pack flattened values into slot vectors of shape (ciphertexts, slots), repeated over the periods,
        zero elsewhere. The values have shape (elements,), the same for all samples, or (batch, elements)."""
        flat = np.zeros(self.ciphertexts * self.slots)
        flat[self._places()] = values
        rows = flat.reshape(-1, self.slots)
        return np.tile(rows[:, : self.period], (1, self.slots // self.period))

    def unpack(self, slots: Vector) -> Vector:
        """Return the flattened values, (batch, elements), in slot vectors of shape (ciphertexts, slots), or
        with fewer slots, at least the period."""
        ciphertext, slot = np.divmod(self._places(), self.slots)
        return np.asarray(slots, np.float64)[ciphertext, slot]

    def element(self, ciphertext: int, slot: int) -> int | None:
        """Return which element of a sample is in a slot of a ciphertext; None if none is."""
        place = ciphertext * self.slots + slot % self.period
        elements = np.argwhere(self._places() == place)
        return int(elements[0, 1]) if len(elements) else None

    def _places(self) -> Positions:
        """Return the place of every element of every sample, (batch, elements)."""
        part, sample = np.divmod(np.arange(self.batch, dtype=np.int32), self.batch // self.parts)
        offsets = part * (self.ciphertexts // self.parts * self.slots) + sample
        return self.positions + offsets.astype(np.int32)[:, None]


def next_power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least ``size``."""
    return 1 << max(size - 1, 0).bit_length()


def candidates(
    shape: Shape, slots: int, sources: Sequence[Layout], stride: tuple[int, int]
) -> Iterator[Layout]:
    """Yield candidate layouts for a tensor.

    Args:
        slots: slots per ciphertext.
        sources: layouts of the tensors that it is computed from.
        stride: rows and columns of the sources per row and column of the tensor.
    """
    if len(shape) == 3:
        seen: set[Grid] = set()
        if shape[1] * shape[2] > slots:
            yield from _vector_layouts(np.arange(int(np.prod(shape)), dtype=np.int32), slots)
        for grid in _grids((shape[0], shape[1], shape[2]), slots, sources, stride):
            if grid not in seen:
                seen.add(grid)
                yield from _image_layouts((shape[0], shape[1], shape[2]), slots, grid)
    else:
        size = int(np.prod(shape, dtype=np.int64))
        yield from _vector_layouts(np.arange(size, dtype=np.int32), slots)
        if len(shape) == 2 and min(shape) > 1:
            # By columns: the tokens of a sentence are neighbours, as products of matrices have them.
            yield from _vector_layouts(np.arange(size, dtype=np.int32).reshape(shape[::-1]).T.ravel(), slots)


def _grids(
    shape: tuple[int, int, int], slots: int, sources: Sequence[Layout], stride: tuple[int, int]
) -> Iterator[Grid]:
    channels, height, width = shape
    for grid in (source.grid for source in sources if source.grid is not None):
        gaps = [(grid.gap[0] * stride[0], grid.gap[1] * stride[1])]
        if stride[0] != stride[1] and -(-channels // prod(grid.gap)) * grid.size <= slots:
            gaps.append(grid.gap)  # a pool then needs no shift between channels
        for g, h in gaps:
            if height * g <= grid.height + g - 1 and width * h <= grid.width + h - 1:
                rows, columns = -(-grid.height // g) * g, -(-grid.width // h) * h
                yield Grid((g, h), rows, columns, aligned=True)
                yield Grid((g, h), rows, columns, aligned=False)
    yield Grid((1, 1), height, next_power_of_two(width), aligned=True)
    yield Grid((1, 1), height, width, aligned=True)
    yield Grid((1, 1), height, width, aligned=False)
    if not sources and channels == 1:
        yield Grid((1, 1), height + 4, next_power_of_two(width + 4), aligned=True)


def _image_layouts(shape: tuple[int, int, int], slots: int, grid: Grid) -> Iterator[Layout]:
    number, slot = grid.positions(shape)
    count = int(number.max()) + 1
    if grid.height * grid.width > slots:
        return
    per_ciphertext = max(slots // grid.size, 1)
    if count <= per_ciphertext:
        positions = number * grid.size + slot
        for period in _periods(int(positions.max()) + 1, slots):
            yield Layout(slots, period, positions, grid)
    else:
        yield Layout(
            slots, slots, number // per_ciphertext * slots + number % per_ciphertext * grid.size + slot, grid
        )


def _vector_layouts(index: Positions, slots: int) -> Iterator[Layout]:
    """Yield layouts of elements that follow each other in the order of ``index``."""
    size = len(index)
    if size > slots:
        yield Layout(slots, slots, index)
        return
    for period in _periods(size, slots):
        yield Layout(slots, period, index)
        spread = period // next_power_of_two(size)
        if spread > 1:
            yield Layout(slots, period, index * spread)


def _periods(size: int, slots: int) -> Iterator[int]:
    period = next_power_of_two(size)
    while period <= slots:
        yield period
        period *= 2
