"""The same results under every strategy, with exactly its keys, in memory and streamed."""

from __future__ import annotations

import signal
import sys
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright import plan as planning
from keywright._core import memory_use, reset_memory_peak
from keywright.errors import WorkloadError
from keywright.plan.exact import optimizer as optimum
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution, keys_digest
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.memory.scratch import Scratch
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.search.frontier import descend, fastest_state
from keywright.plan.search.joint_planner import JointPlanner
from keywright.plan.workload.network import (
    convert,
    convert_bootstrap,
    open_bootstraps,
    planned_part,
    switch_bundles,
)
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from numpy.typing import NDArray
from onnx import helper
from tests.ciphertexts import decrypt_result, encrypt_sample
from tests.compiler.conftest import Array, build_model
from tests.engine.bootstrapping.owner import small_parameters, small_plan

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"
MODEL = planning.CostModel()
POLICIES = {
    "dynamic-all": ("signed-power-of-two", planning.KeyPolicy("dynamic", "all")),
    "maximum-all": ("lowmem", planning.KeyPolicy("maximum", "all")),
    "maximum-needed": ("ark-memory", planning.KeyPolicy("maximum", "needed")),
}
"""Shapes of keys that no strategy uses by default."""

NAMES = [*planning.STRATEGIES, *POLICIES, "optimal-small", "optimal-fast"]
"""Every strategy."""

AT_ONCE = {"kds", "maximum-all", "optimal-small"}
"""Strategies that a change runs with a larger network too: one of each origin."""


