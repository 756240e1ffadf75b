"""The number of guesses for some coefficients of a secret, and the probability that one is right.

Everything is log2. A guess of ``zeta`` coefficients has at most ``w`` non-zero ones.
"""

import numpy as np

from .problem import Problem
from .reduction import Array

TARGET = 0.99
"""Probability with which an attack must succeed."""

_SHIFT = 12


def _ln_factorial(x: Array) -> Array:
    """Return ln of factorials from 0 on, by Stirling's series shifted by 12: the factor is exact within
    1e-12."""
    y = x + _SHIFT + 1
    below = np.log(np.multiply.reduce(np.add.outer(np.arange(1, _SHIFT + 1), x)))
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    result: Array = (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series - below
    return result


def log2_choose(n: Array | float, k: Array | float) -> Array:
    """Return log2 of the number of ways to choose ``k`` of ``n``, also for real numbers; minus infinity if
    there are none."""
    n, k = np.broadcast_arrays(np.asarray(n, float), np.asarray(k, float))
    legal = (k >= 0) & (k <= n)
    inside, all_of = np.where(legal, k, 0.0), np.maximum(n, 0.0)
    log_count = _ln_factorial(all_of) - _ln_factorial(inside) - _ln_factorial(all_of - inside)
    return np.where(legal, log_count / np.log(2), -np.inf)


def guesses(problem: Problem, zeta: int, most: int) -> tuple[Array, Array]:
    """Return the guesses of ``zeta`` coefficients with at most ``w`` non-zero ones, for ``w = 0 .. most``.

    Returns:
        log2 of their number and log2 of the probability that one is right, each of shape ``(most + 1,)``.
    """
    secret, n = problem.secret, problem.n
    assert secret.nonzero is not None
    w = np.arange(min(most, zeta) + 1, dtype=float)
    places = log2_choose(zeta, w)
    if secret.weight is None:
        p = places + w * np.log2(secret.nonzero) + (zeta - w) * np.log2(1 - secret.nonzero)
    else:
        p = places + log2_choose(n - zeta, secret.weight - w) - log2_choose(n, secret.weight)
    count = places + w * np.log2(secret.values)
    return np.logaddexp2.accumulate(count), np.minimum(0.0, np.logaddexp2.accumulate(p))


def repetitions(log2_probability: Array | float) -> Array:
    """Return log2 of the trials after which one has succeeded with probability 0.99."""
    bits = np.minimum(np.asarray(log2_probability, float), 0.0)
    p = np.clip(np.exp2(bits), 1e-12, 1 - 1e-12)
    few = np.log2(np.log(1 - TARGET) / np.log1p(-p))
    many = np.log2(-np.log(1 - TARGET)) - bits
    return np.where(p > TARGET, 0.0, np.where(p > 1e-9, np.maximum(few, 0.0), many))


def log2_secrets(problem: Problem) -> float:
    """Return log2 of the number of typical secrets."""
    secret, n = problem.secret, problem.n
    if secret.weight is not None:
        return float(log2_choose(n, secret.weight)) + secret.weight
    if secret.nonzero is None:
        return n * float(np.log2(secret.deviation * np.sqrt(2 * np.pi * np.e)))
    p = secret.nonzero
    return n * float(-p * np.log2(p / secret.values) - (1 - p) * np.log2(1 - p))


def meet(n: Array | float, weight: Array | float) -> Array:
    """Return log2 of the time to find ``weight`` coefficients of 1 or -1 among ``n`` by meeting in the middle
    with representations.

    May, *How to Meet Ternary LWE Keys* (CRYPTO 2021, ePrint 2021/216): a vector is a sum of two of half its
    weight and ``e`` additional coefficients, which cancel. One of ``R`` such sums suffices, so lists are
    thinned by ``R``. The last level splits the coordinates (Odlyzko). The result is the minimum over ``e``
    and at most two levels of sums, with one operation for each entry of a list. Guesses of errors, few for a
    large modulus, are not counted.
    """
    n, weight = (np.asarray(x, float)[..., None, None] for x in np.broadcast_arrays(n, weight))

    def vectors(h: Array) -> Array:
        return log2_choose(n, h) + h

    steps = np.linspace(0, 1, 31) ** 2
    e1 = np.maximum(2.0, 0.6 * weight) * steps[:, None]
    e2 = np.maximum(2.0, 0.3 * weight) * steps[None, ::3]
    first = weight / 2 + e1
    sums = log2_choose(weight, weight / 2) + log2_choose(n - weight, e1) + e1
    second = first / 2 + e2
    more = log2_choose(first, first / 2) + log2_choose(n - first, e2) + e2
    one_level = np.maximum(vectors(first) / 2, vectors(first) - sums)
    lists = vectors(second) - more
    two_levels = np.maximum(vectors(second) / 2, np.maximum(lists, 2 * lists - (sums - more)))
    two_levels = np.maximum(two_levels, vectors(first) - sums)
    two_levels = np.where((more <= sums) & (first <= n) & (second <= n), two_levels, np.inf)
    one_level = np.where(first <= n, one_level, np.inf)
    halves = vectors(weight)[..., 0, 0] / 2
    result: Array = np.minimum(halves, np.minimum(one_level.min((-1, -2)), two_levels.min((-1, -2))))
    return result
