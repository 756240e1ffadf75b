"""Every operator against onnxruntime, on integers where both are exact."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keywright import compiler
from keywright.compiler.front_ends.operators.arithmetic import raised
from numpy.typing import NDArray
from onnx import helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
Samples = NDArray[np.float32]


def integers(shape: tuple[int, ...], seed: int) -> Samples:
    """Integers between -4 and 4: products and sums of fewer than 2^19 of them are exact in single
    precision."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def exact(
    model: onnx.ModelProto, shape: tuple[int, ...], slots: int = 4096, levels: int = 4
) -> compiler.Program:
    program = compiler.compile_program(model, compiler.Target(slots=slots, levels=levels))
    assert compiler.check(program, integers((2, *shape), 99), model).max_abs_error == 0
    return program


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[tuple[Any, ...], int]:
    groups = draw(st.integers(1, 3))
    inputs, outputs = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilations = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    size = tuple(draw(st.integers(e, e + 5)) for e in extent)
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    mode = draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if mode == "NOTSET":
        attributes["pads"] = draw(st.tuples(*(st.integers(0, 2) for _ in range(4))))
    else:
        attributes["auto_pad"] = mode
        if mode != "VALID":
            attributes["dilations"] = (1, 1)  # onnxruntime refuses dilated SAME padding for some shapes
    seed = draw(st.integers(0, 1000))
    constants: dict[str, NDArray[np.generic]] = {"w": integers((outputs, inputs // groups, *kernel), seed)}
    names = ["x", "w"]
    if draw(st.booleans()):
        constants["b"] = integers((outputs,), seed + 1)
        names.append("b")
    shape = (inputs, *size)
    slots = draw(st.sampled_from([64, 256, 4096]))
    return ([node("Conv", names, ["y"], **attributes)], shape, constants), slots


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(convolutions())
def test_convolution(build: Build, case: tuple[tuple[Any, ...], int]) -> None:
    arguments, slots = case
    program = exact(build(*arguments), arguments[1], slots)
    assert program.depth == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.booleans(), st.sampled_from([16, 64, 1024]))
def test_gemm(build: Build, inputs: int, outputs: int, transposed: bool, slots: int) -> None:
    weight = integers((outputs, inputs) if transposed else (inputs, outputs), 3)
    model = build(
        [node("Gemm", ["x", "w", "b"], ["y"], transB=int(transposed), alpha=2.0, beta=3.0)],
        (inputs,),
        {"w": weight, "b": integers((outputs,), 4)},
    )
    exact(model, (inputs,), slots)


def test_matmul_and_bias_are_one_level(build: Build) -> None:
    model = build(
        [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"])],
        (12,),
        {"w": integers((12, 5), 1), "b": integers((5,), 2)},
    )
    assert exact(model, (12,)).depth == 1


@settings(max_examples=40, deadline=None)
@given(
    *(st.integers(1, 3), st.integers(3, 8), st.integers(3, 8)),
    *(st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.booleans()),
)
def test_average_pool(
    build: Build, channels: int, height: int, width: int, kernel: int, stride: int, pad: int, include: bool
) -> None:
    pad = min(pad, kernel - 1)
    shape = (channels, height, width)
    attributes: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    pool = node("AveragePool", ["x"], ["y"], count_include_pad=int(include), **attributes)
    model = build([pool], shape)
    program = compiler.compile_program(model, compiler.Target(slots=1024, levels=1))
    # A mean of nine integers up to 4 in single precision: one rounding of the sum over the count.
    assert compiler.check(program, integers((2, *shape), 5), model).max_abs_error <= 4 * 2**-23


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("GlobalAveragePool", {}),
        ("ReduceMean", {"axes": [2, 3]}),
        ("ReduceMean", {"axes": [-1, -2], "keepdims": 0}),
    ],
)
def test_global_means(build: Build, operator: str, attributes: dict[str, Any]) -> None:
    exact(build([node(operator, ["x"], ["y"], **attributes)], (3, 4, 4)), (3, 4, 4))


def test_batch_normalization_disappears_in_the_convolution(build: Build) -> None:
    rng = np.random.default_rng(7)
    constants = {"w": rng.normal(size=(4, 2, 3, 3)).astype(np.float32)}
    constants |= {
        name: rng.uniform(0.5, 2, 4).astype(np.float32) for name in ("scale", "bias", "mean", "var")
    }
    model = build(
        [
            node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], ["y"]),
        ],
        (2, 6, 6),
        constants,
    )
    program = compiler.compile_program(model, compiler.Target(slots=1024, levels=1))
    samples = rng.normal(size=(3, 2, 6, 6))
    report = compiler.check(program, samples, model)
    # 18 products and 5 more operations in single precision, each rounding at most 2^-24 of the sum of
    # magnitudes.
    reach = np.abs(constants["w"]).sum((1, 2, 3)).max() * np.abs(samples).max()
    assert report.max_abs_error <= 23 * 2**-24 * (2 * (reach + 2) / np.sqrt(0.5) + 2)
    assert program.depth == 1


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_constants_broadcast(build: Build, operator: str, first: bool) -> None:
    names = ["c", "x"] if first else ["x", "c"]
    exact(build([node(operator, names, ["y"])], (3, 2, 2), {"c": integers((3, 1, 1), 1)}), (3, 2, 2))


def test_division_and_negation(build: Build) -> None:
    model = build(
        [node("Div", ["x", "c"], ["h"]), node("Neg", ["h"], ["y"])],
        (4,),
        {"c": np.asarray([1, 2, 4, 8], np.float32)},
    )
    assert exact(model, (4,)).depth == 1


