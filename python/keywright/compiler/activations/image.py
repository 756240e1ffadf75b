"""The values that a function takes on a range: outputs outside of them are errors of a polynomial."""

import numpy as np

from keywright.compiler.graph.graph import Activation, Graph, Input, Linear
from keywright.compiler.graph.piecewise import Function, PiecewiseLinear
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

from .ranges import ExactRun

POINTS = 1 << 14
"""Intervals between points on a range, and on each side of it: it is widened by its width, because values of
samples may leave it a little."""


def output_image(graph: Graph, run: ExactRun, margin: float | None) -> tuple[float, float] | None:
    """Return the least and the largest output of a graph whose outputs are all results of one function, such
    as a last Relu; None for others."""
    number = graph.output
    while isinstance(node := graph.nodes[number], Linear) and selects(node):
        number = node.operands[0]
    if not isinstance(node, Activation) or number not in run.inputs.lows:
        return None
    measured = run.ranges(margin)[number]
    return image(node.function, measured.low, measured.high)


def image(function: Function, low: float, high: float) -> tuple[float, float] | None:
    """Return bounds on the values of a function on a widened range, where it is defined: exact for piecewise
    linear functions and for those that rise or fall. None if it is infinite there."""
    # The ends themselves are points: beyond, the function may not be defined.
    points = low + (high - low) * (np.arange(-POINTS, 2 * POINTS + 1) / POINTS)
    if isinstance(function, PiecewiseLinear):
        points = np.sort(np.concatenate([points, [place for place, _ in function.kinks]]))
    with np.errstate(all="ignore"):
        values = np.asarray(function(points), np.float64)
    values = values[~np.isnan(values)]
    if len(values) < 3 or np.isinf(values).any():
        return None
    exact = isinstance(function, PiecewiseLinear)
    least, largest = (float(sign * _least(sign * values, exact=exact)) for sign in (1.0, -1.0))
    return (least, largest) if least < largest else None


def _least(values: Vector, *, exact: bool) -> float:
    """Return a bound below the least value between points; ends are exact."""
    place = int(np.argmin(values))
    if exact or place in (0, len(values) - 1):
        return float(values[place])
    return float(values[place] - abs(values[place - 1] - 2 * values[place] + values[place + 1]))


def selects(node: Linear) -> bool:
    """Whether a map gives elements of one value as they are."""
    if len(node.operands) != 1 or node.bias.any():
        return False
    (matrix,) = node.matrices
    if not isinstance(matrix, SparseMatrix) or not (matrix.values == 1).all():
        return False
    return np.array_equal(np.sort(matrix.rows), np.arange(matrix.shape[0]))


def computes_nothing(graph: Graph) -> bool:
    """Whether the outputs of a graph are elements of its input, as they are."""
    number = graph.output
    while isinstance(node := graph.nodes[number], Linear) and selects(node):
        number = node.operands[0]
    return isinstance(node, Input)