def make_plan(name: str, workload: planning.Workload) -> planning.KeyPlan:
    if name in POLICIES:
        strategy, policy = POLICIES[name]
        return planning.STRATEGIES[strategy].plan(workload, MODEL, policy)
    if name in planning.STRATEGIES:
        return planning.STRATEGIES[name].plan(workload, MODEL)
    # From the frontier: the integer program's decisions are not needed here.
    state = fastest_state(workload, MODEL, max_hops=4)
    points = sorted(descend(state), key=lambda point: point.stored_bytes)
    return state.plan("optimal", points[0] if name == "optimal-small" else points[len(points) // 2])


@dataclass(frozen=True)
class Side:
    """A network with an owner of keys, in a small ring without security."""

    parameters: kw.Parameters
    program: compiler.Program
    sample: NDArray[np.float64]
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    decryptor: kw.Decryptor
    inputs: list[kw.Ciphertext]
    clear: NDArray[np.float64]

    @classmethod
    def make(cls, model: bytes, sample: NDArray[np.float64], log_n: int, levels: int) -> Side:
        bits = [55, *[45] * levels]
        parameters = kw.Parameters.from_bits(log_n, bits, [50, 50], 45, insecure=True)
        program = compiler.compile_program(model, compiler.Target(slots=parameters.max_slots, levels=levels))
        secret = kw.SecretKey.generate(parameters, bytes(32))
        generator = kw.KeyGenerator(secret, bytes(32))
        encryptor = kw.Encryptor(generator.public_key(), bytes(32))
        inputs = encrypt_sample(program, encryptor, sample)
        clear = run_clear(program, sample)
        return cls(parameters, program, sample, secret, generator, kw.Decryptor(secret), inputs, clear)

    def execution(self, name: str) -> PlanExecution:
        planned = make_plan(name, convert(self.program, self.parameters, "network"))
        planned.check()
        return PlanExecution(planned, self.parameters, self.program)

    def run(self, execution: PlanExecution, keys: kw.EvaluationKeys) -> NDArray[np.float64]:
        """Return the decrypted result, which must be within the ciphertexts' own bound of the clear one."""
        evaluator = kw.Evaluator(self.parameters, execution.follow(keys))
        outputs = EncryptedBackend(evaluator, plan=execution).run(self.program, self.inputs)
        result = decrypt_result(self.program, self.decryptor, outputs)
        error = np.abs(result - self.clear).max()
        assert error <= max(output.error_bound for output in outputs) * self.program.output.scale
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
    specs = execution.key_specs
    assert sum(spec.bytes for spec in specs) == execution.plan.stored_bytes
    side.run(execution, side.generator.evaluation_keys(relinearization=False, specs=specs))


@pytest.mark.parametrize("name", NAMES)
def test_transforms_hold_what_is_predicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of hops, and of keys that do not fit the diagonals, are held until the sums of baby steps."""
    side, threads = digits(), kw.threads()
    execution = side.execution(name)
    keys = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    backend = EncryptedBackend(
        kw.Evaluator(side.parameters, execution.follow(keys)),
        plan=execution,
    )
    backend.prepare(side.program)
    held: list[int] = []
    linear_transform = backend.linear_transform

    def measured(*arguments: Any) -> Any:
        reset_memory_peak()
        before = memory_use()["live"]
        result = linear_transform(*arguments)
        held.append(memory_use()["peak"] - before)
        return result

    monkeypatch.setattr(backend, "linear_transform", measured)
    try:
        kw.set_threads(1)
        backend.run(side.program, side.inputs)
    finally:
        kw.set_threads(threads)
    transforms = [step for step in side.program.instructions if step.opcode == "linear_transform"]
    assert transforms
    for step, taken in zip(transforms, held, strict=True):
        predicted = Scratch(execution).instruction(side.program, step, "encoded")
        assert 0.95 < predicted / taken < 1.05, (name, step)


@pytest.mark.parametrize("name", NAMES)
def test_diagonals_have_the_primes_that_most_keys_of_their_transform_remove(name: str) -> None:
    side = digits()
    execution = side.execution(name)
    groups = zip(execution.plan.workload.groups, execution.plan.hops, strict=True)
    trees = {(group.level, group.targets): tree for group, tree in groups}
    for bundle in switch_bundles(side.program, execution.plan.workload, (), 0):
        step = side.program.instructions[bundle.instruction]
        if step.opcode == "linear_transform":
            level, transform = step.level + 1, side.program.operands.transforms[step.argument]
            hops = [hop for group in bundle.groups for hop in trees[group.level, group.targets]]
            uses = [MODEL.switch(hop.key.shape, level) for hop in hops]
            removed = Counter(use.removed for use in uses if use is not None)
            assert removed[tuple(execution.special(level, transform))] == max(removed.values())


@pytest.mark.parametrize("slower", [1.2, 1.5])
def test_a_plan_of_the_integer_program(slower: float) -> None:
    """Two dense layers with squares between: keys and hops chosen by HiGHS, and its proof."""
    rng = np.random.default_rng(8)
    constants: dict[str, Array] = {n: rng.uniform(-0.5, 0.5, (8, 8)).astype(np.float32) for n in "ab"}
    nodes = [("MatMul", ["x", "a"], "h"), ("Mul", ["h", "h"], "s"), ("MatMul", ["s", "b"], "y")]
    nodes_of_model = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in nodes]
    model = build_model(nodes_of_model, (8,), constants).SerializeToString()
    side = Side.make(model, rng.uniform(-1, 1, 8), 11, 3)
    workload = convert(side.program, side.parameters, "network")
    assert {group.form for group in workload.groups} == {"baby", "giant"}
    every = planning.STRATEGIES["kds"].plan(workload, MODEL)
    seconds = slower * predict_plan(every, MODEL).seconds
    best = planning.Planner(workload, MODEL, max_hops=2).best(planning.Budget(seconds=seconds))
    rest = predict_plan(best, MODEL).seconds - best.seconds(MODEL)
    exact = optimum.Optimizer(workload, MODEL, hops=2).solve(planning.Budget(seconds=seconds - rest), 60.0)
    assert best.gap == exact.gap == 0
    assert best.stored_bytes == exact.stored_bytes < every.stored_bytes
    for plan in (best, exact):
        assert plan.max_hops == 2
        execution = PlanExecution(plan, side.parameters, side.program)
        specs = execution.key_specs
        assert sum(spec.bytes for spec in specs) == plan.stored_bytes
        side.run(execution, side.generator.evaluation_keys(relinearization=False, specs=specs))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take minutes; `solve` stops when HiGHS calls back."""
    monkeypatch.setattr(optimum, "NODE_WORK", 10**15)
    side = digits()
    workload = convert(side.program, side.parameters, "network")
    optimizer = optimum.Optimizer(workload, MODEL, hops=2)
    seconds = 1.3 * planning.STRATEGIES["kds"].plan(workload, MODEL).seconds(MODEL)
    timer = threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        optimizer.solve(planning.Budget(seconds=seconds), 1e6)
    timer.join()


def test_every_key_of_a_plan_is_needed() -> None:
    """Any one key of another owner, disguised as one of this owner, makes the result wrong."""
    side = digits()
    execution = side.execution("optimal-small")
    other = kw.KeyGenerator(kw.SecretKey.generate(side.parameters, bytes([1] * 32)), bytes(32))
    specs = execution.key_specs
    keys = [side.generator.switching_key(spec) for spec in specs]
    for wrong, spec in enumerate(specs):
        mixed = kw.EvaluationKeys(side.parameters)
        for place, key in enumerate(keys):
            mixed.add(passed_for(key, other.switching_key(spec)) if place == wrong else key)
        with pytest.raises((AssertionError, kw.errors.NoiseError)):
            side.run(execution, mixed)


def passed_for(own: kw.keys.SwitchingKey, other: kw.keys.SwitchingKey) -> kw.keys.SwitchingKey:
    """Return a key of another owner with this owner's identity in its bytes: see docs/reference/format.md."""
    frame, identity = 44, 16
    forged = bytearray(other.to_bytes())
    forged[frame : frame + identity] = own.to_bytes()[frame : frame + identity]
    end, last = frame + int.from_bytes(forged[32:36], "little"), len(forged) - 4
    head = zlib.crc32(forged[:end])
    forged[end : end + 4] = head.to_bytes(4, "little")
    forged[last:] = zlib.crc32(forged[end + 4 : last], head).to_bytes(4, "little")
    return kw.keys.SwitchingKey.from_bytes(bytes(forged), own.parameters)


def test_a_hop_with_another_key_is_refused() -> None:
    plan = digits().execution("power-of-two").plan
    tree = next(tree for tree in plan.hops if len({hop.key for hop in tree}) > 1)
    first = tree[0]
    key = next(hop.key for hop in tree if hop.key != first.key)
    changed = tuple((replace(first, key=key), *tree[1:]) if other is tree else other for other in plan.hops)
    with pytest.raises(WorkloadError, match="does not lead to"):
        replace(plan, hops=changed).check()


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.full) for name in NAMES]
)
def test_mnist_under_every_strategy(name: str) -> None:
    side = mnist()
    execution = side.execution(name)
    side.run(execution, side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs))


