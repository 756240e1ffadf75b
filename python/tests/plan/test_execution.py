"""The same results under every strategy, with exactly its keys; keys in memory and streamed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import nn
from keywright import plan as planning
from keywright.nn.checking import run_clear
from keywright.nn.encrypted import EncryptedBackend, decrypt_result, encrypt_sample
from keywright.plan import plan_file
from keywright.plan.converters.network import convert, convert_bootstrap
from keywright.plan.execution import PlanExecution, keys_digest
from numpy.typing import NDArray
from tests.test_bootstrapping import small_parameters, small_plan

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"
MODEL = planning.CostModel()
NAMES = [*planning.STRATEGIES, "kds-top", "optimal-small", "optimal-fast"]
"""Every strategy; `kds-top` has levels as published and digits by level."""


def make_plan(name: str, program: planning.Program) -> planning.KeyPlan:
    if name == "kds-top":
        policy = planning.KeyPolicy("dynamic", "all")
        return planning.STRATEGIES["signed-power-of-two"].plan(program, MODEL, policy)
    if name in planning.STRATEGIES:
        return planning.STRATEGIES[name].plan(program, MODEL)
    # From the frontier: what an integer program decides is not needed here.
    search = planning.FrontierSearch(program, MODEL, max_hops=4)
    points = sorted(search.descend(), key=lambda point: point.stored_bytes)
    return search.plan("optimal", points[0] if name == "optimal-small" else points[len(points) // 2])


@dataclass(frozen=True)
class Side:
    """A network with an owner of keys, in a small ring without security."""

    parameters: kw.Parameters
    program: nn.Program
    sample: NDArray[np.float64]
    generator: kw.KeyGenerator
    decryptor: kw.Decryptor
    inputs: list[kw.Ciphertext]
    clear: NDArray[np.float64]

    @classmethod
    def make(cls, model: bytes, sample: NDArray[np.float64], log_n: int, levels: int) -> Side:
        bits = [55, *[45] * levels]
        parameters = kw.Parameters.from_bits(log_n, bits, [50, 50], 45, insecure=True)
        program = nn.compile(model, slots=parameters.max_slots, levels=levels)
        secret = kw.SecretKey.generate(parameters, bytes(32))
        generator = kw.KeyGenerator(secret, bytes(32))
        encryptor = kw.Encryptor(generator.public_key(), bytes(32))
        inputs = encrypt_sample(program, encryptor, sample)
        clear = run_clear(program, sample)
        return cls(parameters, program, sample, generator, kw.Decryptor(secret), inputs, clear)

    def execution(self, name: str) -> PlanExecution:
        planned = make_plan(name, convert(self.program, self.parameters, "network"))
        planned.check()
        return PlanExecution(planned, self.parameters, self.program)

    def run(self, execution: PlanExecution, keys: kw.EvaluationKeys) -> NDArray[np.float64]:
        """The decrypted result, which is within the ciphertexts' own bound of the clear one."""
        evaluator = kw.Evaluator(self.parameters, execution.follow(keys))
        outputs = EncryptedBackend(evaluator, plan=execution).run(self.program, self.inputs)
        result = decrypt_result(self.program, self.decryptor, outputs)
        error = np.abs(result - self.clear).max()
        assert error <= max(output.error_bound for output in outputs) * self.program.output_scale
        # The bound is for the worst case; scales of 45 bits leave more than this in practice.
        assert error <= 2**-16 * np.abs(self.clear).max()
        return result


@cache
def digits() -> Side:
    data = files("keywright") / "data"
    with (data / "digits_test.npz").open("rb") as file, np.load(file) as arrays:
        image = arrays["images"][0].astype(np.float64)
    return Side.make((data / "digits.onnx").read_bytes(), image, 11, 5)


@cache
def mnist() -> Side:
    """The network of the examples for MNIST, on a made-up image."""
    image = np.random.default_rng(7).uniform(0, 1, (1, 28, 28))
    return Side.make((EXAMPLES / "lenet_mnist.onnx").read_bytes(), image, 12, 7)


@pytest.mark.parametrize("name", NAMES)
def test_digits_under_every_strategy(name: str) -> None:
    side = digits()
    execution = side.execution(name)
    specs = execution.key_specs()
    assert sum(spec.bytes for spec in specs) == execution.plan.stored_bytes
    side.run(execution, side.generator.evaluation_keys(relinearization=False, specs=specs))


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
@pytest.mark.parametrize("name", NAMES)
def test_mnist_under_every_strategy(name: str) -> None:
    side = mnist()
    execution = side.execution(name)
    side.run(execution, side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs()))


@cache
def bootstrapping(apart: bool) -> tuple[kw.BootstrapperPlan, kw.SecretKey]:
    plan = small_plan(small_parameters(), stages_apart=apart)
    return plan, kw.SecretKey.generate(plan.parameters, bytes(32))


