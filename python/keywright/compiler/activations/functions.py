"""Activation functions, which polynomials will approximate."""

import math

import numpy as np

from keywright.compiler.graph.piecewise import Function, PiecewiseLinear, composed
from keywright.program.arrays import Vector


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def erf(x: Vector) -> Vector:
    """The error function."""
    return np.fromiter(map(math.erf, np.ravel(x).tolist()), np.float64).reshape(np.shape(x))


relu = PiecewiseLinear.through((0.0,), (0.0, 1.0), 0.0)
"""max(x, 0)."""

absolute = PiecewiseLinear.through((0.0,), (-1.0, 1.0), 0.0)
"""\\|x\\|."""


def leaky_relu(alpha: float) -> PiecewiseLinear:
    """max(x, 0) + alpha min(x, 0)."""
    return PiecewiseLinear.through((0.0,), (alpha, 1.0), 0.0)


def clip(low: float, high: float) -> PiecewiseLinear:
    """x clipped to [low, high]; one end may be infinite, and low < high."""
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


def exponential(x: Vector) -> Vector:
    """exp(x), of at most 1e304."""
    return np.exp(np.minimum(x, 700.0))


def elu(alpha: float) -> Function:
    """x where it is positive, alpha (exp(x) - 1) where it is not."""
    return lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def celu(alpha: float) -> Function:
    """x where it is positive, alpha (exp(x / alpha) - 1) where it is not."""
    return lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0) / alpha))


def selu(alpha: float, gamma: float) -> Function:
    """gamma times ELU."""
    return lambda x: gamma * np.asarray(elu(alpha)(x), np.float64)


def hard_sigmoid(alpha: float, beta: float) -> Function:
    """alpha x + beta between 0 and 1."""
    return composed(clip(0.0, 1.0), PiecewiseLinear(alpha, beta))


def hard_swish(x: Vector) -> Vector:
    """x times (x / 6 + 1 / 2 between 0 and 1)."""
    return x * np.clip(x / 6 + 0.5, 0.0, 1.0)


def thresholded_relu(alpha: float) -> Function:
    """x where it is above alpha, else 0: it jumps there, unless alpha is 0."""
    return lambda x: np.where(x > alpha, x, 0.0)


def softplus(x: Vector) -> Vector:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.logaddexp(x, 0.0), np.float64)


def mish(x: Vector) -> Vector:
    """x tanh(softplus(x))."""
    return x * np.tanh(softplus(x))


def softsign(x: Vector) -> Vector:
    """x / (1 + \\|x\\|)."""
    return x / (1.0 + np.abs(x))


def reciprocal(x: Vector) -> Vector:
    """1 / x."""
    return 1.0 / x


def to_power(exponent: float) -> Function:
    """x to a power, for positive x."""
    return lambda x: np.asarray(np.power(x, exponent), np.float64)


def inverse_root(x: Vector) -> Vector:
    """1 / sqrt(x)."""
    return 1.0 / np.sqrt(x)


ACTIVATIONS: dict[str, Function] = {
    "Abs": absolute,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Celu": celu(1.0),
    "Clip": clip(0.0, 6.0),
    "Cos": np.cos,
    "Elu": elu(1.0),
    "Erf": erf,
    "Exp": exponential,
    "Gelu": gelu,
    "HardSigmoid": hard_sigmoid(0.2, 0.5),
    "HardSwish": hard_swish,
    "LeakyRelu": leaky_relu(0.01),
    "Log": np.log,
    "Mish": mish,
    "Reciprocal": reciprocal,
    "Relu": relu,
    "Selu": selu(1.67326324, 1.05070099),
    "Sigmoid": sigmoid,
    "Sin": np.sin,
    "Softplus": softplus,
    "Softsign": softsign,
    "Sqrt": np.sqrt,
    "Swish": silu,
    "Tanh": np.tanh,
    "ThresholdedRelu": thresholded_relu(1.0),
}
"""Functions by ONNX operator type, with default attributes."""

POSITIVE = {"Log", "Reciprocal", "Sqrt"}
"""Functions that are defined for positive values only."""

INSIDE = {
    "GlobalMaxPool", "Greater", "GreaterOrEqual", "GroupNormalization", "InstanceNormalization", "LRN",
    "LayerNormalization", "Less", "LessOrEqual", "LpNormalization", "Max", "MaxPool", "Min", "Normalizer",
    "PRelu", "Pow", "RMSNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceMax", "ReduceMin", "Softmax",
}  # fmt: skip
"""ONNX operator types composed of activations, which are named after the operator."""