@cache
def bootstrapping(apart: bool, values: str = "complex") -> tuple[kw.BootstrapperPlan, kw.SecretKey]:
    plan = small_plan(small_parameters(), stages_apart=apart, values=values)
    return plan, kw.SecretKey.generate(plan.parameters, bytes(32))


@pytest.mark.parametrize(
    ("name", "apart"), [*((name, True) for name in NAMES), ("kds", False), ("power-of-two", False)]
)
def test_a_bootstrap_under_every_strategy(name: str, apart: bool) -> None:
    plan, secret = bootstrapping(apart)
    planned = make_plan(name, convert_bootstrap(plan, "bootstrap"))
    execution = PlanExecution(planned, plan.parameters, bootstraps=[plan])
    generator = kw.KeyGenerator(secret, bytes(32))
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    evaluator = kw.Evaluator(plan.parameters, execution.follow(keys))
    parts = np.random.default_rng(5).uniform(-1, 1, (2, plan.slots))
    values = parts[0] + 1j * parts[1]
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    fresh = encryptor.encrypt(values, slots=plan.slots, level=plan.input_level)
    predicted = plan.predicted_bits()
    assert predicted is not None
    # Diagonals for the plan's primes, and for those of the bootstrapping's own keys.
    for encoded in (*execution.bootstrapper_plans, plan):
        result = kw.Bootstrapper(encoded).bootstrap(evaluator, fresh)
        error = np.abs(kw.Decryptor(secret).decrypt_complex(result) - values).max()
        assert error <= result.error_bound < 0.1
        # Precision decreases by at most the plan's noise bits.
        mean = np.abs(kw.Decryptor(secret).decrypt_complex(result) - values).mean()
        assert -np.log2(mean) >= predicted[0] - planned.noise_bits(MODEL) - 1
        assert result.level == plan.output_level


