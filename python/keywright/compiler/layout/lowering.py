"""Lowers a linear map between layouts to diagonals and foldings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.graph.convolution import Matrix
from keywright.compiler.graph.graph import Linear
from keywright.program.arrays import Vector
from keywright.program.operands.diagonals import DiagonalMatrix, Diagonals
from keywright.program.operands.layout import Layout

from .layer_work import LayerWork, Prices
from .shifts import LayoutPair, Used, fill_table, repetition, used_diagonals

MOST_COMPARED = 1 << 24
"""Values of diagonals that are compared at most, to see how soon they repeat."""


@dataclass(frozen=True, eq=False)
class LoweredLinear:
    """A linear map as operations on ciphertexts.

    Attributes:
        rows: for each ciphertext of the result, the ciphertexts of the operands that it reads, in order, and
            the block row applied to them.
        folds: rotations whose sums complete each ciphertext of the result, in order; it is then periodic.
    """

    rows: list[tuple[tuple[int, ...], DiagonalMatrix]]
    folds: tuple[int, ...]

    @property
    def work(self) -> LayerWork:
        """Operations of all rows together."""
        transforms = [transform for _, transform in self.rows]
        babies = [t.baby_steps(k) for t in transforms for k in range(len(t.diagonals))]
        return LayerWork(
            rotations=sum(int(np.count_nonzero(t.giant_steps)) + len(self.folds) for t in transforms),
            hoisted=sum(int(np.count_nonzero(steps)) for steps in babies),
            diagonals=sum(len(diagonals) for t in transforms for diagonals in t.diagonals),
        )


@dataclass(frozen=True, eq=False)
class _Input:
    """One ciphertext that a map reads: the matrix to apply, its layouts, the ciphertext's index, and the
    diagonals that it has for ciphertexts of the result."""

    matrix: Matrix
    between: LayoutPair
    block: int
    used: Mapping[int, Used]

    def diagonals(self, block_out: int, tile: int) -> Diagonals:
        """Return the diagonals between this and one ciphertext of the result; foldings add up their
        shares."""
        used = self.used[block_out]
        share = self.between.period / tile

        def make() -> Vector:
            table = fill_table(self.matrix, self.between, (block_out, self.block), used)
            if share != 1:
                table *= share
            return table

        steps, (period, copies) = np.flatnonzero(used).tolist(), repetition(self.matrix, self.between)
        if len(steps) * period <= MOST_COMPARED and _regular(self.matrix):
            period = copies * _shortest_period(make())
        return Diagonals(steps, period, lambda: make()[:, : period // copies], copies)


@lru_cache(maxsize=2)
def _regular(matrix: Matrix) -> bool:
    """Whether at most two numbers are entries, as in a map that spreads, sums or centres. Its diagonals often
    repeat earlier than the layouts do; those of weights do not."""
    values = matrix.values
    return bool(len(values)) and bool(((values == values.min()) | (values == values.max())).all())


def _shortest_period(table: Vector) -> int:
    """Return the smallest power of two after which all diagonals, (diagonals, values), repeat."""
    period = int(table.shape[1])
    while period > 1 and np.array_equal(table[:, : period // 2], table[:, period // 2 : period]):
        period //= 2
    return period


def lower(node: Linear, sources: list[Layout], target: Layout, prices: Prices) -> LoweredLinear:
    """Return the diagonals of a linear map between layouts. If another operand has a longer period, the
    copies that are added up share a value."""
    inputs = _inputs(list(node.matrices), sources, target)
    tile = max(target.period, *(source.period for source in sources))
    rows = []
    for block_out in range(target.ciphertexts):
        read, used = _read(inputs, block_out)
        diagonals = tuple(inputs[k].diagonals(block_out, tile) for k in read)
        if not read:
            read, diagonals = (0,), (Diagonals((0,), 1, lambda: np.zeros((1, 1))),)
        rows.append((read, DiagonalMatrix(target.slots, diagonals, best_n1(used, prices)[0])))
    return LoweredLinear(rows, _folds(target.period, tile))


def placement_cost(matrices: list[Matrix], sources: list[Layout], target: Layout, prices: Prices) -> float:
    """Return the time of all block rows that `lower` would give, with their foldings."""
    inputs = _inputs(matrices, sources, target)
    folds = _folds(target.period, max(target.period, *(source.period for source in sources)))
    cost = prices.rotation * target.ciphertexts * len(folds)
    for block_out in range(target.ciphertexts):
        read, used = _read(inputs, block_out)
        # A row without entries is a product with zero.
        cost += best_n1(used, prices)[1] + (0.0 if read else prices.diagonal)
    return cost


def _inputs(matrices: list[Matrix], sources: list[Layout], target: Layout) -> list[_Input]:
    results = []
    for matrix, source in zip(matrices, sources, strict=True):
        between = LayoutPair(source, target)
        blocks: list[dict[int, Used]] = [{} for _ in range(source.ciphertexts)]
        for (block_out, block), used in used_diagonals(matrix, between).items():
            blocks[block][block_out] = used
        results += [_Input(matrix, between, block, used) for block, used in enumerate(blocks)]
    return results


def _read(inputs: list[_Input], block_out: int) -> tuple[tuple[int, ...], Used]:
    """Return the numbers of the inputs that a ciphertext of the result reads, and the diagonals of each,
    (inputs, slots); of one without entries if it reads none."""
    read = tuple(k for k, each in enumerate(inputs) if block_out in each.used)
    slots = inputs[0].between.source.slots
    return read, np.stack([inputs[k].used[block_out] for k in read] or [np.zeros(slots, bool)])


def _folds(period: int, tile: int) -> tuple[int, ...]:
    return tuple(period << k for k in range((tile // period).bit_length() - 1))


def best_n1(used: Used, prices: Prices) -> tuple[int, float]:
    """Return the fastest number of baby steps, g times a power of two with g the greatest common divisor of
    the diagonals, and its time: baby steps of each input, common giant steps, products with diagonals.

    Args:
        used: which diagonals each input has, (inputs, slots).
    """
    slots = used.shape[1]
    steps = np.flatnonzero(used.any(axis=0))
    first = int(np.gcd.reduce(np.append(steps, slots)))
    babies, giants = _baby_counts(used), _giant_counts(np.asarray(used.any(axis=0)))
    products = prices.diagonal * int(np.count_nonzero(used))
    costs = {
        n1: prices.hoisted * babies[n1] + prices.rotation * giants[n1] + products
        for n1 in babies
        if n1 >= first
    }
    n1 = min(costs, key=lambda n1: (costs[n1], n1))
    return n1, costs[n1]


def _baby_counts(used: Used) -> dict[int, int]:
    """Return the rotations of inputs by n1."""
    counts, n1 = {}, used.shape[1]
    while True:
        counts[n1] = int(np.count_nonzero(used[:, 1:]))
        if n1 == 1:
            return counts
        n1 //= 2
        used = used[:, :n1] | used[:, n1:]


def _giant_counts(used: NDArray[np.bool_]) -> dict[int, int]:
    """Return the rotations of sums by n1."""
    counts, n1 = {}, 1
    while True:
        counts[n1] = int(np.count_nonzero(used[1:]))
        if len(used) == 1:
            return counts
        n1 *= 2
        used = used[::2] | used[1::2]
