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
from keywright.errors import ModelRefusedError
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

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
    assert compiled.output.client_part is not None
    return np.ravel(next(iter(compiled.output.client_part.run(compiled.outputs).values())))


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


REGRESSORS: dict[str, Callable[[], Any]] = {
    "least squares": LinearRegression,
    "bayesian": BayesianRidge,
    "partial least squares": lambda: PLSRegression(2),
    "ridge behind a scaler": lambda: make_pipeline(StandardScaler(), Ridge()),
    "machine": lambda: SVR(kernel="linear"),
}
SINGLE = {"bayesian", "machine"}
"""Regressors that predict one value."""

POINTS = np.random.default_rng(0).normal(size=(120, 4))
SUM = POINTS @ [1, 2, -1, 0.5]


@pytest.mark.parametrize("offset", [0, 2020, 1.7654321e9, 1.7654321e12])
@pytest.mark.parametrize(
    ("name", "several"),
    [
        (name, several)
        for name in REGRESSORS
        for several in (False, True)
        if not several or name not in SINGLE
    ],
)
def test_values_do_not_depend_on_where_they_lie(name: str, several: bool, offset: float) -> None:
    scale = max(offset * 1e-8, 1.0)
    target = scale * SUM + offset
    model = REGRESSORS[name]().fit(POINTS, np.c_[target, POINTS[:, 1] * scale] if several else target)
    values = approximate(to_onnx(model, POINTS), Fit(calibration=POINTS)).outputs
    expected = model.predict(POINTS).reshape(values.shape)
    assert (np.abs(values - expected).max(axis=0) < expected.std(axis=0) / 1000).all()


def test_values_that_no_export_preserves_are_refused() -> None:
    model = SVR(kernel="rbf").fit(POINTS, 30 * SUM + 1.7654321e9)
    with pytest.raises(ModelRefusedError, match="whose spread is"):
        to_onnx(model, POINTS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("offset", [(0, 0), (100, 200), (50, 1000)])
def test_the_default_is_of_what_each_value_varies(offset: tuple[float, float]) -> None:
    net = MLPRegressor(hidden_layer_sizes=(12,), activation="tanh", max_iter=80, random_state=0)
    net.fit(POINTS, np.c_[np.tanh(SUM), 10 * POINTS[:, 1]])
    net.intercepts_[-1] = net.intercepts_[-1] + offset
    compiled = approximate(to_onnx(net, POINTS), Fit(calibration=POINTS))
    values = np.concatenate([v[compiled.graph.output] for _, v in compiled.graph.runs(compiled.run.samples)])
    expected = net.predict(POINTS)
    assert (np.abs(values - expected).max(axis=0) <= np.ptp(expected, axis=0) / 32).all()
    assert compiled.run.predictions(values) is None


@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder])
def test_tables_of_objects(encoder: Any, kind: Any) -> None:
    """Numbers among texts, encoded, and gaps in a column that is imputed beside others that are not."""
    rng = np.random.default_rng(1)
    table = np.empty((80, 4), object)
    table[:, 0] = rng.choice(["Lima", "Oslo"], 80)
    table[:, 1] = [kind(each) for each in rng.integers(0, 4, 80)]
    table[:, 2] = np.where(rng.random(80) < 0.1, np.nan, rng.normal(size=80))
    table[:, 3] = rng.normal(size=80)
    steps = [("codes", encoder(), [0, 1]), ("gaps", SimpleImputer(), [2]), ("rest", StandardScaler(), [3])]
    model = make_pipeline(ColumnTransformer(steps), LogisticRegression()).fit(table, table[:, 0])
    assert np.array_equal(labels(model, table), model.predict(table))
    whole = make_pipeline(ColumnTransformer([*steps, ("raw", "passthrough", [3])]), LogisticRegression())
    assert np.array_equal(labels(whole.fit(table, table[:, 0]), table), whole.predict(table))
