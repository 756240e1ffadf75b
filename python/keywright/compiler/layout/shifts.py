"""Positions of the entries of a matrix between two layouts: on which diagonal, at which slot.

Let the source have period p and the target t. An entry from slot s to slot o is on a diagonal congruent to s
- o modulo min(p, t). If p > t, partial sums land at slots congruent to o modulo t and are added up afterwards
by rotations t, 2t, ... (rotate-and-sum; Juvekar et al., USENIX Security 2018, section 4.3): at most t
diagonals for any number of inputs. Diagonals repeat after max(p, t) slots.

Positions in images are the sum of a channel offset and a pixel offset. The diagonals of a convolution are
therefore sums of two short lists, and counting them needs no pass over the entries.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.graph.convolution import Convolution, Matrix
from keywright.compiler.limits import MAX_STEPS, require_at_most
from keywright.program.arrays import Vector
from keywright.program.operands.layout import Layout

Steps = NDArray[np.signedinteger[Any]]
Used = NDArray[np.bool_]

Block = tuple[int, int]
"""A ciphertext of the target and one of the source."""

UsedBlocks = dict[Block, Used]


@dataclass(frozen=True, eq=False)
class LayoutPair:
    """A source and a target layout.

    Attributes:
        source, target: of the same slots.
    """

    source: Layout
    target: Layout

    @property
    def modulus(self) -> int:
        """Diagonals are congruent to their entries' shifts modulo this."""
        return min(self.source.period, self.target.period)

    @property
    def period(self) -> int:
        """Slots after which the diagonals repeat."""
        return max(self.source.period, self.target.period)

    def diagonal(self, shift: Steps) -> Steps:
        """Return the index in [0, slots) of the diagonal of a shift s - o: a short step of either sign, which
        many layers then have in common."""
        half = self.modulus // 2
        signed: Steps = ((shift + half) & (self.modulus - 1)) - half
        return signed & (self.source.slots - 1)

    def slot(self, origin: Steps, into: Steps, diagonal: Steps) -> Steps:
        """Return where on its diagonal an entry between two positions is."""
        moved = origin - diagonal if self.source.period > self.target.period else into
        return moved & (self.period - 1)


def used_diagonals(matrix: Matrix, between: LayoutPair) -> UsedBlocks:
    """Return which diagonals are non-zero, (slots,), between a ciphertext of the target and one of the
    source, for those between which any is.

    Raises:
        RefusalError: there are too many ciphertexts or entries.
    """
    return _entries(matrix, between).used()


@lru_cache(maxsize=2)  # of pairs of ciphertexts, one after the other, of the operands of a map
def _entries(matrix: Matrix, between: LayoutPair) -> "_Separated | _Explicit":
    """Return a matrix as sums over channel and pixel, if it is so, or entry by entry."""
    return _Separated.of(matrix, between) or _Explicit(matrix, between)


def _require_steps(source: Layout, target: Layout, pairs: int) -> None:
    """Refuse a layer with entries between too many pairs of ciphertexts."""
    what = f"a layer between {source.ciphertexts} and {target.ciphertexts} ciphertexts"
    require_at_most(what, "steps", pairs * source.slots, MAX_STEPS)


def repetition(matrix: Matrix, between: LayoutPair) -> tuple[int, int]:
    """Return after how many slots the diagonals repeat, and how many neighbouring values are equal, as far as
    the layouts tell."""
    return _entries(matrix, between).repetition


