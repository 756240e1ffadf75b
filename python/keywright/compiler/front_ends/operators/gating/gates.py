"""Masks that clients encrypt: elements of the input that are 0 or 1 and hide others from a softmax.

Calibration data show which elements of the input are 0 or 1. What exporters compute of them is exact:
arithmetic with numbers, a comparison with a number, a choice between two numbers, a negation. Where it ends
as 0 or a large negative number that is added before a softmax, or chooses between logits and such a number,
it is a gate. The softmax multiplies its exponentials by the bits: hidden elements get no share, and sums
count those alone that are shown.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keywright.compiler.front_ends.operator_context import (
    BITS,
    Constant,
    EncryptedValue,
    Operand,
    OperatorContext,
)
from keywright.compiler.graph.graph import Add, Shift
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Shape, Vector

HIDDEN = -1e4
"""Constants of at most this mask what they are added to, for a softmax that reads the sum."""

GATE = (float(np.finfo(np.float32).min), 0.0)
"""The numbers that a gate stands for."""

GATED = frozenset(["Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"])
"""Operators whose results are gates if their first operand is one."""


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Sub": np.subtract,
}
"""Operators by which exporters compute a mask of bits, or limit it."""


def as_gates(results: Operand | tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the results of an operator on a gate."""
    each = results if isinstance(results, tuple) else (results,)
    return tuple(replace(value, gate=True) if isinstance(value, EncryptedValue) else value for value in each)


def require_bits(context: OperatorContext, value: EncryptedValue) -> EncryptedValue:
    """Return the bits of a value that is one of two numbers.

    Raises:
        RefusalError: it is not known to be one.
    """
    if value.numbers is None:
        raise context.refuse(
            "an operand",
            "an encrypted value as true or false",
            "elements of the input that are 0 or 1 in all calibration data, as those of a mask",
        )
    context.claims.relied.append(value.number)
    if value.bits:
        return value
    no, yes = value.numbers
    scaled = context.scaled(value, 1 / (yes - no))
    node = Shift(context.laid_out(value), (scaled.number,), np.full(value.size, -no / (yes - no)))
    return EncryptedValue(context.graph.add(node), value.shape, value.order, numbers=BITS)


def _outcome(context: OperatorContext, kinds: Collection[str]) -> tuple[EncryptedValue, float, float] | None:
    """Return the one operand that is one of two numbers, and what an operator of some kinds makes of these;
    None where the others are not each one number."""
    sources = [value for value in context.operands if isinstance(value, EncryptedValue)]
    numbers = [np.asarray(v.array, np.float64).ravel() for v in context.operands if isinstance(v, Constant)]
    if context.operator not in kinds or len(sources) != 1 or len(context.operands) > 2:
        return None
    if not all(each.size and (each == each[0]).all() for each in numbers):
        return None
    if sources[0].numbers is None or (sources[0].hides and not sources[0].gate):
        return None
    pair = np.array(GATE if sources[0].gate else sources[0].numbers)
    operands = [pair if isinstance(v, EncryptedValue) else numbers[0][0] for v in context.operands]
    with np.errstate(all="ignore"):
        no, yes = ARITHMETIC[context.operator](*operands).tolist()
    return sources[0], no, yes


def limited(context: OperatorContext) -> EncryptedValue | None:
    """Return the gate that a gate remains which is multiplied, or limited to finite numbers; None for
    others."""
    result = _outcome(context, ("Div", "Max", "Min", "Mul"))
    if result is None or not result[0].gate or result[1] > HIDDEN or result[2] != 0:
        return None
    return context.expand(result[0], joint_shape(context, *context.operands))


