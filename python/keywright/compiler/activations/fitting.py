"""Replaces activations by polynomials on measured ranges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from keywright.compiler.activations.approximation.chebyshev import fit, largest_error
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.graph.graph import Activation, Add, Domain, Graph, Linear, Multiply, Polynomial, Shift
from keywright.compiler.graph.piecewise import PiecewiseLinear
from keywright.compiler.graph.simplify import scale_value
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.errors.refusals.precision import not_a_statistic, not_piecewise
from keywright.minimax.composite import sign_composite
from keywright.minimax.series import chebyshev
from keywright.program.arrays import Vector
from keywright.program.fit_report import FittedActivation

from .ranges import MeasuredRange

MAX_CENTRE = 64.0
"""A quadratic whose vertex is further from the range than this many half-widths is replaced by a line:
squaring would lose its linear part in cancellation. A line is a polynomial of degree 1 on its range, and no
linear map, which layers around it would absorb: the range would be lost with the value that it is of."""


@dataclass(frozen=True, eq=False)
class Approximation:
    """An approximation of a function on a range.

    Attributes:
        method: the method used; of degree 1 in place of a square that is a line.
        low, high: the range; for a composition an interval around its kinks that contains the range.
        coefficients: of a Chebyshev polynomial on the range mapped to [-1, 1]; empty for a composition.
        max_error: bound on the distance from the function on the range.
    """

    method: Method
    low: float
    high: float
    coefficients: Vector
    max_error: float

    def degrees(self) -> tuple[int, ...]:
        """Degrees of the polynomials, in order of evaluation."""
        return self.method.degrees if not len(self.coefficients) else (len(self.coefficients) - 1,)

    def __call__(self, function: object, x: Vector) -> Vector:
        """Evaluate the approximation of the function."""
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        if len(self.coefficients):
            return chebyshev((x - centre) / half, self.coefficients)
        assert isinstance(function, PiecewiseLinear)
        sign, reach = sign_composite(self.method.number), _reach(function, self.low, self.high)
        result = function.slope * x + function.offset
        for place, bend in function.kinks:
            result = result + bend * reach * sign.absolute((x - place) / reach)
        return result


def fit_activation(node: Activation, measured: MeasuredRange, method: Method) -> Approximation:
    """Fit one activation.

    Raises:
        RefusalError: a composition is requested for a function that is not piecewise linear, or a constant
            for one that is not the inverse of a statistic.
    """
    function, low, high = node.function, measured.low, measured.high
    if method.kind == "stored":
        if not node.positive:
            raise not_a_statistic(node.label)
        outcome = np.asarray(function(np.concatenate([measured.values, [low, high]])), np.float64)
        mean = outcome[:-2].mean(keepdims=True)
        return Approximation(method, low, high, mean, float(np.abs(outcome - mean).max()))
    if method.kind == "minimax":
        if not isinstance(function, PiecewiseLinear):
            raise not_piecewise(node.label, str(method))
        reach = _reach(function, low, high)
        bends = sum(abs(bend) for _, bend in function.kinks)
        error = 2 * sign_composite(method.number).relu_error * bends * reach
        return Approximation(method, low, high, np.zeros(0), error)
    coefficients = fit(function, low, high, method.number, measured.values)
    if method.number == 2 and not _is_quadratic(coefficients):
        method = Method("chebyshev", 1)
        coefficients = fit(function, low, high, 1, measured.values)
    return Approximation(method, low, high, coefficients, largest_error(function, low, high, coefficients))


def replace_activations(
    graph: Graph, ranges: Mapping[int, MeasuredRange], chosen: Mapping[int, Approximation]
) -> tuple[Graph, list[FittedActivation]]:
    """Return the graph with polynomials for the chosen activations, and the quality of each fit.

    Each value that enters a polynomial is mapped to [-1, 1] (or, for degree 2, to the argument of one square)
    by the layer before, if that takes no level.

    Args:
        ranges: input range of each activation, by its number.
        chosen: the approximation of each that is replaced.
    """
    result = Graph(dict(graph.nodes), graph.output)
    fitted = []
    for number, node in graph.nodes.items():
        if isinstance(node, Activation) and number in chosen:
            fitted.append(_described(node, ranges[number].values, chosen[number]))
            _replace(result, number, node, chosen[number])
    return result.renumbered(), fitted


def _described(node: Activation, data: Vector, chosen: Approximation) -> FittedActivation:
    error = chosen(node.function, data) - node.function(data)
    rms = float(np.sqrt(np.mean(np.square(error))))
    method, degrees = str(chosen.method), chosen.degrees()
    return FittedActivation(node.label, method, degrees, chosen.low, chosen.high, chosen.max_error, rms)


def _replace(graph: Graph, number: int, node: Activation, chosen: Approximation) -> None:
    if not len(chosen.coefficients):
        _compose(graph, number, node, chosen)
        return
    coefficients, low, high = chosen.coefficients, chosen.low, chosen.high
    centre, half = (low + high) / 2, (high - low) / 2
    degree = len(coefficients) - 1
    size = int(np.prod(node.shape, dtype=np.int64))
    if degree == 0:
        places = np.zeros(0, np.int64)
        nothing = SparseMatrix((size, size), places, places, np.zeros(0))
        bias = np.full(size, coefficients[0])
        graph.nodes[number] = Linear(node.shape, node.operands, (nothing,), bias, label=node.label)
    elif degree == 2:
        _square(graph, number, node, chosen)
    else:
        argument = _mapped(graph, number, node, 1 / half, -centre / half)
        domain = Domain(-1.0, 1.0, low, high, node.total)
        graph.nodes[number] = Polynomial(node.shape, (argument,), coefficients, node.label, domain)


def _reach(function: PiecewiseLinear, low: float, high: float) -> float:
    """Return the largest distance of a value in the range from a kink, which is mapped to [-1, 1]."""
    return max(abs(end - place) for place, _ in function.kinks for end in (low, high))


def _compose(graph: Graph, number: int, node: Activation, chosen: Approximation) -> None:
    """Emit a composition: with u = (x - t) / R for the kink t, slope x + offset + sum of bend (x - t)
    sign(u). The first kink's product includes the line: u (R slope + R bend sign(u))."""
    function = node.function
    assert isinstance(function, PiecewiseLinear)
    reach = _reach(function, chosen.low, chosen.high)
    first = function.kinks[0][0]
    size = int(np.prod(node.shape, dtype=np.int64))
    argument = _mapped(graph, number, node, 1 / reach, -first / reach)
    terms = []
    for place, bend in function.kinks:
        source, slope = argument, function.slope
        if place != first:
            source, slope = (
                graph.add(Shift(node.shape, (argument,), np.full(size, (first - place) / reach))),
                0.0,
            )
        value = source
        stages = sign_composite(chosen.method.number).stages
        domain = Domain(-1.0, 1.0, place - reach, place + reach)
        for index, stage in enumerate(stages):
            factor = bend * reach if index == len(stages) - 1 else 1.0
            label = f"{node.label}, {index + 1} of {len(stages)}"
            step = Polynomial(node.shape, (value,), stage * factor, label, domain if index == 0 else None)
            value = graph.add(step)
        if slope:
            value = graph.add(Shift(node.shape, (value,), np.full(size, slope * reach)))
        terms.append(graph.add(Multiply(node.shape, (value, source), node.label)))
    total = terms[0]
    for term in terms[1:]:
        total = graph.add(Add(node.shape, (total, term)))
    rest = np.full(size, function.slope * first + function.offset)
    graph.nodes[number] = Shift(node.shape, (total,), rest)


