"""Answers behind the client's last steps: where the smallest error changes them, clients know the exact
scores, or the report and `predict` say which answers it may change."""

import warnings
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright.errors import ModelRefusedError
from keywright.errors.engine import EncodeError
from keywright.model import Model
from keywright.program.client.jumps import moved
from keywright.program.client.last_steps import DECIDING, ONLY_HERE, ClientPart
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, TweedieRegressor
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

node = helper.make_node
RNG = np.random.default_rng(5)
COUNT, FRESH = 200, 300
POINTS = RNG.integers(0, 10, (COUNT, 4)).astype(float)
OTHERS = RNG.integers(0, 10, (FRESH, 4)).astype(float)
WEIGHTS = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0], [1.0, 4.0]])
CATEGORIES = RNG.integers(0, 4, (COUNT, 5))
UNSEEN = RNG.integers(0, 4, (FRESH, 5))
FREE = RNG.normal(size=(COUNT, 5))

STEPS: dict[str, tuple[list[onnx.NodeProto], int]] = {
    "floor": ([node("Floor", ["a"], ["y"])], 0),
    "ceil": ([node("Ceil", ["a"], ["y"])], 0),
    "half": ([node("Mul", ["a", "h"], ["b"]), node("Round", ["b"], ["y"])], 0),
    "cast": ([node("Cast", ["a"], ["y"], to=TensorProto.INT64)], TensorProto.INT64),
    "sign": ([node("Sub", ["a", "t"], ["b"]), node("Sign", ["b"], ["y"])], 0),
    "above": ([node("GreaterOrEqual", ["a", "t"], ["y"])], TensorProto.BOOL),
    "below": ([node("Less", ["a", "t"], ["y"])], TensorProto.BOOL),
    "same": ([node("Equal", ["a", "t"], ["y"])], TensorProto.BOOL),
    "best": ([node("ArgMax", ["a"], ["y"], axis=1)], TensorProto.INT64),
    "where": (
        [
            node("Greater", ["a", "t"], ["b"]),
            node("Neg", ["a"], ["n"]),
            node("Where", ["b", "n", "a"], ["y"]),
        ],
        0,
    ),
}
"""Steps that the smallest error changes, and the type of their result; 0 for that of the scores."""


