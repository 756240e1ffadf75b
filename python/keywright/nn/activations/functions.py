"""Activations as functions: what a polynomial will stand for."""

import math

import numpy as np

from keywright.nn.graph.graph import Function
from keywright.nn.graph.sparse import Vector


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


def swish(alpha: float) -> Function:
    """x times sigmoid(alpha x)."""
    return lambda x: x * sigmoid(alpha * x)


ACTIVATIONS: dict[str, Function] = {
    "Erf": erf,
    "Gelu": gelu,
    "Relu": relu,
    "Sigmoid": sigmoid,
    "Swish": silu,
    "Tanh": np.tanh,
}
"""By ONNX operator type."""
