"""Where the client takes over: several scores, and no weight of the encrypted part on its side."""

import warnings
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import ModelRefusedError, RefusalError
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import Lasso, LogisticRegression, RANSACRegressor, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import LinearSVC

node = helper.make_node
RNG = np.random.default_rng(11)
SAMPLES = RNG.normal(size=(150, 8)).astype(np.float32)
THREE = np.digitize(SAMPLES[:, 0] + SAMPLES[:, 2], [-0.6, 0.6]) + 7
TWO = np.where(SAMPLES[:, 0] > SAMPLES[:, 1], "yes", "no")
TARGETS = np.stack((SAMPLES[:, 0] * 2, SAMPLES[:, 1] + SAMPLES[:, 2]), axis=1)
TARGET = compiler.Target(slots=256, levels=30)
WEIGHTS: dict[str, NDArray[Any]] = {
    "w0": RNG.normal(size=(8, 16)).astype(np.float32) / 3,
    "w1": RNG.normal(size=(16, 3)).astype(np.float32) / 3,
    "w2": RNG.normal(size=(16, 2)).astype(np.float32) / 3,
    "gain": RNG.normal(size=3).astype(np.float32),
}
BODY = [
    node("MatMul", ["x", "w0"], ["a"]),
    node("Mul", ["a", "a"], ["b"]),
    node("MatMul", ["b", "w1"], ["c"]),
]
ENDS: dict[str, tuple[list[onnx.NodeProto], list[str]]] = {
    "softmax": ([node("Softmax", ["c"], ["y"])], ["y"]),
    "shape of the scores": (
        [
            node("Shape", ["c"], ["s"]),
            node("Flatten", ["c"], ["f"]),
            node("Softmax", ["f"], ["p"]),
            node("Reshape", ["p", "s"], ["y"]),
        ],
        ["y"],
    ),
    "shape of a hidden value": (
        [
            node("Shape", ["b"], ["s"]),
            node("Cast", ["s"], ["n"], to=TensorProto.FLOAT),
            node("ReduceMax", ["n"], ["most"], keepdims=0),
            node("Softmax", ["c"], ["p"]),
            node("Div", ["p", "most"], ["y"]),
        ],
        ["y"],
    ),
    "shape of the input": (
        [
            node("Shape", ["x"], ["s"], start=0, end=1),
            node("Constant", [], ["rest"], value=numpy_helper.from_array(np.asarray([3]))),
            node("Concat", ["s", "rest"], ["t"], axis=0),
            node("Softmax", ["c"], ["p"]),
            node("Reshape", ["p", "t"], ["y"]),
        ],
        ["y"],
    ),
    "weights before a function before the softmax": (
        [
            node("Mul", ["c", "gain"], ["g"]),
            node("Tanh", ["g"], ["t"]),
            node("Softmax", ["t"], ["y"]),
        ],
        ["y"],
    ),
    "scores and labels": (
        [node("Softmax", ["c"], ["p"]), node("ArgMax", ["c"], ["l"], axis=1, keepdims=0)],
        ["p", "l", "c"],
    ),
    "two heads": (
        [
            node("MatMul", ["b", "w2"], ["d"]),
            node("Softmax", ["c"], ["p"]),
            node("ArgMax", ["d"], ["l"], axis=1, keepdims=0),
        ],
        ["p", "l"],
    ),
    "two outputs": ([node("MatMul", ["b", "w2"], ["d"])], ["c", "d"]),
    "heads that meet": (
        [
            node("MatMul", ["b", "w2"], ["d"]),
            node("Softmax", ["c"], ["p"]),
            node("ReduceMax", ["d"], ["m"], axes=[1], keepdims=1),
            node("Mul", ["p", "m"], ["y"]),
            node("ArgMax", ["y"], ["l"], axis=1, keepdims=0),
        ],
        ["l", "y"],
    ),
}


