"""Several samples in one ciphertext: interleaved, so that a rotation moves each of them alike.

With B samples, what is at slot p of one sample's ciphertext is at slots B p to B p + B - 1, one sample after
the other. A rotation by r of one sample is one by B r of all, and wraps around where it did; a diagonal has
every entry B times.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from keywright.nn.graph.sparse import Vector

from .diagonals import DiagonalMatrix, Diagonals, period_of, table_of
from .layout import Layout
from .lowering import LoweredLinear


def interleave_layout(layout: Layout, batch: int) -> Layout:
    """The layout of ``batch`` samples in ciphertexts of ``batch`` times the slots."""
    return Layout(
        layout.slots * batch,
        layout.period * batch,
        layout.positions * batch,
        layout.grid,
        layout.batch * batch,
    )


def interleave_linear(lowered: LoweredLinear, batch: int) -> LoweredLinear:
    """A linear map of one sample's ciphertexts, for those of ``batch`` samples."""
    rows = [(operands, interleave_transform(transform, batch)) for operands, transform in lowered.rows]
    return replace(lowered, rows=rows, folds=tuple(step * batch for step in lowered.folds))


def interleave_transform(transform: DiagonalMatrix, batch: int) -> DiagonalMatrix:
    """A block row of one sample's ciphertexts, for those of ``batch`` samples."""
    if batch == 1:
        return transform
    diagonals = tuple(_interleave(each, batch) for each in transform.diagonals)
    return DiagonalMatrix(transform.slots * batch, diagonals, transform.n1 * batch)


def _interleave(diagonals: Mapping[int, Vector], batch: int) -> Diagonals:
    steps = [r * batch for r in sorted(diagonals)]
    return Diagonals(
        steps, period_of(diagonals) * batch, lambda: np.repeat(table_of(diagonals), batch, axis=1)
    )
