"""The parts of the estimates, compared with naive counting."""

from itertools import product
from math import comb, erf, exp, factorial, inf, lgamma, log, log2, pi, sqrt

import keywright as kw
import numpy as np
import pytest
from keywright import security
from keywright.security import Problem, sparse, ternary
from keywright.security.guessing import guesses, log2_choose, meet, repetitions
from keywright.security.reduction import MODELS, ln_delta
from keywright.security.shape import log2_admissible, log2_nearest_plane, standing_out


def test_choosing_is_counted_exactly() -> None:
    n, k = np.meshgrid(np.arange(0, 60.0), np.arange(0, 60.0))
    exact = [[comb(int(a), int(b)) for a, b in zip(*row, strict=True)] for row in zip(n, k, strict=True)]
    choices = np.exp2(log2_choose(n, k))
    assert np.allclose(choices, np.array(exact, float), rtol=1e-9)
    assert log2_choose(2.0**17, 32.0) == pytest.approx(32 * 17 - log2(factorial(32)), abs=0.01)


@pytest.mark.parametrize("zeta", [1, 3, 5])
def test_guesses_are_counted_as_enumeration_counts_them(zeta: int) -> None:
    n, weight = 6, 3
    secrets = [s for s in product((-1, 0, 1), repeat=n) if sum(map(abs, s)) == weight]
    count, hit = guesses(Problem(32, 20, sparse(3, 32)), zeta, weight)
    heads = {s[:zeta] for s in secrets}
    for w in range(min(zeta, weight) + 1):
        tried = [g for g in product((-1, 0, 1), repeat=zeta) if sum(map(abs, g)) <= w]
        assert np.exp2(count[w]) == pytest.approx(len(tried))
    # The same with the secret's own length.
    problem = Problem.__new__(Problem)
    object.__setattr__(problem, "n", n)
    object.__setattr__(problem, "secret", sparse(weight, n))
    _, hit = guesses(problem, zeta, weight)
    for w in range(min(zeta, weight) + 1):
        right = sum(sum(map(abs, s[:zeta])) <= w for s in secrets)
        assert np.exp2(hit[w]) == pytest.approx(right / len(secrets))
    assert heads


def test_guesses_of_a_dense_secret_are_right_as_often_as_drawn() -> None:
    count, hit = guesses(Problem(64, 20, ternary()), 5, 5)
    every = list(product((-1, 0, 1), repeat=5))
    for w in range(6):
        tried = [g for g in every if sum(map(abs, g)) <= w]
        assert np.exp2(count[w]) == pytest.approx(len(tried))
        assert np.exp2(hit[w]) == pytest.approx(len(tried) / 3**5)


def test_trials_reach_their_probability() -> None:
    for p in (0.5, 0.01, 1e-7, 1e-11, 2.0**-300):
        trials = float(repetitions(np.array(log2(p))))
        assert trials == pytest.approx(log2(-log(0.01) / p), abs=0.02 + p)
    assert repetitions(np.array(0.0)) == 0


def test_rounding_is_right_as_often_as_the_product_over_the_basis_says() -> None:
    sigma = 3.19
    for beta, d, volume in ((60, 300, 1500.0), (250, 1500, 9000.0), (400, 1200, 1200.0)):
        delta = float(ln_delta(float(beta)))
        norms = np.exp((d - 1 - 2 * np.arange(d)) * delta + volume / d)
        rounding = sum(log2(erf(b / (2 * sqrt(2) * sigma))) for b in norms)
        x = norms / (sqrt(2) * sigma)
        meeting = sum(log2(erf(each) - (1 - exp(-(each**2))) / (each * sqrt(pi))) for each in x)
        last, size, slope = (np.array(v) for v in (log2(norms[-1]), float(d), delta / log(2)))
        # The midpoint rule: a thousandth of the sum, and of a bit.
        for exact, probability in (
            (rounding, log2_nearest_plane(last, size, slope, sigma)),
            (meeting, log2_admissible(last, size, slope, sigma)),
        ):
            assert float(probability) == pytest.approx(exact, rel=1e-3, abs=1e-3)


