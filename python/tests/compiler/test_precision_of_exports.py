"""Estimators of features that single precision rounds: whether one is compiled does not depend on where its
data lie, and labels are those of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keywright.compiler import Fit
from keywright.compiler.approximating import approximate
from keywright.compiler.front_ends.to_onnx import to_onnx
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

NAMES = np.array(["low", "middle", "high"])
MODELS: dict[str, Callable[[], Any]] = {
    "margins": LinearSVC,
    "ridge": RidgeClassifier,
    "logistic": LogisticRegression,
    "discriminant": LinearDiscriminantAnalysis,
    "margins behind a scaler": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "ridge behind a scaler": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
}


def labels(model: Any, samples: NDArray[np.float64]) -> NDArray[Any]:
    """Return the labels that client and program compute, in the clear."""
    compiled = approximate(to_onnx(model, samples), Fit(calibration=samples))
    assert compiled.client_part is not None
    return np.ravel(next(iter(compiled.client_part.run(compiled.outputs).values())))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("offset", [0, 1e5, 1e7])
@pytest.mark.parametrize("name", MODELS)
def test_labels_do_not_depend_on_where_the_data_lie(name: str, offset: float, classes: int) -> None:
    samples, target = make_classification(120, 6, n_informative=4, n_classes=classes, random_state=1)
    model = MODELS[name]().fit(samples + offset, NAMES[target])
    assert np.array_equal(labels(model, samples + offset), model.predict(samples + offset))


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5])
def test_distances_of_large_features_are_not_lost(scale: float) -> None:
    """The scores of a machine of radial kernels, whose parts are 10^10 times larger than a distance."""
    samples, target = make_classification(120, 6, n_informative=4, random_state=1)
    model = SVC(gamma=0.2 / scale**2).fit(samples * scale, target)
    compiled = approximate(to_onnx(model, samples * scale), Fit(calibration=samples * scale))
    scores = np.abs(compiled.outputs.ravel())
    np.testing.assert_allclose(scores, np.abs(model.decision_function(samples * scale)), rtol=0, atol=1e-4)