def bootstrap_as_planned(planned: planning.KeyPlan, plan: kw.BootstrapperPlan, secret: kw.SecretKey) -> None:
    """Check that keys have exactly the planned bytes, and that the decrypted result is within its bound."""
    planned = plan_file.from_json(plan_file.to_json(planned))
    planned.check()
    execution = PlanExecution(planned, plan.parameters, bootstraps=[plan])
    specs = execution.key_specs
    assert sum(spec.bytes for spec in specs) == planned.stored_bytes
    assert len(specs) == len(planned.keys) + planned.workload.ephemeral_keys
    generator = kw.KeyGenerator(secret, bytes(32))
    keys = execution.follow(generator.evaluation_keys(relinearization=False, specs=specs))
    (bootstrap,) = execution.bootstrapper_plans
    assert (tuple(bootstrap.factors),) == planned.workload.common.bootstraps
    parts = np.random.default_rng(9).uniform(-1, 1, (2, plan.slots))
    values = parts[0] + 1j * parts[1]
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    fresh = encryptor.encrypt(values, slots=plan.slots, level=plan.input_level)
    result = kw.Bootstrapper(bootstrap).bootstrap(kw.Evaluator(plan.parameters, keys), fresh)
    assert np.abs(kw.Decryptor(secret).decrypt_complex(result) - values).max() <= result.error_bound < 0.1


@pytest.mark.parametrize("apart", [True, pytest.param(False, marks=pytest.mark.full)])
def test_factors_are_planned_with_their_keys_and_evaluated_so(apart: bool) -> None:
    plan, secret = bootstrapping(apart)
    closed = convert_bootstrap(plan, "bootstrap")
    variants = open_bootstraps([plan], "bootstrap")
    assert planned_part(variants[0].published) == planned_part(closed)
    as_it_is = planning.Planner(closed, MODEL, max_hops=1)
    every = predict_plan(planning.STRATEGIES["all-required"].plan(closed, MODEL), MODEL).seconds
    fewer = []
    opened = JointPlanner([closed, *variants], MODEL, max_hops=1)
    after = opened.best(planning.Budget(seconds=every), 0.0)
    for share in (0.9, 1.2):
        budget = planning.Budget(seconds=share * every)
        before, after = as_it_is.best(budget, 0.0), opened.best(budget, 0.0)
        assert predict_plan(after, MODEL).seconds <= share * every * (1 + 1e-9)
        assert after.stored_bytes <= before.stored_bytes
        fewer.append(after.stored_bytes < 0.9 * before.stored_bytes)
        bootstrap_as_planned(after, plan, secret)
    assert any(fewer)
    # The chosen way differs from the bootstrapping's own, and no other way is mistaken for it.
    assert after.workload.common.bootstraps != (tuple(plan.factors),)
    factors = ((*after.workload.common.bootstraps[0][:-1], (1, 7)),)
    wrong = replace(after.workload, common=replace(after.workload.common, bootstraps=factors))
    with pytest.raises(
        kw.errors.MismatchError, match="other bootstraps", check=lambda error: error.code == "plan"
    ):
        PlanExecution(replace(after, workload=wrong), plan.parameters, bootstraps=[plan])
    with pytest.raises(
        kw.errors.MismatchError,
        match="1 bootstraps, but there are 2",
        check=lambda error: error.code == "plan",
    ):
        PlanExecution(after, plan.parameters, bootstraps=[plan, plan])


