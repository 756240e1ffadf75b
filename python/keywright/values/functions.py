"""Polynomials for analytic functions on a range, with bounds that are proved.

A function that is analytic in the Bernstein ellipse of parameter rho around [-1, 1], and at most M there, is
within 4 M rho^-n / (rho - 1) of its Chebyshev interpolant of degree n: L. N. Trefethen, Approximation Theory
and Approximation Practice, theorem 8.2. The ellipse crosses the real axis at plus and minus (rho + 1 / rho) /
2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright.errors import ParameterError

MAX_DEGREE = 1023
DEGREES = tuple(2**depth - 1 for depth in range(1, 11))
"""The largest degree for every number of levels."""

ELLIPSES = 200
"""Number of ellipses among which the one with the least bound is taken."""

Interval = tuple[float, float]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A function that increases or decreases, real on the real axis.

    Attributes:
        of: the function of an array.
        largest: a bound on its absolute value in an ellipse, from the real points where the ellipse begins
            and ends.
        steepest: the largest slope on a range, from its two ends.
        positive: whether it is analytic to the right of 0 alone; otherwise everywhere.
    """

    of: Callable[[Values], Values]
    largest: Callable[[float, float], float]
    steepest: Callable[[float, float], float]
    positive: bool = True

    def image(self, low: float, high: float) -> Interval:
        """Return the least and the largest value on a range."""
        with np.errstate(over="ignore"):  # infinite values have no bound, and are refused
            ends = self.of(np.asarray([low, high]))
        return float(ends.min()), float(ends.max())


def _largest_logarithm(low: float, high: float) -> float:
    # |log z| is at most |log |z|| + |arg z|, and the real part of z is above 0.
    return max(abs(math.log(low)), abs(math.log(high))) + math.pi / 2


FUNCTIONS = {
    "exp": Function(np.exp, lambda _, high: math.exp(high), lambda _, high: math.exp(high), positive=False),
    "inverse": Function(lambda x: 1.0 / x, lambda low, _: 1.0 / low, lambda low, _: low**-2.0),
    "inverse_sqrt": Function(
        lambda x: 1.0 / np.sqrt(x), lambda low, _: low**-0.5, lambda low, _: low**-1.5 / 2
    ),
    "log": Function(np.log, _largest_logarithm, lambda low, _: 1.0 / low),
    "sqrt": Function(np.sqrt, lambda _, high: high**0.5, lambda low, _: low**-0.5 / 2),
}
"""Functions of encrypted values by the name of the method. |z| in an ellipse right of 0 is between its real
ends."""


@dataclass(frozen=True, eq=False)
class Approximation:
    """A polynomial for a function on a range.

    Attributes:
        coefficients: in the Chebyshev basis, for the range mapped to [-1, 1].
        error: bound on its distance from the function on the range.
    """

    coefficients: Values
    error: float


def approximation(name: str, low: float, high: float, error: float) -> Approximation:
    """Return the polynomial of the fewest levels whose proved error is at most ``error``.

    Raises:
        ParameterError: none of degree up to 1023 is proved to be so close, or values exceed double precision.
    """
    function = FUNCTIONS[name]
    bounds = {degree: error_bound(function, low, high, degree) for degree in DEGREES}
    best = min(bounds, key=bounds.__getitem__)  # larger degrees have larger roundings
    if math.isinf(bounds[best]):
        raise ParameterError(
            f"{name} has values on {low:.6g} to {high:.6g}, or next to it, that exceed double precision: "
            "declare a narrower range by within()",
            code="range",
        )
    finest = interpolant(function, low, high, best)
    for degree in DEGREES[: DEGREES.index(best) + 1]:
        coefficients = interpolant(function, low, high, degree)
        # Of the difference of two polynomials, every Chebyshev polynomial is at most 1.
        difference = finest - np.pad(coefficients, (0, best - degree))
        bound = bounds[best] + float(np.abs(difference).sum())
        if bound <= error:
            return Approximation(coefficients, bound)
    way = "declare a narrower range by within(), or allow that bound by error="
    if function.positive:
        way = "declare a range by within() whose ends have a smaller ratio, or allow that bound by error="
    if rounding(function, low, high, best) >= bounds[best] / 2:
        way = "most of it is the rounding of coefficients to double precision: allow it by error="
    raise ParameterError(
        f"no polynomial of degree up to {MAX_DEGREE} is proved to be within {error:.3g} of {name} on "
        f"{low:.6g} to {high:.6g}; the least bound that is proved is {bounds[best]:.3g}, and the polynomial "
        f"may be closer; {way}",
        code="range",
    )


def interpolant(function: Function, low: float, high: float, degree: int) -> Values:
    """Return the Chebyshev interpolant of a function on a range."""
    centre, half = (low + high) / 2, (high - low) / 2
    nodes = np.polynomial.chebyshev.chebpts1(degree + 1)
    table = np.polynomial.chebyshev.chebvander(nodes, degree).T @ function.of(centre + half * nodes)
    return np.asarray(table / np.where(np.arange(degree + 1), (degree + 1) / 2, degree + 1), np.float64)


def error_bound(function: Function, low: float, high: float, degree: int) -> float:
    """Return a bound on the error of the interpolant, with its rounding."""
    centre, half = (low + high) / 2, (high - low) / 2
    if function.positive:
        pole = centre / half  # the singularity is at -pole
        widest = pole + math.sqrt(max(pole * pole - 1, 0.0))
    else:
        widest = 4.0 * (degree + 1) / half + 8.0  # the best ellipse for exp is near 2 degree / half
    bounds = []
    for rho in np.exp(np.linspace(0.0, math.log(widest), ELLIPSES + 2)[1:-1]).tolist():
        reach = half * (rho + 1 / rho) / 2
        if function.positive and centre - reach <= 0:
            continue
        exponent = math.log(4.0 / (rho - 1)) - degree * math.log(rho)
        try:
            bounds.append(function.largest(centre - reach, centre + reach) * math.exp(exponent))
        except OverflowError:
            continue
    return min(bounds, default=math.inf) + rounding(function, low, high, degree)


def rounding(function: Function, low: float, high: float, degree: int) -> float:
    """Return a bound on the rounding of the interpolant: of degree + 1 coefficients, each a mean of as many
    products, in double precision."""
    largest = max(map(abs, function.image(low, high)))
    return 4.0 * (degree + 1) ** 2 * float(np.finfo(np.float64).eps) * largest
