"""Gemm and MatMul: fully connected layers with constant weights."""

import numpy as np

from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.sparse import SparseMatrix, Vector
from keywright.nn.limits import MAX_ENTRIES, require_at_most


def gemm(context: OperatorContext) -> EncryptedValue:
    """alpha * x @ B + beta * C for an encrypted vector x; transA is refused, transB is not."""
    source = context.encrypted(0)
    weight = context.required_constant(1)
    bias = context.constant(2)
    if context.attribute("transA", 0):
        raise context.refuse("transA", 1, "0, a row vector per sample")
    if len(source.shape) != 1 or weight.ndim != 2:
        raise context.refuse("shape of operand 0", source.shape, "(features,)")
    if not context.attribute("transB", 0):
        weight = weight.T
    weight = weight * context.attribute("alpha", 1.0)
    beta = context.attribute("beta", 1.0)
    return _dense(context, source, weight, None if bias is None else beta * bias)


def matmul(context: OperatorContext) -> EncryptedValue:
    """x @ B for an encrypted vector x and a constant matrix B."""
    source = context.encrypted(0)
    weight = context.required_constant(1)
    if len(source.shape) != 1 or weight.ndim != 2:
        raise context.refuse(
            "shapes of operands", f"{source.shape} and {weight.shape}", "a vector and a matrix"
        )
    return _dense(context, source, weight.T, None)


def _dense(
    context: OperatorContext, source: EncryptedValue, weight: Vector, bias: Vector | None
) -> EncryptedValue:
    outputs = int(weight.shape[0])
    require_at_most(f"node {context.name!r}", "entries", weight.size, MAX_ENTRIES)
    if bias is not None:
        try:
            bias = np.broadcast_to(bias, (1, outputs)).reshape(outputs)
        except ValueError as error:
            raise context.refuse("bias of shape", bias.shape, f"({outputs},)") from error
    return context.linear(source, (outputs,), SparseMatrix.from_dense(weight), bias)
