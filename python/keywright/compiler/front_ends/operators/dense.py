"""Gemm and MatMul: products with constant matrices on either side, or of two encrypted ones."""

import numpy as np

from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, Operand, OperatorContext
from keywright.compiler.graph.convolution import Convolution
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Shape, Vector

from .arithmetic import summed
from .attention.products import SHORTER, matrix_product


def gemm(context: OperatorContext) -> EncryptedValue:
    """Add alpha * A @ B + beta * C with an encrypted matrix A, usually of one row."""
    source, factor, added = context.encrypted(0), context.operand(1), context.operand(2)
    if isinstance(factor, EncryptedValue) or isinstance(added, EncryptedValue):
        return _gemm_of_values(context, source, factor, added)
    weight = context.required_constant(1)
    bias = context.constant(2)
    if len(source.shape) != 2 or weight.ndim != 2:
        raise context.refuse("shape of operand 0", source.shape, "two axes, as (1, features)")
    if context.attribute("transA", 0):
        source = context.select(source, source.indices().T)
    if context.attribute("transB", 0):
        weight = weight.T
    weight = weight * context.attribute("alpha", 1.0)
    beta = context.attribute("beta", 1.0)
    return _from_right(context, source, weight, None if bias is None else beta * bias)


def _gemm_of_values(
    context: OperatorContext, source: EncryptedValue, factor: Operand | None, added: Operand | None
) -> EncryptedValue:
    """Add Gemm with an encrypted B or C."""
    alpha, beta = context.attribute("alpha", 1.0), context.attribute("beta", 1.0)
    if context.attribute("transA", 0):
        source = context.select(source, source.indices().T)
    turned = context.attribute("transB", 0)
    if isinstance(factor, EncryptedValue):
        if turned:
            factor = context.select(factor, factor.indices().T)
        result = matrix_product(context, source, factor)
        result = result if alpha == 1 else context.scaled(result, alpha)
    else:
        weight = context.required_constant(1)
        result = _from_right(context, source, alpha * (weight.T if turned else weight), None)
    if isinstance(added, EncryptedValue):
        return summed(context, result, added if beta == 1 else context.scaled(added, beta))
    return result if added is None else summed(context, result, Constant(beta * np.asarray(added.array)))


def matmul(context: OperatorContext) -> EncryptedValue:
    """Add A @ B; one factor may be constant."""
    left, right = context.operand(0), context.operand(1)
    if isinstance(left, EncryptedValue) and isinstance(right, EncryptedValue):
        return matrix_product(context, left, right)
    if isinstance(left, EncryptedValue):
        return _from_right(context, context.encrypted(0), context.required_constant(1), None)
    return _from_left(context, context.required_constant(0), context.encrypted(1))


def _from_right(
    context: OperatorContext, source: EncryptedValue, weight: Vector, bias: Vector | None
) -> EncryptedValue:
    """Add source @ weight + bias, both of any rank."""
    require_at_most(f"node {context.name!r}", "entries", weight.size, MAX_ENTRIES)
    rows, columns = source.indices(), weight
    rows = rows[None] if rows.ndim == 1 else rows
    columns = columns[:, None] if columns.ndim == 1 else columns
    try:
        stacks = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    except ValueError:
        stacks = None
    if stacks is None or rows.shape[-1] != columns.shape[-2]:
        raise context.refuse("shapes of operands", f"{source.shape} and {weight.shape}", "shapes that fit")
    shape = (*stacks, rows.shape[-2], columns.shape[-1])
    shown = _without(
        _without(shape, -2 if len(source.shape) == 1 else None), -1 if weight.ndim == 1 else None
    )
    offset = None if bias is None else _bias(context, bias, shape)
    if rows.size == rows.shape[-1] and columns.ndim == 2 and source.order is None:
        return context.linear(source, shown, SparseMatrix.from_dense(columns.T), offset)
    out = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    if columns.ndim == 2:
        elements = (each.reshape(-1, each.shape[-1]).T for each in (out, rows))
        return context.linear(source, shown, Convolution.everywhere(columns.T, *elements), offset)
    pairs = out.size * rows.shape[-1]
    require_at_most(f"node {context.name!r}", "entries", pairs, MAX_ENTRIES, SHORTER)
    into, origin, weights = np.broadcast_arrays(
        out[..., :, None, :], rows[..., :, :, None], columns[..., None, :, :]
    )
    matrix = SparseMatrix.from_distinct(
        (out.size, source.size), into.ravel(), origin.ravel(), weights.ravel()
    )
    return context.linear(source, shown, matrix, offset)


def _from_left(context: OperatorContext, weight: Vector, source: EncryptedValue) -> EncryptedValue:
    """Add weight @ source as the transpose of source^T @ weight^T."""
    if len(source.shape) == 1:
        return _from_right(context, source, np.swapaxes(weight, -1, -2) if weight.ndim > 1 else weight, None)
    swapped = context.select(source, np.swapaxes(source.indices(), -1, -2))
    if weight.ndim == 1:
        return _from_right(context, swapped, weight, None)
    result = _from_right(context, swapped, np.swapaxes(weight, -1, -2), None)
    return context.select(result, np.swapaxes(result.indices(), -1, -2))


def _without(shape: Shape, axis: int | None) -> Shape:
    if axis is None:
        return shape
    kept = list(shape)
    del kept[axis]
    return tuple(kept)


def _bias(context: OperatorContext, bias: Vector, shape: Shape) -> Vector:
    try:
        return np.broadcast_to(bias, shape).ravel()
    except ValueError as error:
        raise context.refuse("bias of shape", bias.shape, f"one that broadcasts to {shape}") from error
