"""Answers and the predicted errors of values of any size."""

from __future__ import annotations

import keywright as kw
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

SCALES = [1e-9, 1e-3, 1.0, 1e6, 1e9, 1e12]


@pytest.mark.parametrize("size", SCALES)
@pytest.mark.parametrize("kind", ["linear", "dense", "convolution"])
def test_answers_and_predicted_errors_hold_for_any_size(kind: str, size: float) -> None:
    """Errors measured under encryption, beside the simulated ones and the spread of the outputs."""
    rng = np.random.default_rng([SCALES.index(size), len(kind)])
    shape = (1, 6, 6) if kind == "convolution" else (6,)
    node, tensor = helper.make_node, numpy_helper.from_array
    if kind == "convolution":
        kernel = rng.normal(size=(2, 1, 3, 3)) / size
        nodes = [node("Conv", ["x", "k"], ["h"], "conv"), node("Flatten", ["h"], ["f"])]
        nodes += [node("MatMul", ["f", "u"], ["y"], "out")]
        tensors = [tensor(kernel, "k"), tensor(rng.normal(size=(32, 3)), "u")]
    else:
        first, last = rng.normal(size=(6, 5)) / size, rng.normal(size=(5, 3))
        nodes = [node("MatMul", ["x", "k"], ["h"], "first")]
        nodes += [node("Mul", ["h", "h"], ["s"], "square")] if kind == "dense" else []
        nodes += [node("MatMul", ["s" if kind == "dense" else "h", "u"], ["y"], "out")]
        tensors = [tensor(first, "k"), tensor(last, "u")]
    graph = helper.make_graph(
        nodes,
        kind,
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["batch", 3])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    samples = size * rng.normal(size=(60, *shape))
    compiled = kw.compile(model, samples)
    chosen = samples[:16]
    simulated = compiled.simulate(chosen)
    errors = np.abs(compiled.predict(chosen) - simulated.outputs)
    assert simulated.mean_error / 4 <= errors.mean() <= simulated.mean_error * 4
    assert errors.max() <= simulated.worst_error * 4
    predicted = compiled.encrypted_error
    assert predicted is not None
    assert predicted.share < 1e-4
    assert errors.max() <= 1e-4 * simulated.outputs.std(axis=0).max()


def test_every_input_and_output_has_its_own_size() -> None:
    """Unix times beside small numbers; outputs of a million and of a thousandth, far from 0."""
    rng = np.random.default_rng(3)
    scales, offsets = np.array([1e5, 1e-6, 1.0, 1e9]), np.array([1.7e9, 0.0, -30.0, 4e9])
    samples = offsets + scales * rng.normal(size=(60, 4))
    weights = rng.normal(size=(4, 3)) / scales[:, None] * np.array([1e6, 1e-3, 1.0])
    bias = np.array([5e7, 0.25, 0.0]) - offsets @ weights
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])],
        "sizes",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["batch", 3])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    compiled, expected = kw.compile(model, samples), samples @ weights + bias
    errors = np.abs(compiled.predict(samples[:8]) - expected[:8])
    assert (errors.max(axis=0) <= 1e-6 * expected.std(axis=0)).all()


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6], ids=["seconds", "milliseconds", "microseconds"])
def test_times_before_a_scaler_keep_their_digits(unit: float) -> None:
    """Single precision has 24 bits; a time in milliseconds has 41, of which the last 17 differ."""
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    times, others = 1.7e9 + rng.uniform(-1e5, 1e5, 200), rng.normal(size=(200, 2))
    samples = np.column_stack([unit * times, others])
    values = (times - 1.7e9) / 1e5 + others[:, 0]
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(samples, values)
    outputs = kw.compile(pipeline, samples).predict(samples[:8]).ravel()
    assert np.abs(outputs - pipeline.predict(samples[:8])).max() < 1e-6
