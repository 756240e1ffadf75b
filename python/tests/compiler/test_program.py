"""Programs: levels, key switches, keys, and the rules that the back end enforces."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from keywright import compiler, runtime
from keywright.compiler.checking import run_onnxruntime
from keywright.errors import OperandError
from keywright.program.key_switches import RequiredKey
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.runtime import run_clear
from onnx import helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]


@pytest.fixture(scope="module")
def residual(build: Build) -> onnx.ModelProto:
    """Two convolutions and a polynomial beside a shortcut."""
    rng = np.random.default_rng(5)
    return build(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            node("Tanh", ["a"], ["t"]),
            node("Conv", ["t", "v"], ["b"], pads=[1, 1, 1, 1]),
            node("Add", ["b", "t"], ["s"]),
            node("Relu", ["s"], ["r"]),
            node("Flatten", ["r"], ["f"]),
            node("Gemm", ["f", "g"], ["y"]),
        ],
        (2, 6, 6),
        {
            "w": rng.normal(size=(4, 2, 3, 3)).astype(np.float32) / 4,
            "v": rng.normal(size=(4, 4, 3, 3)).astype(np.float32) / 6,
            "g": rng.normal(size=(144, 5)).astype(np.float32) / 12,
        },
    )


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return np.random.default_rng(6).normal(size=(8, 2, 6, 6)).astype(np.float32)


@pytest.fixture(scope="module", params=[64, 256, 4096])
def program(
    request: pytest.FixtureRequest, residual: onnx.ModelProto, samples: np.ndarray
) -> compiler.Program:
    return compiler.compile_program(
        residual,
        compiler.Target(slots=request.param, levels=12),
        compiler.Fit(calibration=samples, activations={"tanh": "chebyshev:7", "relu": "chebyshev:2"}),
    )


def test_program_agrees_with_the_network_of_polynomials(
    program: compiler.Program, residual: onnx.ModelProto, samples: np.ndarray
) -> None:
    report = compiler.check(program, samples, residual)
    # Errors of both fits, through the weights behind them: the second layer's and the last one's row sums.
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in residual.graph.initializer}
    assert program.fit_report is not None
    tanh, relu = program.fit_report.activations
    through = np.abs(weights["v"]).sum((1, 2, 3)).max() + 1
    entering = tanh.max_error * through
    slope = 2.0  # of the quadratic on its range: at most twice the largest slope of the function itself
    bound = (entering * slope + relu.max_error) * np.abs(weights["g"]).sum(0).max()
    assert report.max_abs_error <= bound + 1e-5


def test_levels_are_the_sum_of_the_parts(program: compiler.Program) -> None:
    # conv 1, degree 7: 3, conv 1, degree 2: 1, gemm 1; ranges and the shortcut cost nothing.
    assert program.depth == 7
    assert (program.input.level, program.output.level) == (7, 0)


def test_key_switches_are_those_that_execution_makes(program: compiler.Program, samples: np.ndarray) -> None:
    backend = runtime.ClearBackend(program.slots)
    inputs = [backend.encrypt(row, program.input.level) for row in program.pack(samples[0])]
    runtime.execute(program, backend, inputs)
    listed = Counter[tuple[str, int, int]]()
    for switch in program.key_switches:
        listed[switch.kind, switch.step, switch.level] += switch.count
    assert listed == Counter((done.kind, done.step, done.level) for done in backend.log)
    assert [switch.order for switch in program.key_switches] == list(range(len(program.key_switches)))


def test_required_keys_are_the_highest_uses(program: compiler.Program) -> None:
    for key in program.required_keys:
        uses = [s.level for s in program.key_switches if (s.kind, s.step) == (key.kind, key.step)]
        assert key.level == max(uses)
    assert len(program.required_keys) == len({(s.kind, s.step) for s in program.key_switches})


def test_hoisted_groups_read_one_ciphertext(program: compiler.Program) -> None:
    groups: dict[tuple[int, str], set[int]] = {}
    for switch in program.key_switches:
        if program.instructions[switch.instruction].opcode == "linear_transform":
            groups.setdefault((switch.instruction, switch.source), set()).add(switch.level)
    assert groups
    assert all(len(levels) == 1 for levels in groups.values())


def test_galois_elements() -> None:
    assert RequiredKey("rotation", 3, 1).galois_element(4) == pow(5, 3, 32)
    assert RequiredKey("conjugation", 0, 1).galois_element(4) == 31
    assert RequiredKey("relinearization", 0, 1).galois_element(4) is None


def test_given_levels(residual: onnx.ModelProto, samples: np.ndarray) -> None:
    fit = compiler.Fit(calibration=samples, activations={"relu": "chebyshev:2"})
    low = compiler.compile_program(residual, compiler.Target(slots=256, levels=12), fit)
    high = compiler.compile_program(residual, compiler.Target(slots=256, levels=12, output_level=2), fit)
    assert (low.output.level, high.output.level) == (0, 2)
    assert high.input.level == low.input.level + 2 < 12
    assert np.array_equal(run_clear(low, samples[0]), run_clear(high, samples[0]))
    # Ciphertexts may enter at a higher level.
    backend = runtime.ClearBackend(high.slots)
    outputs = runtime.execute(high, backend, [backend.encrypt(row, 12) for row in high.pack(samples[0])])
    assert [ct.level for ct in outputs] == [2] * len(outputs)


def test_a_quadratic_activation_is_one_product(build: Build) -> None:
    model = build(
        [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
        (8,),
        {"w": np.tri(8, dtype=np.float32)},
    )
    x = np.random.default_rng(1).normal(size=(20, 8))
    program = compiler.compile_program(
        model,
        compiler.Target(slots=8, levels=3),
        compiler.Fit(calibration=x, activations={"relu": "chebyshev:2"}),
    )
    assert [step.opcode for step in program.instructions].count("mul") == 1
    assert program.depth == 3


def test_an_odd_function_of_degree_two_becomes_a_line_on_its_range(build: Build) -> None:
    model = build([node("Tanh", ["x"], ["y"])], (4,))
    x = np.linspace(-1, 1, 40).reshape(10, 4)
    program = compiler.compile_program(
        model,
        compiler.Target(slots=4, levels=3),
        compiler.Fit(calibration=x, activations={"tanh": "chebyshev:2"}),
    )
    assert program.fit_report is not None
    assert [fitted.degrees for fitted in program.fit_report.activations] == [(1,)]
    assert [step.opcode for step in program.instructions].count("polynomial") == 1
    assert program.ranges


def test_negative_quadratics(build: Build) -> None:
    """-x^2 shaped functions keep their sign."""
    model = build(
        [node("Relu", ["x"], ["r"]), node("Neg", ["r"], ["n"]), node("Mul", ["n", "c"], ["y"])],
        (4,),
        {"c": np.asarray([1, 2, 3, 4], np.float32)},
    )
    x = np.random.default_rng(2).normal(size=(30, 4))
    program = compiler.compile_program(
        model,
        compiler.Target(slots=4, levels=3),
        compiler.Fit(calibration=x, activations={"relu": "chebyshev:2"}),
    )
    assert program.fit_report is not None
    bound = 4 * program.fit_report.activations[0].max_error
    assert compiler.check(program, x, model).max_abs_error <= bound + 1e-6


def test_results_on_calibration_data_are_at_most_one(build: Build) -> None:
    model = build(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Mul", ["h", "h"], ["y"])],
        (3,),
        {"w": np.asarray([[100.0, 3.0], [0.0, 5.0], [-7.0, 0.0]], np.float32)},
    )
    x = np.random.default_rng(4).integers(-4, 5, (20, 3))
    program = compiler.compile_program(model, compiler.Target(slots=4, levels=2), compiler.Fit(calibration=x))
    peak = np.abs(run_onnxruntime(model, x.astype(np.float64))).max()
    assert peak <= program.output.scale < 4 * peak
    assert compiler.check(program, x, model).max_abs_error <= 2**-48 * peak
    backend = runtime.ClearBackend(program.slots)
    for sample in x:
        rows = [backend.encrypt(row, program.input.level) for row in program.pack(sample)]
        assert np.abs(runtime.execute(program, backend, rows)[0].values).max() <= 1


def test_a_shared_activation_is_evaluated_once(build: Build) -> None:
    """A function and its double are not two polynomials."""
    model = build(
        [
            node("Tanh", ["x"], ["t"]),
            node("Mul", ["t", "two"], ["a"]),
            node("MatMul", ["t", "w"], ["b"]),
            node("Add", ["a", "b"], ["y"]),
        ],
        (4,),
        {"two": np.float32(2), "w": np.tri(4, dtype=np.float32)},
    )
    x = np.random.default_rng(4).normal(size=(20, 4))
    program = compiler.compile_program(model, compiler.Target(slots=4, levels=9), compiler.Fit(calibration=x))
    assert [step.opcode for step in program.instructions].count("polynomial") == 1


def test_the_back_end_keeps_its_rules() -> None:
    backend = runtime.ClearBackend(4)
    low, high = backend.encrypt(np.ones(4), 0), backend.encrypt(np.ones(4), 2)
    with pytest.raises(OperandError, check=lambda error: error.code == "levels"):
        backend.mul(low, low)
    with pytest.raises(OperandError, check=lambda error: error.code == "levels"):
        backend.polynomial(high, PolynomialSpec(np.ones(5)))
    with pytest.raises(OperandError, match="one level"):
        backend.add(low, high)
    with pytest.raises(OperandError):
        backend.drop_level(low, 1)
    with pytest.raises(OperandError):
        backend.rotate(high, 4)
    with pytest.raises(OperandError):
        backend.encrypt(np.ones(5), 1)
    with pytest.raises(OperandError):
        backend.linear_transform([high], DiagonalMatrix(8, ({0: np.ones(8)},), 1))


def test_inputs_of_a_run(program: compiler.Program) -> None:
    backend = runtime.ClearBackend(program.slots)
    count = program.input.layout.ciphertexts
    with pytest.raises(OperandError, match="at level"):
        runtime.execute(
            program, backend, [backend.encrypt(np.zeros(program.slots), program.input.level - 1)] * count
        )
    with pytest.raises(OperandError, match="ciphertexts"):
        runtime.execute(
            program, backend, [backend.encrypt(np.zeros(program.slots), program.input.level)] * (count + 1)
        )
