"""A sparse matrix between two layouts as diagonals and foldings."""

from dataclasses import dataclass

import numpy as np

from .backend import LinearTransform
from .layout import Layout
from .sparse import Indices, SparseMatrix, Vector

BABY_COST = 0.45
"""Time of a hoisted rotation relative to one that is not: its decomposition is shared."""

DIAGONAL_COST = 0.02
"""Time of one plaintext product relative to a rotation."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the terms of a block row go when each output may repeat: see `place`.

    Attributes:
        tile: the diagonals repeat after this many slots.
        folds: rotations whose sums complete the result, in order; the result is then periodic.
        terms: for each output ciphertext and each input (operand, ciphertext): diagonal, slot and value of every entry.
    """

    tile: int
    folds: tuple[int, ...]
    terms: list[list[tuple[Indices, Indices, Vector]]]


def place(matrices: list[SparseMatrix], sources: list[Layout], target: Layout) -> Placement:
    """Assign every entry of the matrices to a diagonal and a slot.

    Let the sources have periods p_k and the target period t. An entry from slot s to slot o is on a diagonal congruent to
    s - o modulo min(p_k, t). Where p_k > t, partial sums land at slots congruent to o modulo t and are added up
    afterwards by rotations t, 2t, ... (rotate-and-sum; Juvekar et al., USENIX Security 2018, section 4.3): at most t
    diagonals for any number of inputs.
    """
    slots = target.slots
    tile = max(target.period, *(source.period for source in sources))
    folds = []
    step = target.period
    while step < tile:
        folds.append(step)
        step *= 2
    terms: list[list[tuple[Indices, Indices, Vector]]] = [[] for _ in range(target.ciphertexts)]
    for matrix, source in zip(matrices, sources, strict=True):
        into = target.positions[matrix.rows]
        origin = source.positions[matrix.columns]
        modulus = min(source.period, target.period)
        shift = (origin - into) % modulus
        shift = np.where(
            shift > modulus // 2, shift - modulus, shift
        )  # short steps are common to many layers
        slot = (origin - shift) % source.period if source.period > target.period else into % slots
        shift %= slots
        for block_out in range(target.ciphertexts):
            for block_in in range(source.ciphertexts):
                if target.ciphertexts == source.ciphertexts == 1:
                    chosen: slice | Indices = slice(None)
                else:
                    chosen = np.flatnonzero((into // slots == block_out) & (origin // slots == block_in))
                terms[block_out].append((shift[chosen], slot[chosen], matrix.values[chosen]))
    return Placement(tile, tuple(folds), terms)


def steps_cost(diagonals: list[Indices], n1: int) -> float:
    """Time of a block row in rotations: baby steps of each input, common giant steps, plaintext products."""
    giants: set[int] = set()
    cost = 0.0
    for shifts in diagonals:
        babies = shifts % n1
        giants.update(np.unique(shifts - babies).tolist())
        cost += BABY_COST * np.count_nonzero(np.unique(babies)) + DIAGONAL_COST * len(shifts)
    return cost + len(giants - {0})


def best_n1(diagonals: list[Indices], slots: int) -> tuple[int, float]:
    """The number of baby steps of least cost, g times a power of two with g the greatest common divisor of the
    diagonals, and that cost."""
    step = int(np.gcd.reduce(np.concatenate([*diagonals, np.asarray([slots])])))
    options = []
    while step <= slots:
        options.append((steps_cost(diagonals, step), step))
        step *= 2
    cost, n1 = min(options)
    return n1, cost


def placement_cost(placement: Placement, slots: int) -> float:
    """Time of all block rows with their foldings, in rotations."""
    cost = 0.0
    for row in placement.terms:
        seen = np.zeros((len(row), slots), bool)
        for index, (shift, _, _) in enumerate(row):
            seen[index, shift] = True
        cost += best_n1([np.flatnonzero(used) for used in seen], slots)[1] + len(placement.folds)
    return cost


def transforms(placement: Placement, slots: int) -> list[LinearTransform]:
    """One block row of diagonals per output ciphertext."""
    rows = []
    for row in placement.terms:
        diagonals = []
        for shift, slot, values in row:
            used, place_of = np.unique(shift, return_inverse=True)
            table = np.zeros((len(used), placement.tile))
            np.add.at(table, (place_of.ravel(), slot), values)
            diagonals.append({int(r): table[index] for index, r in enumerate(used)})
        n1, _ = best_n1([np.asarray(sorted(d), np.int64) for d in diagonals], slots)
        rows.append(LinearTransform(slots, tuple(diagonals), n1))
    return rows