def test_a_plan_of_a_bootstrap_is_for_no_other_one() -> None:
    plan, _ = bootstrapping(apart=True)
    planned = make_plan("kds", convert_bootstrap(plan, "bootstrap"))
    other = small_plan(plan.parameters, arcsine_degree=5)
    with pytest.raises(
        kw.errors.MismatchError, match="this one is", check=lambda error: error.code == "plan"
    ) as error:
        PlanExecution(planned, plan.parameters, bootstraps=[other])
    assert error.value.found != error.value.expected


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
        with pytest.raises(WorkloadError, match=reason):
            plan_file.from_json(text[:place] + new + text[place + len(old) :])
    with pytest.raises(WorkloadError, match="not JSON"):
        plan_file.from_json(text[: len(text) // 2])


def test_a_workload_that_was_made_by_hand_is_planned_for_parameters() -> None:
    """Digits of two primes and two special ones, all of 45 bits: whole widths do not say which product is
    larger."""
    parameters = kw.Parameters.from_bits(11, [45] * 4, [45, 45], 40, insecure=True)
    group = planning.make_group(planning.AutomorphismGroup(11), "window", 2, [1, 2, 3, 5])
    by_hand = planning.Workload("sums", planning.Chain(11, (45,) * 4, (45, 45), 400), (group,))
    planned = planning.STRATEGIES["power-of-two"].plan(by_hand, MODEL)
    with pytest.raises(
        kw.errors.MismatchError,
        match="plan the program for these parameters",
        check=lambda error: error.code == "plan",
    ):
        PlanExecution(planned, parameters)
    workload = by_hand.on_parameters(parameters)
    assert workload.chain == chain_of(parameters)
    for name in ("power-of-two", "kds"):
        execution = PlanExecution(planning.STRATEGIES[name].plan(workload, MODEL), parameters)
        specs = execution.key_specs
        assert sum(spec.bytes for spec in specs) == execution.plan.stored_bytes
        secret = kw.SecretKey.generate(parameters, bytes(32))
        generator = kw.KeyGenerator(secret, bytes(32))
        keys = execution.follow(generator.evaluation_keys(relinearization=False, specs=specs))
        values = np.random.default_rng(1).uniform(-1, 1, parameters.max_slots)
        fresh = kw.Encryptor(generator.public_key(), bytes(32)).encrypt(values, level=2)
        evaluator, decryptor = kw.Evaluator(parameters, keys), kw.Decryptor(secret)
        for step, rotated in zip((1, 2, 3, 5), evaluator.rotate_hoisted(fresh, [1, 2, 3, 5]), strict=True):
            assert np.abs(decryptor.decrypt(rotated) - np.roll(values, -step)).max() <= rotated.error_bound
    for chain in (
        planning.Chain(12, (45,) * 4, (45, 45)),
        planning.Chain(11, (45,) * 3, (45, 45)),
        planning.Chain(11, (45, 45, 45, 46), (45, 45)),
    ):
        low = planning.make_group(planning.AutomorphismGroup(chain.log_n), "window", 2, [1])
        with pytest.raises(WorkloadError, match="the parameters have"):
            planning.Workload("sums", chain, (low,)).on_parameters(parameters)


def test_plan_and_keys_and_program_have_to_match() -> None:
    side = digits()
    execution, other = side.execution("kds"), side.execution("power-of-two")
    keys = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    with pytest.raises(
        kw.errors.MismatchError, match="digest", check=lambda error: error.code == "plan"
    ) as error:
        other.follow(keys)
    assert error.value.found == keys_digest(keys) != error.value.expected
    fewer = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs[1:])
    with pytest.raises(kw.errors.MismatchError, match="digest", check=lambda error: error.code == "plan"):
        execution.follow(fewer)
    elsewhere = kw.Parameters.from_bits(11, [55, *[44] * 5], [50, 50], 44, insecure=True)
    with pytest.raises(kw.errors.MismatchError, match="primes", check=lambda error: error.code == "plan"):
        PlanExecution(execution.plan, elsewhere, side.program)
    shorter = compiler.compile_program(
        (files("keywright") / "data" / "digits.onnx").read_bytes(), compiler.Target(slots=128, levels=5)
    )
    with pytest.raises(
        kw.errors.MismatchError, match="plan it again", check=lambda error: error.code == "plan"
    ):
        PlanExecution(execution.plan, side.parameters, shorter)
    # What the plan does not contain is refused, and not done differently.
    evaluator = kw.Evaluator(side.parameters, execution.follow(keys))
    with pytest.raises(kw.errors.MismatchError, match="no route", check=lambda error: error.code == "plan"):
        evaluator.rotate(side.inputs[0], 777)
