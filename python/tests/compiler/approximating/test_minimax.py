"""Minimax polynomials of the sign, compared with closed forms, equioscillation and published precisions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from keywright.errors import ParameterError
from keywright.minimax.composite import DEGREES, sign_composite
from keywright.minimax.remez import OddMinimax, odd_minimax


def exact_error(polynomial: OddMinimax, x: float) -> float:
    """p(x) - 1 in exact arithmetic, by the recurrence of Chebyshev polynomials."""
    t, before, after = Fraction(x), Fraction(1), Fraction(x)
    total = -Fraction(1)
    for coefficient in polynomial.coefficients[1:]:
        total += Fraction(float(coefficient)) * after
        before, after = after, 2 * t * after - before
    return float(total)


@pytest.mark.parametrize("low", [0.5, 0.1, 2.0**-10])
def test_the_closest_line_is_known(low: float) -> None:
    """2 x / (1 + low) errs by (1 - low) / (1 + low) at both ends."""
    line = odd_minimax(1, low)
    assert line.coefficients[1] == pytest.approx(2 / (1 + low), rel=1e-12)
    assert line.error == pytest.approx((1 - low) / (1 + low), rel=2e-6)


@pytest.mark.parametrize(("degree", "low"), [(3, 0.3), (7, 0.05), (13, 2.0**-6), (15, 2.0**-9), (27, 0.4)])
def test_errors_alternate_at_one_point_more_than_coefficients(degree: int, low: float) -> None:
    """By Chebyshev's theorem nothing is closer then."""
    polynomial = odd_minimax(degree, low)
    assert not polynomial.coefficients[::2].any()
    errors = [exact_error(polynomial, float(x)) for x in polynomial.reference]
    assert len(errors) == (degree + 1) // 2 + 1
    assert all(a * b < 0 for a, b in pairwise(errors))
    assert min(map(abs, errors)) >= polynomial.error * (1 - 3e-6)
    grid = np.exp(np.linspace(np.log(low), 0, 4001))
    assert max(abs(exact_error(polynomial, float(x))) for x in grid) <= polynomial.error


@pytest.mark.parametrize("bits", sorted(DEGREES))
def test_a_relu_has_the_published_precision(bits: int) -> None:
    """Lee et al. print these degrees as sufficient for the bits; none of them reaches one bit more."""
    sign = sign_composite(bits)
    assert sign.degrees == DEGREES[bits]
    near = np.linspace(0, 2 * sign.jump, 20001)
    x = np.concatenate((-near, near, np.linspace(-1, 1, 20001)))
    error = np.abs((x + sign.absolute(x)) / 2 - np.maximum(x, 0)).max()
    assert 2.0 ** -(bits + 1) < error <= sign.relu_error <= 2.0**-bits


@pytest.mark.parametrize("bits", [7, 10, 13])
def test_what_follows_from_the_sign(bits: int) -> None:
    sign = sign_composite(bits)
    rng = np.random.default_rng(bits)
    x, y = rng.uniform(-0.5, 0.5, (2, 5000))
    assert np.abs(sign.absolute(x) - np.abs(x)).max() <= 2 * sign.relu_error
    assert np.abs((x + y + sign.absolute(x - y)) / 2 - np.maximum(x, y)).max() <= sign.relu_error
    apart = np.abs(x - y) >= sign.jump
    assert np.abs((1 + sign(x - y)) / 2 - (x > y))[apart].max() <= sign.error / 2
    assert np.abs(sign(x) + sign(-x)).max() == 0


def test_inner_polynomials_stay_in_their_domain() -> None:
    for bits in DEGREES:
        for stage in sign_composite(bits).stages[:-1]:
            x = np.cos(np.pi * np.arange(4097) / 4096)
            assert np.abs(np.polynomial.chebyshev.chebval(x, stage)).max() < 1


def test_a_worse_polynomial_is_noticed() -> None:
    """The checks above can fail: a coefficient that is off by a thousandth breaks the alternation."""
    polynomial = odd_minimax(7, 0.05)
    worse = OddMinimax(
        polynomial.coefficients * (1 + 1e-3 * np.eye(8)[3]), 0.05, polynomial.error, polynomial.reference
    )
    assert max(abs(exact_error(worse, float(x))) for x in polynomial.reference) > polynomial.error


@pytest.mark.parametrize(("degree", "low"), [(2, 0.5), (-1, 0.5), (3, 0.0), (3, 1.0)])
def test_what_there_is_no_polynomial_for(degree: int, low: float) -> None:
    with pytest.raises(ParameterError, check=lambda error: error.code == "minimax"):
        odd_minimax(degree, low)


def test_precisions_out_of_bounds() -> None:
    with pytest.raises(
        ParameterError,
        match="alpha = 15 bits is outside the range of minimax; choose 4 to 14",
        check=lambda error: error.code == "minimax",
    ):
        sign_composite(15)
