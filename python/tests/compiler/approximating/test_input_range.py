"""Ranges of inputs: where they come from, and inputs divided so that they are at most 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler import compiler as programs
from keywright.compiler.graph.graph import Graph
from keywright.compiler.placement.bounding import largest_values
from keywright.errors import EncodeError
from keywright.program.arrays import Vector
from keywright.program.operands.normalisation import HEADROOM
from keywright.runtime import run_clear
from onnx import helper
from tests.compiler.conftest import Build

node = helper.make_node
RNG = np.random.default_rng(8)
WEIGHTS = RNG.normal(size=(6, 6)).astype(np.float32)
SAMPLES = RNG.normal(0.5, 2.0, (60, 6))

MODELS = {
    "linear": [node("MatMul", ["x", "w"], ["y"])],
    "twice": [node("MatMul", ["x", "w"], ["a"]), node("Add", ["x", "a"], ["y"])],
    "square": [node("Mul", ["x", "x"], ["a"]), node("MatMul", ["a", "w"], ["y"])],
    "shifted": [node("Add", ["x", "b"], ["a"]), node("MatMul", ["a", "w"], ["y"])],
    "residual": [
        node("MatMul", ["x", "w"], ["a"]),
        node("Mul", ["a", "a"], ["c"]),
        node("Add", ["x", "c"], ["y"]),
    ],
    "function": [node("Tanh", ["x"], ["a"], "first"), node("MatMul", ["a", "w"], ["y"])],
    "nothing": [node("Identity", ["x"], ["y"])],
}


def model(build: Build, name: str) -> onnx.ModelProto:
    return build(MODELS[name], [6], {"w": WEIGHTS, "b": WEIGHTS[0]})


def compiled(
    source: onnx.ModelProto, fit: compiler.Fit | None = None, *, unit: bool = True
) -> compiler.Program:
    return compiler.compile_program(
        source, compiler.Target(slots=8, levels=8, packing="coefficients" if unit else "slots"), fit
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_program_of_divided_inputs_computes_the_same(build: Build, name: str) -> None:
    source, fit = model(build, name), compiler.Fit(calibration=SAMPLES)
    plain, divided = compiled(source, fit, unit=False), compiled(source, fit)
    assert divided.input.range is not None
    assert (plain.input.scale, divided.input.scale) == (
        1.0,
        2.0 ** math.ceil(np.log2(np.abs(divided.input.range).max())),
    )
    low, high = divided.input.range
    assert low < SAMPLES.min() < SAMPLES.max() < high
    for sample in SAMPLES[:5]:
        packed = divided.pack(sample)
        assert np.abs(packed).max() <= 1
        assert (packed * divided.input.scale == plain.pack(sample)).all()
        expected = run_clear(plain, sample)
        # Sums of six products, and what a polynomial of doubles adds.
        assert np.abs(run_clear(divided, sample) - expected).max() <= 1e-12 * max(np.abs(expected).max(), 1)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_values_between_scaled_ends_need_no_run_of_their_own(
    build: Build, name: str, thin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of a model's values is what a run of the scaled graph would measure."""
    samples = SAMPLES * 10.0 ** -np.arange(6)
    approximated = compiler.approximate(model(build, name), compiler.Fit(calibration=samples))
    target = compiler.Target(slots=8, levels=8, packing="coefficients" if thin else "slots")
    known: list[tuple[Graph, dict[int, float]]] = []
    measured = 0

    def run(graph: Graph, samples: Vector) -> dict[int, float]:
        nonlocal measured
        measured += 1
        return largest_values(graph, samples)

    def bounded(graph: Graph, largest: dict[int, float]) -> None:
        known.append((Graph(dict(graph.nodes), graph.output), dict(largest)))

    monkeypatch.setattr(programs, "largest_values", run)
    monkeypatch.setattr(programs, "_bound_hidden", bounded)
    program = compiler.compile_program(approximated, target)
    ((graph, largest),) = known
    assert {
        n: pytest.approx(peak, rel=1e-12)
        for n, peak in largest_values(graph, np.asarray(program.input.entering(samples))).items()
    } == largest
    assert not (measured and name in ("linear", "twice", "shifted"))


@pytest.mark.parametrize(
    ("name", "more"), [("linear", 0), ("twice", 0), ("shifted", 0), ("square", 1), ("function", 0)]
)
def test_dividing_takes_a_level_only_where_no_linear_map_reads_the_input(
    build: Build, name: str, more: int
) -> None:
    source = model(build, name)
    fit = compiler.Fit(calibration=SAMPLES, activations={"tanh": "chebyshev:7"} if name == "function" else {})
    assert compiled(source, fit).depth == compiled(source, fit, unit=False).depth + more


def test_a_range_is_given_or_measured_or_none(build: Build) -> None:
    linear, function = model(build, "linear"), model(build, "function")
    for unit, expected in ((False, None), (True, (-1.0, 1.0))):
        program = compiled(linear, unit=unit)
        assert (program.input.range, program.input.scale) == (expected, 1.0)
    given = compiled(linear, compiler.Fit(ranges=compiler.Ranges(input_range=(-0.2, 0.25))))
    assert (given.input.range, given.input.scale) == ((-0.2, 0.25), 0.25)
    assert compiled(linear, compiler.Fit(ranges=compiler.Ranges(input_range=(-5.0, 4.0)))).input.scale == 8
    # No polynomial limits the inputs, but ciphertexts declare a magnitude.
    largest = HEADROOM * np.abs(SAMPLES).max()
    unbounded = compiled(linear, compiler.Fit(calibration=SAMPLES), unit=False)
    assert unbounded.input.range == (-largest, largest)
    assert unbounded.input.magnitude is not None
    assert unbounded.input.magnitude >= largest
    low, high = compiled(function, compiler.Fit(calibration=SAMPLES), unit=False).input.range or (0, 0)
    assert low < SAMPLES.min() < SAMPLES.max() < high


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0), (0.0, 2.0**65)])
def test_a_range_that_is_none_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="low < high"):
        compiler.Ranges(input_range=ends)


def test_data_outside_of_the_given_range_are_refused(build: Build) -> None:
    with pytest.raises(
        EncodeError, match="give one that holds them", check=lambda error: error.code == "samples"
    ):
        compiled(
            model(build, "linear"),
            compiler.Fit(calibration=SAMPLES, ranges=compiler.Ranges(input_range=(-1.0, 1.0))),
        )
    huge: Any = SAMPLES * 1e30
    with pytest.raises(EncodeError, match="scale them", check=lambda error: error.code == "samples"):
        compiled(model(build, "linear"), compiler.Fit(calibration=huge))