@pytest.mark.parametrize(("exponent", "depth"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_powers(build: Build, exponent: int, depth: int) -> None:
    model = build([node("Pow", ["x", "e"], ["y"])], (5,), {"e": np.float32(exponent)})
    assert exact(model, (5,)).depth == depth


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_residual_branches(build: Build, operator: str) -> None:
    model = build(
        [
            node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]),
            node("Mul", ["h", "h"], ["q"]),
            node("Conv", ["q", "v"], ["r"], pads=[1, 1, 1, 1]),
            node(operator, ["r", "x"], ["y"]),
        ],
        (2, 5, 5),
        {"w": integers((3, 2, 3, 3), 1), "v": integers((2, 3, 3, 3), 2) / 4},
    )
    exact(model, (2, 5, 5), levels=5)


def test_shapes_as_exporters_write_them(build: Build) -> None:
    model = build(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "zero"], ["n"], axis=0),
            node("Unsqueeze", ["n", "axes"], ["n1"]),
            node("Concat", ["n1", "rest"], ["target"], axis=0),
            node("Reshape", ["x", "target"], ["f"]),
            node("Dropout", ["f"], ["d"]),
            node("Identity", ["d"], ["i"]),
            node("MatMul", ["i", "w"], ["y"]),
        ],
        (2, 3, 3),
        {
            "zero": np.int64(0),
            "axes": np.asarray([0], np.int64),
            "rest": np.asarray([-1], np.int64),
            "w": integers((18, 4), 1),
        },
        batch=1,
    )
    exact(model, (2, 3, 3))


def test_squeeze_and_unsqueeze(build: Build) -> None:
    model = build(
        [node("Squeeze", ["x", "a"], ["s"]), node("Unsqueeze", ["s", "b"], ["u"]), node("Neg", ["u"], ["y"])],
        (3, 1, 4),
        {"a": np.asarray([2], np.int64), "b": np.asarray([1], np.int64)},
    )
    assert exact(model, (3, 1, 4)).output.shape == (1, 3, 4)


def test_flatten_keeps_the_order_of_elements_in_a_strided_layout(build: Build) -> None:
    model = build(
        [
            node("Conv", ["x", "w"], ["h"], strides=[2, 2]),
            node("Mul", ["h", "h"], ["q"]),
            node("Flatten", ["q"], ["f"]),
            node("Gemm", ["f", "v"], ["y"]),
        ],
        (1, 9, 9),
        {"w": integers((5, 1, 3, 3), 1), "v": integers((80, 7), 2) / 4},
    )
    assert exact(model, (1, 9, 9)).depth == 3


@pytest.mark.parametrize("operator", ["Relu", "Sigmoid", "Tanh", "Erf"])
@pytest.mark.parametrize("degree", [2, 3, 7, 15])
def test_activations_are_as_close_as_reported(build: Build, operator: str, degree: int) -> None:
    model = build([node(operator, ["x"], ["y"])], (6,))
    samples = np.random.default_rng(1).uniform(-3, 3, (40, 6)).astype(np.float32)
    program = compiler.compile_program(
        model,
        compiler.Target(slots=64, levels=6),
        compiler.Fit(calibration=samples, activations={operator.lower(): f"chebyshev:{degree}"}),
    )
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    report = compiler.check(program, samples, model)
    assert fitted.low < samples.min()
    assert fitted.high > samples.max()
    assert report.max_abs_error <= fitted.max_error + 2**-20
    assert report.max_abs_error >= 0.1 * fitted.max_error


def test_fused_activations(build: Build) -> None:
    """SiLU as x * sigmoid(x) and GELU by erf are one polynomial each."""
    silu = [node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["h"])]
    gelu = [
        node("Div", ["h", "root"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["p"]),
        node("Mul", ["h", "p"], ["m"]),
        node("Mul", ["m", "half"], ["y"]),
    ]
    constants = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    samples = np.random.default_rng(2).normal(size=(60, 4)).astype(np.float32)
    model = build([*silu, *gelu], (4,), constants)
    program = compiler.compile_program(
        model,
        compiler.Target(slots=16, levels=5),
        compiler.Fit(calibration=samples, activations={"sigmoid": "chebyshev:15"}),
    )
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert fitted.degrees == (15,)
    assert program.depth == 5  # one for the range of the input, four for the polynomial
    assert compiler.check(program, samples, model).max_abs_error <= fitted.max_error + 2**-20


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_operator(build: Build, approximate: str) -> None:
    model = build([node("Gelu", ["x"], ["y"], approximate=approximate)], (4,), opset=20)
    samples = np.random.default_rng(3).normal(size=(60, 4)).astype(np.float32)
    program = compiler.compile_program(
        model,
        compiler.Target(slots=16, levels=5),
        compiler.Fit(calibration=samples, activations={"gelu": "chebyshev:15"}),
    )
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    assert compiler.check(program, samples, model).max_abs_error <= fitted.max_error + 2**-20


def test_a_power_takes_two_products_for_each_bit_of_its_exponent() -> None:
    """Both halves of an odd exponent computed all of theirs: a model of 74 bytes took hours to compile."""
    products = 0

    class Exponents:
        def product(self, left: int, right: int) -> int:
            nonlocal products
            products += 1
            return left + right

    context: Any = Exponents()
    source: Any = 1
    for exponent in (*range(1, 100), 999_999_999, 2**31):
        products = 0
        assert raised(context, source, exponent) == exponent
        assert products <= 2 * exponent.bit_length()
