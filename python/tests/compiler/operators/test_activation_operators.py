"""Activations, maxima and normalisations compared with onnxruntime, within the stated errors of their
polynomials."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.activations.functions import ACTIVATIONS, POSITIVE, erf
from keywright.errors import ModelRefusedError
from numpy.typing import NDArray
from onnx import helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
TARGET = compiler.Target(slots=256, levels=60)
RNG = np.random.default_rng(5)
SAMPLES = RNG.uniform(-3, 3, (60, 6)).astype(np.float32)
SINGLE = 2.0**-20
"""Error of onnxruntime's single precision for values up to 8, including several roundings."""


def compiled(model: onnx.ModelProto, samples: NDArray[Any], **methods: str) -> compiler.Program:
    return compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, activations=methods))


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Celu": {"alpha": 0.7},
    "Elu": {"alpha": 1.3},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "LeakyRelu": {"alpha": 0.2},
    "ThresholdedRelu": {"alpha": 0.0},
}
OPSETS = {"Gelu": 20, "Mish": 18, "Swish": 24}
"""The first opset that has an operator, where it is above 17."""


@pytest.mark.parametrize("operator", sorted(ACTIVATIONS.keys() - POSITIVE - {"Clip"}))
def test_activations(build: Build, operator: str) -> None:
    """Every function that the compiler knows; `Clip` has bounds as inputs, and a test of its own."""
    attributes = ATTRIBUTES.get(operator, {})
    model = build([node(operator, ["x"], ["y"], **attributes)], (6,), opset=OPSETS.get(operator, 17))
    program = compiled(model, SAMPLES, **{operator.lower(): "chebyshev:15"})
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    error = compiler.check(program, SAMPLES, model).max_abs_error
    assert error <= fitted.max_error + 8 * SINGLE
    assert error >= 0.1 * fitted.max_error


@pytest.mark.parametrize("operator", sorted(POSITIVE))
def test_functions_of_positive_values(build: Build, operator: str) -> None:
    """Their ranges are widened by factors, so that they stay above 0."""
    model = build([node(operator, ["x"], ["y"])], (6,))
    positive = np.abs(SAMPLES) + np.float32(0.5)
    program = compiled(model, positive, **{operator.lower(): "chebyshev:31"})
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert 0 < fitted.low < positive.min()
    assert compiler.check(program, positive, model).max_abs_error <= fitted.max_error + SINGLE


@pytest.mark.parametrize(
    "slopes", [np.float32(0.3), np.asarray([[0.1], [0.5]], np.float32)], ids=["one", "each"]
)
def test_parametric_relu(build: Build, slopes: NDArray[np.float32]) -> None:
    model = build([node("PRelu", ["x", "s"], ["y"])], (2, 3), {"s": slopes})
    samples = SAMPLES.reshape(-1, 2, 3)
    program = compiled(model, samples, prelu="minimax:9")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, samples, model).max_abs_error <= fitted.max_error + SINGLE


@pytest.mark.parametrize(
    ("nodes", "shape", "rounds"),
    [
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], (2, 4, 4), 2),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)], (1, 5, 5), 4),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[3])], (2, 7), 2),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2], ceil_mode=1)], (2, 5), 1),
        ([node("GlobalMaxPool", ["x"], ["y"])], (2, 2, 3), 3),
        ([node("ReduceMax", ["x"], ["y"], axes=[2])], (2, 5), 3),
        ([node("ReduceMin", ["x"], ["y"], axes=[1], keepdims=0)], (3, 2), 2),
        ([node("Neg", ["x"], ["n"]), node("Max", ["x", "n", "c"], ["y"])], (4,), 2),
    ],
    ids=lambda case: case[-1].op_type if isinstance(case, list) else "",
)
def test_maxima(build: Build, nodes: list[onnx.NodeProto], shape: tuple[int, ...], rounds: int) -> None:
    uses = any("c" in each.input for each in nodes)
    model = build(nodes, shape, {"c": np.float32(0.5)} if uses else {})
    samples = RNG.uniform(-1, 1, (40, *shape)).astype(np.float32)
    program = compiled(model, samples, **{nodes[-1].op_type.lower(): "minimax:10"})
    assert program.fit_report is not None
    fitted = program.fit_report.activations
    assert len(fitted) == rounds
    # A round adds half of the error of its absolute value to the errors of its operands.
    bound = sum(each.max_error for each in fitted) / 2
    assert compiler.check(program, samples, model).max_abs_error <= bound + SINGLE