def model(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    read = {name for each in nodes for name in each.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items() if name in read],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    typed = onnx.shape_inference.infer_shapes(built)
    onnx.checker.check_model(typed)
    return typed


def numbers(answer: onnx.ModelProto) -> set[float]:
    """All floating-point constants of a model."""
    tensors = [*answer.graph.initializer]
    tensors += [entry.t for each in answer.graph.node for entry in each.attribute if entry.HasField("t")]
    arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
    lists = [entry.floats for each in answer.graph.node for entry in each.attribute]
    given = [np.asarray(array).ravel() for array in [*arrays, *lists]]
    return {float(value) for array in given if array.dtype.kind == "f" for value in array}


@pytest.mark.parametrize("name", ENDS)
def test_the_client_gets_no_weight_and_computes_every_output(name: str) -> None:
    nodes, outputs = ENDS[name]
    source = model([*BODY, *nodes], outputs)
    program = compiler.compile_program(source, TARGET, compiler.Fit(calibration=SAMPLES))
    assert program.output.client_part is not None
    part = onnx.load_model_from_string(program.output.client_part.data)
    secret = {float(value) for array in WEIGHTS.values() for value in array.ravel()}
    assert not numbers(part) & secret
    answers = program.answers(run_clear(program, SAMPLES[:5]))
    for row in range(5):
        exact: Any = ReferenceEvaluator(source).run(None, {"x": SAMPLES[row : row + 1]})
        for output, expected in zip(outputs, exact, strict=True):
            np.testing.assert_allclose(answers[output][row], np.squeeze(expected, 0), atol=2e-2)


def test_an_end_that_reads_weights_of_the_encrypted_part_is_refused() -> None:
    nodes = [
        node("ArgMax", ["c"], ["l"], axis=1, keepdims=0),
        node("Transpose", ["w1"], ["rows"]),
        node("Gather", ["rows", "l"], ["y"]),
    ]
    with pytest.raises(ModelRefusedError, match="read the weights 'w1' of shape") as caught:
        compiler.compile_program(model([*BODY, *nodes], ["y"]), TARGET)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "client"


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=500)


HEADS: dict[str, tuple[Any, Any]] = {
    "one against the rest": (OneVsRestClassifier(logistic()), THREE),
    "one against the rest, margins": (OneVsRestClassifier(LinearSVC()), THREE),
    "one against one": (OneVsOneClassifier(logistic()), THREE),
    "Platt scaling of two": (CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3), TWO),
    "Platt scaling of three": (CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3), THREE),
    "bagging": (BaggingClassifier(logistic(), 3, random_state=0), THREE),
    "bagging of features": (BaggingClassifier(logistic(), 3, max_features=0.5, random_state=0), THREE),
    "bagging, values": (BaggingRegressor(Ridge(), 3, random_state=0), TARGETS[:, 0]),
    "several values": (MultiOutputRegressor(Ridge()), TARGETS),
    "votes, values": (VotingRegressor([("a", Ridge()), ("b", Lasso(0.01))]), TARGETS[:, 0]),
    "stacked values": (StackingRegressor([("a", Ridge()), ("b", Lasso(0.01))], Ridge()), TARGETS[:, 0]),
    "robust values": (RANSACRegressor(Ridge(), min_samples=20, random_state=0), TARGETS[:, 0]),
}


@pytest.mark.parametrize("name", HEADS)
def test_several_linear_heads(name: str) -> None:
    estimator, target = HEADS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(SAMPLES, target)
    compiled = kw.compile(estimator, calibration=SAMPLES)
    assert compiled.program.depth == 1
    outputs = compiled.simulate(SAMPLES[:20]).outputs
    expected = estimator.predict(SAMPLES[:20])
    answers = compiled.answers(outputs)
    if not answers:
        np.testing.assert_allclose(outputs.reshape(expected.shape), expected, atol=2e-2)
        return
    label, probabilities = answers.values()
    assert np.array_equal(label.ravel(), expected)
    if hasattr(estimator, "predict_proba") and not isinstance(estimator, OneVsOneClassifier):
        np.testing.assert_allclose(probabilities, estimator.predict_proba(SAMPLES[:20]), atol=2e-3)
