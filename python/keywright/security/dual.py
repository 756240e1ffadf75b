"""Dual attacks: short vectors of the dual lattice give samples with fewer coefficients, on which guesses are
tested."""

import numpy as np

from .guessing import TARGET, guesses, log2_choose, repetitions
from .problem import Problem
from .reduction import MAX_BETA, MIN_BETA, SHORT_BITS, Array, CostModel, ln_delta
from .search import Cost, grid_search

LN2 = float(np.log(2))
MOST_WEIGHT = 400
"""Guesses with more non-zero coefficients than this cost more than 2^400."""
MOST_TRANSFORMED = 250
"""Maximum coefficients of a Fourier transform modulo 2 or more: it takes 2^250."""
_SURE = float(np.log(np.log(1 / np.sqrt(TARGET))))
"""``ln ln (1 / p)`` for the probability ``p`` of each of two stages that together succeed with `TARGET`."""


def distinguishing(problem: Problem, model: CostModel) -> Cost:
    """Distinguish samples from uniform ones by short dual vectors (Micciancio and Regev, 2009; Albrecht,
    EUROCRYPT 2017).

    A vector that leaves an error of ``tau q`` has the advantage ``exp(-2 pi^2 tau^2)``; enough of them
    decide.
    """

    def cost(zeta: int, beta: Array) -> tuple[Array, dict[str, Array]]:
        d, k, ln_tau = _dual_vectors(problem, model, zeta, beta, np.asarray(problem.secret.deviation))
        vectors = np.log2(-2 * np.log(2 - 2 * TARGET)) + _log2_per_advantage(ln_tau)
        total = np.logaddexp2(_sampling(model, beta, d, k, vectors), vectors)
        return total, {"beta": beta, "d": d, "vectors": vectors}

    return grid_search(cost, 0, MAX_BETA)


def dual_hybrid(problem: Problem, model: CostModel) -> Cost:
    """Test all guesses of some coefficients on the dual samples (Espitau, Joux, Kharchenko, INDOCRYPT 2020).

    Guesses that share their first coefficients share the work, so each costs two operations per sample.
    """
    return _guessed(problem, model, meeting=False)


def dual_meet(problem: Problem, model: CostModel) -> Cost:
    """Combine two halves of a guess that meet in the dual samples (Cheon, Hhan, Hong, Son, IEEE Access
    2019)."""
    return _guessed(problem, model, meeting=True)


def _guessed(problem: Problem, model: CostModel, meeting: bool) -> Cost:
    secret, n = problem.secret, problem.n
    if secret.nonzero is None:
        return Cost(np.inf)
    heaviest = n if secret.weight is None else secret.weight - 1

    def cost(zeta: int, beta: Array) -> tuple[Array, dict[str, Array]]:
        count, hit = guesses(problem, zeta, min(heaviest, MOST_WEIGHT))
        w = np.arange(len(count), dtype=float)
        deviation = np.full_like(w, secret.deviation)
        if secret.weight is not None:
            deviation = np.sqrt((secret.weight - w) / (n - zeta))
        d, k, ln_tau = _dual_vectors(problem, model, zeta, beta[:, None], deviation[None, :])
        if meeting:
            halves = log2_choose(zeta / 2, w / 2) + w / 2 * np.log2(secret.values)
            tried, vectors, likely = _meeting(halves, ln_tau)
            # The weight must be split in two equal parts.
            hit = hit + np.minimum(2 * halves - count, 0.0) + likely
        else:
            vectors = 3 + np.log2(count * LN2 - _SURE) + _log2_per_advantage(ln_tau)
            tried = 1 + count + vectors
        times = repetitions(hit)
        shared = np.log2(n) if problem.ring else 0.0
        sampling = _sampling(model, beta[:, None], d, k, vectors) + np.maximum(times - shared, 0.0)
        total = np.logaddexp2(sampling, tried + times)
        weight = np.argmin(total, axis=1)
        rows = np.arange(len(beta))
        details = {
            "beta": beta,
            "d": d[rows, weight],
            "weight": weight.astype(float),
            "guesses": count[weight],
        }
        return total.min(axis=1), details | {"vectors": vectors[rows, weight]}

    return grid_search(cost, n - MIN_BETA, MAX_BETA)


def _dual_vectors(
    problem: Problem, model: CostModel, zeta: int, beta: Array, deviation: Array
) -> tuple[Array, Array, Array]:
    """Return the dimension of the dual lattice, that of the sieve, and ln of the error of its vectors over
    ``q``.

    The lattice consists of ``(x, y sigma_s / sigma)`` with ``x A = y`` modulo ``q`` for the coefficients that
    are not guessed.
    """
    left = problem.n - zeta
    with np.errstate(divide="ignore"):
        ln_c = np.maximum(np.log(deviation) + problem.ln_q - np.log(problem.sigma), 1e-3)
        delta = ln_delta(beta)
        d = np.ceil(np.sqrt(left * ln_c / delta))
        d = np.maximum(np.minimum(d, left + problem.samples), left + 1)
        k = model.sieve_dimension(beta, np.maximum(d, beta))
        # Vectors of the sieve are longer than the shortest vector of the reduced basis.
        longer = np.log(4 / 3) / 2 + (k - 1) * (ln_delta(np.maximum(k, MIN_BETA)) - delta)
        ln_tau = longer + np.log(deviation) + d * delta - ln_c * (d - left) / d
    return d, k, np.where(d < beta, np.inf, ln_tau)


