r"""Pools with a maximum, Max, Min, ReduceMax and ReduceMin, as rounds of
max(a, b) = (a + b) / 2 + \|a - b\| / 2.

A polynomial, or a composition of minimax polynomials, approximates the absolute value.
"""

import math

import numpy as np

from keywright.compiler.activations.functions import absolute, clip
from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, OperatorContext
from keywright.compiler.front_ends.operators.images.window import require_covered, window_axes, window_pairs
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Shape

from .gating.gates import joint_shape
from .reductions import over_pixels, reduced, rows_of


def max_pool(context: OperatorContext) -> EncryptedValue:
    """Add the largest value of each window; padding is never the largest."""
    source, (channels, height, width) = context.image(0)
    context.attribute("storage_order", 0)
    if len(context.node.output) > 1 and context.node.output[1]:
        raise context.refuse("output 1", "indices", "none but the values")
    rows, columns = window_axes(context, (height, width), context.attribute("kernel_shape", [0, 0]))
    out_pixel, tap, in_pixel = window_pairs(rows, columns)
    out_size = rows.output * columns.output
    require_covered(context, out_pixel, out_size)
    first = np.zeros(out_size, np.int64)
    first[out_pixel[::-1]] = in_pixel[::-1]  # represents taps outside the image
    table = np.tile(first, (rows.kernel * columns.kernel, 1))
    table[tap, out_pixel] = in_pixel
    require_at_most(f"node {context.name!r}", "entries", channels * table.size, MAX_ENTRIES)
    members = (table[:, None, :] + (np.arange(channels) * height * width)[:, None]).reshape(len(table), -1)
    pixels = (rows.output, columns.output)
    shape = (1, channels, *(pixels if len(source.shape) == 4 else pixels[1:]))
    return _largest(context, source, members, shape, pixels, (rows.stride, columns.stride))


def global_max_pool(context: OperatorContext) -> EncryptedValue:
    """Add the largest value of each channel over all pixels."""
    source, axes, shape = over_pixels(context)
    return _largest(context, source, rows_of(source, axes), shape)


def extreme(context: OperatorContext) -> EncryptedValue:
    """Add Max and Min of any number of values that broadcast to each other."""
    shape = joint_shape(context, *context.operands)
    clipped = _clipped(context)
    if clipped is not None:
        return context.expand(clipped, shape)
    size, sign = int(np.prod(shape, dtype=np.int64)), -1.0 if context.operator == "Min" else 1.0
    count = len(context.operands)
    bias, terms = np.zeros((count, size)), []
    for index, value in enumerate(context.operands):
        if isinstance(value, Constant):
            bias[index] = sign * np.broadcast_to(np.asarray(value.array, np.float64), shape).ravel()
        elif value is not None:
            origin = np.broadcast_to(value.indices(), shape).ravel()
            rows = index * size + np.arange(size)
            matrix = SparseMatrix.from_distinct((count * size, value.size), rows, origin, np.full(size, sign))
            terms.append((value, matrix))
    joined = context.total(terms, (1, count * size), bias)
    result = _largest(context, joined, np.arange(count * size).reshape(count, size), shape)
    return result if sign > 0 else context.scaled(result, sign)


def _clipped(context: OperatorContext) -> EncryptedValue | None:
    """Return the larger, or smaller, of one value and constants, as a function of that value; None for other
    operands."""
    values = [value for value in context.operands if isinstance(value, EncryptedValue)]
    constants = [value.array for value in context.operands if isinstance(value, Constant)]
    numbers = np.concatenate([np.asarray(array, np.float64).ravel() for array in constants] or [np.zeros(0)])
    if (
        len(values) != 1
        or any((array != array.flat[0]).any() for array in constants if array.size)
        or not numbers.size
    ):
        return None
    largest = context.operator == "Max"
    bound = float(numbers.max() if largest else numbers.min())
    return context.function(values[0], clip(bound, np.inf) if largest else clip(-np.inf, bound))


def reduce_extreme(context: OperatorContext) -> EncryptedValue:
    """Add ReduceMax and ReduceMin over any axes."""
    source, axes, shape = reduced(context)
    sign = -1.0 if context.operator == "ReduceMin" else 1.0
    value = source if sign > 0 else context.scaled(source, sign)
    result = _largest(context, value, rows_of(source, axes), shape)
    return result if sign > 0 else context.scaled(result, sign)


def _largest(
    context: OperatorContext,
    source: EncryptedValue,
    members: Indices,
    shape: Shape,
    pixels: Shape = (),
    stride: tuple[int, int] = (1, 1),
) -> EncryptedValue:
    """For each column of ``members``, numbers of elements, return the largest of these elements. With
    ``pixels``, rows and columns, the columns of ``members`` are those of images; ``stride`` is theirs."""
    while len(members) > 1:
        source, members = _round(context, source, members, pixels, stride)
        stride = (1, 1)
    return context.select(source, members.reshape(shape))


def _round(
    context: OperatorContext,
    source: EncryptedValue,
    members: Indices,
    pixels: Shape,
    stride: tuple[int, int],
) -> tuple[EncryptedValue, Indices]:
    """Return the larger element of every two rows; an odd last row stays."""

    def laid_out(count: int) -> Shape:
        return (count // math.prod(pixels), *pixels) if pixels else (count,)

    half, size = len(members) // 2, members.shape[1]
    pairs, left, right = half * size, members[:half].ravel(), members[half : 2 * half].ravel()
    every = np.arange(pairs)
    both = np.concatenate((every, every)), np.concatenate((left, right))
    signs = np.concatenate((np.ones(pairs), -np.ones(pairs)))
    apart = SparseMatrix.from_entries((pairs, source.size), *both, signs)
    difference = context.linear(source, (1, pairs), apart, stride=stride, laid_out=laid_out(pairs))
    distance = context.function(difference, absolute)
    kept = len(members) % 2 * size
    rest = pairs + np.arange(kept), members[2 * half :].ravel()
    means = SparseMatrix.from_entries(
        (pairs + kept, source.size),
        np.concatenate((both[0], rest[0])),
        np.concatenate((both[1], rest[1])),
        np.concatenate((np.full(2 * pairs, 0.5), np.ones(kept))),
    )
    halves = SparseMatrix.from_distinct((pairs + kept, pairs), every, every, np.full(pairs, 0.5))
    terms, count = [(source, means), (distance, halves)], pairs + kept
    result = context.total(terms, (1, count), stride=stride, laid_out=laid_out(count))
    return result, np.arange(pairs + kept).reshape(-1, size)
