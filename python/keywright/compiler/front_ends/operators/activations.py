"""Activations: nodes that polynomials will approximate."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.functions import (
    ACTIVATIONS,
    POSITIVE,
    absolute,
    celu,
    clip,
    elu,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    leaky_relu,
    selu,
    swish,
    thresholded_relu,
)
from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, Operand, OperatorContext
from keywright.compiler.graph.piecewise import Function
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

from .gating.gates import compared

COMPARISONS: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


def activation(context: OperatorContext) -> EncryptedValue:
    """Add the function as a node."""
    function = _function(context)
    return context.function(context.encrypted(0), function, positive=context.operator in POSITIVE)


def parametric_relu(context: OperatorContext) -> EncryptedValue:
    r"""Add PRelu with constant slopes, as one LeakyRelu or, if they differ, as a x + b \|x\|."""
    source = context.encrypted(0)
    slopes = context.required_constant(1)
    try:
        slope = np.broadcast_to(slopes, source.shape).ravel()
    except ValueError as error:
        raise context.refuse(
            "slope of shape", slopes.shape, f"one that broadcasts to {source.shape}"
        ) from error
    if (slope == slope[0]).all():
        return context.function(source, leaky_relu(float(slope[0])))
    size = context.function(source, absolute)
    halves = SparseMatrix.diagonal((1 + slope) / 2), SparseMatrix.diagonal((1 - slope) / 2)
    terms = list(zip((source, size), halves, strict=True))
    return context.total(terms, source.shape, laid_out=context.laid_out(source))


def comparison(context: OperatorContext) -> Operand:
    """Add Greater, GreaterOrEqual, Less and LessOrEqual with one number: a step function, 0 or 1. Together
    with `choose`, it becomes one function of one value."""
    source, flipped = context.operand(0), False
    number = context.operand(1)
    if isinstance(source, Constant):
        source, number, flipped = number, source, True
    if not isinstance(source, EncryptedValue) or not isinstance(number, Constant) or number.array.size != 1:
        raise context.refuse("operands", "two values", "one number to compare with")
    least = float(number.array.item())
    compare = COMPARISONS[context.operator]

    def step(x: Vector) -> Vector:
        return np.asarray(compare(least, x) if flipped else compare(x, least), np.float64)

    return compared(context, source, step) if source.numbers else context.function(source, step)


def equal_to_itself(context: OperatorContext) -> Operand:
    """Fold Equal of a value and itself, by which exporters test for NaN: encrypted values are numbers. Add
    Equal of bits and a number."""
    first, second = context.operands
    if isinstance(second, Constant) and isinstance(first, EncryptedValue) and first.numbers:
        if second.array.size != 1:
            raise context.refuse("operand 1", "several numbers", "one number to compare with")
        number = float(second.array.item())
        return compared(context, first, lambda x: np.asarray(x == number, np.float64))
    if not isinstance(first, EncryptedValue) or first != second:
        raise context.refuse(
            "operands",
            "encrypted numbers",
            "bits and a number, or one value twice: encrypted numbers have errors, so use Less or Greater",
        )
    return Constant(np.ones(first.shape, np.bool_))


def finite(context: OperatorContext) -> Constant:
    """Fold IsNaN and IsInf: no encrypted value is either."""
    context.attribute("detect_negative", 1)
    context.attribute("detect_positive", 1)
    return Constant(np.zeros(context.encrypted(0).shape, np.bool_))


def _function(context: OperatorContext) -> Function:
    match context.operator:
        case "Celu":
            return celu(context.attribute("alpha", 1.0))
        case "Clip":
            low, high = _bound(context, 1, "min", -math.inf), _bound(context, 2, "max", math.inf)
            if not low < high:
                raise context.refuse("min", low, f"a number below max = {high}")
            return clip(low, high)
        case "Elu":
            return elu(context.attribute("alpha", 1.0))
        case "Gelu":
            approximate = context.attribute("approximate", "none")
            if approximate not in ("none", "tanh"):
                raise context.refuse("approximate", approximate, "none or tanh")
            return gelu_tanh if approximate == "tanh" else gelu
        case "HardSigmoid":
            return hard_sigmoid(context.attribute("alpha", 0.2), context.attribute("beta", 0.5))
        case "LeakyRelu":
            return leaky_relu(context.attribute("alpha", 0.01))
        case "Selu":
            return selu(context.attribute("alpha", 1.67326324), context.attribute("gamma", 1.05070099))
        case "Swish":
            return swish(context.attribute("alpha", 1.0))
        case "ThresholdedRelu":
            return thresholded_relu(context.attribute("alpha", 1.0))
        case operator:
            return ACTIVATIONS[operator]


def _bound(context: OperatorContext, index: int, name: str, default: float) -> float:
    """Return an end of Clip: an operand, or an attribute before opset 11; limits of a float type mean
    none."""
    given = context.constant(index)
    if given is not None and given.size != 1:
        raise context.refuse(name, given.tolist(), "one number")
    value = context.attribute(name, default) if given is None else float(given.item())
    return default if abs(value) > 3.4e38 else value