def _log2_per_advantage(ln_tau: Array) -> Array:
    """Return log2 of ``exp(4 pi^2 tau^2)``, the vectors for one squared advantage."""
    result: Array = 4 * np.pi**2 * np.exp(2 * np.minimum(ln_tau, 50.0)) / LN2
    return result


def _sampling(model: CostModel, beta: Array, d: Array, k: Array, vectors: Array) -> Array:
    """Return the cost of as many reductions and sieves as give that many vectors."""
    rounds = np.log2(np.ceil(np.exp2(np.clip(vectors - SHORT_BITS * k, 0.0, 60.0))))
    rounds = np.maximum(rounds, vectors - SHORT_BITS * k)
    result: Array = model.sieve(beta, d, k) + rounds
    return result


def _meeting(halves: Array, ln_tau: Array) -> tuple[Array, Array, Array]:
    """Return work, vectors and probability of meeting, all as log2, with tables of ``2^halves``.

    A coordinate is looked up by its leading bit. If its error may carry it over a boundary, which holds for a
    share ``4 B / q``, the look-ups double. The bound ``B`` is two and a half deviations. There are enough
    samples to make chance hits rare.
    """
    halves = np.maximum(halves, 0.0)
    samples = np.maximum(1.0, halves + np.log2(np.maximum(halves, 1.0)))[None, :]
    bound = 2.5 * np.exp(np.minimum(ln_tau, 10.0))
    doubled = samples * 4 * bound
    work = halves[None, :] + np.logaddexp2(1 + np.log2(samples), doubled + 1)
    work, vectors = np.broadcast_arrays(np.where(4 * bound < 1, work, np.inf), np.log2(samples))
    # Of a normal error, 0.9876 lies within two and a half deviations.
    return work, vectors, samples * np.log2(0.9876)


def dual_fft(problem: Problem, model: CostModel) -> Cost:
    """Test guesses modulo a small ``p`` all at once by a Fourier transform (Guo, Johansson, ASIACRYPT 2021;
    MATZOV, 2022).

    Costs follow theorem 7.6 of MATZOV's report. They rest on a contested independence assumption (Ducas,
    Pulles, CRYPTO 2023): the attack may cost more. Secrets of fixed weight gain nothing by it.
    """
    secret = problem.secret
    if secret.is_sparse:
        return Cost(np.inf)
    entropy = (0.5 + np.log(np.sqrt(2 * np.pi) * secret.deviation)) / LN2
    alpha = np.pi**2 * secret.deviation**2
    entropy += np.log(1 / np.tanh(alpha)) / LN2
    spread = np.exp(8 * alpha * np.exp(-2 * alpha) * np.tanh(alpha))
    each = np.log2(2 * spread / np.sqrt(np.e)) + entropy
    start = -np.log2(-np.expm1(-1 / (2 * secret.deviation**2)))

    def cost(zeta: int, beta: Array) -> tuple[Array, dict[str, Array]]:
        transformed = np.arange(0, max(1, min(problem.n - zeta, MOST_TRANSFORMED)), 5, dtype=float)
        b, t, p = np.meshgrid(beta, transformed, np.arange(2.0, 7.0), indexing="ij")
        left = problem.n - zeta - t
        delta = ln_delta(b)
        ln_c = problem.ln_q + np.log(secret.deviation / problem.sigma)
        d = np.maximum(np.minimum(np.ceil(np.sqrt(left * ln_c / delta)), left + problem.samples), left + 1)
        k = model.sieve_dimension(b, np.maximum(d, b))
        length = np.log(problem.sigma) + ln_c * left / d + np.log(4 / 3) / 2
        length += np.log(k / (2 * np.pi * np.e)) / 2 + (d - k) * delta - problem.ln_q
        needed = zeta * entropy + t * np.log(p) + LN2
        vectors = (
            4 * np.pi**2 * np.exp(2 * np.minimum(length, 50.0)) + t / 3 * (secret.deviation * np.pi / p) ** 2
        )
        vectors = vectors / LN2 + np.log2(needed)
        transform = np.log2(32**2) + np.log2(np.maximum(t, 1e-9)) + (t + 1) * np.log2(p)
        tables = np.log2(4 * 5 * 32) + vectors
        tried = start + zeta * each + np.logaddexp2(transform, tables)
        total = np.where(d < b, np.inf, np.logaddexp2(_sampling(model, b, d, k, vectors), tried))
        flat = total.reshape(len(beta), -1)
        at = np.argmin(flat, axis=1)
        taken = {"beta": b, "d": d, "transformed": t, "modulus": p, "vectors": vectors}
        rows = np.arange(len(beta))
        return flat.min(axis=1), {name: v.reshape(len(beta), -1)[rows, at] for name, v in taken.items()}

    return grid_search(cost, min(problem.n - MIN_BETA, 200), MAX_BETA)
