"""Smooth activations: functions that a polynomial will stand for."""

import math
from collections.abc import Callable

import numpy as np

from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.graph import Activation
from keywright.nn.graph.sparse import Vector

Function = Callable[[Vector], Vector]
DEFAULT_DEGREE = 7


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def erf(x: Vector) -> Vector:
    """The error function."""
    return np.asarray([math.erf(value) for value in np.ravel(x)]).reshape(np.shape(x))


def relu(x: Vector) -> Vector:
    """max(x, 0)."""
    return np.maximum(x, 0.0)


def gelu(x: Vector) -> Vector:
    """x times the standard normal distribution function of x."""
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Vector) -> Vector:
    """The form of GELU that ONNX calls approximate="tanh"."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Vector) -> Vector:
    """x times sigmoid(x); also called Swish."""
    return x * sigmoid(x)


ACTIVATIONS: dict[str, Function] = {
    "Erf": erf,
    "Gelu": gelu,
    "Relu": relu,
    "Sigmoid": sigmoid,
    "Swish": silu,
    "Tanh": np.tanh,
}


def activation(context: OperatorContext) -> EncryptedValue:
    """The function as a node to be fitted, with the degree asked for its operator type."""
    source = context.encrypted(0)
    function = ACTIVATIONS[context.operator]
    if context.operator == "Gelu":
        approximate = context.attribute("approximate", "none")
        if approximate not in ("none", "tanh"):
            raise context.refuse("approximate", approximate, "none or tanh")
        function = gelu_tanh if approximate == "tanh" else gelu
    if context.operator == "Swish":
        alpha = context.attribute("alpha", 1.0)
        function = _swish(alpha)
    degree = context.degrees.get(context.operator, DEFAULT_DEGREE)
    node = Activation(
        source.shape, (source.number,), function, f"{context.operator} at {context.name!r}", degree
    )
    return EncryptedValue(context.graph.add(node), source.shape)


def _swish(alpha: float) -> Function:
    return lambda x: x * sigmoid(alpha * x)