@pytest.mark.parametrize(
    ("name", "apart"), [*((name, True) for name in NAMES), ("kds", False), ("power-of-two", False)]
)
def test_a_bootstrap_under_every_strategy(name: str, apart: bool) -> None:
    plan, secret = bootstrapping(apart)
    planned = make_plan(name, convert_bootstrap(plan, "bootstrap"))
    execution = PlanExecution(planned, plan.parameters, bootstraps=[plan])
    generator = kw.KeyGenerator(secret, bytes(32))
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs())
    evaluator = kw.Evaluator(plan.parameters, execution.follow(keys))
    parts = np.random.default_rng(5).uniform(-1, 1, (2, plan.slots))
    values = parts[0] + 1j * parts[1]
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    fresh = encryptor.encrypt(values, slots=plan.slots, level=plan.input_level)
    # Diagonals for the plan's primes, and for those of the bootstrapping's own keys.
    for encoded in (*execution.bootstrapper_plans, plan):
        result = kw.Bootstrapper(encoded).bootstrap(evaluator, fresh)
        error = np.abs(kw.Decryptor(secret).decrypt_complex(result) - values).max()
        assert error <= result.error_bound < 0.1
        assert result.level == plan.output_level


def test_streamed_keys_give_the_same_within_their_memory(tmp_path: Path) -> None:
    side = digits()
    execution = side.execution("kds")
    specs = execution.key_specs()
    side.generator.save_evaluation_keys(tmp_path / "keys.kw", specs)
    whole = kw.EvaluationKeys.load(tmp_path / "keys.kw", side.parameters)
    expected = side.run(execution, whole)
    assert whole.streaming is None
    steps = execution.key_steps()
    working_set = max(sum(spec.bytes + 32 for spec in step) for step in steps)
    assert working_set < whole.bytes
    peaks = []
    for memory in (working_set, (working_set + whole.bytes) // 2, whole.bytes):
        keys = kw.EvaluationKeys.stream(tmp_path / "keys.kw", side.parameters, memory, steps)
        assert (keys.bytes, len(keys)) == (whole.bytes, len(specs))
        for _ in range(2):
            # Nothing depends on where a key was.
            assert np.array_equal(side.run(execution, keys), expected)
        seen = keys.streaming
        assert seen is not None
        assert seen["peak_bytes"] <= memory
        assert seen["loads"] >= len(specs)
        peaks.append(seen["loads"])
    assert all(less >= more for less, more in pairwise(peaks))
    assert peaks[-1] == len(specs)
    keys = kw.EvaluationKeys.stream(tmp_path / "keys.kw", side.parameters, working_set // 2, steps)
    with pytest.raises(kw.KeyMemoryError, match="allow at least") as error:
        side.run(execution, keys)
    assert error.value.needed > error.value.budget == working_set // 2
    with pytest.raises(ValueError, match="none was given"):
        PlanExecution(execution.plan, side.parameters).key_steps()


def test_a_damaged_key_is_named_when_it_is_used(tmp_path: Path) -> None:
    side = digits()
    execution = side.execution("kds")
    path = tmp_path / "keys.kw"
    side.generator.save_evaluation_keys(path, execution.key_specs())
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged)
    keys = kw.EvaluationKeys.stream(path, side.parameters, 1 << 30, execution.key_steps())
    with pytest.raises(kw.KeySourceError, match="checksum"):
        side.run(execution, keys)


def test_plans_survive_their_file_and_bad_ones_do_not() -> None:
    side = digits()
    for name in ("kds", "optimal-small", "power-of-two"):
        planned = side.execution(name).plan
        text = plan_file.to_json(planned)
        back = plan_file.from_json(text)
        assert back == planned
        assert plan_file.to_json(back) == text
    planned = side.execution("optimal-small").plan
    text = plan_file.to_json(planned)
    for old, new, reason in (
        ('"format":"keywright-plan-1"', '"format":"other"', "not a plan"),
        ('"keys":[{', '"keys":[7,{', "not a plan"),
        ('"level":', '"level":99', "not in"),
        ('"hops":[[', '"hops":[[],[', "groups"),
        ('"special":', '"special":9', "special primes"),
    ):
        assert old in text
        place = text.rindex(old) if old == '"level":' else text.index(old)
        with pytest.raises(planning.ProgramError, match=reason):
            plan_file.from_json(text[:place] + new + text[place + len(old) :])
    with pytest.raises(planning.ProgramError, match="not JSON"):
        plan_file.from_json(text[: len(text) // 2])


def test_plan_and_keys_and_program_have_to_match() -> None:
    side = digits()
    execution, other = side.execution("kds"), side.execution("power-of-two")
    keys = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs())
    with pytest.raises(kw.PlanMismatchError, match="digest") as error:
        other.follow(keys)
    assert error.value.found == keys_digest(keys) != error.value.expected
    fewer = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs()[1:])
    with pytest.raises(kw.PlanMismatchError, match="digest"):
        execution.follow(fewer)
    elsewhere = kw.Parameters.from_bits(11, [55, *[44] * 5], [50, 50], 44, insecure=True)
    with pytest.raises(kw.PlanMismatchError, match="primes"):
        PlanExecution(execution.plan, elsewhere, side.program)
    shorter = nn.compile((files("keywright") / "data" / "digits.onnx").read_bytes(), slots=128, levels=5)
    with pytest.raises(kw.PlanMismatchError, match="plan it again"):
        PlanExecution(execution.plan, side.parameters, shorter)
    # What the plan does not know of is not done in some other way.
    evaluator = kw.Evaluator(side.parameters, execution.follow(keys))
    with pytest.raises(kw.PlanMismatchError, match="no route"):
        evaluator.rotate(side.inputs[0], 777)
