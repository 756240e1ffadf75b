"""A simulation predicts the errors of encrypted runs, and a wrong prediction is noticed."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from importlib.resources import files

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler, runtime
from keywright._core import ErrorModel, EvaluationKeys
from keywright.errors import EncodeError, OutOfRangeError
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.search.network_planner import KeyFrontier
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from keywright.runtime.simulation.noise import BootstrapErrors, NoiseSource
from numpy.typing import NDArray
from onnx import helper
from tests.ciphertexts import decrypt_result, encrypt_sample, encrypt_sample_seeded
from tests.compiler.placement.test_bootstrapped_network import residual_network, small_plan

Array = NDArray[np.float64]
Build = Callable[..., onnx.ModelProto]
node = helper.make_node

BITS = 2.0
"""Allowed error of the predicted mean and largest error, in bits."""


@dataclass(frozen=True)
class Case:
    """A compiled network, and the errors of encrypted runs: (runs, samples, outputs)."""

    program: compiler.Program
    plan: PlanExecution
    samples: Array
    public: bool
    measured: Array

    def simulate(self) -> runtime.Simulation:
        return runtime.simulate(self.program, self.plan, self.samples, public=self.public)

    def bits_off(self) -> tuple[float, float]:
        """log2 of the measured mean and largest error over the predicted ones."""
        outputs, worst = self.simulate(), np.median(self.measured.max(axis=(1, 2)))
        mean = float(np.log2(self.measured.mean() / outputs.mean_error))
        return mean, float(np.log2(worst / outputs.worst_error))


def run(
    program: compiler.Program,
    parameters: kw.Parameters,
    samples: Array,
    bootstraps: list[kw.BootstrapperPlan],
    *,
    public: bool = False,
    runs: int = 3,
) -> Case:
    plan = KeyFrontier(program, parameters, bootstraps).execution
    errors = []
    for number in range(runs):
        secret = kw.SecretKey.generate(parameters, bytes([number]) * 32)
        generator = kw.KeyGenerator(secret)
        keys = plan.follow(generator.evaluation_keys(relinearization=False, specs=plan.key_specs))
        bootstrappers = [kw.Bootstrapper(plan_of_bootstrap) for plan_of_bootstrap in plan.bootstrapper_plans]
        backend = EncryptedBackend(kw.Evaluator(parameters, keys), bootstrappers, plan=plan)
        decryptor, encryptor = kw.Decryptor(secret), kw.Encryptor(generator.public_key())
        plan_of_bootstrap = []
        for sample in samples:
            inputs = (
                encrypt_sample(program, encryptor, sample)
                if public
                else [ct.expand() for ct in encrypt_sample_seeded(program, decryptor, sample)]
            )
            result = decrypt_result(program, decryptor, backend.run(program, inputs))
            plan_of_bootstrap.append(np.abs(result - run_clear(program, sample)).ravel())
        errors.append(plan_of_bootstrap)
    return Case(program, plan, samples, public, np.asarray(errors))


def perceptron(build: Build) -> onnx.ModelProto:
    """Two dense layers with a sigmoid between them, which becomes a Chebyshev polynomial."""
    rng = np.random.default_rng(3)
    weights = {
        "a": rng.normal(size=(12, 20)).astype(np.float32) / 4,
        "b": rng.normal(size=(20, 5)).astype(np.float32) / 3,
    }
    nodes = [
        node("MatMul", ["x", "a"], ["h"], "first"),
        node("Sigmoid", ["h"], ["s"], "activation"),
        node("MatMul", ["s", "b"], ["y"], "second"),
    ]
    return build(nodes, (12,), weights)


def digits(_: Build) -> Case:
    parameters = kw.Parameters.preset("N14_QP430_S40")
    data = files("keywright") / "data"
    target = compiler.Target(slots=parameters.max_slots, levels=parameters.max_level)
    program = compiler.compile_program((data / "digits.onnx").read_bytes(), target)
    with (data / "digits_test.npz").open("rb") as file:
        images = np.asarray(np.load(file)["images"][:3], np.float64)
    return run(program, parameters, images, [], runs=1)


def levelled(build: Build, slots: int, special: int) -> Case:
    parameters = kw.Parameters.from_bits(11, [50] + 7 * [40], [special], 40, insecure=True)
    samples = np.random.default_rng(4).uniform(-1, 1, (4, 12))
    target = compiler.Target(slots=slots, levels=parameters.max_level)
    program = compiler.compile_program(perceptron(build), target, compiler.Fit(calibration=samples))
    return run(program, parameters, samples, [], public=slots < 1024)


def bootstrapped(build: Build, runs: int = 3, batch: int = 1) -> Case:
    plan = small_plan("real" if batch == 1 else "pair")
    samples = np.random.default_rng(8).uniform(-1, 1, (3, 2, 8, 8))
    target = compiler.Target(
        slots=plan.slots,
        levels=plan.output_level,
        bootstraps=(compiler.Bootstrap.of(plan),),
        batch=batch,
    )
    program = compiler.compile_program(residual_network(build), target, compiler.Fit(calibration=samples))
    assert any(step.opcode == "bootstrap" for step in program.instructions)
    return run(program, plan.parameters, samples, [plan], runs=runs)


CASES: dict[str, Callable[[Build], Case]] = {
    "digits": digits,
    # Key switches count most where the special prime is hardly larger than a digit.
    "perceptron": lambda build: levelled(build, 1024, 51),
    "perceptron, sparse, public key": lambda build: levelled(build, 64, 60),
    "residual, bootstrapped": bootstrapped,
    "residual, bootstrapped in pairs": lambda build: bootstrapped(build, runs=1, batch=8),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, build: Build) -> Case:
    return CASES[request.param](build)


def test_errors_are_those_of_encrypted_runs(case: Case) -> None:
    for bits in case.bits_off():
        assert abs(bits) < BITS, case.bits_off()


def test_a_wrong_deviation_is_noticed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    add_deviation, add_bootstrap = NoiseSource.add_deviation, NoiseSource.add_bootstrap
    for factor in (32.0, 1 / 32):

        def deviation(self: NoiseSource, values: Array, simulated: Array, by: float = factor) -> None:
            add_deviation(self, values, by * np.asarray(simulated))

        def bootstrap(self: NoiseSource, values: Array, errors: BootstrapErrors, by: float = factor) -> None:
            wrong = copy(errors)
            wrong.bias = by * errors.bias
            add_bootstrap(self, values, wrong)

        monkeypatch.setattr(NoiseSource, "add_deviation", deviation)
        monkeypatch.setattr(NoiseSource, "add_bootstrap", bootstrap)
        assert all(abs(bits) > BITS for bits in case.bits_off()), case.bits_off()


def test_a_simulation_is_the_program_and_the_same_every_time(case: Case) -> None:
    outputs, again = case.simulate(), case.simulate()
    expected = np.asarray([run_clear(case.program, sample) for sample in case.samples])
    assert np.abs(outputs.outputs - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())
    assert np.array_equal(outputs.noisy, again.noisy)
    assert not np.array_equal(outputs.noisy[0], outputs.noisy[1])
    assert outputs.sample_errors.shape == (len(case.samples),)
    assert outputs.mean_error < outputs.sample_errors.min() <= outputs.worst_error
    assert outputs.decided.all()
    assert "compared with the unencrypted program" in str(outputs)


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_stretches_of_one_circle_are_like_numbers_drawn_anew(kind: type[np.generic]) -> None:
    """All errors, their sums over slots, and sums of those over rows vary as if they were independent."""
    parameters = kw.Parameters.from_bits(11, [50, 40], [51], 40, insecure=True)
    model = ErrorModel(parameters, EvaluationKeys.outline(parameters, []))
    slots, rows, together = 1024, 2000, 20
    noise = NoiseSource(model, slots, 1, np.random.default_rng(6))
    values = np.zeros((rows, 2, slots), kind)
    noise.add_deviation(values, 3.0)
    assert not values[:, 0].any()
    errors = values[:, 1].view(np.float64).reshape(rows, slots, -1) / 3.0
    sums = errors.sum(axis=1) / np.sqrt(slots)
    totals = sums.reshape(-1, together, sums.shape[1]).sum(axis=1) / np.sqrt(together)
    for each, of_variance in ((errors, 0.02), (sums, 0.25), (totals, 0.5)):
        assert abs(each.mean()) < 4 * each.std() / np.sqrt(each[:, 0].size)
        assert each.var() == pytest.approx(1.0, abs=of_variance)
    # No row has a number of another one at the same slot, but for chance.
    assert np.abs(np.corrcoef(errors[:, :, 0]) - np.eye(rows)).mean() < 0.9 / np.sqrt(slots)


def test_samples_too_close_are_not_decided() -> None:
    outputs = np.asarray([[0.5, 0.1, 0.499], [0.5, 0.1, 0.2]])
    noisy = outputs + np.asarray([[[0.01, 0.0, 0.0]] * 2] * 2)
    assert runtime.Simulation(outputs, noisy).decided.tolist() == [False, True]
    assert runtime.Simulation(outputs[:, :1], noisy[..., :1]).decided.tolist() == [False, False]


def test_what_cannot_be_simulated_is_refused(build: Build) -> None:
    parameters = kw.Parameters.from_bits(11, [50] + 7 * [40], [51], 40, insecure=True)
    samples = np.random.default_rng(4).uniform(-1, 1, (4, 12))
    target = compiler.Target(slots=1024, levels=parameters.max_level)
    program = compiler.compile_program(perceptron(build), target, compiler.Fit(calibration=samples))
    plan = KeyFrontier(program, parameters).execution
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        runtime.simulate(program, plan, samples[:0])
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        runtime.simulate(program, plan, samples[:, :3])
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        runtime.simulate(program, plan, samples, repetitions=0)


def test_values_beyond_a_bootstrap_are_refused(build: Build) -> None:
    case = bootstrapped(build, runs=0)
    with pytest.raises(OutOfRangeError) as caught:
        runtime.simulate(case.program, case.plan, 1000 * case.samples)
    assert abs(caught.value.value) > 1
