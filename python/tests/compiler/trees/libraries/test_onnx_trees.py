"""Operators of trees in ONNX, against onnxruntime and, for the newest one, against onnx's own evaluator."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import skl2onnx
from keywright import compiler
from keywright.compiler.activations.fit import Thresholds
from keywright.compiler.approximating import prepare
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.trees.ensemble import Ensemble
from keywright.compiler.trees.quantising import quantise
from keywright.errors import ModelRefusedError
from keywright.errors.network import RefusalError
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.compiler.trees.fitted import REAL, THREE, TWO, VALUES, answers

SHOWN = 150
SAMPLES = VALUES.astype(np.float32)
MODELS: dict[str, tuple[Any, Any]] = {
    "two labels": (DecisionTreeClassifier(max_depth=4, random_state=0), TWO),
    "three labels": (RandomForestClassifier(8, max_depth=4, random_state=0), THREE),
    "boosting": (GradientBoostingClassifier(n_estimators=8, random_state=0), TWO),
    "boosting of three labels": (GradientBoostingClassifier(n_estimators=5, random_state=0), THREE),
    "values": (RandomForestRegressor(8, max_depth=4, random_state=0), REAL),
    "boosting of values": (GradientBoostingRegressor(n_estimators=8, random_state=0), REAL),
    "scaled": (
        make_pipeline(StandardScaler(), MinMaxScaler(), DecisionTreeClassifier(max_depth=4, random_state=0)),
        TWO,
    ),
}


def answered(model: onnx.ModelProto, samples: Any, thresholds: Thresholds = "public") -> dict[str, Any]:
    source = prepare(model, compiler.Fit()).model
    assert isinstance(source, Ensemble)
    fit = compiler.Fit(calibration=samples, thresholds=thresholds)
    return answers(quantise(source, fit), np.asarray(samples[:SHOWN], np.float64))


def exported(name: str) -> onnx.ModelProto:
    estimator, expected = MODELS[name]
    model = estimator.fit(SAMPLES, expected)
    opsets: Any = {"": 18, "ai.onnx.ml": 3}
    return skl2onnx.to_onnx(model, SAMPLES[:1], target_opset=opsets, options=None)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", MODELS)
def test_exported_trees_give_what_onnxruntime_gives(name: str) -> None:
    model = exported(name)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: SAMPLES[:SHOWN]})
    answers = answered(model, SAMPLES)
    assert list(answers) == [output.name for output in session.get_outputs()]
    for name_, values in zip(answers, expected, strict=True):
        if isinstance(values, list):  # of dictionaries, from ZipMap
            values = np.asarray([[row[key] for key in row] for row in values])
        if values.ndim == 1:
            assert (answers[name_] == values).mean() > 0.99  # but ties
        else:
            assert np.abs(answers[name_].reshape(values.shape) - values).max() < 1e-4


CALIBRATED: dict[str, tuple[Any, Any]] = {
    "one ensemble of all folds": (CalibratedClassifierCV(MODELS["boosting"][0], ensemble=False, cv=3), TWO),
    "fitted before": (
        CalibratedClassifierCV(FrozenEstimator(clone(MODELS["three labels"][0]).fit(SAMPLES, THREE))), THREE
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALIBRATED)
def test_the_client_calibrates_the_scores_of_an_ensemble(name: str) -> None:
    estimator, labels = CALIBRATED[name]
    model = estimator.fit(SAMPLES, labels)
    source = to_source(model, SAMPLES)
    assert isinstance(source, onnx.ModelProto)
    outcome = answered(source, SAMPLES)
    assert (outcome["output_label"] == model.predict(SAMPLES[:SHOWN])).mean() > 0.99  # but ties
    expected = model.predict_proba(SAMPLES[:SHOWN])
    np.testing.assert_allclose(outcome["output_probability"], expected, atol=1e-4)


def test_calibrated_ensembles_of_several_folds_are_refused_by_name() -> None:
    model = CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), cv=2).fit(SAMPLES, TWO)
    with pytest.raises(ModelRefusedError, match="CalibratedClassifierCV a single one, by ensemble=False"):
        prepare(to_source(model, SAMPLES), compiler.Fit())


def newest(double: bool = False, **changes: Any) -> onnx.ModelProto:
    """TreeEnsemble of ai.onnx.ml 5: x0 <= 0.5, then x1 > -0.5 or x2 in {1, 3}, and a second tree."""
    kind = TensorProto.DOUBLE if double else TensorProto.FLOAT

    def numbers(name: str, values: Any) -> onnx.TensorProto:
        return helper.make_tensor(name, kind, [len(values)], values)

    attributes: dict[str, Any] = {
        "tree_roots": [0, 3],
        "n_targets": 2,
        "aggregate_function": 1,
        "post_transform": 0,
        "nodes_featureids": [0, 1, 2, 2],
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [4], [0, 3, 6, 4]),
        "nodes_splits": numbers("splits", [0.5, -0.5, 0.0, 2.0]),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 5],
        "nodes_falseleafs": [0, 1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 0, 1],
        "membership_values": numbers("members", [1.0, 3.0, np.nan]),
        "leaf_targetids": [0, 1, 0, 1, 0, 1],
        "leaf_weights": numbers("weights", [1.0, -2.0, 3.0, 0.5, 0.25, 4.0]),
    } | changes
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], "trees", domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", kind, ["batch", 3])],
        [helper.make_tensor_value_info("y", kind, ["batch", 2])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def whole_samples() -> Any:
    rng = np.random.default_rng(1)
    return rng.integers(-2, 5, size=(300, 3)) / np.asarray([2.0, 2.0, 1.0])


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("aggregate", [0, 1])
def test_the_newest_operator_gives_what_onnx_gives(double: bool, aggregate: int) -> None:
    model, samples = newest(double, aggregate_function=aggregate), whole_samples()
    kind = np.float64 if double else np.float32
    (expected,) = ReferenceEvaluator(model).run(None, {"x": samples[:SHOWN].astype(kind)})
    for thresholds in ("public", "private"):
        answers = answered(model, samples, thresholds)["y"]
        assert np.abs(answers - expected).max() < 1e-5


def test_missing_values_follow_the_nodes() -> None:
    samples = whole_samples()
    samples[:SHOWN:2, 0] = np.nan
    samples[:SHOWN:3, 2] = np.nan
    answers = answered(newest(), samples)["y"]

    def by_hand(x: Any) -> list[float]:
        scores = [0.0, 0.0]
        if np.isnan(x[0]) or x[0] <= 0.5:
            scores[0 if x[1] > -0.5 else 1] += 1.0 if x[1] > -0.5 else -2.0
        else:
            scores[0 if x[2] in (1, 3) else 1] += 3.0 if x[2] in (1, 3) else 0.5
        scores[0 if np.isnan(x[2]) or x[2] == 2 else 1] += 0.25 if np.isnan(x[2]) or x[2] == 2 else 4.0
        return scores

    assert np.abs(answers - [by_hand(sample) for sample in samples[:SHOWN]]).max() < 1e-5


@pytest.mark.parametrize(
    ("changes", "code", "match"),
    [
        ({"aggregate_function": 2}, "attribute", "aggregate_function = MIN"),
        ({"post_transform": 4}, "attribute", "post_transform = PROBIT"),
        ({"nodes_featureids": [0, 1, 2, 7]}, "model", "feature 7"),
        ({"nodes_truenodeids": [1, 0, 2, 9]}, "model", "contradict"),
        ({"nodes_truenodeids": [0, 0, 2, 4]}, "model", "two parents"),
        ({"nodes_featureids": [0, 1]}, "model", "contradict"),
    ],
)
def test_attributes_without_a_meaning_are_refused(changes: Any, code: str, match: str) -> None:
    with pytest.raises(ModelRefusedError, match=match) as caught:
        prepare(newest(**changes), compiler.Fit())
    assert caught.value.codes == {code}


def test_other_operators_around_trees_are_refused() -> None:
    model = newest()
    before = helper.make_node("Tanh", ["x"], ["t"], "tanh")
    model.graph.node[0].input[0] = "t"
    model.graph.node.insert(0, before)
    with pytest.raises(ModelRefusedError, match="before trees") as caught:
        prepare(model, compiler.Fit())
    reason = caught.value.exceptions[0]
    assert isinstance(reason, RefusalError)
    assert reason.code == "operator"
