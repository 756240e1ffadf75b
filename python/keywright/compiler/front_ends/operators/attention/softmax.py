"""Softmax inside a model, over one axis of an encrypted value.

Softmax does not change if a row's mean is subtracted. The subtraction takes no maximum, and it bounds the sum
of the exponentials of n values from below by n, whatever the values, so that its inverse needs no margin
there. The sum has no upper bound, and a polynomial for an inverse takes a degree of about the root of the
ratio of its ends. If calibrated sums spread widely, the softmax of x / 2^h is therefore computed, and squared
and normalised h times ("normalise and square", arXiv 2410.11184): the sums of squares are between 1 / n and
1.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.functions import exponential, reciprocal
from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.front_ends.operators.reductions import rows_of
from keywright.compiler.graph.graph import Activation
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Vector

from .masks import shown_elements
from .products import SHORTER, SMALL

WIDEST = 64.0
"""Ratio of the largest calibrated sum of exponentials to the smallest possible one above which the operand is
halved: an inverse takes degree 31 up to there."""

MOST_HALVINGS = 4


def softmax(context: OperatorContext) -> EncryptedValue:
    """Add Softmax over ``axis``."""
    source = context.encrypted(0)
    if source.gate:
        raise context.refuse("operand 0", "an encrypted mask alone", "logits, to which the mask is added")
    flattens = context.opset < 13
    axis = context.attribute("axis", 1 if flattens else -1)
    if flattens and axis not in (-1, len(source.shape) - 1):
        raise context.refuse("axis", axis, "the last one: before opset 13 the axes from it on are one row")
    if not -len(source.shape) <= axis < len(source.shape):
        raise context.refuse("axis", axis, f"an axis of the shape {source.shape}")
    return softmax_of(context, source, axis % len(source.shape))


def softmax_of(context: OperatorContext, source: EncryptedValue, axis: int) -> EncryptedValue:
    """Return the softmax of a value over an axis. Masked elements take no part and become 0.

    Raises:
        RefusalError: all elements of a row are masked.
    """
    source = source.before_mask or source
    rows, bits = rows_of(source, [axis]), source.shown
    source, shown = shown_elements(context, source, axis, rows)
    present = np.ones(source.size, bool)
    present[source.indices().ravel()] = shown.ravel()
    within = present[rows]
    counts = within.sum(axis=0)
    taken = _Rows(context, source, rows, within)
    half = 0.5**context.halvings
    powers = context.function(_centred(context, source, rows, within / counts, half), exponential, "Softmax")
    least = float(counts.min())
    if bits is not None:  # the mean is that of hidden elements, too, and bounds no sum
        powers, least = context.product(powers, _in_order(context, bits, powers)), -np.inf
    value = taken.normalised(powers, (least, np.inf))
    for _ in range(context.halvings):
        value = taken.normalised(context.product(value, value), (1 / float(counts.max()), 1.0))
    return value


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that sum to 1.

    Attributes:
        source: whose elements they have, in its order.
        numbers: of the elements of each row, (elements, rows).
        shown: which of them no mask hides.
    """

    context: OperatorContext
    source: EncryptedValue
    numbers: Indices
    shown: NDArray[np.bool_]

    def normalised(self, powers: EncryptedValue, limits: tuple[float, float]) -> EncryptedValue:
        """Return values divided by the sums of their rows, which are between the limits."""
        context, source, count = self.context, self.source, self.numbers.shape[1]
        groups = np.broadcast_to(np.arange(count), self.numbers.shape)[self.shown]
        members = self.numbers[self.shown]
        summing = SparseMatrix.from_distinct((count, source.size), groups, members, np.ones(len(members)))
        total = context.linear(powers, (1, count), summing)
        inverse = context.function(total, reciprocal, "Softmax", positive=True, limits=limits)
        spread = np.full(source.size, -1)
        spread[members] = groups
        laid_out = context.laid_out(source)
        shared = context.linear(inverse, source.shape, picking(inverse, spread), laid_out=laid_out)
        return context.product(powers, replace(shared, order=source.order))


def _in_order(context: OperatorContext, value: EncryptedValue, other: EncryptedValue) -> EncryptedValue:
    """Return a value with its elements in the order of another one of its shape."""
    placed = np.empty(value.size, np.int64)
    placed[other.indices().ravel()] = value.indices().ravel()
    laid_out = context.laid_out(other)
    result = context.linear(value, value.shape, picking(value, placed), laid_out=laid_out)
    return replace(result, order=other.order)


def _centred(
    context: OperatorContext, source: EncryptedValue, rows: Indices, shares: Vector, factor: float
) -> EncryptedValue:
    """Return each element minus the mean of its row, times a factor; 0 for elements without a share."""
    count = len(rows)
    require_at_most(f"the mean of node {context.name!r}", "entries", count * rows.size, MAX_ENTRIES, SHORTER)
    into = np.broadcast_to(rows[:, None], (count, *rows.shape))
    origin = np.broadcast_to(rows[None], (count, *rows.shape))
    values = np.where(np.eye(count, dtype=bool)[:, :, None], 1.0, 0.0) - shares[None]
    values = factor * values * (shares > 0)[:, None]
    matrix = SparseMatrix.from_distinct(
        (source.size, source.size), into.ravel(), origin.ravel(), values.ravel()
    )
    laid_out = context.laid_out(source)
    large = source.size > SMALL
    result = context.linear(source, source.shape, matrix, laid_out=laid_out, separate=large)
    return replace(result, order=source.order)


def more_halvings(
    halvings: dict[str, int], sums: Iterable[tuple[Activation, float, float]]
) -> dict[str, int] | None:
    """Return the halvings of each softmax with one more where sums of exponentials spread too widely; None if
    they do not.

    Args:
        sums: the smallest and the largest operand of each function of the graph.
    """
    more = {
        node.name: halvings.get(node.name, 0) + 1
        for node, smallest, largest in sums
        if node.operator == "Softmax"
        and node.positive
        and math.isinf(node.limits[1])
        and largest > WIDEST * max(node.limits[0], smallest) > 0
    }
    more = {name: count for name, count in more.items() if count <= MOST_HALVINGS}
    return halvings | more if more else None
