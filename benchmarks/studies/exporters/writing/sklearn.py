"""scikit-learn through skl2onnx: `python -m studies.exporters.writing.sklearn FOLDER`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import skl2onnx
import sklearn
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from studies.exporters.writing.files import SAMPLES, Case, normal, write

OPSETS = range(13, 23)
"""The newest is skl2onnx's own bound."""

TWO, THREE, VALUES = "two", "three", "values"

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "LinearRegression": (lambda: make_pipeline(StandardScaler(), LinearRegression()), VALUES),
    "Ridge": (lambda: make_pipeline(RobustScaler(), Ridge()), VALUES),
    "LogisticRegression, 2": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), TWO),
    "LogisticRegression, 3": (lambda: make_pipeline(MinMaxScaler(), LogisticRegression()), THREE),
    "LinearSVC": (LinearSVC, THREE),
    "SVC, poly": (lambda: make_pipeline(StandardScaler(), SVC(kernel="poly", degree=3, C=0.1)), THREE),
    "SVC, rbf": (lambda: make_pipeline(StandardScaler(), SVC(C=0.1)), TWO),
    "SVR, poly": (lambda: make_pipeline(MinMaxScaler(), SVR(kernel="poly", degree=2)), VALUES),
    "MLPClassifier": (
        lambda: make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=200, random_state=1)),
        THREE,
    ),
    "MLPRegressor, tanh": (
        lambda: make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(6,), activation="tanh", max_iter=200, random_state=1),
        ),
        VALUES,
    ),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis, THREE),
    "GaussianNB": (GaussianNB, THREE),
    "Normalizer, l2": (lambda: make_pipeline(Normalizer(), LogisticRegression()), TWO),
    "Normalizer, l1": (lambda: make_pipeline(Normalizer("l1"), LogisticRegression()), TWO),
    "DecisionTreeClassifier": (lambda: DecisionTreeClassifier(max_depth=2), THREE),
    "DecisionTreeRegressor": (lambda: DecisionTreeRegressor(max_depth=2), VALUES),
    "RandomForestClassifier": (lambda: RandomForestClassifier(3, max_depth=2), THREE),
    "GradientBoostingClassifier": (lambda: GradientBoostingClassifier(n_estimators=3), TWO),
    "KNeighborsClassifier": (KNeighborsClassifier, THREE),
}
"""By name, with what is predicted."""


def cases(kind: type) -> Iterator[Case]:
    """Every estimator, fitted to half of the samples."""
    samples = normal(4, kind=kind)
    score = samples[:, 0] + samples[:, 2] ** 2 / 2
    known = {TWO: np.where(score > 0.4, "up", "down"), THREE: np.digitize(score, [0, 1]) + 7, VALUES: score}
    for name, (build, predicted) in CASES.items():
        estimator = build().fit(samples[:SAMPLES], known[predicted][:SAMPLES])
        outputs = estimator.predict(samples)

        def export(opset: int, estimator: Any = estimator) -> bytes:
            # ZipMap takes no double precision, which skl2onnx writes before it.
            plain = kind is np.float64 and hasattr(estimator, "predict_proba")
            exported = skl2onnx.to_onnx(
                estimator,
                samples[:1],
                target_opset={"": opset, "ai.onnx.ml": 3},
                options={"zipmap": False} if plain else None,
            )
            return bytes(exported.SerializeToString())

        yield Case(name, samples, np.asarray(outputs, outputs.dtype if predicted != TWO else "U4"), export)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    versions = {"scikit-learn": sklearn.__version__, "skl2onnx": skl2onnx.__version__}
    write("skl2onnx", cases(np.float32), OPSETS, versions)
    write("skl2onnx double", cases(np.float64), OPSETS, versions)
