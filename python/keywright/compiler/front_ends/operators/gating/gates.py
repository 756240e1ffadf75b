"""Masks that clients encrypt: elements of the input that are 0 or 1 and hide others from a softmax.

Calibration data show which elements of the input are 0 or 1. What exporters compute of them is exact: a
comparison with a number, a choice between two numbers, a negation. Where it ends as 0 or a large negative
number that is added before a softmax, it is a gate. The softmax multiplies its exponentials by the bits:
hidden elements get no share, and sums count those alone that are shown.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, Operand, OperatorContext
from keywright.compiler.graph.graph import Shift
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

HIDDEN = -1e4
"""Constants of at most this mask what they are added to, for a softmax that reads the sum."""

GATED = frozenset(["Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"])
"""Operators whose results are gates if their first operand is one."""


def as_gates(results: Operand | tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the results of an operator on a gate."""
    each = results if isinstance(results, tuple) else (results,)
    return tuple(replace(value, gate=True) if isinstance(value, EncryptedValue) else value for value in each)


def require_bits(context: OperatorContext, value: EncryptedValue) -> EncryptedValue:
    """Return a value that is read as true or false.

    Raises:
        RefusalError: it is not known to be 0 or 1.
    """
    if not value.bits:
        raise context.refuse(
            "an operand",
            "an encrypted value as true or false",
            "elements of the input that are 0 or 1 in all calibration data, as those of a mask",
        )
    context.claims.relied.append(value.number)
    return value


def inverted(context: OperatorContext, value: EncryptedValue) -> EncryptedValue:
    """Return 1 minus bits."""
    matrix = SparseMatrix.diagonal(np.full(value.size, -1.0))
    negated = context.linear(value, value.shape, matrix, laid_out=context.laid_out(value))
    ones = np.ones(value.size)
    node = Shift(context.laid_out(value), (negated.number,), ones)
    return EncryptedValue(context.graph.add(node), value.shape, value.order, bits=True)


def compared(
    context: OperatorContext,
    value: EncryptedValue,
    function: Callable[[Vector], Vector],
) -> Operand:
    """Return what a comparison gives for bits."""
    context.claims.relied.append(value.number)
    no, yes = (bool(function(np.asarray(bit))) for bit in (0.0, 1.0))
    if no == yes:
        return Constant(np.full(value.shape, yes))
    return value if yes else inverted(context, value)


def negation(context: OperatorContext) -> EncryptedValue:
    """Add Not."""
    return inverted(context, require_bits(context, context.encrypted(0)))


def both(context: OperatorContext) -> Operand:
    """Add And of bits, or of bits and constants."""
    values = [v if isinstance(v, Constant) else require_bits(context, v) for v in context.operands if v]
    shape = np.broadcast_shapes(*(v.array.shape if isinstance(v, Constant) else v.shape for v in values))
    bits = [context.expand(v, shape) for v in values if isinstance(v, EncryptedValue)]
    known = [np.broadcast_to(v.array, shape) for v in values if isinstance(v, Constant)]
    if known:
        return replace(context.scaled(bits[0], known[0].astype(np.float64).ravel()), bits=True)
    return replace(context.product(*bits), bits=True)


def chosen(
    context: OperatorContext, condition: Operand | None, yes: Operand | None, no: Operand | None
) -> EncryptedValue | None:
    """Return the gate that a choice between 0 and large negative numbers is; None for another choice."""
    if not isinstance(condition, EncryptedValue) or not condition.bits:
        return None
    if not isinstance(yes, Constant) or not isinstance(no, Constant):
        return None
    shape = np.broadcast_shapes(condition.shape, yes.array.shape, no.array.shape)
    first, second = np.asarray(yes.array, np.float64), np.asarray(no.array, np.float64)
    if (first == 0).all() and (second <= HIDDEN).all():
        return replace(context.expand(condition, shape), gate=True)
    if (second == 0).all() and (first <= HIDDEN).all():
        return replace(inverted(context, context.expand(condition, shape)), gate=True)
    return None


def gated(context: OperatorContext, value: EncryptedValue, gate: EncryptedValue) -> EncryptedValue:
    """Return a value of which a gate hides elements."""
    context.claims.relied.append(gate.number)
    shape = np.broadcast_shapes(value.shape, gate.shape)
    bits = replace(context.expand(gate, shape), gate=False)
    value = context.expand(value, shape)
    if value.gate:
        return replace(context.product(replace(value, gate=False), bits), bits=True, gate=True)
    if value.shown is not None:
        bits = replace(context.product(value.shown, bits), bits=True)
    return replace(value, shown=bits)
