"""The odd minimax polynomial for the sign on two intervals, by the Remez exchange algorithm.

On [-1, -a] and [a, 1] together, the best odd polynomial for the sign is the best one for the constant 1 on
[a, 1]. There the odd monomials are a Chebyshev system: the error attains its maximum at one point more than
there are coefficients, with alternating signs. Lee, Lee, No and Kim (Minimax approximation of sign function
by composite polynomial for homomorphic comparison, IEEE TDSC 2021) do the same on many intervals.
"""

from dataclasses import dataclass

import numpy as np

from keywright.errors import ParameterError

from .series import Vector, chebyshev

MAX_ROUNDS = 60
LEVELLED = 1e-7
"""The algorithm stops when the largest error exceeds the levelled error by at most this share."""

ROUNDED_UP = 1 + 1e-6
"""The stated error is increased by this factor, because parabolas locate extrema only approximately."""

PER_INTERVAL = 64
"""Sample points of the error between two reference points, before a parabola refines the extremum."""

ROUNDING = 1e-14
"""An error below this is rounding of the sum and is ignored."""


@dataclass(frozen=True, eq=False)
class OddMinimax:
    r"""An odd polynomial p with \|p - 1\| at most ``error`` on [low, 1].

    Attributes:
        coefficients: of the Chebyshev polynomials on [-1, 1], by ascending degree; even ones are 0.
        low: lower end of the interval.
        error: largest value of \|p - 1\| there.
        reference: the points where it is attained with alternating signs, one more than odd coefficients.
    """

    coefficients: Vector
    low: float
    error: float
    reference: Vector

    def __call__(self, x: Vector) -> Vector:
        """Evaluate the polynomial."""
        return chebyshev(x, self.coefficients)


def odd_minimax(degree: int, low: float) -> OddMinimax:
    """Return the odd polynomial with the least maximum error against 1 on [low, 1].

    Args:
        degree: odd, at least 1.
        low: in (0, 1).

    Raises:
        ParameterError: the degree is even, the interval is empty, or the errors do not level in `MAX_ROUNDS`
            exchanges.
    """
    if degree < 1 or degree % 2 == 0 or not 0 < low < 1:
        raise ParameterError(
            f"degree {degree} and low {low} are not valid; give an odd degree and a number in (0, 1)",
            code="minimax",
        )
    count = (degree + 1) // 2
    # The error alternates on a logarithmic scale as on a linear one, so start with its Chebyshev nodes.
    nodes = (1 - np.cos(np.pi * np.arange(count + 1) / count)) / 2
    points = np.exp(np.log(low) * (1 - nodes))
    largest = levelled = 0.0
    for _ in range(MAX_ROUNDS):
        coefficients, levelled = _solve(points, degree)
        points, largest = _exchange(points, coefficients, low)
        if largest - levelled <= LEVELLED * levelled + ROUNDING:
            return OddMinimax(coefficients, low, largest * ROUNDED_UP, points)
    raise ParameterError(
        f"degree {degree} on [{low:g}, 1]: the largest error {largest:g} does not reach the levelled "
        f"error {levelled:g} in double precision; lower the degree",
        code="minimax",
    )


def _solve(points: Vector, degree: int) -> tuple[Vector, float]:
    """Return the odd polynomial whose error against 1 has equal size and alternating signs at the points."""
    system = np.polynomial.chebyshev.chebvander(points, degree)[:, 1::2]
    signs = (-1.0) ** np.arange(len(points))
    solution = np.linalg.solve(np.column_stack((system, signs)), np.ones(len(points)))
    coefficients = np.zeros(degree + 1)
    coefficients[1::2] = solution[:-1]
    return coefficients, abs(float(solution[-1]))


def _exchange(points: Vector, coefficients: Vector, low: float) -> tuple[Vector, float]:
    """Return the extrema of the error, which replace the points, and the largest error."""

    def error(x: Vector) -> Vector:
        return chebyshev(x, coefficients) - 1.0

    ends = np.concatenate(([low], np.sqrt(points[:-1] * points[1:]), [1.0]))
    results = []
    for left, right, sign in zip(ends[:-1], ends[1:], np.sign(error(points)), strict=True):
        grid = np.linspace(left, right, PER_INTERVAL + 1)
        values = sign * error(grid)
        best = int(values.argmax())
        place = grid[best]
        if 0 < best < PER_INTERVAL:
            before, peak, after = values[best - 1 : best + 2]
            curvature = before - 2 * peak + after
            if curvature < 0:
                place += (grid[1] - grid[0]) * (before - after) / (2 * curvature)
        results.append(place)
    extrema = np.asarray(results)
    return extrema, float(np.abs(error(extrema)).max())