def as_numbers(context: OperatorContext, results: Operand | tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the results of a node with the two numbers that they are where it computes with bits; they are a
    gate where one is 0, and the other large and negative."""
    results = results if isinstance(results, tuple) else (results,)
    outcome = _outcome(context, ("Add", "Div", "Mul", "Neg", "Sub"))
    if outcome is None or outcome[0].gate or not isinstance(results[0], EncryptedValue):
        return results
    source, no, yes = outcome
    if min(no, yes) <= HIDDEN and max(no, yes) == 0:
        bits = require_bits(context, source)
        bits = context.expand(bits if no else inverted(context, bits), results[0].shape)
        return (replace(bits, gate=True),)
    if not results[0].hides and no != yes and np.isfinite([no, yes]).all():
        return (replace(results[0], numbers=BITS if {no, yes} == {0.0, 1.0} else (no, yes)),)
    return results


def inverted(context: OperatorContext, value: EncryptedValue) -> EncryptedValue:
    """Return 1 minus bits."""
    matrix = SparseMatrix.diagonal(np.full(value.size, -1.0))
    negated = context.linear(value, value.shape, matrix, laid_out=context.laid_out(value))
    ones = np.ones(value.size)
    node = Shift(context.laid_out(value), (negated.number,), ones)
    return EncryptedValue(context.graph.add(node), value.shape, value.order, numbers=BITS)


def compared(
    context: OperatorContext,
    value: EncryptedValue,
    function: Callable[[Vector], Vector],
) -> Operand:
    """Return what a comparison gives for a value that is one of two numbers."""
    bits = require_bits(context, value)
    no, yes = (bool(function(np.asarray(number))) for number in value.numbers or BITS)
    if no == yes:
        context.claims.folded.append(bits.number)
        return Constant(np.full(value.shape, yes))
    return bits if yes else inverted(context, bits)


def negation(context: OperatorContext) -> EncryptedValue:
    """Add Not."""
    return inverted(context, require_bits(context, context.encrypted(0)))


def both(context: OperatorContext) -> Operand:
    """Add And of bits, or of bits and constants."""
    return _conjunction(
        context, [v if isinstance(v, Constant) else require_bits(context, v) for v in context.operands if v]
    )


def either(context: OperatorContext) -> Operand:
    """Add Or of bits, or of bits and constants."""
    opposites = [
        Constant(~np.asarray(v.array, np.bool_))
        if isinstance(v, Constant)
        else inverted(context, require_bits(context, v))
        for v in context.operands
        if v
    ]
    return inverted(context, _conjunction(context, opposites))


def _conjunction(context: OperatorContext, values: Sequence[Operand]) -> EncryptedValue:
    shape = joint_shape(context, *values)
    bits = [context.expand(v, shape) for v in values if isinstance(v, EncryptedValue)]
    known = [np.broadcast_to(v.array, shape) for v in values if isinstance(v, Constant)]
    if known:
        return replace(context.scaled(bits[0], known[0].astype(np.float64).ravel()), numbers=BITS)
    return replace(context.product(*bits), numbers=BITS)


def chosen(
    context: OperatorContext, condition: Operand | None, yes: Operand | None, no: Operand | None
) -> EncryptedValue | None:
    """Return what a softmax reads of a choice between large negative numbers and others: a gate for 0, and a
    value that bits hide for other constants and for logits; None for another choice."""
    if not isinstance(condition, EncryptedValue) or condition.numbers is None:
        return None
    for least, other, kept in ((no, yes, 1.0), (yes, no, 0.0)):
        if not isinstance(least, Constant) or not (np.asarray(least.array, np.float64) <= HIDDEN).all():
            continue
        if isinstance(other, EncryptedValue) and other.number == condition.number and other.bits:
            other = Constant(np.asarray(kept))
        bits = require_bits(context, condition)
        bits = bits if kept else inverted(context, bits)
        bits = context.expand(bits, joint_shape(context, condition, yes, no))
        if isinstance(other, EncryptedValue):
            return gated(context, other, bits)
        if isinstance(other, Constant):
            return _with_constants(context, bits, np.broadcast_to(np.asarray(other.array, float), bits.shape))
    return None


def _with_constants(
    context: OperatorContext, bits: EncryptedValue, constants: Vector
) -> EncryptedValue | None:
    """Return constants where bits show them: a gate if all are 0; None if all hide, or one is infinite."""
    shown = constants > HIDDEN
    bias = np.where(shown, constants, 0.0)
    if not shown.any() or not np.isfinite(bias).all():
        return None
    if not shown.all():
        bits = replace(context.scaled(bits, shown.ravel().astype(np.float64)), numbers=BITS)
    return replace(context.scaled(bits, bias.ravel()), shown=bits) if bias.any() else replace(bits, gate=True)


def joint_shape(context: OperatorContext, *values: Operand | None) -> Shape:
    """Return the shape to which operands broadcast. Raises `RefusalError` if there is none."""
    shapes = [value.array.shape if isinstance(value, Constant) else value.shape for value in values if value]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        text = " and ".join(map(str, shapes))
        raise context.refuse("shapes of operands", text, "shapes that broadcast to each other") from error


def gated(context: OperatorContext, value: EncryptedValue, gate: EncryptedValue) -> EncryptedValue:
    """Return a value of which a gate hides elements."""
    context.claims.relied.append(gate.number)
    shape = joint_shape(context, value, gate)
    bits = replace(context.expand(gate, shape), gate=False)
    value = context.expand(value, shape)
    if value.gate:
        return replace(context.product(replace(value, gate=False), bits), numbers=BITS, gate=True)
    if value.shown is not None:
        bits = replace(context.product(value.shown, bits), numbers=BITS)
    return replace(value, shown=bits)


def hidden_sum(context: OperatorContext, left: EncryptedValue, right: EncryptedValue) -> EncryptedValue:
    """Return the sum of two values of one shape, of which bits hide elements."""
    left, right = left.before_mask or left, right.before_mask or right
    masks = [value.masked for value in (left, right) if value.masked is not None]
    shown = [value.shown for value in (left, right) if value.shown is not None]
    bits = shown[0] if len(shown) == 1 else replace(context.product(*shown), numbers=BITS)
    left, right = context.aligned(*(EncryptedValue(v.number, v.shape, v.order) for v in (left, right)))
    node = Add(context.laid_out(left), (left.number, right.number))
    masked = np.sum(masks, axis=0) if masks else None
    return EncryptedValue(context.graph.add(node), left.shape, left.order, masked, shown=bits)