def scoring(steps: str, kind: int, unit: float) -> onnx.ModelProto:
    """Return a model of whole multiples of a unit, then steps."""
    nodes, result = STEPS[steps]
    own = helper.tensor_dtype_to_np_dtype(kind)
    constants = {"w": WEIGHTS * unit, "t": np.array([20 * unit]), "h": np.array([0.5])}
    read = {name for each in nodes for name in each.input} | {"w"}
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["a"]), *nodes],
        "points",
        [helper.make_tensor_value_info("x", kind, ["n", 4])],
        [helper.make_tensor_value_info("y", result or kind, ["n", None])],
        [
            numpy_helper.from_array(array.astype(own), name)
            for name, array in constants.items()
            if name in read
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def predicted(model: Model, samples: Any) -> tuple[np.ndarray[Any, Any], str]:
    """Return outputs of `predict` and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outputs = model.predict(samples)
    return outputs, " ".join(str(each.message) for each in caught)


@pytest.mark.parametrize("unit", [1.0, 0.1])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("steps", STEPS)
def test_scores_on_a_step_are_exact_or_warned_of(steps: str, kind: int, unit: float) -> None:
    """Multiples of 1 and 1/2 are exact; of 0.1, the model's own roundings decide."""
    written = scoring(steps, kind, unit)
    own = helper.tensor_dtype_to_np_dtype(kind)
    (expected,) = ReferenceEvaluator(written).run(None, {"x": OTHERS.astype(own)})
    model = kw.compile(written, POINTS)
    outputs, warned = predicted(model, OTHERS)
    given = model.answers(outputs)["y"].reshape(np.shape(expected))
    tolerance = 1e-5 * np.abs(OTHERS @ WEIGHTS).max()
    wrong = np.abs(given.astype(float) - np.asarray(expected, float)) > tolerance
    assert warned or not wrong.any()
    if unit == 1:
        assert not wrong.any()
        assert not warned, warned
        assert not model.report.warnings


def test_other_scores_than_multiples_stay_as_they_are() -> None:
    model = kw.compile(scoring("floor", TensorProto.DOUBLE, 1.0), POINTS)
    part = model.program.output.client_part
    assert part is not None
    scores = np.array([[2.999, 3 - 1e-9], [3.001, -1e-9], [-0.001, 0.5]])
    assert part.run(scores)["y"].tolist() == [[2, 3], [3, 0], [-1, 0]]
    assert "hold" not in str(part)


def test_every_operator_that_jumps_is_known() -> None:
    """What only clients compute is continuous, or a step."""
    continuous = {name for name in ONLY_HERE if name.startswith(("Reduce", "LpN", "Norm", "Soft", "LogS"))}
    # Of truth values, of texts, and look-ups by such.
    behind = {"And", "Not", "Or", "Xor", "IsNaN", "ArrayFeatureExtractor", "LabelEncoder"}
    assert ONLY_HERE - continuous - behind == DECIDING


@pytest.mark.parametrize("apart", [1e-3, 0.0])
def test_jumps_are_told_from_slopes(apart: float) -> None:
    """|x| decides by a comparison and is continuous; with an offset on one side it jumps."""
    nodes = [
        node("Less", ["x", "z"], ["b"]),
        node("Neg", ["x"], ["n"]),
        node("Add", ["n", "o"], ["m"]),
        node("Where", ["b", "m", "x"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [1, 2])],
        [numpy_helper.from_array(np.array([value]), name) for name, value in (("z", 0.0), ("o", apart))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    part = ClientPart(model.SerializeToString(), (1, 2))
    outcome = moved(part, np.array([[1.0, 1e-7], [0.5, -2.0]]), 1e-6)
    assert outcome.jumps["y"][0] == pytest.approx(apart, abs=1e-6 if apart else 0)
    assert outcome.jumps["y"][1] == 0
    assert outcome.steps == (("Less",) if apart else ())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("texts", [False, True])
def test_categories_are_encoded_and_their_numbers_stay_on_the_server(classes: int, texts: bool) -> None:
    target = (CATEGORIES[:, 0] + CATEGORIES[:, 1] > 3).astype(int) + (CATEGORIES[:, 2] > 2) * (classes - 2)
    samples, fresh = (each.astype(str) if texts else each for each in (CATEGORIES, UNSEEN))
    own = make_pipeline(OrdinalEncoder(), CategoricalNB()) if texts else CategoricalNB()
    own.fit(samples, target)
    model = kw.compile(own, samples)
    outputs, warned = predicted(model, fresh)
    answers = model.answers(outputs)
    assert not warned
    assert np.abs(answers["output_probability"] - own.predict_proba(fresh)).max() < 1e-5
    assert np.array_equal(answers["output_label"], own.predict(fresh))
    assert model.program.operands.transforms, "the server multiplies by the model's numbers"
    with pytest.raises(EncodeError, match="not one of the 4 categories"):
        model.predict(np.full_like(fresh[:1], "9" if texts else 9))


def test_a_server_that_computes_nothing_is_warned_of() -> None:
    table = numpy_helper.from_array(RNG.normal(size=10), "table")
    graph = helper.make_graph(
        [
            node("Identity", ["x"], ["a"]),
            node("Cast", ["a"], ["i"], to=TensorProto.INT64),
            node("Gather", ["table", "i"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 4])],
        [table],
    )
    written = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    try:
        model = kw.compile(written, POINTS)
    except ModelRefusedError:
        return
    if model.program.input.steps.first is None:
        assert any("the server computes nothing" in text for text in model.report.warnings)
    outputs, _ = predicted(model, OTHERS)
    expected = numpy_helper.to_array(table)[OTHERS.astype(int)]
    given = model.answers(outputs).get("y", outputs)
    assert np.abs(given.reshape(expected.shape) - expected).max() < 1e-5


MEANS: dict[str, Any] = {
    "poisson": PoissonRegressor(max_iter=2000),
    "gamma": GammaRegressor(max_iter=2000),
    "tweedie": TweedieRegressor(power=1.5, link="log", max_iter=2000),
    "logarithm": TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp),
}


@pytest.mark.parametrize("kind", MEANS)
def test_a_required_error_is_of_the_answers(kind: str) -> None:
    """Behind an exponential, at the batch of a prediction."""
    target = np.exp(np.sin(FREE[:, 0]) + FREE[:, 1] / 2) * 1e5 + 1
    own = MEANS[kind].fit(FREE, target)
    with pytest.raises(ModelRefusedError, match=r"behind the client's last steps.*\(error=\)"):
        kw.compile(own, FREE, error=1e-3)
    model = kw.compile(own, FREE, error=1.0)
    for rows in (FREE[:1], FREE):
        (given,) = model.answers(model.predict(rows)).values()
        assert np.abs(given.ravel() - own.predict(rows)).max() <= 1.0


def test_votes_near_a_flip_are_counted() -> None:
    samples = np.random.default_rng(2).normal(size=(600, 5))
    target = np.digitize(np.sin(samples[:, 0]) + samples[:, 1] * samples[:, 2], [-0.7, 0.7])
    model = kw.compile(SVC(C=10).fit(samples, target), samples, activations={"exp": "chebyshev:9"})
    fit = model.report.fit
    assert fit is not None
    (difference,) = fit.outputs.answers
    assert difference.jumps.near > 0
    assert difference.jumps.largest > 0.5
    assert "are within these errors of a step of" in str(fit)


def test_the_report_names_the_method_and_the_batch() -> None:
    for kind in (PCA(2), TruncatedSVD(2)):
        model = kw.compile(kind.fit(FREE), FREE)
        assert "transform off by" in model.report.lines["fit"]
        assert "one sample at a time" in model.report.lines["encryption"]
        assert "8 samples at a time" in model.for_batch(8).report.lines["encryption"]


def test_trees_state_the_errors_that_clients_remove() -> None:
    own = DecisionTreeClassifier(max_depth=3, random_state=0).fit(FREE, FREE[:, 0] > 0.3)
    model = kw.compile(own, FREE)
    line = model.report.lines["encryption"]
    assert "encryption changes no output: clients round scores" in line
    outputs = model.simulate(FREE[:4], repetitions=1).outputs
    several = model.answers(outputs)
    for row, sample in enumerate(outputs):
        single = model.answers(sample)
        assert all(np.array_equal(single[name], several[name][row]) for name in several)


def test_rare_rows_of_trees_are_compared_with_the_estimator() -> None:
    """Of 2,000 rows, two are of a class that the bins lose."""
    samples = np.random.default_rng(1).normal(size=(2000, 4))
    rare = np.zeros(len(samples), int)
    rare[np.argsort(-samples[:, 0])[:6]] = 1
    own = DecisionTreeClassifier(max_depth=4, random_state=0).fit(samples, rare)
    model = kw.compile(own, samples, bins=16)
    fit = model.report.fit
    assert fit is not None
    (difference,) = fit.export.estimator
    shares = model.answers(model.simulate(samples, repetitions=1).outputs)["probabilities"]
    assert difference.largest_change == pytest.approx(np.abs(shares - own.predict_proba(samples)).max())
