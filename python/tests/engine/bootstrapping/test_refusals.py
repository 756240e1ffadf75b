"""Bootstraps that cannot be are refused, with the number that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from tests.engine.bootstrapping.owner import (
    P_BITS,
    Q_BITS,
    STAGES,
    Bootstrapping,
    prepare,
    small_parameters,
    small_plan,
)

if TYPE_CHECKING:
    from tests.conftest import Party


def test_values_that_the_reduction_cannot_tell_apart_are_refused(full: Bootstrapping) -> None:
    values = np.linspace(-1, 1, full.plan.slots)
    pairs = prepare(values="pair")
    for magnitude in (4, 16, 2**20):
        for owner, bootstrap, count in (
            (full, full.bootstrapper.bootstrap, 1),
            (pairs, pairs.bootstrapper.bootstrap, 1),
            (pairs, pairs.bootstrapper.bootstrap_pair, 2),
        ):
            level = owner.plan.input_level
            large = owner.encryptor.encrypt(magnitude * values, level=level, magnitude=magnitude)
            if magnitude == 4:
                bootstrap(owner.evaluator, *[large] * count)
                continue
            with pytest.raises(kw.errors.NoiseError, match="divide the values before") as caught:
                bootstrap(owner.evaluator, *[large] * count)
            assert caught.value.code == "values"


@pytest.mark.parametrize("budget", [0, 1_000_000])
def test_a_budget_that_cannot_be_names_the_fewest_bytes(budget: int) -> None:
    parameters = small_parameters()
    fewest = sum(small_plan(parameters, key_budget="fewest").key_bytes.values())
    with pytest.raises(kw.errors.ParameterError, match=f"{fewest}") as caught:
        small_plan(parameters, key_budget=budget)
    assert (caught.value.what, caught.value.value, caught.value.minimum) == ("key_budget", budget, fewest)


def test_a_name_that_is_no_budget_is_refused() -> None:
    with pytest.raises(kw.errors.ParameterError, match="fewest") as caught:
        small_plan(small_parameters(), key_budget="few")
    assert (caught.value.what, caught.value.value) == ("key_budget", "few")


@pytest.mark.parametrize("stage", STAGES)
def test_a_missing_key_is_named_with_stage_and_level(full: Bootstrapping, stage: str) -> None:
    absent = full.plan.stage_keys[stage][-1]
    present = [s for s in full.plan.required_keys if element(s) != element(absent) or s.level < absent.level]
    if stage == "mod_raise":
        present = [spec for spec in present if spec.kind != "dense_to_sparse"]
    keys = full.generator.evaluation_keys(specs=present, relinearization=False)
    with pytest.raises(kw.errors.MissingKeyError) as caught:
        full.bootstrapper.bootstrap(kw.Evaluator(full.parameters, keys), full.encrypt(full.fresh()))
    assert caught.value.stage == stage
    assert caught.value.stage_level is not None
    if stage != "mod_raise":
        assert caught.value.level == absent.level
    assert str(caught.value).startswith(f"{stage}, whose input is at level {caught.value.stage_level}")


def element(spec: kw.KeySpec) -> tuple[str, int | None]:
    return spec.kind, spec.galois_element


INPUTS: list[
    tuple[str, Callable[[Bootstrapping, kw.Ciphertext], object], type[kw.KeywrightError], str, str | None]
] = [
    (
        "below the input level",
        lambda f, a: f.bootstrapper.bootstrap(f.evaluator, f.evaluator.drop_to_level(a, 1)),
        kw.errors.LevelError,
        "level",
        "slots_to_coeffs",
    ),
    (
        "another scale",
        lambda f, a: f.bootstrapper.bootstrap(f.evaluator, f.evaluator.set_scale(a, a.scale * 1.1)),
        kw.errors.ScaleError,
        "scale",
        "slots_to_coeffs",
    ),
    (
        "other slots",
        lambda f, _: f.bootstrapper.bootstrap(f.evaluator, f.encryptor.encrypt([0.5], slots=4)),
        kw.errors.OperandError,
        "packing",
        "slots_to_coeffs",
    ),
    (
        "coefficients for slots",
        lambda f, _: f.bootstrapper.bootstrap(f.evaluator, f.encryptor.encrypt_coefficients([0.5])),
        kw.errors.OperandError,
        "packing",
        "slots_to_coeffs",
    ),
    (
        "slots for coefficients",
        lambda f, a: f.bootstrapper.bootstrap_coefficients(f.evaluator, a),
        kw.errors.OperandError,
        "packing",
        "mod_raise",
    ),
    (
        "raised from above",
        lambda f, a: f.bootstrapper.mod_raise(f.evaluator, a),
        kw.errors.LevelError,
        "level",
        "mod_raise",
    ),
    (
        "not raised",
        lambda f, a: f.bootstrapper.coeffs_to_slots(f.evaluator, a),
        kw.errors.OperandError,
        "packing",
        "coeffs_to_slots",
    ),
    (
        "too low",
        lambda f, a: f.bootstrapper.eval_mod(f.evaluator, a),
        kw.errors.LevelError,
        "level",
        "eval_mod",
    ),
    (
        "no ratio",
        lambda f, _: f.bootstrapper.eval_mod(f.evaluator, f.encryptor.encrypt([0.5]), float("nan")),
        kw.errors.EncodeError,
        "encoding",
        "eval_mod",
    ),
    (
        "no keys",
        lambda f, a: f.bootstrapper.bootstrap(kw.Evaluator(kw.Parameters.preset("N13_QP214_S38")), a),
        kw.errors.MissingKeyError,
        "key",
        None,
    ),
]


@pytest.mark.parametrize(
    ("act", "error", "code", "stage"), [case[1:] for case in INPUTS], ids=[case[0] for case in INPUTS]
)
def test_what_a_stage_does_not_take(
    full: Bootstrapping,
    act: Callable[[Bootstrapping, kw.Ciphertext], object],
    error: type[kw.KeywrightError],
    code: str,
    stage: str | None,
) -> None:
    with pytest.raises(error, check=lambda error: error.code == code) as caught:
        act(full, full.encrypt(full.fresh(), level=3))
    if stage is not None:
        assert caught.value.stage == stage


def test_foreign_ciphertexts_and_keys(full: Bootstrapping, other: Party) -> None:
    mine, theirs = full.encrypt(full.fresh()), other.encryptor.encrypt([0.5], level=2)
    b = full.bootstrapper
    for evaluator, ciphertext in (
        (full.evaluator, theirs),
        (other.evaluator, theirs),
    ):
        for act in (b.bootstrap, b.bootstrap_coefficients, b.slots_to_coeffs, b.mod_raise, b.coeffs_to_slots):
            with pytest.raises(kw.KeywrightError):
                act(evaluator, ciphertext)
    for stage in (b.slots_to_coeffs, b.mod_raise, b.eval_mod):
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
            stage(other.evaluator, mine)


def test_values_out_of_range_are_found_with_the_secret(full: Bootstrapping) -> None:
    b, evaluator = full.bootstrapper, full.evaluator
    large = full.fresh()
    large[3] = 5.0
    parts = b.coeffs_to_slots(
        evaluator, b.mod_raise(evaluator, b.slots_to_coeffs(evaluator, full.encrypt(large)))
    )
    with pytest.raises(kw.errors.EncodeError) as caught:
        b.inspect_input(full.secret, parts[0])
    assert (caught.value.stage, caught.value.index) == ("eval_mod", 3)


def q_of(*q_bits: int) -> Callable[[], kw.Parameters]:
    return lambda: kw.Parameters.from_bits(10, list(q_bits), P_BITS, 45, insecure=True)


REFUSED: list[tuple[str, Callable[[kw.Parameters], object], type[kw.KeywrightError], str | None]] = [
    ("output above the top", lambda p: small_plan(p, output_level=6), kw.errors.LevelError, None),
    ("output level that wraps", lambda p: small_plan(p, output_level=2**64 - 1), kw.errors.LevelError, None),
    ("output below the input", lambda p: small_plan(p, output_level=1), kw.errors.LevelError, None),
    ("too few primes", lambda _: small_plan(q_of(50, 45, 45, 45)()), kw.errors.LevelError, None),
    ("one prime", lambda _: small_plan(q_of(50)()), kw.KeywrightError, None),
    ("too many slots", lambda p: small_plan(p, slots=1024), kw.errors.ParameterError, None),
    ("slots not a power of two", lambda p: small_plan(p, slots=3), kw.errors.ParameterError, None),
    ("no such order", lambda p: small_plan(p, order="backwards"), kw.errors.ParameterError, None),
    ("no iteration", lambda p: small_plan(p, iterations=0), kw.errors.ParameterError, None),
    ("no precision", lambda p: small_plan(p, iterations=2), kw.errors.ParameterError, None),
    ("precision unused", lambda p: small_plan(p, log_precision=9), kw.errors.ParameterError, None),
    (
        "huge precision",
        lambda p: small_plan(p, iterations=2, log_precision=99),
        kw.errors.ParameterError,
        None,
    ),
    (
        "many passes",
        lambda p: small_plan(p, iterations=2**40, log_precision=9),
        kw.errors.ParameterError,
        None,
    ),
    ("odd cosine", lambda p: small_plan(p, cosine_degree=61), kw.errors.ParameterError, "eval_mod"),
    ("no such values", lambda p: small_plan(p, values="quaternion"), kw.errors.ParameterError, None),
    (
        "no first stage",
        lambda p: small_plan(p, slots_to_coeffs=0),
        kw.errors.ParameterError,
        "slots_to_coeffs",
    ),
    ("no third stage", lambda p: small_plan(p, coeffs_to_slots=0), kw.KeywrightError, None),
    ("weight 0", lambda p: small_plan(p, ephemeral_weight=0), kw.errors.ParameterError, "mod_raise"),
    ("weight above N", lambda p: small_plan(p, ephemeral_weight=1025), kw.errors.ParameterError, "mod_raise"),
    ("ratio too small", lambda p: small_plan(p, log_ratio=1), kw.errors.ParameterError, "eval_mod"),
    ("ratio above q_0", lambda p: small_plan(p, log_ratio=60), kw.errors.ScaleError, "slots_to_coeffs"),
    ("ratio NaN", lambda p: small_plan(p, log_ratio=float("nan")), kw.errors.ScaleError, "slots_to_coeffs"),
    (
        "ratio infinite",
        lambda p: small_plan(p, log_ratio=float("-inf")),
        kw.errors.ScaleError,
        "slots_to_coeffs",
    ),
    ("even arcsine", lambda p: small_plan(p, arcsine_degree=4), kw.errors.ParameterError, "eval_mod"),
    ("huge cosine", lambda p: small_plan(p, cosine_degree=2**40), kw.errors.ParameterError, "eval_mod"),
    ("huge arcsine", lambda p: small_plan(p, arcsine_degree=2**40 + 1), kw.errors.ParameterError, "eval_mod"),
    ("many double angles", lambda p: small_plan(p, double_angles=2**31), kw.errors.LevelError, "eval_mod"),
    (
        "huge first stage",
        lambda p: small_plan(p, slots_to_coeffs=2**60),
        kw.errors.LevelError,
        "slots_to_coeffs",
    ),
    (
        "huge third stage",
        lambda p: small_plan(p, coeffs_to_slots=2**60),
        kw.errors.LevelError,
        "coeffs_to_slots",
    ),
]


@pytest.mark.parametrize(
    ("act", "error", "stage"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_cannot_be_bootstrapped(
    act: Callable[[kw.Parameters], object], error: type[kw.KeywrightError], stage: str | None
) -> None:
    with pytest.raises(error) as caught:
        act(small_parameters())
    if stage is not None:
        assert caught.value.stage == stage


def test_an_insecure_ephemeral_key_is_refused() -> None:
    parameters = kw.Parameters.from_bits(15, [50, 40, *[50] * 14], [50], 40)
    with pytest.raises(kw.errors.SecurityError) as caught:
        small_plan(parameters, slots=8)
    assert (caught.value.stage, caught.value.bound) == ("mod_raise", 96)


def wide_parameters() -> kw.Parameters:
    """The first special prime is above every ciphertext prime: digits of a single prime fit it."""
    return kw.Parameters.from_bits(10, Q_BITS, [61, 60, 50], 45, insecure=True)


@pytest.mark.parametrize("alpha", [0, 4, 2**62])
def test_an_alpha_without_special_primes_is_refused(alpha: int) -> None:
    with pytest.raises(kw.errors.ParameterError, match="alpha") as caught:
        small_plan(wide_parameters(), alpha=alpha)
    assert caught.value.value == alpha
    assert caught.value.stage == "slots_to_coeffs"


def test_special_primes_below_a_prime_are_refused() -> None:
    with pytest.raises(kw.errors.ParameterError, match="special"):
        small_plan(kw.Parameters.from_bits(10, Q_BITS, [44, 60], 45, insecure=True), alpha=1)


@pytest.mark.parametrize("changed", [{"alpha": "longest"}, {"key_levels": "lowest"}])
def test_unknown_choices_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(kw.errors.ParameterError, match="use") as caught:
        small_plan(wide_parameters(), **changed)
    assert caught.value.value in changed.values()
