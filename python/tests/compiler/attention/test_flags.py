"""Comparisons of an input whose elements are all 0 or 1 are exact, and other values are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.approximating import approximate
from keywright.compiler.front_ends.to_onnx import to_onnx
from keywright.errors import OutOfRangeError
from keywright.runtime import run_clear
from keywright.runtime.range_guard import guard
from onnx import helper
from onnx.reference import ReferenceEvaluator
from sklearn.naive_bayes import BernoulliNB

Build = Callable[..., onnx.ModelProto]
node = helper.make_node
FLAGS = np.c_[np.random.default_rng(6).random((80, 3)) < 0.4, np.zeros(80)].astype(np.float64)
TARGET = compiler.Target(slots=16, levels=6)


@pytest.mark.parametrize("number", [-1.0, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("comparison", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons_of_flags_are_exact(build: Build, comparison: str, number: float) -> None:
    nodes = [
        node(comparison, ["x", "c"], ["b"]),
        node("Where", ["b", "p", "q"], ["h"]),
        node("Add", ["h", "x"], ["s"]),
        node("MatMul", ["s", "w"], ["y"]),
    ]
    constants = {
        "c": np.asarray(number, np.float32),
        "p": np.asarray(1.0, np.float32),
        "q": np.asarray(-2.0, np.float32),
        "w": np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32),
    }
    model = build(nodes, (4,), constants)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=FLAGS))
    assert program.fit_report is not None
    assert not program.fit_report.activations
    samples = np.array([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], np.float64)
    results: Any = ReferenceEvaluator(model).run(None, {"x": samples.astype(np.float32)})
    guard(program, samples)
    assert np.abs(run_clear(program, samples) - results[0]).max() < 1e-5
    for value in (0.3, 2.0, -1.0, 1e-9, 5.0):
        for place in (0, 3):
            sample = samples[0].copy()
            sample[place] = value
            with pytest.raises(OutOfRangeError, match="0 to 1"):
                guard(program, sample)


def test_flags_of_a_naive_bayes_classifier_are_exact() -> None:
    estimator = BernoulliNB().fit(FLAGS, FLAGS[:, 0] + FLAGS[:, 1] > 0)
    compiled = approximate(to_onnx(estimator, FLAGS), compiler.Fit(calibration=FLAGS))
    assert not compiled.fitted
    assert compiled.steps.bits == (0, 1, 2, 3)
