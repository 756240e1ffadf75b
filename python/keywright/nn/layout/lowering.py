"""A sparse matrix between two layouts as diagonals and foldings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.nn.graph.graph import Linear
from keywright.nn.graph.sparse import SparseMatrix, Vector

from .diagonals import DiagonalMatrix
from .layer_work import LayerWork
from .layout import Layout

Steps = NDArray[np.signedinteger[Any]]

BABY_COST = 0.45
"""Cost of a hoisted rotation, in rotations that are not: its decomposition is shared.

It orders layouts and ways to divide a map, and nothing else. `CostTable` says half of it at a middle level:
with that table's costs ResNet-8 in 4096 slots would take 833 rotations instead of 591.
"""

DIAGONAL_COST = 0.02
"""Cost of one plaintext product, in rotations. It orders layouts and nothing else, since all ways to divide
a map have the same diagonals; `CostTable` says five times as much at a middle level."""


@dataclass(frozen=True, eq=False)
class BlockPlacement:
    """Where the terms of a block row go when each output may repeat: see `place_blocks`.

    Attributes:
        folds: rotations whose sums complete the result, in order; the result is then periodic.
        terms: for each output ciphertext and each input (operand, ciphertext): diagonal, slot and value of
            every entry, and after how many slots the diagonals repeat.
    """

    folds: tuple[int, ...]
    terms: list[list[tuple[Steps, Steps, Vector, int]]]


def place_blocks(matrices: list[SparseMatrix], sources: list[Layout], target: Layout) -> BlockPlacement:
    """Assign every entry of the matrices to a diagonal and a slot.

    Let the sources have periods p_k and the target period t. An entry from slot s to slot o is on a diagonal
    congruent to s - o modulo min(p_k, t). Where p_k > t, partial sums land at slots congruent to o modulo t
    and are added up afterwards by rotations t, 2t, ... (rotate-and-sum; Juvekar et al., USENIX Security 2018,
    section 4.3): at most t diagonals for any number of inputs. Diagonals of an input repeat after max(p_k, t)
    slots; where another input has a longer period, the copies that are added up share the value.
    """
    slots = target.slots
    tile = max(target.period, *(source.period for source in sources))
    terms: list[list[tuple[Steps, Steps, Vector, int]]] = [[] for _ in range(target.ciphertexts)]
    for matrix, source in zip(matrices, sources, strict=True):
        into, origin, shift = _shifts(matrix, source, target)
        slot = (origin - shift) & (source.period - 1) if source.period > target.period else into & (slots - 1)
        shift &= slots - 1
        own = max(target.period, source.period)
        values = matrix.values * (own / tile)
        for block_out in range(target.ciphertexts):
            for block_in in range(source.ciphertexts):
                if target.ciphertexts == source.ciphertexts == 1:
                    chosen: slice | Steps = slice(None)
                else:
                    chosen = np.flatnonzero((into // slots == block_out) & (origin // slots == block_in))
                terms[block_out].append((shift[chosen], slot[chosen], values[chosen], own))
    return BlockPlacement(_folds(target.period, tile), terms)


def _shifts(matrix: SparseMatrix, source: Layout, target: Layout) -> tuple[Steps, Steps, Steps]:
    """Target position, source position and diagonal of every entry; diagonals as short steps of either sign,
    which are then common to many layers."""
    into = target.positions[matrix.rows]
    origin = source.positions[matrix.columns]
    modulus = min(source.period, target.period)
    half = modulus // 2
    return into, origin, ((origin - into + half) & (modulus - 1)) - half


def _folds(period: int, tile: int) -> tuple[int, ...]:
    return tuple(period << k for k in range((tile // period).bit_length() - 1))


def steps_cost(diagonals: list[Steps], n1: int) -> float:
    """Time of a block row in rotations: baby steps of each input, common giant steps, plaintext products."""
    giants: set[int] = set()
    cost = 0.0
    for shifts in diagonals:
        babies = shifts % n1
        giants.update(np.unique(shifts - babies).tolist())
        cost += BABY_COST * np.count_nonzero(np.unique(babies)) + DIAGONAL_COST * len(shifts)
    return cost + len(giants - {0})


def best_n1(diagonals: list[Steps], slots: int) -> tuple[int, float]:
    """The number of baby steps of least cost, g times a power of two with g the greatest common divisor of
    the diagonals, and that cost."""
    step = int(np.gcd.reduce(np.concatenate([*diagonals, np.asarray([slots])])))
    options = []
    while step <= slots:
        options.append((steps_cost(diagonals, step), step))
        step *= 2
    cost, n1 = min(options)
    return n1, cost


def placement_cost(matrices: list[SparseMatrix], sources: list[Layout], target: Layout) -> float:
    """Time of all block rows that `place_blocks` would give, with their foldings, in rotations."""
    slots = target.slots
    tile = max(target.period, *(source.period for source in sources))
    used = np.zeros((target.ciphertexts, sum(source.ciphertexts for source in sources), slots), bool)
    first = 0
    for matrix, source in zip(matrices, sources, strict=True):
        into, origin, shift = _shifts(matrix, source, target)
        shift &= slots - 1
        if target.ciphertexts == source.ciphertexts == 1:
            used[0, first, shift] = True
        else:
            used[into // slots, first + origin // slots, shift] = True
        first += source.ciphertexts
    cost = float(len(used) * len(_folds(target.period, tile)))
    for row in used:
        cost += best_n1([np.flatnonzero(diagonals) for diagonals in row], slots)[1]
    return cost


@dataclass(frozen=True, eq=False)
class LoweredLinear:
    """A linear map as operations on ciphertexts.

    Attributes:
        rows: for each ciphertext of the result, which ciphertexts of the operands it reads, all operands' in
            order, and the block row applied to them.
        folds: rotations whose sums complete each ciphertext of the result, in order.
    """

    rows: list[tuple[tuple[int, ...], DiagonalMatrix]]
    folds: tuple[int, ...]

    @property
    def work(self) -> LayerWork:
        """Operations of all rows together."""
        transforms = [transform for _, transform in self.rows]
        babies = [t.baby_steps(k) for t in transforms for k in range(len(t.diagonals))]
        return LayerWork(
            rotations=sum(int(np.count_nonzero(t.giant_steps())) + len(self.folds) for t in transforms),
            hoisted=sum(int(np.count_nonzero(steps)) for steps in babies),
            diagonals=sum(len(diagonals) for t in transforms for diagonals in t.diagonals),
        )


def lower(node: Linear, sources: list[Layout], target: Layout) -> LoweredLinear:
    """The diagonals of a linear map between layouts."""
    placement = place_blocks(list(node.matrices), sources, target)
    rows = []
    for transform in transforms(placement, target.slots):
        used = tuple(i for i, diagonals in enumerate(transform.diagonals) if diagonals) or (0,)
        diagonals = tuple(transform.diagonals[i] or {0: np.zeros(1)} for i in used)
        rows.append((used, DiagonalMatrix(transform.slots, diagonals, transform.n1)))
    return LoweredLinear(rows, placement.folds)


def transforms(placement: BlockPlacement, slots: int) -> list[DiagonalMatrix]:
    """One block row of diagonals per output ciphertext."""
    rows = []
    for row in placement.terms:
        diagonals = []
        for shift, slot, values, tile in row:
            used, place_of = np.unique(shift, return_inverse=True)
            table = np.zeros((len(used), tile))
            np.add.at(table, (place_of.ravel(), slot), values)
            diagonals.append({int(r): table[index] for index, r in enumerate(used)})
        n1, _ = best_n1([np.asarray(sorted(d), np.int64) for d in diagonals], slots)
        rows.append(DiagonalMatrix(slots, tuple(diagonals), n1))
    return rows
