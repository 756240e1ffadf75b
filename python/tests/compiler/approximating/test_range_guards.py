"""Every function that is fitted on a range keeps it: a sample outside is refused, or its result is right."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.activations.functions import ACTIVATIONS, POSITIVE
from keywright.errors import ModelRefusedError, OutOfRangeError
from keywright.program.program import Program
from keywright.runtime import run_clear
from keywright.runtime.range_guard import guard
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tests.matrices import cells

Build = Callable[..., onnx.ModelProto]
Vector = NDArray[np.float64]
Operators = tuple[list[onnx.NodeProto], Mapping[str, NDArray[Any]]]
node = helper.make_node
rng = np.random.default_rng(6)

FLAGS = np.c_[rng.random((80, 3)) < 0.4, np.zeros(80)].astype(np.float64)
DATA: dict[str, Vector] = {
    "positive": rng.uniform(0.0, 1.0, (80, 4)),
    "above 0": rng.uniform(2.0, 5.0, (80, 4)),
    "below 0": rng.uniform(-5.0, -2.0, (80, 4)),
    "flags, one of them constant": FLAGS,
    "a constant column": np.c_[rng.normal(size=(80, 3)), np.full(80, 3.0)],
    "all constant": np.full((80, 4), 1.5),
}
METHODS = ("chebyshev:2", "chebyshev:1", "chebyshev:3")
"""Requested ones: each function on each data is fitted by one of them, besides the one that is chosen."""
NUMBER = np.asarray(0.5, np.float32)
SLOPES = np.asarray([0.5, -1.0, 2.0, 0.0], np.float32)


def _alone(operator: str) -> Operators:
    return [node(operator, ["x"], ["y"], "f")], {}


def _with(operator: str, number: NDArray[Any] = NUMBER) -> Operators:
    return [node(operator, ["x", "c"], ["y"], "f")], {"c": number}


def _choice(comparison: str) -> Operators:
    nodes = [node(comparison, ["x", "c"], ["b"], "f"), node("Where", ["b", "x", "d"], ["y"], "choice")]
    return nodes, {"c": NUMBER, "d": np.asarray(-2.0, np.float32)}


def _and_itself(function: str, slopes: NDArray[Any]) -> Operators:
    """A function and a multiple of its argument, which simplification could turn into one square."""
    nodes = [
        node(function, ["x"], ["h"], "f"),
        node("Mul", ["x", "d"], ["m"]),
        node("Add", ["h", "m"], ["y"]),
    ]
    return nodes, {"d": slopes}


def _between_layers(function: str) -> Operators:
    weights = rng.normal(size=(4, 4)).astype(np.float32)
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node(function, ["a"], ["h"], "f"),
        node("MatMul", ["h", "w"], ["y"]),
    ]
    return nodes, {"w": weights}


CASES: dict[str, Operators] = {
    **{each: _alone(each) for each in ACTIVATIONS},
    "Max with a number": _with("Max"),
    "Min with a number": _with("Min"),
    "PRelu": _with("PRelu", SLOPES),
    "Pow": _with("Pow", np.asarray(3.0, np.float32)),
    "choice by Greater": _choice("Greater"),
    "choice by LessOrEqual": _choice("LessOrEqual"),
    "ReduceMax": ([node("ReduceMax", ["x", "a"], ["y"], "f")], {"a": np.asarray([1])}),
    "ReduceL1": ([node("ReduceL1", ["x", "a"], ["y"], "f")], {"a": np.asarray([1])}),
    "MaxPool": (
        [
            node("Reshape", ["x", "s"], ["r"]),
            node("MaxPool", ["r"], ["p"], "f", kernel_shape=[2, 2]),
            node("Flatten", ["p"], ["y"]),
        ],
        {"s": np.asarray([-1, 1, 2, 2])},
    ),
    "Relu and itself": _and_itself("Relu", np.ones(1, np.float32)),
    "Relu and multiples": _and_itself("Relu", SLOPES),
    "Tanh and multiples": _and_itself("Tanh", SLOPES),
    "Abs between layers": _between_layers("Abs"),
    "Sigmoid between layers": _between_layers("Sigmoid"),
}


def _compiled(model: onnx.ModelProto, samples: Vector, method: str | None) -> Program | None:
    """The program; None if the compiler refuses the function on these samples."""
    activations = {} if method is None else {"f": method}
    fit = compiler.Fit(calibration=samples, activations=activations)
    try:
        return compiler.compile_program(model, compiler.Target(slots=16, levels=24), fit)
    except ModelRefusedError:
        return None


def _exact(model: onnx.ModelProto, sample: Vector) -> Vector:
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(model).run(None, {"x": sample[None].astype(np.float32)})
    return np.asarray(results[0], np.float64).ravel()


def _outside(samples: Vector, program: Program) -> list[Vector]:
    """Calibration samples with one feature, or all, far outside."""
    low, high = samples.min(), samples.max()
    assert program.fit_report is not None
    ends = [(each.low, each.high) for each in program.fit_report.activations] + [(low, high)]
    result = []
    for first, last in ends:
        width = last - first
        for value in (first - 0.3 * width, last + 0.3 * width, first - 20 * width, last + 20 * width):
            for place in (0, 3, slice(None)):
                sample = samples[0].copy()
                sample[place] = value
                result.append(sample)
    return result


@pytest.mark.parametrize(("data", "name"), cells(list(DATA), list(CASES)))
def test_a_sample_outside_a_range_is_refused_or_right(build: Build, name: str, data: str) -> None:
    nodes, constants = CASES[name]
    samples = DATA[data]
    if name in POSITIVE and samples.min() <= 0:
        samples = np.abs(samples) + 0.1
    model = build(nodes, (4,), constants, opset=18)
    turn = list(CASES).index(name) + list(DATA).index(data)
    for method in (None, METHODS[turn % len(METHODS)]):
        program = _compiled(model, samples, method)
        if program is None:
            continue
        report = program.fit_report
        assert report is not None
        for fitted in report.activations:
            ranges = [each for each in program.ranges if each.name.startswith(fitted.label)]
            assert ranges, f"{fitted} has no range"
            assert any(each.model_low <= fitted.low < fitted.high <= each.model_high for each in ranges)
            if fitted.method.startswith("chebyshev"):
                assert fitted.method == f"chebyshev:{fitted.degrees[0]}"
        guard(program, samples)
        bound = sum(each.max_error for each in report.activations)
        bound = max(bound, report.outputs.largest_change)
        for sample in _outside(samples, program):
            try:
                guard(program, sample)
            except OutOfRangeError:
                continue
            exact = _exact(model, sample)
            apart = np.abs(run_clear(program, sample).ravel() - exact).max()
            assert apart <= 4 * bound + 1e-5 * np.abs(exact).max(), (method, sample, exact, apart, bound)


def test_a_stored_statistic_keeps_the_range_of_the_features(build: Build) -> None:
    """Nothing computes the statistic; the features then stay where the calibration data are."""
    nodes = [node("LayerNormalization", ["x", "s", "b"], ["y"], "f", axis=-1)]
    constants = {"s": np.ones(4, np.float32), "b": np.zeros(4, np.float32)}
    model, samples = build(nodes, (4,), constants, opset=18), rng.normal(size=(80, 4))
    program = _compiled(model, samples, "stored")
    assert program is not None
    guard(program, samples)
    for sample in (100 * samples[0], samples[0] * 1e-6 + 50):
        with pytest.raises(OutOfRangeError):
            guard(program, sample)
