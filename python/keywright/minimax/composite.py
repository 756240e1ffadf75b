"""The sign as a composition of minimax polynomials, and |x|, ReLU, max and comparisons based on it.

Lee, Lee, No and Kim (IEEE TDSC 2021): among all compositions of odd polynomials of given degrees, the closest
to the sign has the minimax polynomial on [eps, 1] first, then the minimax polynomial on the image of that
interval, and so on. The degrees for each precision are from Lee et al. (Precise approximation of
convolutional neural networks for homomorphically encrypted data, IEEE Access 2023), which the ReLU networks
of Lee et al. (ICML 2022) use. With the sign p, x (1 + p(x)) / 2 differs from max(x, 0) by at most 2^-alpha on
[-1, 1].
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from keywright._core import polynomial_depth
from keywright.errors import ParameterError

from .remez import OddMinimax, odd_minimax
from .series import Vector, chebyshev

DEGREES: dict[int, tuple[int, ...]] = {
    4: (5,),
    5: (13,),
    6: (27,),
    7: (7, 7),
    8: (7, 15),
    9: (15, 15),
    10: (7, 7, 13),
    11: (7, 7, 27),
    12: (7, 15, 27),
    13: (15, 15, 27),
    14: (15, 27, 29),
}
"""Degrees of the polynomials by alpha, bits of precision of a ReLU: fewest levels, then fewest products."""

LARGEST = 1 - 2.0**-20
"""Bound on the values of every polynomial but the last: below 1 by more than rounding and noise."""

BISECTIONS = 16
SAMPLES = 1024
"""Points of [0, eps] at which the error around the jump is evaluated."""


@dataclass(frozen=True, eq=False)
class SignComposite:
    """Odd polynomials whose composition approximates the sign on [-1, 1].

    Attributes:
        stages: Chebyshev coefficients in order of evaluation. Each polynomial maps [-1, 1] into itself,
            except that the last one's values are within ``error`` of -1 or 1.
        jump: the approximation holds for ``jump <= |x| <= 1``.
        error: largest distance from the sign there.
        relu_error: largest distance of x (1 + p(x)) / 2 from max(x, 0) on all of [-1, 1].
    """

    stages: tuple[Vector, ...]
    jump: float
    error: float
    relu_error: float

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees of the polynomials, in order."""
        return tuple(len(stage) - 1 for stage in self.stages)

    @property
    def levels(self) -> int:
        """Levels that the sign consumes."""
        return sum(polynomial_depth(degree) for degree in self.degrees)

    def __call__(self, x: Vector) -> Vector:
        """Evaluate the composition."""
        for stage in self.stages:
            x = chebyshev(x, stage)
        return x

    def absolute(self, x: Vector) -> Vector:
        r"""Return x p(x), within 2 ``relu_error`` of \|x\|."""
        return x * self(x)


@cache
def sign_composite(alpha: int) -> SignComposite:
    """Return the composition whose ReLU has ``alpha`` bits of precision.

    The position of the jump balances two errors of the ReLU: around 0, where the approximation of the sign
    does not hold, and elsewhere.

    Raises:
        ParameterError: ``alpha`` is not between 4 and 14.
    """
    if alpha not in DEGREES:
        raise ParameterError(
            f"alpha = {alpha} bits is outside the range of minimax; choose {min(DEGREES)} "
            f"to {max(DEGREES)} bits",
            code="minimax",
        )
    low, high = -float(alpha), -1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        near, far = _errors(_compose(DEGREES[alpha], 2.0**middle))
        low, high = (low, middle) if near > far else (middle, high)
    composite = _compose(DEGREES[alpha], 2.0**low)
    inner = [polynomial.coefficients * _shrink(polynomial) for polynomial in composite[:-1]]
    stages = (*inner, composite[-1].coefficients)
    return SignComposite(stages, composite[0].low, composite[-1].error, max(_errors(composite)))


def _compose(degrees: tuple[int, ...], jump: float) -> list[OddMinimax]:
    result, low = [], jump
    for degree in degrees:
        polynomial = odd_minimax(degree, low)
        result.append(polynomial)
        low = (1 - polynomial.error) * _shrink(polynomial)
    return result


def _shrink(polynomial: OddMinimax) -> float:
    """Return the factor that brings a polynomial's values into [-1, 1]."""
    return LARGEST / (1 + polynomial.error)


def _errors(composite: list[OddMinimax]) -> tuple[float, float]:
    """Return the ReLU's largest error on [0, jump] and on [jump, 1].

    Between grid points the error x (1 - p(x)) / 2 differs from its chord by less than a second difference.
    """
    x = np.linspace(0.0, composite[0].low, SAMPLES + 1)
    values = x
    for polynomial in composite[:-1]:
        values = polynomial(values) * _shrink(polynomial)
    error = x * (1 - composite[-1](values)) / 2
    return float(error.max() + np.abs(np.diff(error, 2)).max()), composite[-1].error / 2
