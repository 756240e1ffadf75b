"""Bootstrapping from Python, in a ring of degree 2^10 without security. Its precision is tested in Rust."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.conftest import Party

ENTROPY = bytes(range(32))
STAGES = ["slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod"]
# q_0, 2 levels of slots_to_coeffs, 3 to compute on or recombine, 10 of eval_mod, 2 of coeffs_to_slots.
Q_BITS = [50, 40, 40, 45, 45, 50, *[50] * 7, 59, 60, 50, 50, 50]
P_BITS = [50, 50, 50]


@dataclass(frozen=True)
class Bootstrapping:
    """An owner of the keys of a bootstrapping only."""

    plan: kw.BootstrapperPlan
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    keys: kw.EvaluationKeys
    encryptor: kw.Encryptor
    evaluator: kw.Evaluator
    bootstrapper: kw.Bootstrapper

    @property
    def parameters(self) -> kw.Parameters:
        return self.plan.parameters

    def decrypt(self, ciphertext: kw.Ciphertext) -> NDArray[np.complex128]:
        values: NDArray[np.complex128] = kw.Decryptor(self.secret).decrypt_complex(ciphertext)
        return values

    def assert_decrypts(self, ciphertext: kw.Ciphertext, expected: NDArray[np.complex128]) -> None:
        """Check that the decryption is within the derived bound of the expected slots."""
        error = np.abs(self.decrypt(ciphertext) - expected).max()
        assert error <= ciphertext.error_bound, f"{error} above {ciphertext.error_bound}"

    def encrypt(self, values: NDArray[np.complex128], level: int | None = None) -> kw.Ciphertext:
        level = self.plan.input_level if level is None else level
        declared = max(float(np.abs(values).max()), 2**0.5)
        return self.encryptor.encrypt(values, slots=self.plan.slots, level=level, magnitude=declared)

    def fresh(self) -> NDArray[np.complex128]:
        """Return values that the plan can bootstrap."""
        rng = np.random.default_rng(5)
        parts = rng.uniform(-1, 1, (2, self.plan.slots))
        values: NDArray[np.complex128] = parts[0] + 1j * parts[1] * (self.plan.values == "complex")
        return values


def small_parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(10, Q_BITS, P_BITS, 45, insecure=True)


def small_plan(
    parameters: kw.Parameters,
    *,
    slots: int | None = None,
    values: str = "complex",
    order: str = "slots_to_coeffs_first",
    slots_to_coeffs: int = 2,
    coeffs_to_slots: int = 2,
    log_ratio: float = 5,
    cosine_degree: int = 62,
    double_angles: int = 1,
    arcsine_degree: int = 7,
    key_budget: int | str = "fastest",
    stages_apart: bool = True,
    alpha: int | str | None = None,
    key_levels: str = "needed",
    ephemeral_weight: int | None = 32,
    log2_failure: float = -40,
    iterations: int = 1,
    log_precision: int | None = None,
    output_level: int | None = None,
) -> kw.BootstrapperPlan:
    """Return a bootstrapping of those parameters, with the test's changes."""
    return kw.BootstrapperPlan(
        parameters,
        slots=slots,
        values=values,
        order=order,
        slots_to_coeffs=slots_to_coeffs,
        coeffs_to_slots=coeffs_to_slots,
        log_ratio=log_ratio,
        cosine_degree=cosine_degree,
        double_angles=double_angles,
        arcsine_degree=arcsine_degree,
        key_budget=key_budget,
        stages_apart=stages_apart,
        alpha=alpha,
        key_levels=key_levels,
        ephemeral_weight=ephemeral_weight,
        log2_failure=log2_failure,
        iterations=iterations,
        log_precision=log_precision,
        output_level=output_level,
    )


def prepare(slots: int | None = None, values: str = "complex") -> Bootstrapping:
    return own(small_plan(small_parameters(), slots=slots, values=values))


def own(plan: kw.BootstrapperPlan) -> Bootstrapping:
    """Return fresh keys for a plan."""
    parameters = plan.parameters
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    keys = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)
    encryptor = kw.Encryptor(generator.public_key(), ENTROPY)
    return Bootstrapping(plan, secret, generator, keys, encryptor, evaluator, kw.Bootstrapper(plan))


@pytest.fixture(scope="module")
def full() -> Bootstrapping:
    """Complex values in all slots."""
    return prepare()


def test_values_that_the_reduction_cannot_tell_apart_are_refused(full: Bootstrapping) -> None:
    values = np.linspace(-1, 1, full.plan.slots)
    for magnitude in (4, 16, 2**20):
        large = full.encryptor.encrypt(magnitude * values, level=full.plan.input_level, magnitude=magnitude)
        for bootstrap, inputs in (
            (full.bootstrapper.bootstrap, (large,)),
            (full.bootstrapper.bootstrap_pair, (large, large)),
        ):
            if magnitude == 4:
                bootstrap(full.evaluator, *inputs)
                continue
            with pytest.raises(kw.errors.NoiseError, match="divide the values before") as caught:
                bootstrap(full.evaluator, *inputs)
            assert caught.value.code == "values"


def test_two_ciphertexts_of_real_values_come_back_from_one_bootstrap(full: Bootstrapping) -> None:
    rng = np.random.default_rng(5)
    numbers = rng.uniform(-1, 1, (2, full.plan.slots))
    inputs = [full.encryptor.encrypt(row, level=full.plan.input_level, magnitude=1) for row in numbers]
    results = full.bootstrapper.bootstrap_pair(full.evaluator, *inputs)
    for result, row in zip(results, numbers, strict=True):
        assert result.level == full.plan.output_level
        assert result.error_bound < 2**-12
        full.assert_decrypts(result, row.astype(complex))
    unusual = full.encryptor.encrypt(1j * numbers[0], level=full.plan.input_level, magnitude=1)
    with pytest.raises(kw.errors.OperandError, match="ciphertext 1 of the pair") as caught:
        full.bootstrapper.bootstrap_pair(full.evaluator, inputs[0], unusual)
    assert caught.value.code == "range"
    half = prepare(slots=full.plan.slots // 2)
    with pytest.raises(kw.errors.ParameterError, match="one after the other"):
        half.bootstrapper.bootstrap_pair(half.evaluator, *inputs)


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


@pytest.mark.parametrize("budget", [0, 1_000_000])
def test_a_budget_that_cannot_be_names_the_fewest_bytes(budget: int) -> None:
    parameters = small_parameters()
    fewest = sum(small_plan(parameters, key_budget="fewest").key_bytes.values())
    with pytest.raises(kw.errors.ParameterError, match=f"{fewest}") as caught:
        small_plan(parameters, key_budget=budget)
    assert (caught.value.what, caught.value.value, caught.value.minimum) == ("key_budget", budget, fewest)


def test_a_preset_takes_another_budget() -> None:
    name = "N15_QP861_L3_S37"
    default, fewest = kw.BootstrapperPlan.preset(name), kw.BootstrapperPlan.preset(name, key_budget="fewest")
    assert sum(fewest.key_bytes.values()) < 250e6 < sum(default.key_bytes.values()) <= 700e6
    with pytest.raises(kw.errors.ParameterError, match="bytes"):
        kw.BootstrapperPlan.preset(name, key_budget=1)


def test_a_name_that_is_no_budget_is_refused() -> None:
    with pytest.raises(kw.errors.ParameterError, match="fewest") as caught:
        small_plan(small_parameters(), key_budget="few")
    assert (caught.value.what, caught.value.value) == ("key_budget", "few")


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
