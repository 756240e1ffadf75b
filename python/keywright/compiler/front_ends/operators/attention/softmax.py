"""Softmax inside a model, over one axis of an encrypted value.

Softmax does not change if a row's mean is subtracted. The subtraction takes no maximum, and it bounds the sum
of the exponentials of n values from below by n, whatever the values, so that its inverse needs no margin
there. The sum has no upper bound, and a polynomial for an inverse takes a degree of about the root of the
ratio of its ends. If calibrated sums spread widely, the softmax of x / 2^h is therefore computed, and squared
and normalised h times ("normalise and square", arXiv 2410.11184): the sums of squares are between 1 / n and
1.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.functions import exponential, reciprocal
from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.front_ends.operators.reductions import rows_of
from keywright.compiler.graph.convolution import Convolution, Matrix
from keywright.compiler.graph.graph import Activation, Graph, Linear, Multiply, Node
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.errors.refusals.operators import too_far_apart
from keywright.program.arrays import Vector

from .masks import shown_elements
from .products import SHORTER

WIDEST = 64.0
"""Ratio of the largest calibrated sum of exponentials to the smallest possible one above which the operand is
halved: an inverse takes degree 31 up to there."""

FARTHEST = 1000.0
"""Distance of an element from the mean of its row that no polynomial of the exponential reaches, halved or
not."""

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
    values = factor * (np.eye(count)[:, :, None] - shares[None]) * (shares > 0)[:, None]
    if (shares == shares[:, :1]).all():
        matrix: Matrix = Convolution.everywhere(values[:, :, 0], rows, rows)
    else:
        into = np.broadcast_to(rows[:, None], values.shape)
        origin = np.broadcast_to(rows[None], values.shape)
        shape = source.size, source.size
        matrix = SparseMatrix.from_distinct(shape, into.ravel(), origin.ravel(), values.ravel())
    laid_out = context.laid_out(source)
    result = context.linear(source, source.shape, matrix, laid_out=laid_out, separate=True)
    return replace(result, order=source.order)


def halvings_of(graph: Graph, samples: Vector) -> dict[str, int]:
    """Return how often the operand of each softmax is halved, by its node, so that sums of exponentials do
    not spread too widely; nodes whose operand is not halved are left out.

    A softmax is the same function however often its operand is halved, so one run of the graph gives the sums
    for every number of halvings.

    Args:
        graph: as imported, without halvings, not simplified.
        samples: (count, features).

    Raises:
        RefusalError: elements are too far from the mean of their row, as with large negative numbers of the
            input for a mask.
    """
    totals = [
        node
        for node in graph.nodes.values()
        if isinstance(node, Activation) and node.total and math.isinf(node.limits[1])
    ]
    ends = {node.name: np.tile([np.inf, -np.inf], (MOST_HALVINGS, 1)) for node in totals}
    sums = [_Sum.read(graph, node) for node in totals]
    read = graph.leading_to({number for each in sums for number in each.reads}) if sums else graph
    for _, values in read.runs(samples) if sums else ():
        for node, each in zip(totals, sums, strict=True):
            if FARTHEST < (farthest := float(values[each.exponents].max())) < math.inf:
                raise too_far_apart(node.name, farthest)
            for halvings, (low, high) in enumerate(each.ends(values)):
                least, largest = ends[node.name][halvings]
                ends[node.name][halvings] = min(least, low), max(largest, high)
    counts = {}
    for node in totals:
        low, high = ends[node.name].T
        least = np.maximum(low, node.limits[0])
        narrow = ~((high > WIDEST * least) & (least > 0))
        counts[node.name] = int(narrow.argmax()) if narrow.any() else MOST_HALVINGS
    return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True, eq=False)
class _Sum:
    """The sum of exponentials that an inverse reads.

    Attributes:
        matrix: that sums.
        exponents: the number of the value of which exponentials are taken.
        bits: the number of what multiplies the exponentials; None without a mask.
    """

    matrix: Matrix
    exponents: int
    bits: int | None

    @staticmethod
    def read(graph: Graph, node: Activation) -> "_Sum":
        total = graph.nodes[node.operands[0]]
        assert isinstance(total, Linear)
        powers, bits = graph.nodes[total.operands[0]], None
        if isinstance(powers, Multiply):
            first, second = powers.operands
            exponentials = graph.nodes[first]
            powers, bits = (
                (exponentials, second) if _is_exponential(exponentials) else (graph.nodes[second], first)
            )
        assert isinstance(powers, Activation)
        return _Sum(total.matrices[0], powers.operands[0], bits)

    @property
    def reads(self) -> tuple[int, ...]:
        """The numbers of the values that it is computed from."""
        return (self.exponents,) if self.bits is None else (self.exponents, self.bits)

    def ends(self, values: dict[int, Vector]) -> Iterator[tuple[float, float]]:
        """Yield the least and the largest sum for 0, 1, 2, ... halvings."""
        for halvings in range(MOST_HALVINGS):
            terms = np.exp(values[self.exponents] * 0.5**halvings)
            sums = self.matrix.apply(terms if self.bits is None else terms * values[self.bits])
            yield float(sums.min()), float(sums.max())


def _is_exponential(node: Node) -> bool:
    return isinstance(node, Activation) and node.operator == "Softmax"