def _is_quadratic(coefficients: Vector) -> bool:
    linear, quadratic = coefficients[1], 2 * coefficients[2]
    return bool(abs(linear) < 2 * abs(quadratic) * MAX_CENTRE)


def _square(graph: Graph, number: int, node: Activation, chosen: Approximation) -> None:
    """Emit c0 + c1 u + c2 u^2 as sign(c2) t^2 + constant with t = sqrt|c2| (u + c1 / (2 c2)): one level."""
    centre, half = (chosen.low + chosen.high) / 2, (chosen.high - chosen.low) / 2
    coefficients = np.polynomial.chebyshev.cheb2poly(chosen.coefficients)
    constant, linear, quadratic = (float(c) for c in coefficients)
    root, vertex = math.sqrt(abs(quadratic)), linear / (2 * quadratic)
    argument = _mapped(graph, number, node, root / half, root * (vertex - centre / half))
    ends = root * (vertex - 1), root * (vertex + 1)
    domain = Domain(*ends, chosen.low, chosen.high, node.total)
    square = graph.add(Multiply(node.shape, (argument, argument), node.label, domain))
    size = int(np.prod(node.shape, dtype=np.int64))
    rest = np.full(size, constant - quadratic * vertex**2)
    if quadratic > 0:
        graph.nodes[number] = Shift(node.shape, (square,), rest)
    else:
        graph.nodes[number] = Linear(node.shape, (square,), (SparseMatrix.diagonal(-np.ones(size)),), rest)


def _mapped(graph: Graph, number: int, node: Activation, factor: float, offset: float) -> int:
    """Return ``factor * operand + offset``, scaled by the layer before if that is possible."""
    source = node.operands[0]
    size = int(np.prod(node.shape, dtype=np.int64))
    if not scale_value(graph, source, factor, number):
        matrix = SparseMatrix.diagonal(np.full(size, factor))
        source = graph.add(Linear(node.shape, (source,), (matrix,), np.zeros(size)))
    return graph.add(Shift(node.shape, (source,), np.full(size, offset)))
