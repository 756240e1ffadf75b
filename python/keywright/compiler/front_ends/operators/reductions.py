"""Sums, means, products, norms and running sums over axes."""

from collections.abc import Callable

import numpy as np

from keywright.compiler.activations.functions import absolute, exponential
from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.program.arrays import Shape


def reduce_mean(context: OperatorContext) -> EncryptedValue:
    """Add ReduceMean over any axes."""
    source, axes, shape = reduced(context)
    return average(context, source, axes, shape)


def reduce_sum(context: OperatorContext) -> EncryptedValue:
    """Add ReduceSum over any axes."""
    return _total(context, *reduced(context))


def reduce_squares(context: OperatorContext) -> EncryptedValue:
    """Add ReduceSumSquare over any axes."""
    source, axes, shape = reduced(context)
    return _total(context, context.product(source, source), axes, shape)


def reduce_norm(context: OperatorContext) -> EncryptedValue:
    """Add ReduceL1, a sum of sizes, and ReduceL2, the root of a sum of squares."""
    source, axes, shape = reduced(context)
    if context.operator == "ReduceL1":
        return _total(context, context.function(source, absolute), axes, shape)
    squares = _total(context, context.product(source, source), axes, shape)
    return context.function(squares, np.sqrt, positive=True)


def reduce_logarithm(context: OperatorContext) -> EncryptedValue:
    """Add ReduceLogSum and ReduceLogSumExp: the logarithm of a sum, which is positive."""
    source, axes, shape = reduced(context)
    terms = source if context.operator == "ReduceLogSum" else context.function(source, exponential)
    return context.function(_total(context, terms, axes, shape), np.log, positive=True)


def running_sum(context: OperatorContext) -> EncryptedValue:
    """Add CumSum: sums of the elements up to each one, or before it, from either end of an axis."""
    source, rank = context.encrypted(0), len(context.encrypted(0).shape)
    axes = context.required_constant(1).ravel().tolist()
    if len(axes) != 1 or axes[0] not in range(-rank, rank):
        raise context.refuse("axis", axes, f"one axis of the shape {source.shape}")
    axis = int(axes[0]) % rank
    if axis == 0 and source.shape[0] == 1 and context.batch > 1:
        raise context.refuse("axis", axis, "axes other than 0, because samples of a batch are independent")
    length = source.shape[axis]
    taken = np.tri(length, k=-1 if context.attribute("exclusive", 0) else 0)
    into, of = np.nonzero(taken.T if context.attribute("reverse", 0) else taken)
    targets = rows_of(EncryptedValue(source.number, source.shape), [axis])
    origins = rows_of(source, [axis])
    ones = np.ones(into.size * targets.shape[1])
    matrix = SparseMatrix.from_distinct(
        (source.size, source.size), targets[into].ravel(), origins[of].ravel(), ones
    )
    return context.linear(source, source.shape, matrix)


def _total(context: OperatorContext, source: EncryptedValue, axes: list[int], shape: Shape) -> EncryptedValue:
    result = average(context, source, axes, shape)
    return context.scaled(result, source.size // result.size)


def reduce_product(context: OperatorContext) -> EncryptedValue:
    """Add ReduceProd over any axes, by halving."""
    source, axes, shape = reduced(context)
    members = list(rows_of(source, axes))
    factors = [context.select(source, row.reshape(shape)) for row in members]
    return _halved(factors, context.product)


def global_average_pool(context: OperatorContext) -> EncryptedValue:
    """Add the mean of each channel over all pixels."""
    return average(context, *over_pixels(context))


def average(
    context: OperatorContext, source: EncryptedValue, axes: list[int], shape: Shape
) -> EncryptedValue:
    """Return the mean over axes, in a shape that drops them or has ones for them."""
    rows = rows_of(source, axes)
    into = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    share = np.full(rows.size, 1.0 / len(rows))
    matrix = SparseMatrix.from_distinct((rows.shape[1], source.size), into.ravel(), rows.ravel(), share)
    pixels = len(source.shape) == 4 and axes == [2, 3]
    laid_out = (source.shape[1], 1, 1) if pixels and source.shape[0] == 1 else None
    stride = (source.shape[2], source.shape[3]) if pixels else (1, 1)
    return context.linear(source, shape, matrix, stride=stride, laid_out=laid_out)


def over_pixels(context: OperatorContext) -> tuple[EncryptedValue, list[int], Shape]:
    """Return the operand of a global pool, its axes of pixels, and the shape of its result."""
    source = context.encrypted(0)
    if len(source.shape) < 3:
        raise context.refuse("shape of operand 0", source.shape, "(1, channels, pixels, ...)")
    axes = list(range(2, len(source.shape)))
    return source, axes, (*source.shape[:2], *(1 for _ in axes))


def rows_of(source: EncryptedValue, axes: list[int]) -> Indices:
    """Return the numbers of the elements that are reduced together, (how many, results)."""
    order = [*axes, *(axis for axis in range(len(source.shape)) if axis not in axes)]
    many = int(np.prod([source.shape[axis] for axis in axes], dtype=np.int64))
    return source.indices().transpose(order).reshape(many, -1)


def reduced(context: OperatorContext) -> tuple[EncryptedValue, list[int], Shape]:
    """Return the operand of a reduction, its axes, and the shape of its result."""
    source = context.encrypted(0)
    every = [] if context.attribute("noop_with_empty_axes", 0) else list(range(len(source.shape)))
    axes = context.axes(source, every) or every
    if 0 in axes and source.shape[0] == 1 and context.batch > 1:
        raise context.refuse("axes", axes, "axes other than 0, because samples of a batch are independent")
    keep = context.attribute("keepdims", 1)
    kept = [
        (1 if axis in axes else size) for axis, size in enumerate(source.shape) if keep or axis not in axes
    ]
    return source, axes, tuple(kept)


def _halved(
    values: list[EncryptedValue], joined: Callable[[EncryptedValue, EncryptedValue], EncryptedValue]
) -> EncryptedValue:
    while len(values) > 1:
        pairs = [joined(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, values[-1]] if len(values) % 2 else pairs
    return values[0]
