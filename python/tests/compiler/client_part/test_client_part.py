"""The client's part of a model, behind its scores: found, run, stored, and refused if malformed."""

import base64
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from keywright import compiler
from keywright.errors import FormatError, ModelRefusedError, RefusalError
from keywright.program.client.last_steps import ClientPart
from keywright.runtime import run_clear
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
TARGET = compiler.Target(slots=256, levels=60)
RNG = np.random.default_rng(7)
SAMPLES = RNG.normal(size=(120, 4)).astype(np.float32)
NAMES = np.where(SAMPLES[:, 0] > SAMPLES[:, 1] ** 2, "yes", "no")
THREE = np.digitize(SAMPLES[:, 0] + SAMPLES[:, 2], [-0.6, 0.6]) + 7

MODELS: dict[str, tuple[Any, Any]] = {
    "logistic regression of two": (make_pipeline(StandardScaler(), LogisticRegression()), NAMES),
    "logistic regression of three": (make_pipeline(MinMaxScaler(), LogisticRegression()), THREE),
    "ridge": (RidgeClassifier(), THREE),
    "linear SVM": (LinearSVC(), NAMES),
    "linear discriminants": (LinearDiscriminantAnalysis(), THREE),
    "descent": (SGDClassifier(loss="log_loss", random_state=1), THREE),
    "naive Bayes": (GaussianNB(), THREE),
    "quadratic SVM of two": (SVC(kernel="poly", degree=2, coef0=1.0), NAMES),
    "cubic SVM of three": (SVC(kernel="poly", degree=3), THREE),
    "radial SVM": (SVC(), THREE),
    "perceptron of two": (MLPClassifier((4,), max_iter=40, random_state=1), NAMES),
    "perceptron of three": (MLPClassifier((4,), activation="tanh", max_iter=40, random_state=1), THREE),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_of_scikit_learn(name: str) -> None:
    estimator, labels = MODELS[name]
    estimator.fit(SAMPLES, labels)
    model = compiler.to_onnx(estimator, SAMPLES)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES))
    checked = compiler.check(program, SAMPLES, model)
    labels, *others = program.answers(checked.expected).values()
    assert np.array_equal(labels.ravel(), estimator.predict(SAMPLES))
    # Labels follow from the signs of scores and of their differences, and these from polynomials, too.
    answers, *_ = program.answers(checked.outputs).values()
    scores, error = checked.expected.reshape(len(SAMPLES), -1), checked.max_abs_error
    apart = np.abs(scores[:, :, None] - scores[:, None, :])[:, *np.triu_indices(scores.shape[1], 1)]
    decided = (np.abs(scores) > error).all(1) & (apart > 2 * error).all(1)
    assert np.array_equal(answers.ravel()[decided], labels.ravel()[decided])
    assert decided.mean() > 0.5
    if hasattr(estimator, "predict_proba"):
        (probabilities,) = others
        np.testing.assert_allclose(
            probabilities.reshape(len(SAMPLES), -1), estimator.predict_proba(SAMPLES), atol=2**-18
        )


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(
    "name", ["logistic regression of three", "quadratic SVM of two", "perceptron of two"]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
def test_exports_in_double_precision(name: str, opset: int) -> None:
    estimator, labels = MODELS[name]
    doubles = SAMPLES.astype(np.float64)
    estimator.fit(doubles, labels)
    model = to_onnx(estimator, doubles[:1], target_opset={"": opset, "ai.onnx.ml": 3})
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=doubles))
    checked = compiler.check(program, doubles, model)
    labels, *_ = program.answers(checked.expected).values()
    assert np.array_equal(labels.ravel(), estimator.predict(doubles))


def test_answers_are_those_of_the_whole_model() -> None:
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(SAMPLES, THREE)
    model = compiler.to_onnx(estimator, SAMPLES)
    program = compiler.compile_program(model, TARGET)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {"X": SAMPLES[:9]})
    answers = program.answers(run_clear(program, SAMPLES[:9]))
    assert np.array_equal(answers["output_label"], labels)
    for shares, expected in zip(answers["output_probability"], probabilities, strict=True):
        np.testing.assert_allclose(shares, list(expected.values()), atol=2**-18)


WEIGHTS = {"w": np.arange(12, dtype=np.float32).reshape(4, 3) - 5}


