"""What a program computes is what the estimator predicts, in double precision, for kinds of estimators whose
exporter computes something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler import Fit
from keywright.compiler.approximating import approximate
from keywright.compiler.front_ends.scikit_learn.comparison import require_same
from keywright.compiler.front_ends.to_onnx import to_onnx
from keywright.errors import ModelRefusedError
from keywright.model.estimator import with_estimator
from keywright.program.fit_report import ExportDifferences, FitReport, OutputDifference
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor
from tests.matrices import cells

RNG = np.random.default_rng(0)
FREE = RNG.normal(size=(300, 3))
SAMPLES = np.c_[FREE, FREE[:, 0] + 1e-6 * RNG.normal(size=300)]
TARGET = FREE[:, 0] + FREE[:, 1] + 1e4 * (SAMPLES[:, 3] - FREE[:, 0]) + 0.1 * RNG.normal(size=300)
TWO = (FREE[:, 0] + 0.5 * RNG.normal(size=300) > 0.5).astype(int)
THREE = np.digitize(TARGET, [-0.5, 0.5])
POSITIVE = np.exp(2 * FREE[:, 0] + 5)

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "nearly collinear": lambda: LinearDiscriminantAnalysis().fit(SAMPLES, THREE),
    "modified Huber": lambda: SGDClassifier(loss="modified_huber", random_state=0).fit(SAMPLES, THREE),
    "two outputs": lambda: MultiOutputClassifier(SGDClassifier(loss="modified_huber", random_state=0)).fit(
        SAMPLES, np.c_[TWO, THREE]
    ),
    "threshold": lambda: FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(SAMPLES, TWO),
    "tuned threshold": lambda: TunedThresholdClassifierCV(LogisticRegression()).fit(SAMPLES, TWO),
    "isotonic": lambda: CalibratedClassifierCV(SVC(), method="isotonic", cv=2).fit(SAMPLES, TWO),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_and_probabilities(name: str) -> None:
    """Calibration data far from the threshold do not hide it."""
    model = CLASSIFIERS[name]()
    far = SAMPLES[FREE[:, 0] < -0.5] if "threshold" in name else SAMPLES
    compiled = approximate(to_onnx(model, far), Fit(calibration=SAMPLES))
    part = compiled.output.client_part
    assert part is not None
    labels, *shares = part.run(compiled.outputs.reshape(-1, *part.shape)).values()
    assert np.array_equal(labels.reshape(len(SAMPLES), -1), model.predict(SAMPLES).reshape(len(SAMPLES), -1))
    expected = model.predict_proba(SAMPLES)
    several = expected if isinstance(expected, list) else [expected]
    for values, own in zip(shares, several, strict=True):
        assert np.abs(values.reshape(own.shape) - own).max() < 1e-4


def test_an_export_of_labels_of_another_shape_is_refused() -> None:
    """Of a bag of support vectors, the exporter writes the labels of its members."""
    bag = BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(FREE, THREE)
    with pytest.raises(ModelRefusedError, match=r"its labels have the shape .* those of predict \(64, 1\)"):
        to_onnx(bag, FREE)


class Cut(LogisticRegression):  # type: ignore[misc]
    """Gives probabilities of two of its labels."""

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X)[:, :2]


def test_values_of_another_shape_and_of_one_sample_are_compared() -> None:
    export = to_onnx(LogisticRegression().fit(FREE, THREE), FREE)
    feeds: dict[str, Any] = {export.graph.input[0].name: FREE.astype(np.float32)}
    with pytest.raises(
        ModelRefusedError, match=r"the shape \(300, 3\), and those of predict_proba \(300, 2\)"
    ):
        require_same(Cut().fit(FREE, THREE), export, feeds, FREE)
    line = LinearRegression().fit(FREE, TARGET)
    export, one = to_onnx(line, FREE), FREE[:1]
    feeds = {export.graph.input[0].name: one}
    assert require_same(line, export, feeds, one) < 1e-6
    line.intercept_ += 0.1 * abs(line.predict(one)[0])
    with pytest.raises(ModelRefusedError, match="it is off by"):
        require_same(line, export, feeds, one)


def test_several_outputs_of_a_network_have_their_shape_and_are_compared() -> None:
    targets = np.c_[TARGET, -1e3 * TARGET]
    network = MLPRegressor(hidden_layer_sizes=(4,), activation="identity", solver="lbfgs", random_state=0)
    network.fit(FREE, targets)
    export = to_onnx(network, FREE)
    assert [each.dim_value for each in export.graph.output[0].type.tensor_type.shape.dim] == [0, 2]
    network.coefs_[1] = network.coefs_[1][:, ::-1]
    with pytest.raises(ModelRefusedError, match="it is off by"):
        require_same(network, export, {export.graph.input[0].name: FREE}, FREE)


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", LogisticRegression()), ("b", LinearSVC()), ("c", RidgeClassifier())]),
        MultiOutputClassifier(LinearSVC()),
        LinearSVC(),
    ],
)
def test_votes_and_scores_are_not_called_probabilities(model: Any) -> None:
    several = isinstance(model, MultiOutputClassifier)
    model.fit(FREE, np.c_[TWO, THREE] if several else THREE)
    names = [each.name for each in to_onnx(model, FREE).graph.output]
    assert names[1:] == (["scores_0", "scores_1"] if several else ["scores"])


@pytest.mark.parametrize("kind", [OneVsRestClassifier, OneVsOneClassifier, BaggingClassifier])
def test_a_pipeline_inside_another_estimator_is_refused_without_the_options_of_the_exporter(
    kind: Any,
) -> None:
    model = kind(make_pipeline(StandardScaler(), LinearSVC())).fit(FREE, THREE)
    with pytest.raises(ModelRefusedError, match="put the steps before it in front") as caught:
        to_onnx(model, FREE)
    assert "zipmap" not in str(caught.value)


@pytest.mark.parametrize("kind", [PoissonRegressor, GammaRegressor, TweedieRegressor])
def test_no_mean_is_below_0(kind: Any) -> None:
    options = {"power": 1.5, "link": "log"} if kind is TweedieRegressor else {}
    compiled = kw.compile(kind(**options).fit(FREE, POSITIVE), FREE)
    (means,) = compiled.answers(compiled.simulate(4 * FREE[:8], repetitions=1).outputs).values()
    assert means.min() > 0


def test_an_error_is_from_the_estimator() -> None:
    model = LinearRegression().fit(SAMPLES, TARGET)
    compiled = kw.compile(model, SAMPLES, error=1e-6)
    outputs = compiled.simulate(SAMPLES[:8], repetitions=1).noisy
    assert np.abs(outputs.reshape(-1, 8) - model.predict(SAMPLES[:8])).max() < 1e-6
    fit = compiled.report.fit
    assert fit is not None
    (difference,) = fit.export.estimator
    assert difference.name == "predict"
    assert "against the estimator itself, on the calibration samples (at most 4,096), predict" in str(fit)


ANSWERED: dict[str, Any] = {
    "calibrated by sigmoids": CalibratedClassifierCV(SVC(), cv=3),
    "calibrated by pieces": CalibratedClassifierCV(SVC(C=30), method="isotonic", cv=3),
    "perceptron": MLPClassifier(hidden_layer_sizes=(8,), max_iter=900, random_state=0),
    "trees of counts": HistGradientBoostingRegressor(loss="poisson", max_iter=20),
}


@pytest.mark.parametrize(("name", "error"), cells(list(ANSWERED), [0.1, 0.02]))
def test_an_error_is_that_of_the_answers(name: str, error: float) -> None:
    """Whatever amplifies errors of scores behind the polynomials, and wherever they come from."""
    counts = np.random.default_rng(1).poisson(np.exp(FREE[:, 0]))
    model = make_pipeline(StandardScaler(), clone(ANSWERED[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(FREE, counts if name == "trees of counts" else TWO)
    expected = model.predict(FREE)[:, None] if name == "trees of counts" else model.predict_proba(FREE)
    try:
        compiled = kw.compile(model, FREE, error=error)
    except ModelRefusedError as refused:
        assert "error" in str(refused)  # noqa: PT017 (compiling it is right, too)
        return
    answers = [*compiled.answers(compiled.simulate(FREE, repetitions=1).outputs).values()]
    assert np.abs(answers[-1].reshape(expected.shape) - expected).max() <= error


def test_every_calibration_sample_is_compared_with_the_estimator() -> None:
    """Rounded thresholds change few rows, so that some of them say nothing of the largest change."""
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(FREE, TWO)
    compiled = kw.compile(model, FREE, bins=8)
    fit = compiled.report.fit
    assert fit is not None
    own, shares = model.predict_proba(FREE), compiled.answers(compiled.simulate(FREE, repetitions=1).outputs)
    (difference,) = fit.export.estimator
    assert difference.largest_change == pytest.approx(np.abs(shares["probabilities"] - own).max(), rel=1e-3)


def test_leaves_without_calibration_data_are_judged_by_their_spread() -> None:
    values = 2 * FREE[:, 0] + 5
    kw.compile(DecisionTreeRegressor(max_depth=4).fit(FREE, values), thresholds="public")
    values[:3] = 1e9
    tree = DecisionTreeRegressor(max_depth=5).fit(FREE, values)
    with pytest.raises(ModelRefusedError, match=r"changes output 0 .* of tree 0 "):
        kw.compile(tree, thresholds="public")


def test_requirements_are_of_the_estimator_itself() -> None:
    """An export that computes something else than the estimator does not hide it."""
    line, classifier = LinearRegression().fit(FREE, TARGET), LogisticRegression().fit(FREE, TWO)
    values, labels = (approximate(to_onnx(each, FREE), Fit(calibration=FREE)) for each in (line, classifier))
    line.intercept_ += 0.1
    classifier.intercept_ += 1.0
    with pytest.raises(
        ModelRefusedError, match=r"LinearRegression itself.* changes by up to 0\.1, above error"
    ):
        with_estimator(values, line, FREE, error=0.05)
    assert with_estimator(values, line, FREE, error=0.2).run.export.equal_labels is None
    share = with_estimator(labels, classifier, FREE).run.export.equal_labels
    assert share is not None
    assert 0.5 < share < 0.98
    with pytest.raises(ModelRefusedError, match=r"of the labels are equal, below accuracy=0\.99"):
        with_estimator(labels, classifier, FREE, accuracy=0.99)
    equal = OutputDifference(1.0, 1.0, 1.0, 1.0)
    report = FitReport((), 9, 0, 0, equal, export=ExportDifferences(equal_labels=0.9))
    assert "compared with the model as exported, which is not the estimator" in str(report)
    assert report.warnings == ("only 90.00% of the labels are those of the estimator itself",)
