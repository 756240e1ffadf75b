"""A batch whose values fill several ciphertexts: a bootstrap takes two of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.placement.costs import PAIR, CostTable
from keywright.errors import OperandError
from keywright.plan import STRATEGIES, CostModel, KeyFrontier, PlanExecution, predict_plan
from keywright.plan.workload import performed_bootstraps
from keywright.plan.workload.network import convert
from keywright.program.file.storage import digest
from keywright.program.instructions import Instruction
from keywright.runtime import run_clear, simulate
from keywright.runtime.encrypted.backend import EncryptedBackend
from numpy.typing import NDArray
from tests.ciphertexts import decrypt_result, encrypt_sample
from tests.compiler.placement.test_bootstrapped_network import residual_network, small_plan

Build = Callable[..., onnx.ModelProto]
ENTROPY = bytes(range(32))
BATCH = 8
MODEL = CostModel()


@dataclass(frozen=True)
class Side:
    """A batch that is bootstrapped in pairs, and the same program without pairs."""

    plan: kw.BootstrapperPlan
    program: compiler.Program
    samples: NDArray[np.float64]

    @property
    def apart(self) -> compiler.Program:
        return with_pairs(self.program, pairs=False)


def with_pairs(program: compiler.Program, *, pairs: bool) -> compiler.Program:
    options = tuple(replace(option, pairs=pairs) for option in program.operands.bootstraps)
    return replace(program, operands=replace(program.operands, bootstraps=options))


@pytest.fixture(scope="module")
def side(build: Build) -> Side:
    return compiled(build, BATCH)


def compiled(build: Build, batch: int) -> Side:
    plan = small_plan("pair")
    samples = np.random.default_rng(8).uniform(-1, 1, (12, 2, 8, 8))
    options = (compiler.Bootstrap.of(plan),)
    target = compiler.Target(slots=plan.slots, levels=plan.output_level, bootstraps=options, batch=batch)
    fit = compiler.Fit(calibration=samples)
    return Side(plan, compiler.compile_program(residual_network(build), target, fit), samples)


def test_neighbours_are_pairs(side: Side) -> None:
    steps, pairs = side.program.instructions, side.program.bootstrap_pairs
    layers = [
        [steps[place].opcode for place in range(layer.start, layer.stop)].count("bootstrap")
        for layer in side.program.layers
        if layer.kind == "bootstrap"
    ]
    assert max(layers) > 1
    assert len(pairs) == sum(count // 2 for count in layers)
    assert all(steps[second].opcode == "bootstrap" and second == first + 1 for first, second in pairs.items())
    assert side.apart.bootstrap_pairs == {}
    # The time of a layer is that of its pairs, and of a last one without another.
    costs = CostTable.default()
    option = side.program.operands.bootstraps[0]
    times = [costs.bootstrap_seconds(option, count) for count in (1, 2, 3)]
    assert times[1:] == pytest.approx([PAIR * times[0], (1 + PAIR) * times[0]])
    assert costs.bootstrap_seconds(replace(option, pairs=False), 3) == pytest.approx(3 * times[0])


def test_operands_of_other_scales_are_no_pair(side: Side) -> None:
    """The ciphertexts of values that are joined can have their own scales, and a pair is a sum."""
    steps = (
        Instruction("input", 0, (), 3),
        Instruction("input", 1, (), 3),
        Instruction("mul", 2, (1, 1), 2),
        Instruction("drop_level", 3, (0,), 2),
        *(Instruction("bootstrap", 4 + place, (source,), 7) for place, source in enumerate((3, 2, 2))),
    )
    program = SimpleNamespace(instructions=steps, operands=side.program.operands)
    assert vars(compiler.Program)["bootstrap_pairs"].func(program) == {5: 6}


@pytest.mark.parametrize("entry", [0, 1])
def test_ciphertexts_of_thin_clients_enter_alone(side: Side, entry: int) -> None:
    """By a bootstrap of the program, or by one that is not among its own (`Program.entered`)."""
    entering = [Instruction("bootstrap", place, (), 7, entry) for place in (0, 1)]
    others = [Instruction("bootstrap", 2 + place, (place,), 7) for place in (0, 1)]
    program = SimpleNamespace(instructions=(*entering, *others), operands=side.program.operands)
    assert vars(compiler.Program)["bootstrap_pairs"].func(program) == {2: 3}


def test_a_program_of_one_ciphertext_has_no_pairs(build: Build) -> None:
    alone = compiled(build, 1).program
    assert not alone.operands.bootstraps[0].pairs
    assert alone.bootstrap_pairs == {}


def test_files_keep_pairs(side: Side, tmp_path: Path) -> None:
    for program in (side.program, side.apart):
        compiler.save(program, tmp_path / "program.kwp")
        loaded = compiler.load(tmp_path / "program.kwp")
        assert loaded.operands.bootstraps == program.operands.bootstraps
        assert loaded.bootstrap_pairs == program.bootstrap_pairs
    assert digest(side.program) != digest(side.apart)


def test_a_pair_saves_the_stages_that_both_share(side: Side) -> None:
    parameters, plans = side.plan.parameters, [side.plan]
    together = convert(side.program, parameters, "together", plans)
    apart = convert(side.apart, parameters, "apart", plans)
    count = len(side.program.bootstrap_pairs)
    assert together.relinearizations == apart.relinearizations
    stages = Counter(stage for stage, *_ in side.plan.alone.key_groups if stage != "eval_mod")
    assert len(apart.groups) - len(together.groups) == count * (stages.total() - 1)
    # One conjugation at the input's level more.
    added = [key for key in side.plan.required_keys if key not in side.plan.alone.required_keys]
    assert [(key.kind, key.level) for key in added] == [("conjugation", side.plan.input_level)]
    performed = performed_bootstraps(side.program, plans)
    assert len(performed) + count == len(performed_bootstraps(side.apart, plans))
    assert {plan.values for plan in performed_bootstraps(side.apart, plans).values()} == {"real"}
    seconds = [predict_plan(STRATEGIES["kds"].plan(each, MODEL), MODEL).seconds for each in (together, apart)]
    assert seconds[0] < seconds[1]


def test_a_batch_in_pairs_is_the_batch_without(side: Side) -> None:
    """Both have the results of the program in the clear, and of the model."""
    secret = kw.SecretKey.generate(side.plan.parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    encryptor, decryptor = kw.Encryptor(generator.public_key(), ENTROPY), kw.Decryptor(secret)
    samples = side.samples[:BATCH]
    expected = run_clear(side.program, samples)
    assert np.array_equal(expected, run_clear(side.apart, samples))
    results, bounds = [], []
    for program in (side.program, side.apart):
        execution = KeyFrontier(program, side.plan.parameters, [side.plan]).execution
        outputs = backend(program, execution, generator).run(
            program, encrypt_sample(program, encryptor, samples)
        )
        results.append(decrypt_result(program, decryptor, outputs, BATCH))
        # The largest error is within two bits of the predicted one.
        bounds.append(4 * simulate(program, execution, samples, public=True).worst_error)
        assert np.abs(results[-1] - expected).max() <= bounds[-1]
    assert np.abs(results[0] - results[1]).max() <= sum(bounds)


def test_single_bootstraps_do_not_run_pairs(side: Side) -> None:
    secret = kw.SecretKey.generate(side.plan.parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    execution = KeyFrontier(side.apart, side.plan.parameters, [small_plan()]).execution
    inputs = encrypt_sample(side.program, kw.Encryptor(generator.public_key()), side.samples[:BATCH])
    with pytest.raises(OperandError, match="pairs"):
        backend(side.program, execution, generator).run(side.program, inputs)


def backend(
    program: compiler.Program, execution: PlanExecution, generator: kw.KeyGenerator
) -> EncryptedBackend:
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    evaluator = kw.Evaluator(execution.parameters, execution.follow(keys))
    bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
    return EncryptedBackend(evaluator, bootstrappers, plan=execution)
