"""Chebyshev approximation of functions on a range, and its error."""

import numpy as np

from keywright.compiler.graph.piecewise import Function
from keywright.minimax.series import chebyshev
from keywright.program.arrays import Vector

NODES_PER_DEGREE = 4
GRID = 2048
"""Minimum number of grid points of a fit, besides the calibration data."""

ERROR_GRID = 1 << 14
"""Minimum number of points at which an error is evaluated."""


def fit(function: Function, low: float, high: float, degree: int, data: Vector) -> Vector:
    """Return the Chebyshev coefficients on [low, high] mapped to [-1, 1].

    The fit is least squares over Chebyshev nodes, which keeps the largest error close to optimal, and over
    the data, which keeps the error small where values occur. Both have the same weight.
    """
    count = max(GRID, NODES_PER_DEGREE * degree)
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    seen = (data - (low + high) / 2) / ((high - low) / 2)
    points = np.concatenate((nodes, seen))
    weights = np.concatenate((np.full(count, count**-0.5), np.full(len(seen), len(seen) ** -0.5)))
    values = function(points * (high - low) / 2 + (low + high) / 2)
    design = np.polynomial.chebyshev.chebvander(points, degree) * weights[:, None]
    # The polynomials are orthogonal over the nodes, so the normal equations are well conditioned.
    solution = np.linalg.solve(design.T @ design, design.T @ (values * weights))
    return np.asarray(solution, np.float64)


def largest_error(function: Function, low: float, high: float, coefficients: Vector) -> float:
    """Return the largest distance between a polynomial and a function on a range.

    The error is evaluated at points as dense at the ends as Chebyshev nodes, 16 per degree. Between two
    points it differs from its chord by an eighth of its second difference where it is smooth, and by at most
    half of it at a kink; half of the largest second difference is therefore added.
    """
    count = max(ERROR_GRID, 16 * len(coefficients))
    nodes = np.cos(np.pi * np.arange(count + 1) / count)
    error = chebyshev(nodes, coefficients)
    error -= function(nodes * (high - low) / 2 + (low + high) / 2)
    return float(np.abs(error).max() + np.abs(np.diff(error, 2)).max() / 2)
