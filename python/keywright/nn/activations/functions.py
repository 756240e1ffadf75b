"""Activations as functions: what a polynomial will stand for."""

import math

import numpy as np

from keywright.nn.graph.piecewise import Function, PiecewiseLinear
from keywright.nn.graph.sparse import Vector


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def erf(x: Vector) -> Vector:
    """The error function."""
    return np.asarray([math.erf(value) for value in np.ravel(x)]).reshape(np.shape(x))


relu = PiecewiseLinear.through((0.0,), (0.0, 1.0), 0.0)
"""max(x, 0)."""

absolute = PiecewiseLinear.through((0.0,), (-1.0, 1.0), 0.0)
"""\\|x\\|."""


def leaky_relu(alpha: float) -> PiecewiseLinear:
    """max(x, 0) + alpha min(x, 0)."""
    return PiecewiseLinear.through((0.0,), (alpha, 1.0), 0.0)


def clip(low: float, high: float) -> PiecewiseLinear:
    """x between two numbers, of which one may be infinite; low < high."""
    if math.isinf(low) and math.isinf(high):
        return PiecewiseLinear()
    if math.isinf(low):
        return PiecewiseLinear.through((high,), (1.0, 0.0), high)
    if math.isinf(high):
        return PiecewiseLinear.through((low,), (0.0, 1.0), low)
    return PiecewiseLinear.through((low, high), (0.0, 1.0, 0.0), low)


def gelu(x: Vector) -> Vector:
    """x times the standard normal distribution function of x."""
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Vector) -> Vector:
    """The form of GELU that ONNX calls approximate="tanh"."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: Vector) -> Vector:
    """x times sigmoid(x); also called Swish."""
    return x * sigmoid(x)


def swish(alpha: float) -> Function:
    """x times sigmoid(alpha x)."""
    return lambda x: x * sigmoid(alpha * x)


ACTIVATIONS: dict[str, Function] = {
    "Abs": absolute,
    "Clip": clip(0.0, 6.0),
    "Erf": erf,
    "Gelu": gelu,
    "LeakyRelu": leaky_relu(0.01),
    "Relu": relu,
    "Sigmoid": sigmoid,
    "Swish": silu,
    "Tanh": np.tanh,
}
"""By ONNX operator type, with usual attributes."""
