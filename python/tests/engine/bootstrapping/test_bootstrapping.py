"""Bootstrapping from Python, in a ring of degree 2^10 without security. Its precision is tested in Rust."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import keywright as kw
import numpy as np
import pytest
from tests.engine.bootstrapping.owner import (
    ENTROPY,
    STAGES,
    Bootstrapping,
    own,
    prepare,
    small_parameters,
    small_plan,
)
from tests.engine.bootstrapping.test_refusals import wide_parameters


def test_two_ciphertexts_of_real_values_come_back_from_one_bootstrap(full: Bootstrapping) -> None:
    pairs = prepare(values="pair")
    assert (pairs.plan.values, pairs.plan.alone.values) == ("pair", "real")
    rng = np.random.default_rng(5)
    numbers = rng.uniform(-1, 1, (2, pairs.plan.slots))
    inputs = [pairs.encryptor.encrypt(row, level=pairs.plan.input_level, magnitude=1) for row in numbers]
    results = pairs.bootstrapper.bootstrap_pair(pairs.evaluator, *inputs)
    for result, row in zip(results, numbers, strict=True):
        assert result.level == pairs.plan.output_level
        assert result.error_bound < 2**-12
        pairs.assert_decrypts(result, row.astype(complex))
    unusual = pairs.encryptor.encrypt(1j * numbers[0], level=pairs.plan.input_level, magnitude=1)
    with pytest.raises(kw.errors.OperandError, match="ciphertext 1 of the pair") as caught:
        pairs.bootstrapper.bootstrap_pair(pairs.evaluator, inputs[0], unusual)
    assert caught.value.code == "range"
    with pytest.raises(kw.errors.ParameterError, match="one after the other"):
        full.bootstrapper.bootstrap_pair(full.evaluator, *inputs)
    with pytest.raises(kw.errors.ParameterError, match="one after the other"):
        prepare(values="pair", slots=full.plan.slots // 2)


def test_a_key_budget_is_kept_and_the_values_come_back() -> None:
    parameters = small_parameters()
    plans = [
        small_plan(parameters, key_budget=budget, stages_apart=False)
        for budget in ("fewest", 12_000_000, "fastest")
    ]
    fewest, middle, fastest = (sum(plan.key_bytes.values()) for plan in plans)
    assert fewest < middle <= 12_000_000 < fastest
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    encryptor = kw.Encryptor(generator.public_key(), ENTROPY)
    values = np.exp(1j * np.arange(parameters.max_slots))
    for plan in plans:
        keys = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
        kinds = {spec.kind for spec in plan.stage_keys["coeffs_to_slots"]}
        assert "sparse_to_dense" in kinds
        evaluator, bootstrapper = kw.Evaluator(parameters, keys), kw.Bootstrapper(plan)
        result = bootstrapper.bootstrap(evaluator, encryptor.encrypt(values, level=plan.input_level))
        error = np.abs(kw.Decryptor(secret).decrypt_complex(result) - values).max()
        assert error <= result.error_bound
        # The first factor is combined with ModRaise, so the stages are not separate.
        coefficients = bootstrapper.slots_to_coeffs(
            evaluator, encryptor.encrypt(values, level=plan.input_level)
        )
        with pytest.raises(kw.errors.ParameterError, match="stages apart"):
            bootstrapper.coeffs_to_slots(evaluator, bootstrapper.mod_raise(evaluator, coefficients))


def test_the_ways_to_evaluate_a_factor_trade_bytes_for_work() -> None:
    plan = small_plan(small_parameters())
    options = plan.factor_options
    assert {stage: len(factors) for stage, factors in options.items()} == {
        "slots_to_coeffs": 2,
        "coeffs_to_slots": 2,
    }
    for factor in (factor for factors in options.values() for factor in factors):
        assert len(factor) > 1
        assert factor == sorted(factor)
        assert [work for _, work in factor] == sorted((work for _, work in factor), reverse=True)


def test_a_preset_takes_another_budget() -> None:
    name = "N15_QP861_L3_S37"
    default, fewest = kw.BootstrapperPlan.preset(name), kw.BootstrapperPlan.preset(name, key_budget="fewest")
    assert sum(fewest.key_bytes.values()) < 250e6 < sum(default.key_bytes.values()) <= 700e6
    with pytest.raises(kw.errors.ParameterError, match="bytes"):
        kw.BootstrapperPlan.preset(name, key_budget=1)


def test_the_values_come_back_with_levels(full: Bootstrapping) -> None:
    plan, values = full.plan, full.fresh()
    result = full.bootstrapper.bootstrap(full.evaluator, full.encrypt(values, level=plan.input_level + 1))
    assert (plan.input_level, plan.output_level, plan.levels_left) == (2, 5, 3)
    assert (full.bootstrapper.input_level, full.bootstrapper.output_level) == (2, 5)
    assert (result.level, result.scale, result.slots) == (5, 2.0**45, plan.slots)
    full.assert_decrypts(result, values)
    assert result.precision_bits > 15
    # Levels to compute on: the square of the result has its bound as well.
    product = full.evaluator.multiply(result, np.full(plan.slots, 0.5))
    full.assert_decrypts(product, values / 2)


@pytest.mark.parametrize(
    ("slots", "values", "level"), [(512, "real", 5), (64, "complex", 4), (64, "real", 5), (1, "complex", 4)]
)
def test_other_packings(slots: int, values: str, level: int) -> None:
    sparse = prepare(slots, values)
    assert (sparse.plan.slots, sparse.plan.values, sparse.plan.output_level) == (slots, values, level)
    expected = sparse.fresh()
    result = sparse.bootstrapper.bootstrap(sparse.evaluator, sparse.encrypt(expected))
    assert (result.level, result.slots) == (level, slots)
    sparse.assert_decrypts(result, expected)


def test_every_iteration_gains_precision() -> None:
    bits = [51, 36, 36, *[50] * 14]
    parameters = kw.Parameters.from_bits(10, bits, [51, 50, 50], 50, insecure=True)
    errors = []
    for iterations in (1, 2):
        plan = small_plan(
            parameters,
            log_ratio=10,
            arcsine_degree=1,
            iterations=iterations,
            log_precision=12 if iterations > 1 else None,
        )
        assert (plan.iterations, plan.levels_left) == (iterations, 5)
        owner = own(plan)
        values = owner.fresh()
        result = owner.bootstrapper.bootstrap(owner.evaluator, owner.encrypt(values))
        owner.assert_decrypts(result, values)
        errors.append(result.error_bound)
    assert errors[1] < errors[0] / 2**11
    # 19 bits are more than the bound on one pass has, which is found with the first.
    plan = small_plan(parameters, log_ratio=10, arcsine_degree=1, iterations=2, log_precision=19)
    refused = own(plan)
    ciphertext = refused.encrypt(refused.fresh())
    with pytest.raises(kw.errors.ParameterError, match=r"log_precision of at most 1[5-8]") as caught:
        refused.bootstrapper.bootstrap(refused.evaluator, ciphertext)
    assert (caught.value.what, caught.value.value) == ("log_precision", 19)
    assert isinstance(caught.value.maximum, float)
    assert 15 < caught.value.maximum < 19


def test_the_modulus_is_raised_first() -> None:
    owner = own(small_plan(small_parameters(), order="mod_raise_first"))
    plan, values = owner.plan, owner.fresh()
    assert (plan.order, plan.input_level, plan.output_level, plan.levels_left) == ("mod_raise_first", 0, 3, 3)
    assert list(plan.levels) == list(plan.stage_keys) == [*STAGES[1:], STAGES[0]]
    assert plan.levels["slots_to_coeffs"] == (5, 3)
    result = owner.bootstrapper.bootstrap(owner.evaluator, owner.encrypt(values))
    assert (result.level, result.scale, result.slots) == (3, 2.0**45, plan.slots)
    owner.assert_decrypts(result, values)


@pytest.mark.parametrize("storage", ["coefficients", "streamed"])
def test_diagonals_are_kept_as_coefficients_or_made_for_each_use(full: Bootstrapping, storage: str) -> None:
    other = kw.Bootstrapper(full.plan, storage=storage)
    assert other.bytes == full.plan.diagonal_bytes(storage) < full.bootstrapper.bytes
    assert full.bootstrapper.bytes == full.plan.diagonal_bytes()
    assert full.plan.diagonal_bytes("streamed") == 0
    ciphertext = full.encrypt(full.fresh())
    expected = full.bootstrapper.bootstrap(full.evaluator, ciphertext).to_bytes()
    assert other.bootstrap(full.evaluator, ciphertext).to_bytes() == expected


@pytest.mark.parametrize("values", ["complex", "real"])
@pytest.mark.parametrize("slots", [64, None])
def test_bytes_of_diagonals_are_predicted(values: str, slots: int | None) -> None:
    plan = small_plan(small_parameters(), slots=slots, values=values)
    for storage in ("encoded", "coefficients", "streamed"):
        assert kw.Bootstrapper(plan, storage=storage).bytes == plan.diagonal_bytes(storage)
    with pytest.raises(kw.errors.ParameterError, match="streamed") as caught:
        plan.diagonal_bytes("dropped")
    assert (caught.value.what, caught.value.value) == ("storage", "dropped")


def test_the_stages_are_the_whole(full: Bootstrapping) -> None:
    b, evaluator, values = full.bootstrapper, full.evaluator, full.fresh()
    levels = full.plan.levels
    assert list(levels) == STAGES
    ciphertext = full.encrypt(values)
    coefficients = b.slots_to_coeffs(evaluator, ciphertext)
    assert (coefficients.packing, coefficients.level) == ("coefficients", levels["slots_to_coeffs"][1])
    assert coefficients.scale == pytest.approx(full.plan.coefficients_scale, rel=1e-9)
    raised = b.mod_raise(evaluator, coefficients)
    assert (raised.level, raised.scale) == (levels["mod_raise"][1], float(full.parameters.q[0]))
    parts = b.coeffs_to_slots(evaluator, raised)
    assert [part.level for part in parts] == [levels["coeffs_to_slots"][1]] * 2
    integer, distance = b.inspect_input(full.secret, parts[0])
    assert 1 <= integer <= 12
    assert distance < 2**-4.9
    real, imaginary = (b.eval_mod(evaluator, part, raised.scale / coefficients.scale) for part in parts)
    assert (real.level, imaginary.level) == (levels["eval_mod"][1],) * 2
    full.assert_decrypts(real, values.real.astype(complex))
    whole = evaluator.add(real, evaluator.multiply_by_i(imaginary))
    full.assert_decrypts(whole, values)
    decrypted = kw.Decryptor(full.secret).decrypt_complex
    for composed in (
        b.bootstrap(evaluator, ciphertext),
        b.bootstrap_coefficients(evaluator, coefficients),
    ):
        # The residues are equal. The whole bootstrap knows more of its input than a single stage, so their
        # estimates differ.
        assert np.array_equal(decrypted(composed), decrypted(whole))
        full.assert_decrypts(composed, values)


def test_one_bootstrapper_serves_two_owners_at_once(full: Bootstrapping) -> None:
    secret = kw.SecretKey.generate(full.parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(specs=full.plan.required_keys, relinearization=False)
    values = full.fresh()
    theirs = kw.Encryptor(generator.public_key()).encrypt(-values, level=full.plan.input_level)
    with ThreadPoolExecutor() as threads:
        mine = threads.submit(full.bootstrapper.bootstrap, full.evaluator, full.encrypt(values))
        other = threads.submit(full.bootstrapper.bootstrap, kw.Evaluator(full.parameters, keys), theirs)
    full.assert_decrypts(mine.result(), values)
    result = other.result()
    assert np.abs(kw.Decryptor(secret).decrypt_complex(result) + values).max() <= result.error_bound


def test_coefficients_of_a_client_enter_and_leave(full: Bootstrapping) -> None:
    n, plan = full.parameters.n, full.plan
    # The preset's kind of parameters: q_0 over the ratio is the scale of fresh ciphertexts.
    assert plan.coefficients_scale == pytest.approx(2.0**45, rel=1 / 128)
    numbers = np.random.default_rng(6).uniform(-1, 1, n)
    reverse = [int(f"{j:09b}"[::-1], 2) for j in range(n // 2)]
    client = full.encryptor.encrypt_coefficients(numbers, level=1)
    slots = full.bootstrapper.bootstrap_coefficients(full.evaluator, client)
    full.assert_decrypts(slots, numbers[reverse] + 1j * numbers[n // 2 :][reverse])
    answer = full.bootstrapper.slots_to_coeffs(full.evaluator, slots)
    assert np.abs(kw.Decryptor(full.secret).decrypt(answer) - numbers).max() <= answer.error_bound


def test_keys_are_known_before_they_are_made(full: Bootstrapping) -> None:
    specs, by_stage = full.plan.required_keys, full.plan.stage_keys
    assert list(by_stage) == STAGES
    assert {spec.kind for spec in by_stage["mod_raise"]} == {"dense_to_sparse", "sparse_to_dense"}
    assert set(specs) == {spec for stage in by_stage.values() for spec in stage}
    assert len(set(specs)) == len(specs) == len(full.keys)
    assert set(full.keys) == set(specs)
    assert list(full.plan.key_bytes) == STAGES
    assert sum(full.plan.key_bytes.values()) == sum(spec.bytes for spec in specs)
    top = full.plan.levels["mod_raise"][1]
    assert all(spec.seeded and spec.level <= top for spec in specs)
    assert all(spec.level <= 2 for spec in by_stage["slots_to_coeffs"])


def test_key_generation_reports_and_stops(
    full: Bootstrapping, tmp_path_factory: pytest.TempPathFactory
) -> None:
    specs, generator = full.plan.required_keys, full.generator
    seen: list[tuple[int, int]] = []
    path = tmp_path_factory.mktemp("keys") / "keys.kw"
    # In any order: the two keys of the ephemeral secret find each other.
    generator.save_evaluation_keys(path, specs[::-1], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k + 1, len(specs)) for k in range(len(specs))]
    loaded = kw.Evaluator(full.parameters, kw.EvaluationKeys.load(path, full.parameters))
    values = full.fresh()
    full.assert_decrypts(full.bootstrapper.bootstrap(loaded, full.encrypt(values)), values)

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        generator.save_evaluation_keys(path.with_name("other.kw"), specs, progress=stop)
    assert [file.name for file in path.parent.iterdir()] == ["keys.kw"]


def test_a_pair_of_ephemeral_keys_is_not_torn_apart(full: Bootstrapping) -> None:
    generator = full.generator
    there, back = full.plan.stage_keys["mod_raise"]
    for specs in ([there], [back], [there, there, back], [there, back, back]):
        with pytest.raises(kw.errors.ParameterError, match="ephemeral secret") as caught:
            generator.evaluation_keys(specs=specs, relinearization=False)
        assert caught.value.what == "ephemeral keys"
    with pytest.raises(kw.errors.ParameterError, match="ephemeral secret"):
        generator.switching_key(there)


def test_presets() -> None:
    for name in kw.BootstrapperPlan.presets():
        plan = kw.BootstrapperPlan.preset(name)
        parameters = plan.parameters
        assert not parameters.insecure
        assert plan.levels_left >= 1
        assert 0 <= plan.input_level < plan.output_level < parameters.max_level
        assert 0 < sum(plan.key_bytes.values()) == sum(spec.bytes for spec in plan.required_keys)
    with pytest.raises(kw.errors.ParameterError, match=kw.BootstrapperPlan.presets()[0]):
        kw.BootstrapperPlan.preset("N16_slow")


def test_what_is_shown(full: Bootstrapping) -> None:
    assert repr(full.plan).startswith("BootstrapperPlan(512 complex slots, level 2 -> 5, ")
    assert repr(full.bootstrapper) == f"Bootstrapper(level 2 -> 5, {full.bootstrapper.bytes} bytes)"
    assert full.bootstrapper.plan is full.plan
    assert full.bootstrapper.parameters == full.plan.parameters == full.parameters
    for thing in (full.plan, full.bootstrapper):
        with pytest.raises(TypeError, match="not pickled"):
            thing.__reduce__()


@pytest.mark.parametrize(
    ("alpha", "key_levels"),
    [(2, "needed"), (2, "top"), ("maximum", "needed"), ("dynamic_dropped", "needed"), ("dynamic", "top")],
)
def test_every_choice_of_digits_and_levels_comes_back(alpha: int | str, key_levels: str) -> None:
    plan = small_plan(wide_parameters(), slots=8, alpha=alpha, key_levels=key_levels)
    secret = kw.SecretKey.generate(plan.parameters, entropy=ENTROPY)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
    values = np.linspace(-1, 1, 8) + 1j * np.linspace(1, -1, 8)
    encrypted = kw.Encryptor(generator.public_key()).encrypt(values, slots=8, level=plan.input_level)
    out = kw.Bootstrapper(plan).bootstrap(kw.Evaluator(plan.parameters, keys), encrypted)
    error = np.abs(kw.Decryptor(secret).decrypt_complex(out) - values).max()
    assert error <= out.error_bound
    designed = [spec for stage in ("slots_to_coeffs", "coeffs_to_slots") for spec in plan.stage_keys[stage]]
    if alpha in (2, "maximum"):
        primes = 3 if alpha == "maximum" else alpha
        assert {(spec.alpha, len(spec.special)) for spec in designed} == {(primes, primes)}
    if key_levels == "top":
        assert {spec.level for spec in designed} == {plan.parameters.max_level}