def test_halves_meet_as_often_as_they_do_when_drawn() -> None:
    generator = np.random.default_rng(3)
    count, sigma = 200_000, 1.3
    for b in (1.0, 4.0, 20.0):
        t, e = generator.uniform(-b / 2, b / 2, count), generator.normal(0, sigma, count)
        seen = np.mean(np.abs(t + e) <= b / 2)
        # One vector: the series of one.
        slope = 1e-4
        probability = 2 ** float(log2_admissible(np.array(log2(b)), np.array(1.0), np.array(slope), sigma))
        assert abs(seen - probability) <= 5 * sqrt(probability * (1 - probability) / count) + 1e-3


def test_the_error_stands_out_where_a_search_finds_it() -> None:
    for beta, d, volume, sigma in (
        (100, 300, 1400.0, 1.2),
        (389, 1005, 4000.0, 1.22),
        (200, 900, 4500.0, 3.19),
    ):
        delta = float(ln_delta(float(beta)))
        hidden = 1
        for k in range(2, d + 1):
            ball = (k + 1) / 2 * log(pi) - lgamma((k + 1) / 2 + 1)
            projected = sum((d - 1 - 2 * i) * delta + volume / d for i in range(d - k, d)) + log(sigma)
            if (projected - ball) / (k + 1) < log(sigma * sqrt(k + 1)):
                hidden = k
        blocks = standing_out(np.array([volume]), np.array([float(d)]), np.array([delta]), sigma, d)
        assert blocks[0] == (hidden + 1 if hidden < d else inf)


def test_root_hermite_factors_are_those_of_the_literature() -> None:
    # Chen, PhD thesis (2013), table 4.1.
    for beta, delta in ((85, 1.01), (106, 1.009), (133, 1.008), (168, 1.007), (216, 1.006), (286, 1.005)):
        assert exp(ln_delta(float(beta))) == pytest.approx(delta, abs=1.5e-4)


def test_representations_never_take_more_than_splitting() -> None:
    for n, weight in ((509, 254), (2048, 64), (2.0**16, 32)):
        whole = float(log2_choose(n, weight)) + weight
        bits = float(meet(float(n), float(weight)))
        # May (CRYPTO 2021): about the 0.3rd power of the secrets for moderate weights.
        assert whole / 4 < bits < whole / 2


@pytest.mark.parametrize("model", sorted(MODELS))
def test_more_coefficients_and_smaller_moduli_are_harder(model: str) -> None:
    attacks = [security.ATTACKS[name] for name in ("usvp", "bdd", "dual", "hybrid-mitm")]
    for attack in attacks:
        base, longer, narrower, noisier = (
            attack(problem, MODELS[model]).bits
            for problem in (
                Problem(2048, 60, ternary()),
                Problem(2560, 60, ternary()),
                Problem(2048, 55, ternary()),
                Problem(2048, 60, ternary(), 30.0),
            )
        )
        assert base < min(longer, narrower, noisier)


def test_a_rotation_of_the_secret_saves_reductions_and_nothing_else() -> None:
    model = MODELS["matzov"]
    for name in ("hybrid-mitm", "dual-mitm"):
        alone, rotated = (
            security.ATTACKS[name](Problem(512, 12, sparse(32, 512), 2.0, ring=ring), model).bits
            for ring in (False, True)
        )
        assert alone - 9 <= rotated < alone


@pytest.mark.parametrize(
    "values",
    [(0, 60.0, 3.2), (2048, 3.0, 3.2), (2048, 60.0, 1e-9), (2048, 20.0, 1e6), (1 << 30, 60.0, 3.2)],
)
def test_numbers_out_of_range_are_refused(values: tuple[int, float, float]) -> None:
    with pytest.raises(kw.errors.ParameterError, match="outside"):
        Problem(values[0], values[1], ternary(), values[2])


def test_names_and_weights_that_do_not_exist_are_refused() -> None:
    with pytest.raises(kw.errors.ParameterError, match="model='bkw'"):
        security.estimate(Problem(1024, 26, ternary()), "bkw")
    for weight in (0, 2049):
        with pytest.raises(kw.errors.ParameterError, match="weight"):
            sparse(weight, 2048)


def test_rotations_of_a_secret_save_a_search_at_most_their_square_root() -> None:
    for n, weight in ((2**16, 24), (2**16, 32), (2**17, 24)):
        ring, plain = (Problem(n, 100, sparse(weight, n), ring=ring) for ring in (True, False))
        bits, whole = (security.ATTACKS["mitm"](each, MODELS["matzov"]).bits for each in (ring, plain))
        assert whole == float(meet(float(n), float(weight)))
        assert log2(n) / 4 < whole - bits < log2(n) / 2
