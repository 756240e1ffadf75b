"""Chebyshev polynomials for functions on a range, and how far they are from them."""

import numpy as np

from keywright.nn.graph.piecewise import Function
from keywright.nn.graph.sparse import Vector

NODES_PER_DEGREE = 4
GRID = 2048
"""Least number of points of the range at which a fit is made, beside the calibration data."""

ERROR_GRID = 1 << 14
"""Least number of points at which an error is taken."""


def fit(function: Function, low: float, high: float, degree: int, data: Vector) -> Vector:
    """Chebyshev coefficients on [low, high] mapped to [-1, 1].

    Least squares over Chebyshev nodes, which makes the largest error close to the best possible, and over the
    data, which makes it small where values are; both count the same.
    """
    count = max(GRID, NODES_PER_DEGREE * degree)
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    seen = (data - (low + high) / 2) / ((high - low) / 2)
    points = np.concatenate((nodes, seen))
    weights = np.concatenate((np.full(count, count**-0.5), np.full(len(seen), len(seen) ** -0.5)))
    values = function(points * (high - low) / 2 + (low + high) / 2)
    design = np.polynomial.chebyshev.chebvander(points, degree) * weights[:, None]
    # Over the nodes the polynomials are orthogonal, so the normal equations are as good as the system.
    solution = np.linalg.solve(design.T @ design, design.T @ (values * weights))
    return np.asarray(solution, np.float64)


def largest_error(function: Function, low: float, high: float, coefficients: Vector) -> float:
    """The largest distance of a polynomial from a function on a range.

    It is taken on points that are as dense at the ends as Chebyshev nodes, 16 for each degree. Between two of
    them the error strays from its chord by an eighth of its second difference where it is smooth, and by at
    most half of it where it has a kink: half of the largest one is added.
    """
    count = max(ERROR_GRID, 16 * len(coefficients))
    nodes = np.cos(np.pi * np.arange(count + 1) / count)
    error = np.polynomial.chebyshev.chebval(nodes, coefficients)
    error -= function(nodes * (high - low) / 2 + (low + high) / 2)
    return float(np.abs(error).max() + np.abs(np.diff(error, 2)).max() / 2)
