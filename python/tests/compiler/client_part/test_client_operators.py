"""Every operator that clients run, with its attributes and odd values, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from keywright.program.client.last_steps import ALLOWED
from keywright.program.client.small_model import SmallModel
from onnx import TensorProto, helper, numpy_helper

ort = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(35)
X = RNG.normal(size=(3, 4)).astype(np.float32)
ODD = np.array([[-2.5, -0.5, 0.5, 1.5], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, -3.0, 2.5]], np.float32)
POSITIVE = np.abs(ODD) + np.float32(0.25)
BOOL = ODD > 0
TEXT = "a text"

ELEMENTWISE = (
    "Abs",
    "Ceil",
    "Exp",
    "Floor",
    "Identity",
    "Neg",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Tanh",
)
PAIRS = ("Add", "Div", "Mul", "Pow", "Sub")
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
)
Case = tuple[str, dict[str, Any], list[Any]]


def cases() -> Iterator[Case]:
    """Yield operators, attributes and operands; the first operand is the input."""
    for name in ELEMENTWISE:
        yield name, {}, [ODD]
    for name in ("Log", "Sqrt", "Reciprocal"):
        yield name, {}, [POSITIVE]
    for name in PAIRS:
        yield name, {}, [POSITIVE, X]
        yield name, {}, [POSITIVE, X[0]]
    for name in COMPARISONS:
        yield name, {}, [ODD, ODD[:1]]
    for name in ("And", "Or", "Xor"):
        yield name, {}, [BOOL, ~BOOL[:1]]
    yield "Not", {}, [BOOL]
    yield "IsNaN", {}, [np.where(BOOL, ODD, np.nan).astype(np.float32)]
    for name in ("Max", "Min", "Mean", "Sum"):
        yield name, {}, [ODD, X, X[0]]
    for axis in (0, 1, -1):
        for name in ("Softmax", "LogSoftmax", "Hardmax"):
            yield name, {"axis": axis}, [ODD]
        for p in (1, 2):
            yield "LpNormalization", {"axis": axis, "p": p}, [X]
            yield "LpNormalization", {"axis": axis, "p": p}, [ODD[::2]]
        for keep in (0, 1):
            for last in (0, 1):
                yield "ArgMax", {"axis": axis, "keepdims": keep, "select_last_index": last}, [ODD]
                yield "ArgMin", {"axis": axis, "keepdims": keep, "select_last_index": last}, [ODD]
            for name in REDUCTIONS:
                yield name, {"keepdims": keep}, [ODD, np.array([axis])]
            yield "ReduceLogSum", {"keepdims": keep}, [POSITIVE, np.array([axis])]
        for largest in (0, 1):
            yield "TopK", {"axis": axis, "largest": largest}, [X, np.array([2])]
        yield "Concat", {"axis": axis}, [ODD, X]
        yield "Gather", {"axis": axis}, [ODD, np.array([[0, -1], [1, 2]])]
        yield "Flatten", {"axis": axis}, [ODD]
        yield "Split", {"axis": 1, "num_outputs": 2}, [ODD]
        yield "Unsqueeze", {}, [ODD, np.array([axis])]
    for name in REDUCTIONS:
        yield name, {}, [ODD]
        yield name, {"noop_with_empty_axes": 1}, [ODD, np.array([], np.int64)]
    for alpha in (0.5, 2.0):
        yield "Elu", {"alpha": alpha}, [ODD]
    yield "Clip", {}, [ODD, np.float32(-1), np.float32(2)]
    yield "Clip", {}, [ODD, np.float32(-1)]
    yield "Clip", {}, [ODD, None, np.float32(1)]
    for kind in (TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.INT32):
        yield "Cast", {"to": kind}, [ODD]
    yield "Reshape", {}, [ODD, np.array([0, -1, 2])]
    yield "Reshape", {}, [ODD, np.array([-1])]
    yield "Squeeze", {}, [ODD[:1], np.array([0])]
    yield "Squeeze", {}, [ODD[:1]]
    yield "Shape", {}, [ODD]
    yield "Shape", {"start": -1}, [ODD]
    yield "Slice", {}, [ODD, np.array([-1]), np.array([-4]), np.array([1]), np.array([-1])]
    yield "Slice", {}, [ODD, np.array([0]), np.array([99])]
    yield "Transpose", {}, [ODD]
    yield "Transpose", {"perm": [0, 1]}, [ODD]
    yield "Where", {}, [BOOL, X, ODD]
    yield "ArrayFeatureExtractor", {}, [ODD, np.array([2, 0])]
    for threshold in (0.0, 0.5, -0.5):
        yield "Binarizer", {"threshold": threshold}, [ODD]
    for norm in ("MAX", "L1", "L2"):
        if norm != "MAX":  # of negative values: see the test below
            yield "Normalizer", {"norm": norm}, [X]
        yield "Normalizer", {"norm": norm}, [POSITIVE]
    labels = {"keys_int64s": [0, 1, 2], "values_int64s": [7, 8, 9], "default_int64": -5}
    yield "LabelEncoder", labels, [np.array([[2, 0, 1, 4]])]
    for after in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        for count in (1, 2, 3):
            weights = {
                "coefficients": RNG.normal(size=4 * count).tolist(),
                "intercepts": RNG.normal(size=count).tolist(),
                "classlabels_ints": list(range(max(count, 2))),
                "post_transform": after,
                "multi_class": 0,
            }
            # Of one score for two labels, runtimes make different probabilities: compiling refuses that.
            if after != "PROBIT" and (count > 1 or after == "LOGISTIC"):
                yield "LinearClassifier", weights, [X]


CASES = list(cases())
EXCLUDED = {
    "Constant": "it has no operand",
    "SVMClassifier": "its cases are those of scikit-learn's models in test_sklearn",
}
ML = ("ArrayFeatureExtractor", "Binarizer", "LabelEncoder", "LinearClassifier", "Normalizer")


def test_no_operator_is_left_out() -> None:
    assert {name for name, _, _ in CASES} | set(EXCLUDED) == ALLOWED


@pytest.mark.parametrize(
    ("name", "attributes", "operands"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_clients_compute_what_onnxruntime_computes(
    name: str, attributes: dict[str, Any], operands: list[Any]
) -> None:
    arrays = [None if each is None else np.asarray(each) for each in operands]
    names = ["" if each is None else f"o{index}" for index, each in enumerate(arrays)]
    count = 2 if name in ("TopK", "Split", "LinearClassifier") else 1
    results = [f"r{index}" for index in range(count)]
    node = helper.make_node(name, names, results, domain="ai.onnx.ml" if name in ML else "", **attributes)
    first = arrays[0]
    assert first is not None
    stored = [
        numpy_helper.from_array(array, each)
        for each, array in zip(names[1:], arrays[1:], strict=True)
        if array is not None
    ]
    source = helper.make_tensor_value_info("o0", helper.np_dtype_to_tensor_dtype(first.dtype), first.shape)
    graph = helper.make_graph(
        [node], "step", [source], [onnx.ValueInfoProto(name=r) for r in results], stored
    )
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    data = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
    expected = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"o0": first})
    values = SmallModel(data, "a step", ALLOWED, 1 << 20).run({"o0": first})
    for result, right in zip(results, expected, strict=True):
        ours = np.asarray(values[result])
        assert ours.shape == right.shape
        np.testing.assert_allclose(ours.astype(np.float64), right.astype(np.float64), rtol=2e-5, atol=2e-6)


def test_the_largest_of_negative_values_is_that_of_scikit_learn() -> None:
    """The largest size, where onnxruntime takes the largest value."""
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    node = helper.make_node("Normalizer", ["o0"], ["r0"], domain="ai.onnx.ml", norm="MAX")
    source = helper.make_tensor_value_info("o0", TensorProto.FLOAT, X.shape)
    graph = helper.make_graph([node], "step", [source], [onnx.ValueInfoProto(name="r0")])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)]).SerializeToString()
    values = SmallModel(data, "a step", ALLOWED, 1 << 20).run({"o0": X})
    assert np.allclose(values["r0"], preprocessing.Normalizer("max").transform(X))