@pytest.mark.parametrize("axis", [1, 2])
def test_layer_normalization(build: Build, axis: int) -> None:
    shape = (3, 6)
    constants = {
        "scale": RNG.uniform(0.5, 2, shape[axis - 1 :]).astype(np.float32),
        "bias": RNG.normal(size=shape[axis - 1 :]).astype(np.float32),
    }
    model = build([node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=axis)], shape, constants)
    samples = RNG.normal(size=(60, *shape)).astype(np.float32)
    program = compiled(model, samples, layernormalization="chebyshev:63")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    # The error of the output is that of the inverse root, times its factor.
    bound = fitted.max_error * 2 * np.abs(samples - samples.mean((1, 2), keepdims=True)).max() * 2
    assert compiler.check(program, samples, model).max_abs_error <= bound + SINGLE
    assert fitted.low > 0


def test_instance_normalization(build: Build) -> None:
    constants = {"s": np.asarray([2, 1], np.float32), "b": np.asarray([0, 1], np.float32)}
    model = build([node("InstanceNormalization", ["x", "s", "b"], ["y"])], (2, 8), constants)
    samples = RNG.normal(size=(60, 2, 8)).astype(np.float32)
    program = compiled(model, samples, instancenormalization="chebyshev:63")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    bound = fitted.max_error * 2 * 2 * np.abs(samples).max()
    assert compiler.check(program, samples, model).max_abs_error <= bound + SINGLE


@pytest.mark.parametrize("compare", ["Greater", "Less"])
def test_what_a_comparison_chooses_is_one_function(build: Build, compare: str) -> None:
    """Exporters write Softplus like this: above a number a line, below it a curve."""
    nodes = [
        node("Exp", ["x"], ["e"]),
        node("Add", ["e", "one"], ["a"]),
        node("Log", ["a"], ["l"]),
        node(compare, ["x", "two"], ["c"]),
        node("Where", ["c", "x", "l"] if compare == "Greater" else ["c", "l", "x"], ["y"]),
    ]
    model = build(nodes, (6,), {"one": np.float32(1), "two": np.float32(2)})
    program = compiled(model, SAMPLES, **{"exp" if compare == "Greater" else "Less_3": "chebyshev:31"})
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, SAMPLES, model).max_abs_error <= fitted.max_error + 8 * SINGLE


def test_division_by_a_positive_value(build: Build) -> None:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("Add", ["q", "one"], ["d"]), node("Div", ["x", "d"], ["y"])]
    model = build(nodes, (4,), {"one": np.float32(1)})
    samples = RNG.uniform(-1, 1, (60, 4)).astype(np.float32)
    program = compiled(model, samples, reciprocal="chebyshev:15")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, samples, model).max_abs_error <= fitted.max_error + SINGLE


@pytest.mark.parametrize("bound", [{"low": -1.0, "high": 2.0}, {"low": 0.5}, {"high": 1.5}], ids=str)
def test_maxima_with_numbers_are_clipping(build: Build, bound: dict[str, float]) -> None:
    """They are piecewise linear functions, and not comparisons of two values."""
    nodes, value = [], "x"
    for operator, key in (("Max", "low"), ("Min", "high")):
        if key in bound:
            nodes.append(node(operator, [key, value], [f"{operator} of it"]))
            value = f"{operator} of it"
    nodes[-1].output[0] = "y"
    model = build(nodes, (6,), {key: np.float32(number) for key, number in bound.items()})
    program = compiled(model, SAMPLES, **{each.op_type.lower(): "minimax:9" for each in nodes})
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, SAMPLES, model).max_abs_error <= fitted.max_error + SINGLE


def test_a_polynomial_inside_a_function_is_part_of_it(build: Build) -> None:
    """GELU as PyTorch and JAX write it, with x^3 inside the hyperbolic tangent."""
    nodes = [
        node("Pow", ["x", "three"], ["cube"]),
        node("Mul", ["cube", "a"], ["part"]),
        node("Add", ["x", "part"], ["sum"]),
        node("Mul", ["sum", "b"], ["inner"]),
        node("Tanh", ["inner"], ["t"]),
        node("Add", ["t", "one"], ["u"]),
        node("Mul", ["x", "u"], ["v"]),
        node("Mul", ["v", "half"], ["y"]),
    ]
    numbers = {"three": 3.0, "a": 0.044715, "b": np.sqrt(2 / np.pi), "one": 1.0, "half": 0.5}
    model = build(nodes, (6,), {name: np.float32(number) for name, number in numbers.items()})
    program = compiled(model, SAMPLES, tanh="chebyshev:15")
    assert program.depth == 5
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, SAMPLES, model).max_abs_error <= fitted.max_error + 8 * SINGLE


