"""Activations become polynomials: ranges measured on calibration data, Chebyshev coefficients by weighted
least squares."""

import math
from dataclasses import dataclass

import numpy as np

from keywright.nn.errors import InvalidSamplesError
from keywright.nn.graph.graph import Activation, Function, Graph, Linear, Multiply, Polynomial, Shift
from keywright.nn.graph.simplify import scale_value
from keywright.nn.graph.sparse import SparseMatrix, Vector

GRID = 2048
"""Points of the range at which a fit is made and its error measured, beside the calibration data."""

MAX_CENTRE = 64.0
"""A quadratic whose vertex is further from the range than this many half-widths is replaced by a line:
squaring would lose its linear part in cancellation."""


@dataclass(frozen=True)
class FittedActivation:
    """How a polynomial stands for a function.

    Attributes:
        label: function and ONNX node.
        degree: of the polynomial.
        low, high: the range on which it holds: measured on calibration data and widened by the margin.
        max_error: largest absolute error on that range.
        rms_error: root mean square error on the calibration data.
    """

    label: str
    degree: int
    low: float
    high: float
    max_error: float
    rms_error: float


def fit(function: Function, low: float, high: float, degree: int, data: Vector) -> Vector:
    """Chebyshev coefficients on [low, high] mapped to [-1, 1].

    Least squares over Chebyshev nodes, which makes the largest error close to the best possible, and over the
    data, which makes it small where values are; both count the same.
    """
    nodes = np.cos(np.pi * (np.arange(GRID) + 0.5) / GRID)
    seen = (data - (low + high) / 2) / ((high - low) / 2)
    points = np.concatenate((nodes, seen))
    weights = np.concatenate((np.full(GRID, GRID**-0.5), np.full(len(seen), len(seen) ** -0.5)))
    values = function(points * (high - low) / 2 + (low + high) / 2)
    design = np.polynomial.chebyshev.chebvander(points, degree)
    solution = np.linalg.lstsq(design * weights[:, None], values * weights, rcond=None)[0]
    return np.asarray(solution, np.float64)


def replace_activations(graph: Graph, samples: Vector, margin: float) -> tuple[Graph, list[FittedActivation]]:
    """The graph with polynomials in place of activations, and how well each fits.

    Each value that enters a polynomial is mapped to [-1, 1] (or, for degree 2, to the argument of one square)
    by the layer before, where that is possible without a level.

    Args:
        samples: (count, features), flattened inputs.
        margin: by which share of its width each measured range is widened on both sides.
    """
    measured = _measure(graph, samples)
    fitted = []
    for number, node in list(graph.nodes.items()):
        if isinstance(node, Activation):
            fitted.append(_replace(graph, number, node, measured[number], margin))
    return graph.renumbered(), fitted


def _measure(graph: Graph, samples: Vector) -> dict[int, Vector]:
    """What enters each activation: all values of all samples."""
    active = {number: node for number, node in graph.nodes.items() if isinstance(node, Activation)}
    seen: dict[int, list[Vector]] = {number: [] for number in active}
    for sample in samples if seen else []:
        values = graph.evaluate(sample)
        for number, collected in seen.items():
            collected.append(values[active[number].operands[0]])
    data = {number: np.concatenate(collected) for number, collected in seen.items()}
    for number, entering in data.items():
        if not np.isfinite(entering).all():
            raise InvalidSamplesError(
                f"calibration data drive the input of {active[number].label} out of the finite numbers"
            )
    return data


def _replace(graph: Graph, number: int, node: Activation, data: Vector, margin: float) -> FittedActivation:
    low, high = float(data.min()), float(data.max())
    widening = margin * (high - low) or max(abs(low), 1.0) * 1e-3  # a constant input still needs a range
    low, high = low - widening, high + widening
    centre, half = (low + high) / 2, (high - low) / 2
    coefficients = fit(node.function, low, high, node.degree, data)
    if node.degree == 2 and not _is_quadratic(coefficients):
        coefficients = fit(node.function, low, high, 1, data)
    degree = len(coefficients) - 1

    def approximate(x: Vector) -> Vector:
        return np.asarray(np.polynomial.chebyshev.chebval((x - centre) / half, coefficients), np.float64)

    grid = np.linspace(low, high, GRID)
    max_error = float(np.abs(approximate(grid) - node.function(grid)).max())
    rms_error = float(np.sqrt(np.mean(np.square(approximate(data) - node.function(data)))))
    if degree == 1:
        size = int(np.prod(node.shape, dtype=np.int64))
        slope = coefficients[1] / half
        bias = np.full(size, coefficients[0] - slope * centre)
        graph.nodes[number] = Linear(
            node.shape, node.operands, (SparseMatrix.diagonal(np.full(size, slope)),), bias
        )
    elif degree == 2:
        _square(graph, number, node, coefficients, centre, half)
    else:
        argument = _mapped(graph, number, node, 1 / half, -centre / half)
        graph.nodes[number] = Polynomial(node.shape, (argument,), coefficients, node.label)
    return FittedActivation(node.label, degree, low, high, max_error, rms_error)


def _is_quadratic(coefficients: Vector) -> bool:
    _, linear, quadratic = np.polynomial.chebyshev.cheb2poly(coefficients)
    return bool(abs(linear) < 2 * abs(quadratic) * MAX_CENTRE)


def _square(
    graph: Graph, number: int, node: Activation, coefficients: Vector, centre: float, half: float
) -> None:
    """c0 + c1 u + c2 u^2 as sign(c2) t^2 + constant, t = sqrt|c2| (u + c1 / (2 c2)): one level."""
    constant, linear, quadratic = (float(c) for c in np.polynomial.chebyshev.cheb2poly(coefficients))
    root, vertex = math.sqrt(abs(quadratic)), linear / (2 * quadratic)
    argument = _mapped(graph, number, node, root / half, root * (vertex - centre / half))
    square = graph.add(Multiply(node.shape, (argument, argument), node.label))
    size = int(np.prod(node.shape, dtype=np.int64))
    rest = np.full(size, constant - quadratic * vertex**2)
    if quadratic > 0:
        graph.nodes[number] = Shift(node.shape, (square,), rest)
    else:
        graph.nodes[number] = Linear(node.shape, (square,), (SparseMatrix.diagonal(-np.ones(size)),), rest)


def _mapped(graph: Graph, number: int, node: Activation, factor: float, offset: float) -> int:
    """The value ``factor * operand + offset``, scaled by the layer before where that is possible."""
    source = node.operands[0]
    size = int(np.prod(node.shape, dtype=np.int64))
    if not scale_value(graph, source, factor, number):
        matrix = SparseMatrix.diagonal(np.full(size, factor))
        source = graph.add(Linear(node.shape, (source,), (matrix,), np.zeros(size)))
    return graph.add(Shift(node.shape, (source,), np.full(size, offset)))
