"""The probability of finding an error in a reduced basis, and the dimension in which it stands out.

The basis has rows ``(q I, 0)`` and ``(A, xi I)``, with ``xi`` the ratio of the deviations of error and secret
(Bai and Galbraith, ACISP 2014), so the target vector has deviation ``sigma`` in each coordinate.
"""

from functools import cache
from math import erf

import numpy as np

from .guessing import _ln_factorial
from .reduction import Array

_STEP = 1 / 256
_U = np.arange(-24.0, 48.0 + _STEP, _STEP)
"""log2 of the arguments of the tables below."""


def _rounding(x: Array) -> Array:
    """Return the probability that a coordinate of deviation 1 is below ``sqrt(2) x``: Babai's rounding is
    right."""
    return np.array([erf(each) for each in x])


def _admissible(x: Array) -> Array:
    """Return the probability that a uniform coordinate of ``[-b/2, b/2]`` stays there when an error is added,
    ``x = b/(sqrt(2) sigma)``.

    It is the mean of ``max(0, 1 - |e| / b)``: ``erf(x) - (1 - exp(-x^2)) / (x sqrt(pi))`` (Son and Cheon,
    WAHC 2019).
    """
    result: Array = _rounding(x) + np.expm1(-(x**2)) / (x * np.sqrt(np.pi))
    return result


@cache
def _tail(kind: str) -> Array:
    """Return the integral of log2 of that probability from ``2^u`` on, over ``u = log2 x``."""
    x = np.exp2(np.minimum(_U, 40.0))
    # Below 1e-3 by the first term of the series, which has no cancellation.
    if kind == "rounding":
        p = np.where(x < 1e-3, 2 * x / np.sqrt(np.pi), _rounding(x))
    else:
        p = np.where(x < 1e-3, x / np.sqrt(np.pi), _admissible(np.maximum(x, 1e-3)))
    values = np.log2(np.clip(p, 1e-300, 1.0))
    steps = (values[:-1] + values[1:]) / 2 * _STEP
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


def _product(kind: str, last: Array, first: Array, slope: Array) -> Array:
    """Return log2 of the product over a geometric series of arguments, from ``2^first`` down to ``2^last``,
    ``slope`` bits apart.

    By the midpoint rule: the error is of the order of ``slope^2``, below 1e-3 of the logarithm.
    """
    table = _tail(kind)
    upper = np.interp(first + slope / 2, _U, table)
    return (np.interp(last - slope / 2, _U, table) - upper) / slope


def log2_nearest_plane(log2_last: Array, d: Array, log2_delta: Array, sigma: float) -> Array:
    """Return log2 of the probability that Babai's nearest plane finds the error (Lindner and Peikert, CT-RSA
    2011).

    Args:
        log2_last: log2 of the last Gram-Schmidt norm that it uses.
        d: number of norms that it uses.
        log2_delta: log2 of the root Hermite factor.
        sigma: deviation of a coordinate of the error.
    """
    last = log2_last - np.log2(2 * np.sqrt(2) * sigma)
    return np.minimum(0.0, _product("rounding", last, last + 2 * (d - 1) * log2_delta, 2 * log2_delta))


def log2_admissible(log2_last: Array, d: Array, log2_delta: Array, sigma: float) -> Array:
    """Return log2 of the probability that two separately rounded halves of a guess still meet: all
    coordinates are admissible."""
    last = log2_last - np.log2(np.sqrt(2) * sigma)
    return np.minimum(0.0, _product("admissible", last, last + 2 * (d - 1) * log2_delta, 2 * log2_delta))


@cache
def _ln_balls(most: int) -> Array:
    k = np.arange(most + 2, dtype=float)
    result: Array = k / 2 * np.log(np.pi) - _ln_factorial(k / 2)
    return result


def standing_out(ln_volume: Array, d: Array, ln_delta: Array, sigma: float, most: int) -> Array:
    """Return the smallest dimension ``k`` in which the error is shorter than the shortest vector of the
    projected lattice.

    Liu and Nguyen (CT-RSA 2013): a shortest vector of the last ``k`` vectors and the target, together one
    more dimension, is the error's projection, by the Gaussian heuristic for that lattice.

    Returns:
        ``k`` (2 if rounding suffices), infinity if there is none up to ``most``; of the shape of ``d``.
    """
    k = np.arange(2, most + 1, dtype=float)
    shape = (*np.shape(d), 1)
    volume, dimension, slope = (np.reshape(np.asarray(x, float), shape) for x in (ln_volume, d, ln_delta))
    projected = k / dimension * volume - (dimension - k) * k * slope + np.log(sigma)
    shortest = (projected - _ln_balls(most)[3 : most + 2]) / (k + 1)
    error = np.log(sigma) + np.log(k + 1) / 2
    hidden = (shortest < error) & (k <= dimension)
    least = np.where(hidden.any(-1), most - 1 - np.argmax(hidden[..., ::-1], -1) + 2, 2.0)
    return np.where(least > np.minimum(most, d), np.inf, least)
