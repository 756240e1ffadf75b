"""Add, Sub, Mul, Div, Neg and Pow between encrypted values and constants."""

import numpy as np

from keywright.nn.front_ends.operator_context import Constant, EncryptedValue, OperatorContext
from keywright.nn.graph.graph import Add, Multiply, Shift
from keywright.nn.graph.sparse import SparseMatrix, Vector


def add(context: OperatorContext) -> EncryptedValue:
    """The sum of two encrypted values of equal shape, or of one and a constant that broadcasts to it."""
    left, right = _pair(context)
    if right is None:
        return _shift(context, left, _broadcast(context, left))
    return EncryptedValue(context.graph.add(Add(left.shape, (left.number, right.number))), left.shape)


def subtract(context: OperatorContext) -> EncryptedValue:
    """The difference of two encrypted values, or of one and a constant in either order."""
    left, right = _pair(context)
    if right is not None:
        negative = _scale(context, right, -np.ones(right.size))
        return EncryptedValue(context.graph.add(Add(left.shape, (left.number, negative.number))), left.shape)
    vector = _broadcast(context, left)
    if isinstance(context.operand(0), Constant):
        return _shift(context, _scale(context, left, -np.ones(left.size)), vector)
    return _shift(context, left, -vector)


def multiply(context: OperatorContext) -> EncryptedValue:
    """The product of two encrypted values of equal shape, or of one and a constant that broadcasts to it."""
    left, right = _pair(context)
    if right is None:
        return _scale(context, left, _broadcast(context, left))
    node = Multiply(left.shape, (left.number, right.number), context.name)
    return EncryptedValue(context.graph.add(node), left.shape)


def divide(context: OperatorContext) -> EncryptedValue:
    """An encrypted value over a constant."""
    source = context.encrypted(0)
    divisor = _broadcast(context, source)
    if (divisor == 0).any():
        raise context.refuse("operand 1", "0", "a divisor other than 0")
    return _scale(context, source, 1.0 / divisor)


def negate(context: OperatorContext) -> EncryptedValue:
    """The additive inverse."""
    source = context.encrypted(0)
    return _scale(context, source, -np.ones(source.size))


def power(context: OperatorContext) -> EncryptedValue:
    """A positive integer power, by repeated squaring."""
    source = context.encrypted(0)
    exponent = context.required_constant(1)
    if exponent.size != 1 or exponent.item() != int(exponent.item()) or exponent.item() < 1:
        raise context.refuse("exponent", exponent.tolist(), "one positive integer")
    return _power(context, source, int(exponent.item()))


def _power(context: OperatorContext, source: EncryptedValue, exponent: int) -> EncryptedValue:
    if exponent == 1:
        return source
    low = _power(context, source, exponent // 2)
    high = low if exponent % 2 == 0 else _power(context, source, exponent - exponent // 2)
    node = Multiply(source.shape, (low.number, high.number), context.name)
    return EncryptedValue(context.graph.add(node), source.shape)


def _pair(context: OperatorContext) -> tuple[EncryptedValue, EncryptedValue | None]:
    """Both operands if both are encrypted, otherwise the encrypted one and None."""
    left, right = context.operand(0), context.operand(1)
    if isinstance(left, EncryptedValue) and isinstance(right, EncryptedValue):
        if left.shape != right.shape:
            raise context.refuse("shapes of operands", f"{left.shape} and {right.shape}", "equal shapes")
        return left, right
    return context.encrypted(0 if isinstance(left, EncryptedValue) else 1), None


def _broadcast(context: OperatorContext, source: EncryptedValue) -> Vector:
    """The constant operand of a pair, one value per element of the encrypted one."""
    constant = context.required_constant(1 if isinstance(context.operand(0), EncryptedValue) else 0)
    try:
        return np.broadcast_to(constant, (1, *source.shape)).ravel().astype(np.float64)
    except ValueError as error:
        raise context.refuse(
            "constant of shape", constant.shape, f"one that broadcasts to {source.shape}"
        ) from error


def _scale(context: OperatorContext, source: EncryptedValue, factor: Vector) -> EncryptedValue:
    return context.linear(source, source.shape, SparseMatrix.diagonal(factor))


def _shift(context: OperatorContext, source: EncryptedValue, vector: Vector) -> EncryptedValue:
    return EncryptedValue(context.graph.add(Shift(source.shape, (source.number,), vector)), source.shape)
