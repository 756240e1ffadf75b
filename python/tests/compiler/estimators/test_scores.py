"""Classifiers without probabilities: their scores are those of ``decision_function``."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from keywright.compiler import Fit
from keywright.compiler.activations.polynomial_choice import outputs_of
from keywright.compiler.approximating import approximate
from keywright.compiler.front_ends.exporters import corrections
from keywright.compiler.front_ends.to_onnx import to_onnx
from keywright.errors import ModelRefusedError
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils import all_estimators

RNG = np.random.default_rng(2)
SAMPLES = RNG.normal(size=(120, 4))
SUM = SAMPLES[:, 0] + SAMPLES[:, 1] * SAMPLES[:, 2]
TARGETS = {"two": SUM > 0, "three": np.digitize(SUM, [-0.5, 0.5]), "texts": np.where(SUM > 0, "a", "b")}

NO_SCORES = frozenset(["EllipticEnvelope", "IsolationForest", "LocalOutlierFactor", "NearestCentroid"])
"""Estimators without an exporter, and one of trees, which have no client's part here."""


def _single() -> Iterator[tuple[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind in all_estimators():
            try:
                estimator = kind()
            except TypeError:  # it consists of others
                continue
            scored = hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba")
            if scored and name not in NO_SCORES:
                yield name, estimator


CASES: dict[str, Any] = {
    **dict(_single()),
    "one against one": SVC(decision_function_shape="ovo"),
    "linear kernel": SVC(kernel="linear"),
    "polynomial kernel": NuSVC(kernel="poly", degree=2),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "search": GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2),
    "each against the rest, linear": OneVsRestClassifier(LinearSVC()),
    "each against the rest": OneVsRestClassifier(SVC()),
    "each against each": OneVsOneClassifier(LinearSVC()),
    "stacking": StackingClassifier([("a", LinearSVC())], final_estimator=RidgeClassifier(), cv=2),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_the_estimator(name: str, target: str) -> None:
    estimator = CASES[name].fit(SAMPLES, TARGETS[target])
    model = to_onnx(estimator, SAMPLES)
    compiled = approximate(model, Fit(calibration=SAMPLES, error=1e-3))
    part = compiled.output.client_part
    assert part is not None
    (_, labels), (scores, values) = part.run(compiled.outputs.reshape(-1, *part.shape)).items()
    assert scores == "scores"
    own = estimator.decision_function(SAMPLES).reshape(len(SAMPLES), -1)
    values = values.reshape(len(SAMPLES), -1)
    if own.shape[1] == 1 and values.shape[1] == 2:  # the second class is the positive one
        assert np.array_equal(labels == estimator.classes_[1], values[:, 1] > values[:, 0])
        values = values[:, 1:]
    assert np.abs(values - own).max() < 2.0**-7 * own.std()
    assert np.array_equal(labels.ravel(), estimator.predict(SAMPLES))


def test_scores_of_another_sign_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections, "_negate_scores", lambda graph: None)
    estimator = SVC().fit(SAMPLES, TARGETS["two"])
    with pytest.raises(ModelRefusedError, match=r"off by .* from decision_function"):
        to_onnx(estimator, SAMPLES)


def test_equal_predictions_are_equal_labels() -> None:
    """The largest score of a pair of classes is no label: the votes of all pairs are."""
    estimator = SVC(C=10).fit(SAMPLES, TARGETS["three"])
    fit = Fit(calibration=SAMPLES, accuracy=0.5, activations={"exp": "chebyshev:5"})
    compiled = approximate(to_onnx(estimator, SAMPLES), fit)
    part, exact = compiled.output.client_part, compiled.run.outputs
    assert part is not None
    outputs = outputs_of(compiled.graph, compiled.run.samples)
    labels, others = (
        next(iter(part.run(each.reshape(-1, *part.shape)).values())) for each in (exact, outputs)
    )
    predicted, expected = compiled.run.predictions(outputs), compiled.run.predictions(exact)
    assert predicted is not None
    assert expected is not None
    assert np.array_equal(predicted == expected, labels == others)
    assert (exact.argmax(axis=1) != labels).any()
