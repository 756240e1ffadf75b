"""Several samples in one ciphertext: interleaved, so that one rotation moves all of them.

With B samples, slot p of one sample's ciphertext becomes slots B p to B p + B - 1, one per sample. A rotation
by r of one sample is a rotation by B r of all, with the same wrap-around. A diagonal has every entry B times.
"""

from collections.abc import Mapping
from dataclasses import replace

from keywright.program.arrays import Vector
from keywright.program.operands.diagonals import DiagonalMatrix, Diagonals, copies_of, distinct_of, period_of
from keywright.program.operands.layout import Layout

from .lowering import LoweredLinear


def interleave_layout(layout: Layout, batch: int) -> Layout:
    """Return the layout of ``batch`` samples in ciphertexts of ``batch`` times the slots."""
    return Layout(
        layout.slots * batch,
        layout.period * batch,
        layout.positions * batch,
        layout.grid,
        layout.batch * batch,
        layout.parts,
    )


def interleave_linear(lowered: LoweredLinear, batch: int) -> LoweredLinear:
    """Return the linear map of one sample's ciphertexts for ``batch`` samples."""
    rows = [(operands, interleave_transform(transform, batch)) for operands, transform in lowered.rows]
    return replace(lowered, rows=rows, folds=tuple(step * batch for step in lowered.folds))


def interleave_transform(transform: DiagonalMatrix, batch: int) -> DiagonalMatrix:
    """Return the block row of one sample's ciphertexts for ``batch`` samples."""
    if batch == 1:
        return transform
    diagonals = tuple(_interleave(each, batch) for each in transform.diagonals)
    return DiagonalMatrix(transform.slots * batch, diagonals, transform.n1 * batch)


def _interleave(diagonals: Mapping[int, Vector], batch: int) -> Diagonals:
    steps = [r * batch for r in sorted(diagonals)]
    copies = copies_of(diagonals) * batch
    return Diagonals(steps, period_of(diagonals) * batch, lambda: distinct_of(diagonals), copies)
