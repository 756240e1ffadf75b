"""RNN, GRU and LSTM, unrolled, against onnxruntime: the graph with exact functions, and a program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.checking import run_onnxruntime
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.graph.simplify import simplify
from keywright.errors import ModelRefusedError
from numpy.typing import NDArray
from onnx import helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
RNG = np.random.default_rng(3)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def weights(operator: str, features: int, hidden: int, directions: int = 1) -> dict[str, NDArray[Any]]:
    rows = GATES[operator] * hidden
    shapes = {"w": (rows, features), "r": (rows, hidden), "b": (2 * rows,)}
    return {
        name: RNG.normal(size=(directions, *shape)).astype(np.float32) / 2 for name, shape in shapes.items()
    }


def exactly(model: onnx.ModelProto, samples: NDArray[np.float64]) -> None:
    """Check that the graph, before and after it is simplified, computes the model."""
    read = import_model(model)
    assert not read.reasons
    expected = run_onnxruntime(model, samples).reshape(len(samples), -1)
    for graph in (read.graph, simplify(read.graph)):
        outputs = graph.evaluate(samples.reshape(len(samples), -1))[graph.output]
        # Values are at most 1; each of some 50 operations of a step is rounded to single precision.
        assert np.abs(outputs - expected).max() < 50 * samples.shape[1] * 2**-23


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("operator", "output"),
    [("RNN", 0), ("RNN", 1), ("GRU", 0), ("GRU", 1), ("LSTM", 0), ("LSTM", 1), ("LSTM", 2)],
)
def test_against_onnxruntime(build: Build, operator: str, direction: str, output: int) -> None:
    directions = 2 if direction == "bidirectional" else 1
    names = [*[""] * output, "s"]
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node(operator, ["t", "w", "r", "b"], names, direction=direction, hidden_size=4),
        node("Identity", ["s"], ["y"]),
    ]
    model = build(nodes, (3, 5), weights(operator, 5, 4, directions), batch=1)
    exactly(model, RNG.normal(size=(4, 3, 5)))


@pytest.mark.parametrize("late", [0, 1])
def test_the_reset_gate_before_and_after_the_matrix(build: Build, late: int) -> None:
    gru = node("GRU", ["t", "w", "r", "b"], ["", "y"], hidden_size=4, linear_before_reset=late)
    model = build(
        [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), gru], (3, 5), weights("GRU", 5, 4), batch=1
    )
    exactly(model, RNG.normal(size=(4, 3, 5)))


def test_initial_states(build: Build) -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("LSTM", ["t", "w", "r", "b", "", "h", "c"], ["", "y"], hidden_size=4),
    ]
    states = {name: RNG.normal(size=(1, 1, 4)).astype(np.float32) for name in "hc"}
    model = build(nodes, (2, 5), weights("LSTM", 5, 4) | states, batch=1)
    exactly(model, RNG.normal(size=(4, 2, 5)))


def test_other_functions(build: Build) -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("RNN", ["t", "w", "r", "b"], ["", "y"], hidden_size=4, activations=["Relu"]),
    ]
    model = build(nodes, (3, 5), weights("RNN", 5, 4), batch=1)
    read = import_model(model)
    assert not read.reasons
    samples = RNG.normal(size=(4, 3, 5)) / 8
    expected = run_onnxruntime(model, samples).reshape(4, -1)
    outputs = read.graph.evaluate(samples.reshape(4, -1))[read.graph.output]
    assert np.abs(outputs - expected).max() < 50 * 3 * 2**-23 * max(np.abs(expected).max(), 1)


def test_one_step_as_a_program(build: Build) -> None:
    """A step from zero is as deep as its gates: a mapped range, a polynomial for each, and a product."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("GRU", ["t", "w", "r", "b"], ["", "s"], hidden_size=8, linear_before_reset=1),
        node("Squeeze", ["s", "a"], ["h"]),
        node("MatMul", ["h", "v"], ["y"]),
    ]
    constants: dict[str, Any] = {"a": np.asarray([0]), "v": RNG.normal(size=(8, 3)).astype(np.float32)}
    model = build(nodes, (1, 5), weights("GRU", 5, 8) | constants, batch=1)
    samples = RNG.normal(size=(60, 1, 5)).astype(np.float32)
    methods = {"sigmoid": "chebyshev:15", "tanh": "chebyshev:15"}
    program = compiler.compile_program(
        model, compiler.Target(slots=64, levels=30), compiler.Fit(calibration=samples, activations=methods)
    )
    assert program.fit_report is not None
    assert len(program.fit_report.activations) == 3
    errors = sum(fitted.max_error for fitted in program.fit_report.activations)
    # (1 - z) n is off by at most what z, n and r are, times what these are multiplied by: for r the bias of
    # the state, which is below 2.
    reach = np.abs(constants["v"]).sum(0).max() * (1 + errors) * 2
    assert compiler.check(program, samples, model).max_abs_error <= reach * errors + 2**-18


@pytest.mark.parametrize(
    ("attributes", "word"),
    [
        ({"clip": 1.0}, "clip"),
        ({"layout": 1}, "(steps, 1, features)|layout"),
        ({"activations": ["Affine"]}, "Sigmoid"),
    ],
)
def test_refusals(build: Build, attributes: dict[str, Any], word: str) -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("RNN", ["t", "w", "r", "b"], ["", "s"], hidden_size=4, **attributes),
        node("Flatten", ["s"], ["y"]),
    ]
    with pytest.raises(ModelRefusedError, match=word):
        compiler.compile_program(
            build(nodes, (1, 5), weights("RNN", 5, 4), batch=1), compiler.Target(slots=64, levels=5)
        )