def test_straight_pieces_behind_a_polynomial_stay(build: Build) -> None:
    nodes = [
        node("Mul", ["x", "x"], ["s"]),
        node("Sub", ["s", "one"], ["d"]),
        node("Relu", ["d"], ["y"]),
    ]
    model = build(nodes, (6,), {"one": np.float32(1)})
    program = compiled(model, SAMPLES, relu="minimax:9")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, SAMPLES, model).max_abs_error <= fitted.max_error + 8 * SINGLE


def test_a_root_of_what_is_moved_above_zero(build: Build) -> None:
    """The operand may be negative; what enters the root is not."""
    nodes = [node("Add", ["x", "five"], ["s"]), node("Sqrt", ["s"], ["y"])]
    model = build(nodes, (6,), {"five": np.float32(5)})
    assert SAMPLES.min() < 0
    program = compiled(model, SAMPLES, sqrt="chebyshev:31")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert 0 < fitted.low < 5 + SAMPLES.min()
    assert compiler.check(program, SAMPLES, model).max_abs_error <= fitted.max_error + SINGLE


def test_group_normalization(build: Build) -> None:
    constants = {"s": np.linspace(0.5, 2, 4, dtype=np.float32), "b": np.arange(4, dtype=np.float32)}

    def model(groups: int) -> onnx.ModelProto:
        normalized = node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=groups)
        graph_of_node = build([normalized], (4, 6), constants, opset=21)
        shape = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 4, 6])
        graph_of_node.graph.output[0].CopyFrom(shape)  # onnx does not infer it
        return graph_of_node

    samples = np.random.default_rng(2).normal(size=(60, 4, 6)).astype(np.float32)
    program = compiled(model(2), samples, groupnormalization="chebyshev:127")
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    # Values minus their mean are below 5, and scales at most 2.
    assert compiler.check(program, samples, model(2)).max_abs_error <= 10 * fitted.max_error + SINGLE
    assert fitted.max_error < 2.0**-6
    with pytest.raises(ModelRefusedError, match="a divisor of the 4 channels"):
        compiler.compile_program(model(3), TARGET)


@pytest.mark.parametrize("p", [1, 2])
def test_values_over_their_norm(build: Build, p: int) -> None:
    nodes = [node("LpNormalization", ["x"], ["h"], p=p, axis=-1), node("MatMul", ["h", "w"], ["y"])]
    weights = np.random.default_rng(2).normal(size=(6, 2)).astype(np.float32)
    model = build(nodes, (6,), {"w": weights})
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES, error=0.05))
    assert compiler.check(program, SAMPLES, model).max_abs_error <= 0.05
    three = [node("LpNormalization", ["x"], ["h"], p=3), node("MatMul", ["h", "w"], ["y"])]
    with pytest.raises(ModelRefusedError, match="p = 3 is not supported; it needs 1 or 2"):
        compiler.compile_program(build(three, (6,), {"w": weights}), TARGET)


def test_numbers_that_are_asked_whether_they_are(build: Build) -> None:
    """As JAX writes softplus: Where(x is NaN, x, ...), which is never chosen."""
    nodes = [
        node("Equal", ["x", "x"], ["same"]),
        node("Not", ["same"], ["no"]),
        node("IsNaN", ["x"], ["nan"]),
        node("Or", ["no", "nan"], ["either"]),
        node("Neg", ["x"], ["n"]),
        node("Where", ["either", "x", "n"], ["h"]),
        node("MatMul", ["h", "w"], ["y"]),
    ]
    model = build(nodes, (6,), {"w": np.eye(6, 2, dtype=np.float32)})
    program = compiler.compile_program(model, TARGET)
    assert program.depth == 1
    assert compiler.check(program, SAMPLES, model).max_abs_error < SINGLE
    # Behind a matrix: before it, the client compares.
    other = [
        node("MatMul", ["x", "v"], ["a"]),
        node("Neg", ["a"], ["n"]),
        node("Equal", ["a", "n"], ["e"]),
        node("Where", ["e", "a", "n"], ["h"]),
        node("MatMul", ["h", "w"], ["y"]),
    ]
    weights = {"w": np.eye(6, 2, dtype=np.float32), "v": np.eye(6, dtype=np.float32)}
    with pytest.raises(ModelRefusedError, match="one value twice"):
        compiler.compile_program(build(other, (6,), weights), TARGET)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_the_error_function_is_that_of_the_standard_library(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).normal(0.0, 2.0, shape)
    assert erf(x).shape == shape
    assert erf(x).ravel().tolist() == [math.erf(value) for value in np.ravel(x)]
