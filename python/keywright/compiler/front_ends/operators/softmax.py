"""Softmax inside a model, over one axis of an encrypted value.

Softmax does not change if a row's mean is subtracted. That takes no maximum, and it bounds the sum of the
exponentials of n values from below by n, whatever the values are, so that its inverse needs no margin there.
"""

from dataclasses import replace

import numpy as np

from keywright.compiler.activations.functions import exponential, reciprocal
from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.errors.network import InvalidModelError

from .reductions import rows_of


def softmax(context: OperatorContext) -> EncryptedValue:
    """Add Softmax over ``axis``; before opset 13, which flattens, over the last axis alone."""
    source = context.encrypted(0)
    axis = context.attribute("axis", -1)
    if not -len(source.shape) <= axis < len(source.shape):
        raise context.refuse("axis", axis, f"an axis of the shape {source.shape}")
    return softmax_of(context, source, axis % len(source.shape))


def softmax_of(context: OperatorContext, source: EncryptedValue, axis: int) -> EncryptedValue:
    """Return the softmax of a value over an axis. Masked elements take no part and become 0.

    Raises:
        InvalidModelError: all elements of a row are masked.
    """
    rows = rows_of(source, [axis])
    shown = np.ones(source.shape, bool) if source.masked is None else ~source.masked
    present = np.ones(source.size, bool)
    present[source.indices().ravel()] = shown.ravel()
    within = present[rows]
    counts = within.sum(axis=0)
    if not counts.all():
        raise InvalidModelError(
            f"node {context.name!r}: a mask hides all elements of a row, and the softmax of nothing is not "
            "defined; leave at least one"
        )
    laid_out = context.laid_out(source)
    result = _centred(context, source, rows, within / counts)
    powers = context.function(replace(result, order=source.order), exponential, "Softmax")
    kept = tuple(1 if place == axis else size for place, size in enumerate(source.shape))
    groups = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    summing = SparseMatrix.from_distinct(
        (rows.shape[1], source.size), groups[within], rows[within], np.ones(int(within.sum()))
    )
    total = context.linear(powers, kept, summing)
    inverse = context.function(total, reciprocal, "Softmax", positive=True)
    spread = np.full(source.size, -1)
    spread[rows[within]] = groups[within]
    shared = context.linear(inverse, source.shape, picking(inverse, spread), laid_out=laid_out)
    return context.product(powers, replace(shared, order=source.order))


def _centred(
    context: OperatorContext, source: EncryptedValue, rows: np.ndarray, shares: np.ndarray
) -> EncryptedValue:
    """Subtract from each element the mean of its row; elements without a share become 0."""
    count = len(rows)
    into = np.broadcast_to(rows[:, None], (count, *rows.shape))
    origin = np.broadcast_to(rows[None], (count, *rows.shape))
    values = np.where(np.eye(count, dtype=bool)[:, :, None], 1.0, 0.0) - shares[None]
    values = values * (shares > 0)[:, None]
    matrix = SparseMatrix.from_distinct(
        (source.size, source.size), into.ravel(), origin.ravel(), values.ravel()
    )
    return context.linear(
        source, source.shape, matrix, laid_out=context.laid_out(source), separate=source.size > 1 << 11
    )
