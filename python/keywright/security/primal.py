"""Primal attacks: secret and error form an unusually short or close vector of a lattice."""

from dataclasses import dataclass, field

import numpy as np

from .guessing import guesses, log2_choose, log2_secrets, meet, repetitions
from .problem import Problem
from .reduction import MAX_BETA, MIN_BETA, Array, CostModel, ln_delta, shortest_vector
from .search import MOST_BITS, Cost, grid_search
from .shape import log2_admissible, log2_nearest_plane, standing_out

WINDOWS = 64
"""Sizes of windows that `meet_in_the_middle` tries."""


def unique_shortest(problem: Problem, model: CostModel) -> Cost:
    """The embedded error as a unique shortest vector (Alkim et al., USENIX 2016; Bai and Galbraith, ACISP
    2014).

    BKZ finds it as soon as its projection on the last block is shorter than that block's first vector:
    ``sigma sqrt(beta) <= delta^(2 beta - d - 1) V^(1/d)`` (Albrecht et al., ASIACRYPT 2017).
    """
    n, limit = problem.n, problem.n + problem.samples

    def reveals(beta: int, d: Array) -> Array:
        delta = ln_delta(float(beta))
        volume = np.log(problem.sigma) + n * problem.ln_scale + (d - n - 1) * problem.ln_q
        result: Array = np.log(problem.sigma) + np.log(beta) / 2 <= delta * (2 * beta - d - 1) + volume / d
        return result

    def best_dimension(beta: int) -> float:
        gained = (n + 1) * problem.ln_q - n * problem.ln_scale - np.log(problem.sigma)
        d = np.sqrt(max(gained, 1.0) / ln_delta(float(beta)))
        return float(np.clip(np.round(d), max(beta, n + 1), limit + 1))

    low, high = MIN_BETA, MAX_BETA
    if not reveals(high, np.array(best_dimension(high))):
        return Cost(np.inf)
    while low < high:
        beta = (low + high) // 2
        low, high = (low, beta) if reveals(beta, np.array(best_dimension(beta))) else (beta + 1, high)
    fewest, most = float(max(low, n + 1)), best_dimension(low)
    while fewest < most:
        middle = float((fewest + most) // 2)
        fewest, most = (fewest, middle) if reveals(low, np.array(middle)) else (middle + 1, most)
    cost = model.reduce(np.array(float(low)), np.array(float(most)))
    return Cost(float(cost), {"beta": low, "d": int(most)})


@dataclass(frozen=True)
class _Reduced:
    """The lattice of the coefficients that are not guessed, reduced; arrays over the block sizes."""

    beta: Array
    d: Array
    reduction: Array
    ln_volume: Array
    ln_delta: Array
    log2_last: Array = field(init=False)

    def __post_init__(self) -> None:
        last = (1 - self.d) * self.ln_delta + self.ln_volume / self.d
        object.__setattr__(self, "log2_last", last / np.log(2))


def _reduced(problem: Problem, model: CostModel, zeta: int, beta: Array) -> _Reduced:
    left = problem.n - zeta
    delta = ln_delta(beta)
    ideal = np.ceil(np.sqrt(left * np.maximum(problem.ln_q - problem.ln_scale, 0.1) / delta))
    d = np.maximum(beta, np.minimum(ideal, left + problem.samples))
    volume = (d - left) * problem.ln_q + left * problem.ln_scale
    return _Reduced(beta, d, model.reduce(beta, d), volume, delta)


def _repeated(problem: Problem, reduction: Array, tries: Array, probability: Array) -> Array:
    """Return the cost of a reduction and its guesses, repeated until they succeed. In a ring, each reduced
    lattice serves ``n`` rotated secrets."""
    times = repetitions(probability)
    shared = np.log2(problem.n) if problem.ring else 0.0
    return np.logaddexp2(reduction + np.maximum(times - shared, 0.0), tries + times)


def bounded_distance(problem: Problem, model: CostModel) -> Cost:
    """Reduce, then find one shortest vector of the last block and the target (Liu and Nguyen, CT-RSA
    2013)."""
    return _hybrid_search(problem, model, "none")


def hybrid(problem: Problem, model: CostModel) -> Cost:
    """Guess some coefficients; for each guess do bounded distance decoding (Albrecht, Curtis, Wunderer, SAC
    2019)."""
    return _hybrid_search(problem, model, "guess")


def hybrid_meet(problem: Problem, model: CostModel) -> Cost:
    """Guess some coefficients by meeting in the middle, with each half rounded (Howgrave-Graham, CRYPTO
    2007).

    The number of tries is the square root of the guesses, fewer than his loops take. They meet where the
    rounding is additive, with the probability of Son and Cheon (WAHC 2019).
    """
    return _hybrid_search(problem, model, "meet")


def _hybrid_search(problem: Problem, model: CostModel, how: str) -> Cost:
    secret = problem.secret
    if how != "none" and secret.nonzero is None:
        return Cost(np.inf)
    heaviest = problem.n if secret.weight is None else secret.weight

    def cost(zeta: int, beta: Array) -> tuple[Array, dict[str, Array]]:
        lattice = _reduced(problem, model, zeta, beta)
        log2_delta = lattice.ln_delta / np.log(2)
        if how in ("none", "guess"):
            block = standing_out(lattice.ln_volume, lattice.d, lattice.ln_delta, problem.sigma, MAX_BETA)
            usable = np.where(np.isfinite(block), block, MAX_BETA) + 1
            plane = 2 * np.log2(np.maximum(lattice.d - usable + 1, 1.0))
            each = np.logaddexp2(shortest_vector(model, usable), plane)
            each = np.where(np.isfinite(block), np.where(block > 2, each, plane), np.inf)
            last = lattice.log2_last + 2 * (usable - 1) * log2_delta
            probability = log2_nearest_plane(
                last, np.maximum(lattice.d - usable + 1, 1.0), log2_delta, problem.sigma
            )
        else:
            block, each = np.full_like(beta, 1.0), 2 * np.log2(lattice.d)
            probability = log2_nearest_plane(lattice.log2_last, lattice.d, log2_delta, problem.sigma)
            probability = probability + log2_admissible(
                lattice.log2_last, lattice.d, log2_delta, problem.sigma
            )
        if zeta == 0:
            count, hit = np.zeros(1), np.zeros(1)
        else:
            count, hit = guesses(problem, zeta, min(heaviest, 400))
            if how == "meet":
                count = count / 2
        total = _repeated(
            problem,
            lattice.reduction[:, None],
            each[:, None] + count[None, :],
            probability[:, None] + hit[None, :],
        )
        weight = np.argmin(total, axis=1)
        details = {
            "beta": beta,
            "eta": block,
            "d": lattice.d,
            "weight": weight.astype(float),
            "guesses": count[weight],
            "probability": probability + hit[weight],
        }
        return total.min(axis=1), details

    most = 0 if how == "none" else problem.n - MIN_BETA
    return grid_search(cost, most, MAX_BETA)


def meet_in_the_middle(problem: Problem, model: CostModel) -> Cost:
    """Find the secret alone, without a lattice: the better of Odlyzko's splitting and May's
    representations. In a ring, a secret of fixed weight is searched for among those of which some rotation
    is 0 outside of a window."""
    weight, n = problem.secret.weight, float(problem.n)
    if weight is None:
        bits = log2_secrets(problem) / 2
    elif not problem.ring:
        bits = float(meet(n, weight))
    else:
        window = np.linspace(min(2.0 * weight, n), n, WINDOWS)
        outside = log2_choose(window, weight) - log2_choose(n, weight)
        tries = np.maximum(repetitions(outside) - np.log2(n), 0.0)
        bits = float((meet(window, weight) + tries).min())
    return Cost(bits) if bits <= MOST_BITS else Cost(np.inf)