def test_softmax_takes_no_level(build: Build) -> None:
    model = build([node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"])], (4,), WEIGHTS)
    program = compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    assert program.depth == 1
    assert program.output.client_part is not None
    assert program.output.client_part.operators == ("Softmax",)
    outputs = run_clear(program, SAMPLES[:5])
    exponentials = np.exp(outputs - outputs.max(1, keepdims=True))
    np.testing.assert_allclose(
        program.answers(outputs)["y"], exponentials / exponentials.sum(1, keepdims=True), atol=2**-20
    )


def test_a_sigmoid_at_the_end_takes_no_level(build: Build) -> None:
    model = build([node("MatMul", ["x", "w"], ["h"]), node("Sigmoid", ["h"], ["y"])], (4,), WEIGHTS)
    program = compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    assert program.output.client_part is not None
    assert program.output.client_part.operators == ("Sigmoid",)
    outputs = run_clear(program, SAMPLES[:5])
    np.testing.assert_allclose(program.answers(outputs)["y"], 1 / (1 + np.exp(-outputs)), atol=2**-20)


def test_activations_right_before_it_are_the_clients(build: Build) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("MatMul", ["r", "v"], ["s"]),
        node("Add", ["s", "b"], ["t"]),
        node("Sigmoid", ["t"], ["p"]),
        node("ArgMax", ["p"], ["i"], axis=1),
        node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = WEIGHTS | {"v": np.eye(3, dtype=np.float32), "b": np.ones(3, np.float32)}
    program = compiler.compile_program(
        build(nodes, (4,), constants), TARGET, compiler.Fit(calibration=SAMPLES)
    )
    assert program.output.client_part is not None
    assert program.output.client_part.operators == ("Sigmoid", "ArgMax", "Cast")
    assert program.fit_report is not None
    assert [fitted.label.split()[0] for fitted in program.fit_report.activations] == ["Relu"]


def test_log_softmax_in_the_middle_is_refused(build: Build) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("LogSoftmax", ["h"], ["s"], "gate"),
        node("MatMul", ["s", "v"], ["y"]),
    ]
    with pytest.raises(
        ModelRefusedError,
        match="'gate': operator LogSoftmax is not supported; it is supported only at the end",
    ):
        compiler.compile_program(build(nodes, (4,), WEIGHTS | {"v": np.eye(3, dtype=np.float32)}), TARGET)


def softmax_in_parts(axis: int) -> list[onnx.NodeProto]:
    """exp(h - max) / sum, as jax2onnx writes it."""
    return [
        node("MatMul", ["x", "w"], ["h"]),
        node("ReduceMax", ["h"], ["most"], axes=[axis], keepdims=0),
        node("Max", ["least", "most"], ["m"]),
        node("Reshape", ["m", "shape"], ["wide"]),
        node("Sub", ["h", "wide"], ["centred"]),
        node("Exp", ["centred"], ["e"]),
        node("ReduceSum", ["e", "axis"], ["total"], keepdims=0),
        node("Reshape", ["total", "shape"], ["all"]),
        node("Div", ["e", "all"], ["y"]),
    ]


def test_softmax_in_its_parts_takes_no_level(build: Build) -> None:
    constants = WEIGHTS | {
        "least": np.float32(-np.inf),
        "shape": np.asarray([-1, 1]),
        "axis": np.asarray([1]),
    }
    model = build(softmax_in_parts(1), (4,), constants)
    program = compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    assert program.output.client_part is not None
    assert program.output.client_part.operators == ("Softmax",)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": SAMPLES[:5]})
    np.testing.assert_allclose(program.answers(run_clear(program, SAMPLES[:5]))["y"], expected, atol=2**-20)
    # Sums over samples, spread over samples, are something else.
    constants |= {"shape": np.asarray([1, -1]), "axis": np.asarray([0])}
    with pytest.raises(ModelRefusedError):
        compiler.compile_program(
            build(softmax_in_parts(0), (4,), constants), compiler.Target(slots=16, levels=1)
        )


def test_the_result_of_a_logistic_model_is_its_logit(build: Build) -> None:
    weights = WEIGHTS["w"][:, :1]
    model = build([node("MatMul", ["x", "w"], ["h"]), node("Sigmoid", ["h"], ["y"])], (4,), {"w": weights})
    program = compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    logits = run_clear(program, SAMPLES[:5])
    np.testing.assert_allclose(logits, SAMPLES[:5] @ weights, atol=2**-20)
    answers = program.answers(logits)["y"]
    np.testing.assert_allclose(answers.ravel(), 1 / (1 + np.exp(-logits.ravel())), atol=2**-20)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_classes_of_one_score_keep_their_labels() -> None:
    """Its sign is the prediction. The choice of polynomials preserves it, and the report counts it."""
    rng = np.random.default_rng(8)
    samples = rng.normal(size=(300, 6)).astype(np.float32)
    labels = np.where(np.abs(samples[:, 0]) + samples[:, 1] > 1, "yes", "no")
    estimator = MLPClassifier((8,), max_iter=300, random_state=1).fit(samples, labels)
    model = compiler.to_onnx(estimator, samples)
    coarse = compiler.Fit(calibration=samples, activations={"relu": "chebyshev:2"})
    shares = []
    for fit in (coarse, compiler.Fit(calibration=samples, accuracy=1.0)):
        program = compiler.compile_program(model, TARGET, fit)
        checked = compiler.check(program, samples, model)
        assert checked.outputs.shape == (300, 1)
        answers = program.answers(checked.outputs)["output_label"].ravel()
        shares.append(float((answers == estimator.predict(samples)).mean()))
        assert checked.agreement == shares[-1]
        assert program.fit_report is not None
        held_out = np.arange(300) % 5 == 4
        assert (
            program.fit_report.outputs.agreement == (answers == estimator.predict(samples))[held_out].mean()
        )
    assert shares[0] < 1.0
    assert shares[1] == 1.0


def test_an_accuracy_of_values_is_refused() -> None:
    network = MLPRegressor(hidden_layer_sizes=(4,), max_iter=10, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit(SAMPLES, SAMPLES[:, 0])
    with pytest.raises(ModelRefusedError, match=r"values and not labels, .* \(error=\)") as caught:
        compiler.compile_program(
            compiler.to_onnx(network, SAMPLES), TARGET, compiler.Fit(calibration=SAMPLES, accuracy=0.9)
        )
    assert isinstance(caught.value.exceptions[0], RefusalError)
    assert caught.value.exceptions[0].code == "labels"


@pytest.fixture
def stored(build: Build, tmp_path: Path) -> tuple[compiler.Program, Path]:
    model = build([node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"])], (4,), WEIGHTS)
    program = compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    compiler.save(program, tmp_path / "network.kwp")
    return program, tmp_path / "network.kwp"


def test_it_is_in_the_program_file(stored: tuple[compiler.Program, Path]) -> None:
    program, path = stored
    loaded, outputs = compiler.load(path), SAMPLES[:4, :3]
    assert np.array_equal(loaded.answers(outputs)["y"], program.answers(outputs)["y"])


def part(nodes: list[onnx.NodeProto], **constants: np.ndarray) -> bytes:
    graph = helper.make_graph(
        nodes,
        "client",
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return model


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"model": b"nothing"}, "cannot be read|0 inputs"),
        ({"model": part([node("Expand", ["h", "s"], ["y"])], s=np.asarray([1 << 40]))}, "operator 'Expand'"),
        ({"model": part([node("Loop", ["h"], ["y"])])}, "operator 'Loop'"),
        ({"model": part([node("Identity", ["h"], ["y"])] * 1100)}, "1100 nodes"),
        ({"model": part([node("Neg", ["h"], ["y"])], c=np.zeros(1 << 18))}, "at most 1048576"),
        ({"shape": [1, 4]}, "returns 3 values"),
        ({"shape": [-1, -3]}, "returns 3 values"),
        ({"shape": [1, 3.0]}, "size of the client's part"),
        ({"model": 7}, "base64"),
        ({"shape": 3}, "not an object"),
    ],
)
def test_foreign_parts(stored: tuple[compiler.Program, Path], entry: dict[str, Any], word: str) -> None:
    _, path = stored
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(entries["program.json"])
    changes = {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in entry.items()}
    description["client_part"] |= changes
    entries["program.json"] = json.dumps(description).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program"):
        compiler.load(path)


def test_a_part_that_grows_is_stopped() -> None:
    """Each sum of a row and a column squares the size."""
    nodes = []
    for step, name in enumerate("habcd"):
        after = "habcdy"[step + 1]
        nodes += [
            node("Flatten", [name], [f"r{step}"], axis=0),
            node("Transpose", [f"r{step}"], [f"c{step}"]),
        ]
        nodes.append(node("Add", [f"r{step}", f"c{step}"], [after]))
    growing = ClientPart(part(nodes), (1, 3))
    with pytest.raises(
        FormatError, match="operands that are too large", check=lambda error: error.code == "program"
    ):
        growing.run(np.ones((1, 3)))


@pytest.mark.parametrize(
    ("nodes", "word"),
    [
        ([node("Neg", ["h"], ["x"])], "KeyError"),
        ([node("Add", ["h", "nothing"], ["y"])], "Add of the client's part"),
        ([node("TopK", ["h"], ["y"])], "TopK of the client's part|cannot be run"),
        ([node("Neg", ["h"], ["y"], domain="ai.onnx.ml")], "cannot be read: Domain"),
    ],
)
def test_parts_that_cannot_be_run(nodes: list[onnx.NodeProto], word: str) -> None:
    with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program"):
        ClientPart(part(nodes), (1, 3)).run(SAMPLES[:2, :3])


def test_sizes_of_a_part_are_whole_numbers() -> None:
    model = base64.b64encode(part([node("Neg", ["h"], ["y"])])).decode()
    assert ClientPart.read({"shape": [1, 3], "model": model}, 3).shape == (1, 3)
    for size in (3.0, "3", None, [3], 1 << 70):
        with pytest.raises(
            FormatError, match="not a client's part: a size", check=lambda error: error.code == "program"
        ):
            ClientPart.read({"shape": [1, size], "model": model}, 3)


def test_a_constant_of_no_known_type_cannot_be_run() -> None:
    model = onnx.load_model_from_string(part([node("Add", ["h", "c"], ["y"])], c=np.zeros(3, np.float32)))
    model.graph.initializer[0].data_type = 99
    with pytest.raises(FormatError, match="cannot be read", check=lambda error: error.code == "program"):
        ClientPart(model.SerializeToString(), (1, 3)).run(SAMPLES[:2, :3])