def fill_table(matrix: Matrix, between: LayoutPair, block: Block, used: Used) -> Vector:
    """Return the diagonals between two ciphertexts up to their `repetition`, with one of each equal values:
    (used diagonals, period / copies).

    Args:
        block: ciphertext of the target and of the source.
        used: result of `used_diagonals` for these two.
    """
    period, copies = repetition(matrix, between)
    table = np.zeros((int(np.count_nonzero(used)), period // copies))
    _entries(matrix, between).fill(table, np.cumsum(used, dtype=np.int32) - 1, block)
    return table


@dataclass(frozen=True, eq=False)
class _Explicit:
    """A matrix between layouts, entry by entry."""

    matrix: Matrix
    between: LayoutPair

    @property
    def repetition(self) -> tuple[int, int]:
        """Period and equal neighbours, as `repetition` has them."""
        return self.between.period, 1

    def used(self) -> UsedBlocks:
        """Return the non-zero diagonals, as `used_diagonals` does. Shifts modulo the slots do not depend on
        periods."""
        source, target = self.between.source, self.between.target
        key = ("shifts", source.slots, source.digest, target.digest)
        known: dict[Block, Steps] | None = self.matrix.of_places.get(key)
        if known is None:
            known = self.matrix.of_places[key] = {
                block: np.flatnonzero(_distinct(origin - into, source.slots))
                for block, (into, origin, _) in self._blocks.items()
            }
        results: UsedBlocks = {}
        for block, shifts in known.items():
            results[block] = np.zeros(source.slots, bool)
            results[block][self.between.diagonal(shifts)] = True
        return results

    @cached_property
    def _blocks(self) -> dict[Block, tuple[Steps, Steps, Vector]]:
        """Positions in target and source, and values, of the entries between any two ciphertexts."""
        source, target, matrix = self.between.source, self.between.target, self.matrix.explicit()
        into, origin, values = target.positions[matrix.rows], source.positions[matrix.columns], matrix.values
        if not len(values):
            return {}
        if target.ciphertexts == source.ciphertexts == 1:
            return {(0, 0): (into, origin, values)}
        blocks = into // source.slots * source.ciphertexts + origin // source.slots
        counts = np.bincount(blocks)
        pairs = np.flatnonzero(counts)
        _require_steps(source, target, len(pairs))
        order = np.argsort(blocks.astype(np.min_scalar_type(len(counts))), kind="stable")
        ends = np.cumsum(counts[pairs])[:-1]
        parts = zip(*(np.split(each[order], ends) for each in (into, origin, values)), strict=True)
        return {divmod(int(pair), source.ciphertexts): part for pair, part in zip(pairs, parts, strict=True)}

    def fill(self, table: Vector, row: Steps, block: Block) -> None:
        """Set the entries between two ciphertexts. No two share a place: diagonal and slot determine row and
        column."""
        into, origin, values = self._blocks[block]
        diagonal = self.between.diagonal(origin - into)
        table[row[diagonal], self.between.slot(origin, into, diagonal)] = values


@dataclass(frozen=True, eq=False)
class _Separated:
    """A convolution between layouts whose positions are sums over channel and pixel.

    Attributes:
        kernel: (pairs of channels, taps).
        into, origin: position of the first pixel of both channels of every pair.
        pixel_into, pixel_origin, tap: offsets of the pixels of every pair that meets, and the tap.
    """

    between: LayoutPair
    kernel: NDArray[np.float64]
    into: Steps
    origin: Steps
    pixel_into: Steps
    pixel_origin: Steps
    tap: Steps

    @classmethod
    def of(cls, matrix: Matrix, between: LayoutPair) -> "_Separated | None":
        """Return None for another matrix, or for layouts that are not such sums."""
        if not isinstance(matrix, Convolution):
            return None
        window, (into, origin) = matrix.window, matrix.channels()
        target, source = between.target.separated(matrix.rows), between.source.separated(matrix.columns)
        if target is None or source is None:
            return None
        return cls(
            between,
            matrix.kernel.reshape(-1, window.taps),
            target[0][into],
            source[0][origin],
            target[1][window.into],
            source[1][window.origin],
            window.tap,
        )

    def used(self) -> UsedBlocks:
        """Return the non-zero diagonals, as `used_diagonals` does."""
        source, target = self.between.source, self.between.target
        sources = source.ciphertexts
        blocks = self.into // source.slots * sources + self.origin // source.slots
        shifts, pixels = self.origin - self.into, self.pixel_origin - self.pixel_into
        present = self.kernel != 0
        uniform = bool(present.all())
        pairs = np.flatnonzero(np.bincount(blocks))
        _require_steps(source, target, len(pairs))
        results = {divmod(int(pair), sources): np.zeros(source.slots, bool) for pair in pairs}
        for pair, used in zip(pairs, results.values(), strict=True):
            inside = blocks == pair
            if uniform:
                self._mark(used, shifts[inside], pixels)
                continue
            for tap in range(present.shape[1]):
                self._mark(used, shifts[inside & present[:, tap]], pixels[self.tap == tap])
        return {pair: used for pair, used in results.items() if used.any()}

    def _mark(self, used: Used, channels: Steps, pixels: Steps) -> None:
        """Mark the diagonals of all sums of two lists of shifts."""
        modulus = self.between.modulus
        few, many = sorted((_distinct(channels, modulus), _distinct(pixels, modulus)), key=np.count_nonzero)
        twice, sums = np.concatenate((many, many)), np.zeros(modulus, bool)
        for shift in np.flatnonzero(few):
            sums |= twice[modulus - shift : 2 * modulus - shift]
        used[self.between.diagonal(np.flatnonzero(sums))] = True

    @cached_property
    def repetition(self) -> tuple[int, int]:
        """Period and equal neighbours, as `repetition` has them: a map that is the same at every pixel has
        diagonals that repeat from pixel to pixel."""
        period, offsets = self.between.period, self.pixel_into
        if self.kernel.shape[1] > 1 or (offsets != self.pixel_origin).any():
            return period, 1
        step = int(offsets[1]) if offsets.size > 1 else period
        if not np.array_equal(offsets, step * np.arange(offsets.size)):
            return period, 1
        if step * offsets.size == period:
            return step, 1
        copies = offsets.size & -offsets.size
        aligned = step == 1 and not ((self.into | self.origin) & (copies - 1)).any()
        return period, copies if aligned else 1

    def fill(self, table: Vector, row: Steps, block: Block) -> None:
        """Set the entries between two ciphertexts: for each pixel shift of a tap, every pair of channels has
        one diagonal."""
        slots, taps = self.between.source.slots, self.kernel.shape[1]
        period, copies = self.repetition
        pairs = np.flatnonzero((self.into // slots == block[0]) & (self.origin // slots == block[1]))
        flat, places = table.reshape(-1), np.int64(table.shape[1])
        moves = (self.pixel_origin - self.pixel_into).astype(np.int64) * taps + self.tap
        distinct, place = np.unique(moves, return_inverse=True)
        order = np.argsort(place, kind="stable")
        for move, every in zip(distinct, np.split(order, np.cumsum(np.bincount(place))[:-1]), strict=True):
            shift, tap = divmod(int(move), taps)
            pixels = every[:1] if period < self.between.period else every[::copies]
            met = pairs[self.kernel[pairs, tap] != 0]
            into, origin = self.into[met, None], self.origin[met, None]
            diagonal = self.between.diagonal(origin - into + shift)
            slot = self.between.slot(
                origin + self.pixel_origin[pixels], into + self.pixel_into[pixels], diagonal
            )
            flat[row[diagonal] * places + (slot & (period - 1)) // copies] = self.kernel[met, tap, None]


def _distinct(shifts: Steps, modulus: int) -> Used:
    result = np.zeros(modulus, bool)
    result[shifts & (modulus - 1)] = True
    return result
