"""A network deeper than its levels, bootstrapped on ciphertexts in a ring of degree 2^11 without security."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler, runtime
from keywright import plan as planning
from keywright.errors import OutOfRangeError, ParameterError
from keywright.plan import KeyFrontier
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.search.frontier import descend, fastest_state
from keywright.plan.workload.network import convert, open_bootstraps, planned_part
from keywright.program.operands.bootstraps import LARGEST
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from numpy.typing import NDArray
from onnx import helper
from tests.bootstraps import DEGREE_62
from tests.ciphertexts import decrypt_result, encrypt_sample

Build = Callable[..., onnx.ModelProto]
ENTROPY = bytes(range(32))
node = helper.make_node


def residual_network(build: Build) -> onnx.ModelProto:
    """conv, quadratic, a block with a shortcut, one of stride 2 with a convolution beside it, dense."""
    rng = np.random.default_rng(7)
    constants = {"dense": rng.normal(size=(8, 3)).astype(np.float32)}

    def convolution(source: str, name: str, shape: tuple[int, ...], stride: int = 1) -> onnx.NodeProto:
        constants[f"{name}.w"] = (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        pads = [shape[2] // 2] * 4
        return node("Conv", [source, f"{name}.w"], [name], name, strides=[stride] * 2, pads=pads)

    def quadratic(source: str, name: str, channels: int) -> list[onnx.NodeProto]:
        for power, low, high in ((0, -0.1, 0.1), (1, 0.4, 0.6), (2, 0.1, 0.3)):
            values = rng.uniform(low, high, (1, channels, 1, 1))
            constants[f"{name}.c{power}"] = values.astype(np.float32)
        return [
            node("Mul", [source, source], [f"{name}.square"]),
            node("Mul", [f"{name}.square", f"{name}.c2"], [f"{name}.2"]),
            node("Mul", [source, f"{name}.c1"], [f"{name}.1"]),
            node("Add", [f"{name}.2", f"{name}.1"], [f"{name}.sum"]),
            node("Add", [f"{name}.sum", f"{name}.c0"], [name]),
        ]

    nodes = [
        convolution("x", "stem", (4, 2, 3, 3)),
        *quadratic("stem", "a", 4),
        convolution("a", "first", (4, 4, 3, 3)),
        *quadratic("first", "b", 4),
        convolution("b", "second", (4, 4, 3, 3)),
        node("Add", ["second", "a"], ["s"]),
        *quadratic("s", "c", 4),
        convolution("c", "third", (8, 4, 3, 3), stride=2),
        *quadratic("third", "d", 8),
        convolution("d", "fourth", (8, 8, 3, 3)),
        convolution("c", "shortcut", (8, 4, 1, 1), stride=2),
        node("Add", ["fourth", "shortcut"], ["t"]),
        *quadratic("t", "e", 8),
        node("GlobalAveragePool", ["e"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("MatMul", ["f", "dense"], ["y"], "scores"),
    ]
    return build(nodes, (2, 8, 8), constants)


@dataclass(frozen=True)
class Party:
    """Owner and server of one compiled network."""

    plan: kw.BootstrapperPlan
    model: onnx.ModelProto
    program: compiler.Program
    samples: NDArray[np.float64]
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    execution: PlanExecution
    keys: kw.EvaluationKeys


def small_plan(values: str = "real") -> kw.BootstrapperPlan:
    widths = [50, 40, 40, 45, 45, 45, 45, 45] + 7 * [50] + [59, 60, 50] + 2 * [50]
    parameters = kw.Parameters.from_bits(11, widths, [50, 50, 50], 45, insecure=True)
    return kw.BootstrapperPlan(
        parameters,
        **DEGREE_62,
        values=values,
    )


@pytest.fixture(scope="module")
def party(build: Build) -> Party:
    plan, model = small_plan(), residual_network(build)
    samples = np.random.default_rng(8).uniform(-1, 1, (12, 2, 8, 8))
    program = compiler.compile_program(
        model,
        compiler.Target(
            slots=plan.slots, levels=plan.output_level, bootstraps=(compiler.Bootstrap.of(plan),)
        ),
        compiler.Fit(calibration=samples),
    )
    secret = kw.SecretKey.generate(plan.parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    execution = KeyFrontier(program, plan.parameters, [plan]).execution
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    return Party(plan, model, program, samples, secret, generator, execution, execution.follow(keys))


def test_bootstraps_are_where_levels_end(party: Party) -> None:
    program, plan = party.program, party.plan
    steps = [step for step in program.instructions if step.opcode == "bootstrap"]
    assert program.depth == 11
    assert len(steps) >= 2
    assert all(step.level == plan.output_level for step in steps)
    assert max(step.level for step in program.instructions) <= plan.output_level
    assert min(step.level for step in program.instructions) == program.output.level == plan.input_level
    layers = [layer for layer in program.layers if layer.kind == "bootstrap"]
    assert [program.instructions[layer.stop - 1].opcode for layer in layers] == ["bootstrap"] * len(layers)
    assert all("read at level" in layer.name for layer in layers)


def test_a_plan_that_files_cannot_name_is_not_saved(party: Party, tmp_path: Path) -> None:
    model = kw.Model("own", party.program, party.plan.parameters)
    with pytest.raises(ParameterError, match=r"a plan of your own.*parameters= one of N16"):
        model.save(tmp_path / "own")
    assert not list(tmp_path.iterdir())


def test_the_clear_program_is_the_model(party: Party) -> None:
    report = compiler.check(party.program, party.samples, party.model)
    # Sums of onnxruntime in single precision; the values are below 8.
    assert report.max_abs_error < 2**-15
    assert report.agreement == 1.0


def test_values_at_bootstraps_declare_what_the_program_states(party: Party) -> None:
    """Bounds that follow from operations alone are larger; a bootstrap of these would be refused."""
    declared: list[float] = []

    class Watched:
        def __init__(self, plan: kw.BootstrapperPlan) -> None:
            self.plan, self._own = plan, kw.Bootstrapper(plan)

        def bootstrap(self, evaluator: kw.Evaluator, ciphertext: kw.Ciphertext) -> kw.Ciphertext:
            declared.append(ciphertext.magnitude_bound)
            return self._own.bootstrap(evaluator, ciphertext)

    watched: Any = [Watched(plan) for plan in party.execution.bootstrapper_plans]
    evaluator = kw.Evaluator(party.plan.parameters, party.keys)
    backend = EncryptedBackend(evaluator, watched, plan=party.execution)
    encryptor = kw.Encryptor(party.generator.public_key(), ENTROPY)
    backend.run(party.program, encrypt_sample(party.program, encryptor, party.samples[0]))
    assert len(declared) >= 2
    assert max(declared) <= LARGEST
    # A sample that leaves the range is refused by clients.
    with pytest.raises(OutOfRangeError):
        runtime.guard(party.program, 100 * party.samples[0])


def test_encrypted_results_are_the_clear_ones(party: Party) -> None:
    program = party.program
    evaluator = kw.Evaluator(party.plan.parameters, party.keys)
    bootstrappers = [kw.Bootstrapper(plan) for plan in party.execution.bootstrapper_plans]
    backend = EncryptedBackend(evaluator, bootstrappers, plan=party.execution)
    encryptor = kw.Encryptor(party.generator.public_key(), ENTROPY)
    decryptor = kw.Decryptor(party.secret)
    for sample in party.samples[:2]:
        outputs = backend.run(program, encrypt_sample(program, encryptor, sample))
        assert [output.level for output in outputs] == [program.output.level] * len(outputs)
        error = np.abs(decrypt_result(program, decryptor, outputs) - run_clear(program, sample)).max()
        bound = max(output.error_bound for output in outputs) * program.output.scale
        assert error <= bound
        assert error < 2**-10


def test_a_plan_with_open_factors_is_followed(party: Party) -> None:
    program, parameters = party.program, party.plan.parameters
    variants = open_bootstraps([party.plan], "network", program)
    assert planned_part(variants[0].published) == planned_part(
        convert(program, parameters, "network", [party.plan])
    )
    state = fastest_state(variants[-1], planning.CostModel(), max_hops=2)
    smallest = min(descend(state), key=lambda point: point.stored_bytes)
    planned = plan_file.from_json(plan_file.to_json(state.plan("optimal", smallest)))
    assert planned.workload.common.bootstraps != (tuple(party.plan.factors),)
    execution = PlanExecution(planned, parameters, program, [party.plan])
    specs = execution.key_specs
    assert sum(spec.bytes for spec in specs) == planned.stored_bytes < party.keys.bytes
    keys = execution.follow(party.generator.evaluation_keys(relinearization=False, specs=specs))
    bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
    backend = EncryptedBackend(kw.Evaluator(parameters, keys), bootstrappers, plan=execution)
    encryptor = kw.Encryptor(party.generator.public_key(), ENTROPY)
    outputs = backend.run(program, encrypt_sample(program, encryptor, party.samples[0]))
    error = np.abs(
        decrypt_result(program, kw.Decryptor(party.secret), outputs) - run_clear(program, party.samples[0])
    ).max()
    assert error <= max(output.error_bound for output in outputs) * program.output.scale


def test_a_composition_is_bootstrapped_between_its_polynomials(build: Build) -> None:
    """ReLU of two polynomials of degree 7, in a ring whose bootstraps leave five levels: the values between
    them, and their product with the argument, come out as in the clear."""
    rng, plan = np.random.default_rng(4), small_plan()
    weights = {"w": rng.normal(size=(8, 8)) / 3, "v": rng.normal(size=(8, 3))}
    model = build(
        [
            node("MatMul", ["x", "w"], ["h"], "first"),
            node("Relu", ["h"], ["r"], "relu"),
            node("MatMul", ["r", "v"], ["y"], "second"),
        ],
        (8,),
        {name: weight.astype(np.float32) for name, weight in weights.items()},
    )
    samples = rng.uniform(-1, 1, (60, 8))
    program = compiler.compile_program(
        model,
        compiler.Target(
            slots=plan.slots, levels=plan.output_level, bootstraps=(compiler.Bootstrap.of(plan),)
        ),
        compiler.Fit(calibration=samples, activations={"relu": "minimax:7"}),
    )
    assert program.depth == 9
    opcodes = [step.opcode for step in program.instructions]
    first, second = (place for place, opcode in enumerate(opcodes) if opcode == "polynomial")
    assert "bootstrap" in opcodes[first + 1 : second]
    runtime.guard(program, samples)
    secret = kw.SecretKey.generate(plan.parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    execution = KeyFrontier(program, plan.parameters, [plan]).execution
    specs = execution.key_specs
    keys = execution.follow(generator.evaluation_keys(relinearization=False, specs=specs))
    bootstrappers = [kw.Bootstrapper(each) for each in execution.bootstrapper_plans]
    backend = EncryptedBackend(kw.Evaluator(plan.parameters, keys), bootstrappers, plan=execution)
    encryptor, decryptor = kw.Encryptor(generator.public_key(), ENTROPY), kw.Decryptor(secret)
    for sample in samples[:3]:
        outputs = backend.run(program, encrypt_sample(program, encryptor, sample))
        error = np.abs(decrypt_result(program, decryptor, outputs) - run_clear(program, sample)).max()
        bound = max(output.error_bound for output in outputs) * program.output.scale
        assert error <= bound < 2**-12
