"""Add, Sub, Mul, Div, Sum, Mean, Neg and Pow between encrypted values and constants."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.functions import inverse_root, reciprocal, to_power
from keywright.compiler.front_ends.operator_context import (
    BITS,
    Constant,
    EncryptedValue,
    Operand,
    OperatorContext,
)
from keywright.compiler.graph.graph import Add, Shift
from keywright.compiler.graph.piecewise import Function
from keywright.program.arrays import Vector

from .gating.gates import HIDDEN, chosen, gated, hidden_sum, inverted, joint_shape
from .moves import move

MAX_EXPONENT = 1 << 31
"""Larger powers are 0 or infinite for all numbers but those next to 1."""


def add(context: OperatorContext) -> EncryptedValue:
    """Add the sum of two values that broadcast to each other; one may be constant."""
    return summed(context, context.operand(0), context.operand(1))


def subtract(context: OperatorContext) -> EncryptedValue:
    """Add the difference of two values; one may be constant."""
    left, right = context.operand(0), context.operand(1)
    if isinstance(right, Constant):
        return summed(context, left, Constant(-np.asarray(right.array, np.float64)))
    if isinstance(left, Constant) and right is not None and right.bits and (left.array == 1).all():
        return inverted(context, context.expand(right, joint_shape(context, left, right)))
    return summed(context, left, context.scaled(context.encrypted(1), -1.0))


def multiply(context: OperatorContext) -> EncryptedValue:
    """Add the product of two values; one may be constant."""
    return _product(context, context.operand(0), context.operand(1))


def divide(context: OperatorContext) -> EncryptedValue:
    """Add a value over a constant, or over an encrypted positive value: a product with its inverse, which a
    polynomial approximates."""
    right = context.operand(1)
    if isinstance(right, EncryptedValue):
        inverse = context.function(right, reciprocal, "Reciprocal", positive=True)
        return _product(context, context.operand(0), inverse)
    divisor = context.required_constant(1)
    if (divisor == 0).any():
        raise context.refuse("operand 1", "0", "a divisor other than 0")
    return _product(context, context.operand(0), Constant(1.0 / divisor))


def sum_of(context: OperatorContext) -> EncryptedValue:
    """Add Sum and Mean of any number of values that broadcast to each other."""
    operands = context.operands
    result: Operand | None = operands[0]
    for operand in operands[1:]:
        result = summed(context, result, operand)
    if not isinstance(result, EncryptedValue):
        raise context.refuse("operand 0", "a constant", "an encrypted value")
    return context.scaled(result, 1 / len(operands)) if context.operator == "Mean" else result


def choose(context: OperatorContext) -> Operand | tuple[Operand, ...]:
    """Add Where: a selection if the condition is constant, else no + condition (yes - no)."""
    condition, yes, no = context.operands
    if isinstance(condition, Constant):
        return _selected(context, np.asarray(condition.array, np.bool_), yes, no)
    softmaxed = chosen(context, condition, yes, no)
    if softmaxed is None:
        return _numeric(context, condition, yes, no)
    if softmaxed.gate or any(isinstance(v, Constant) and (v.array == -np.inf).any() for v in (yes, no)):
        return softmaxed
    return replace(_numeric(context, condition, yes, no), before_mask=softmaxed)


def _numeric(
    context: OperatorContext, condition: Operand | None, yes: Operand | None, no: Operand | None
) -> EncryptedValue:
    """Return no + condition (yes - no)."""
    if isinstance(no, EncryptedValue):
        difference = summed(context, yes, context.scaled(no, -1.0))
    elif isinstance(yes, EncryptedValue) and no is not None:
        difference = summed(context, yes, Constant(-np.asarray(no.array, np.float64)))
    else:
        both = [np.asarray(value.array, np.float64) for value in (yes, no) if isinstance(value, Constant)]
        return summed(context, _product(context, condition, Constant(both[0] - both[1])), no)
    return summed(context, no, _product(context, condition, difference))


def _selected(
    context: OperatorContext, condition: NDArray[np.bool_], yes: Operand | None, no: Operand | None
) -> Operand | tuple[Operand, ...]:
    """Return elements of one operand where a constant condition holds, and of the other elsewhere."""
    for value, other, hidden in ((yes, no, ~condition), (no, yes, condition)):
        if isinstance(value, EncryptedValue) and isinstance(other, Constant):
            constant = np.asarray(other.array, np.float64)
            if constant.size == 1 and constant.item() <= HIDDEN:
                masked = summed(context, value, Constant(np.where(hidden, constant.item(), 0.0)))
                if masked.hides:
                    return masked
                # A softmax alone reads the mask; the number takes the place of the value for others.
                (moved,) = move(context)
                before = masked.before_mask
                return replace(moved, before_mask=before) if isinstance(moved, EncryptedValue) else moved
    return move(context)


def negate(context: OperatorContext) -> EncryptedValue:
    """Add the additive inverse."""
    return context.scaled(context.encrypted(0), -1.0)


def power(context: OperatorContext) -> EncryptedValue:
    """Add a positive integer power, by repeated squaring, or a polynomial for any other power of positive
    values."""
    source = context.encrypted(0)
    exponents = context.required_constant(1)
    if exponents.size != 1 or not 0 < abs(exponents.item()) <= MAX_EXPONENT:
        raise context.refuse("exponent", exponents.tolist(), f"one number other than 0, up to {MAX_EXPONENT}")
    exponent = exponents.item()
    if exponent == int(exponent) and exponent > 0:
        return raised(context, source, int(exponent))
    known: dict[float, tuple[Function, str]] = {
        -1.0: (reciprocal, "Reciprocal"),
        0.5: (np.sqrt, "Sqrt"),
        -0.5: (inverse_root, "Pow"),
    }
    function, name = known.get(exponent, (to_power(exponent), "Pow"))
    return context.function(source, function, name, positive=True)


def raised(context: OperatorContext, source: EncryptedValue, exponent: int) -> EncryptedValue:
    """Return a value to a positive power. Each power on the way is computed once: there are two for each bit
    of the exponent."""
    powers = {1: source}

    def power_of(number: int) -> EncryptedValue:
        if number not in powers:
            half = number // 2
            powers[number] = context.product(power_of(half), power_of(number - half))
        return powers[number]

    return power_of(exponent)


def summed(context: OperatorContext, left: Operand | None, right: Operand | None) -> EncryptedValue:
    """Return the sum of two values that broadcast to each other; one may be constant."""
    shape = joint_shape(context, left, right)
    if isinstance(left, EncryptedValue) and isinstance(right, EncryptedValue):
        if left.gate or right.gate:
            return gated(context, *((left, right) if right.gate else (right, left)))
        left, right = context.expand(left, shape), context.expand(right, shape)
        if any((value.before_mask or value).shown is not None for value in (left, right)):
            return hidden_sum(context, left, right)
        context.refuse_masked()
        left, right = context.aligned(left, right)
        both = Add(context.laid_out(left), (left.number, right.number))
        return EncryptedValue(context.graph.add(both), shape, left.order)
    value, constant = _apart(context, left, right)
    value = context.expand(value, shape)
    if value.gate:
        return _gate_and_constant(context, value, np.broadcast_to(constant, shape))
    hidden = np.broadcast_to(constant <= HIDDEN, shape)
    before = value.before_mask
    if hidden.any():
        before = shifted(context, before or value, np.where(hidden, 0.0, constant))
        hiding = np.where(hidden, constant, 0.0)
        before = replace(before, masked=hiding if before.masked is None else before.masked + hiding)
        if np.isneginf(constant).any():
            return before
    elif before is not None:
        before = shifted(context, before, constant)
    return replace(shifted(context, value, constant), before_mask=before)


def _gate_and_constant(context: OperatorContext, gate: EncryptedValue, constant: Vector) -> EncryptedValue:
    """Return a gate plus a constant mask."""
    shown = constant > HIDDEN
    if constant[shown].any():
        raise context.refuse("a constant operand", "numbers beside an encrypted mask", "0, or a mask")
    bits = replace(gate, gate=False)
    return (
        gate
        if shown.all()
        else replace(context.scaled(bits, shown.ravel().astype(np.float64)), numbers=BITS, gate=True)
    )


def shifted(context: OperatorContext, value: EncryptedValue, constant: Vector) -> EncryptedValue:
    """Return a value plus constants in its shape."""
    vector = value.stored(constant)
    if not np.isfinite(vector).all():
        raise context.refuse("a constant operand", "not finite", "finite numbers")
    node = Shift(context.laid_out(value), (value.number,), vector)
    result = EncryptedValue(context.graph.add(node), value.shape, value.order, value.masked)
    return replace(result, shown=value.shown)


def _product(context: OperatorContext, left: Operand | None, right: Operand | None) -> EncryptedValue:
    shape = joint_shape(context, left, right)
    if isinstance(left, EncryptedValue) and isinstance(right, EncryptedValue):
        return context.product(context.expand(left, shape), context.expand(right, shape))
    value, constant = _apart(context, left, right)
    return context.scaled(context.expand(value, shape), np.broadcast_to(constant, shape).ravel())


def _apart(
    context: OperatorContext, left: Operand | None, right: Operand | None
) -> tuple[EncryptedValue, Vector]:
    """Return the encrypted one of a pair, and the constant one in double precision."""
    value, constant = (left, right) if isinstance(left, EncryptedValue) else (right, left)
    if not isinstance(value, EncryptedValue) or not isinstance(constant, Constant):
        raise context.refuse("operands", "absent", "two, of which one may be a constant")
    return value, np.asarray(constant.array, np.float64)
