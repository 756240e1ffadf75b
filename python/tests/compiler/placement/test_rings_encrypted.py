"""A network in three rings, with bootstraps, on ciphertexts in rings without security."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.ring import Ring
from keywright.errors import OperandError, WorkloadError
from keywright.plan import CostModel, KeyFrontier, predict_plan
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.ring.chain_sources import chain_of
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from keywright.runtime.simulation.simulate import simulate
from numpy.typing import NDArray
from tests.ciphertexts import decrypt_result, encrypt_sample_seeded
from tests.compiler.placement.test_bootstrapped_network import residual_network
from tests.serve.network import ENTRY

Build = Callable[..., onnx.ModelProto]
ENTROPY = bytes(range(32))
SUBRINGS = ((11, 6, None), (10, 4, None))


def ring_parameters() -> kw.Parameters:
    """Degree 2^12, with the two subrings."""
    widths = [50, 40, 40, 45, 45, 45, 45, 45] + 7 * [50] + [59, 60, 50] + 2 * [50]
    parameters = kw.Parameters.from_bits(12, widths, [50, 50, 50], 45, insecure=True)
    return parameters.with_subrings(SUBRINGS)


def ring_plan() -> kw.BootstrapperPlan:
    """A bootstrap of 512 slots that begins in the ring of degree 2^10."""
    return kw.BootstrapperPlan(ring_parameters(), **ENTRY, slots=512, input_log_n=10)


def rings_of(plan: kw.BootstrapperPlan) -> tuple[Ring, ...]:
    parameters, model = plan.parameters, CostModel()
    largest = CostTable.predicted(chain_of(parameters), model, [plan])
    smaller = [
        Ring(ring.log_n, ring.max_level, CostTable.predicted(chain_of(ring), model))
        for ring in parameters.subrings
    ]
    return Ring(12, plan.output_level, largest), *smaller


@dataclass(frozen=True)
class Party:
    """Owner and server of one compiled network."""

    plan: kw.BootstrapperPlan
    program: compiler.Program
    samples: NDArray[np.float64]
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    execution: PlanExecution


@pytest.fixture(scope="module")
def party(build: Build) -> Party:
    plan, model = ring_plan(), residual_network(build)
    samples = np.random.default_rng(8).uniform(-1, 1, (6, 2, 8, 8))
    option = dataclasses.replace(compiler.Bootstrap.of(plan), input_log_n=0)
    program = compiler.compile_program(
        model,
        compiler.Target(
            slots=plan.slots, levels=plan.output_level, bootstraps=(option,), rings=rings_of(plan)
        ),
        compiler.Fit(calibration=samples),
    )
    secret = kw.SecretKey.generate(plan.parameters, ENTROPY)
    execution = KeyFrontier(program, plan.parameters, [plan]).execution
    return Party(plan, program, samples, secret, kw.KeyGenerator(secret, ENTROPY), execution)


def backend_of(party: Party, keys: kw.EvaluationKeys) -> EncryptedBackend:
    evaluator = kw.Evaluator(party.plan.parameters, keys)
    bootstrappers = [kw.Bootstrapper(plan) for plan in party.execution.bootstrapper_plans]
    return EncryptedBackend(evaluator, bootstrappers, plan=party.execution)


def test_the_program_uses_all_rings(party: Party) -> None:
    steps = party.program.instructions
    assert {party.program.rings[step.result] for step in steps} == {0, 11, 10}
    switches = [step for step in steps if step.opcode == "switch_ring"]
    sources = {(party.program.rings[step.operands[0]], step.argument) for step in switches}
    assert any(source == 0 for source, _ in sources)
    assert [option.input_log_n for option in party.program.operands.bootstraps] == [10]
    assert {spec.log_n for spec in party.execution.key_specs} == {12, 11, 10}


def test_encrypted_results_are_the_clear_ones(party: Party, tmp_path: Path) -> None:
    """With all keys in memory, and with keys that are streamed from a file: the same ciphertexts."""
    program, execution = party.program, party.execution
    path = tmp_path / "keys.kw"
    party.generator.save_evaluation_keys(path, specs=execution.key_specs)
    decryptor = kw.Decryptor(party.secret)
    simulation = simulate(program, execution, party.samples[:2])
    resident = backend_of(party, execution.load_keys(path))
    streamed = backend_of(party, execution.load_keys(path, memory=execution.plan.stored_bytes // 2))
    for sample in party.samples[:2]:
        inputs = [each.expand() for each in encrypt_sample_seeded(program, decryptor, sample)]
        assert {ct.log_n for ct in inputs} == {program.input.log_n or 12}
        outputs = resident.run(program, inputs)
        assert [output.to_bytes() for output in streamed.run(program, inputs)] == [
            output.to_bytes() for output in outputs
        ]
        error = np.abs(decrypt_result(program, decryptor, outputs) - run_clear(program, sample)).max()
        assert error <= max(output.error_bound for output in outputs) * program.output.scale
        # Errors are predicted to within 2 bits.
        assert error <= 4 * simulation.worst_error


def test_plans_of_several_rings_are_stored(party: Party) -> None:
    plan = party.execution.plan
    assert [subring.workload.chain.log_n for subring in plan.subrings] == [11, 10]
    text = plan_file.to_json(plan)
    loaded = plan_file.from_json(text)
    assert loaded == plan
    assert loaded.stored_bytes == sum(spec.bytes for spec in party.execution.key_specs)
    again = PlanExecution(loaded, party.plan.parameters, party.program, [party.plan])
    assert again.key_specs == party.execution.key_specs
    total = predict_plan(plan, CostModel()).seconds
    alone = predict_plan(dataclasses.replace(plan, subrings=()), CostModel()).seconds
    assert total > alone + sum(predict_plan(each, CostModel()).seconds for each in plan.subrings) * 0.999


def test_other_plans_are_refused(party: Party) -> None:
    plan = party.execution.plan
    without = dataclasses.replace(plan, subrings=plan.subrings[:1])
    with pytest.raises(
        kw.errors.MismatchError, match="smaller rings of degrees", check=lambda error: error.code == "plan"
    ):
        PlanExecution(without, party.plan.parameters, party.program, [party.plan])
    nested = dataclasses.replace(plan.subrings[0], subrings=plan.subrings[1:])
    with pytest.raises(WorkloadError, match="smaller rings"):
        plan_file.from_json(plan_file.to_json(dataclasses.replace(plan, subrings=(nested,))))
    backwards = dataclasses.replace(plan, subrings=plan.subrings[::-1])
    with pytest.raises(WorkloadError, match="each must be smaller"):
        plan_file.from_json(plan_file.to_json(backwards))


def test_samples_of_another_ring_are_refused(party: Party) -> None:
    keys = party.generator.evaluation_keys(relinearization=False, specs=party.execution.key_specs)
    backend = backend_of(party, party.execution.follow(keys))
    program = party.program
    row = np.zeros(program.ring_slots(10))
    wrong = kw.Decryptor(party.secret).encrypt(row, len(row), 4, 10).expand()
    with pytest.raises(OperandError, match="slots in a ring of degree"):
        backend.run(program, [wrong])
