"""Last steps of fitted pipelines as steps that compute the same and are written exactly."""

from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np

from . import heads

Steps = list[tuple[str, Any]]
Equivalent = Callable[[str, Any], Steps | None]
"""Returns the steps in place of a last one, by its name; None if that one stays."""


def with_equivalent(model: Any, table: Mapping[str, Equivalent]) -> Any:
    """Return an estimator or pipeline whose last step is replaced as a table says of its class."""
    steps = list(getattr(model, "steps", [("machine", model)]))
    name, last = steps[-1]
    if type(last).__name__ not in table or (own := table[type(last).__name__](name, last)) is None:
        return model
    if len(own) == 1 and last is model:
        return own[0][1]
    return import_module("sklearn.pipeline").Pipeline([*steps[:-1], *own])


def _of_categories(_: str, model: Any) -> Steps:
    """A CategoricalNB is an encoder of its features, and a linear classifier of their categories, so that its
    numbers stay on the server."""
    weights, offset = np.concatenate(model.feature_log_prob_, axis=1), np.asarray(model.class_log_prior_)
    if len(model.classes_) == 2:
        weights, offset = weights[1:] - weights[:1], offset[1:] - offset[:1]
    encoder = import_module("sklearn.preprocessing").OneHotEncoder(
        categories=[np.arange(count) for count in model.n_categories_], sparse_output=False
    )
    encoder.fit(np.zeros((1, len(model.n_categories_)), np.int64))
    linear = import_module("sklearn.linear_model").LogisticRegression()
    linear.coef_, linear.intercept_, linear.classes_ = weights, offset, model.classes_
    linear.n_features_in_, linear.n_iter_ = weights.shape[1], np.ones(1, np.int32)
    return [("categories", encoder), ("classifier", linear)]


def _of_one_layer(_: str, model: Any) -> Steps | None:
    """Linear classifiers, each against the rest and without probabilities, whose scores skl2onnx does not
    write, are one."""
    members = list(model.estimators_)
    linear = all(type(each).__name__ in heads.CLASSIFIERS for each in members)
    if hasattr(model, "predict_proba") or model.multilabel_ or not linear:
        return None
    joined = import_module("sklearn.svm").LinearSVC()
    joined.coef_ = np.concatenate([np.atleast_2d(each.coef_) for each in members])
    joined.intercept_ = np.concatenate([np.broadcast_to(np.ravel(each.intercept_), 1) for each in members])
    joined.classes_, joined.n_features_in_ = model.classes_, joined.coef_.shape[1]
    return [("classifier", joined)]


def _around_0(name: str, machine: Any) -> Steps | None:
    """A support vector machine is one around 0: exporters write coefficients of support vectors in single
    precision, and a kernel of values far from 0, such as a year or a pressure in hectopascal, is a small
    difference of large numbers.

    A radial kernel does not change if the samples and the support vectors are shifted. A linear regression by
    support vectors is written as its one vector; other linear machines are shifted, and their intercepts with
    them. Other kernels stay as they are.
    """
    kernel, vectors, kind = machine.kernel, machine.support_vectors_, type(machine).__name__
    if kernel not in ("linear", "rbf") or not isinstance(vectors, np.ndarray):
        return None
    if kernel == "linear" and kind in ("SVR", "NuSVR"):
        linear = import_module("sklearn.linear_model").LinearRegression()
        linear.coef_ = np.asarray(machine.coef_, np.float64).ravel()
        linear.intercept_ = np.float64(np.ravel(machine.intercept_)[0])
        linear.n_features_in_ = machine.n_features_in_
        return [(name, linear)]
    if kernel == "linear" and kind == "OneClassSVM":
        return None
    centre = np.asarray(vectors, np.float64).mean(axis=0)
    moved = copy(machine)
    moved.support_vectors_ = vectors - centre
    if kernel == "linear":
        # Of two classes, scikit-learn shows both with the other sign than the library below it.
        shift = np.asarray(machine.coef_, np.float64) @ centre
        moved.intercept_ = machine.intercept_ + shift
        moved._intercept_ = machine._intercept_ + (-shift if len(machine.classes_) == 2 else shift)
    scaler = import_module("sklearn.preprocessing").StandardScaler(with_std=False)
    scaler.mean_, scaler.scale_, scaler.var_ = centre, None, None
    scaler.n_features_in_, scaler.n_samples_seen_ = machine.n_features_in_, len(vectors)
    return [("centre", scaler), (name, moved)]


def _with_array(name: str, model: Any) -> Steps:
    """A linear estimator without an intercept has the number 0, and skl2onnx writes an array."""
    linear = copy(model)
    linear.intercept_ = np.full(np.shape(model.coef_)[:-1], model.intercept_)
    return [(name, linear)]


WITHOUT_LOOK_UPS: Mapping[str, Equivalent] = {"CategoricalNB": _of_categories}
"""Before anything is written, because clients encode the features."""

EXACT: Mapping[str, Equivalent] = {
    "OneVsRestClassifier": _of_one_layer,
    **dict.fromkeys(("NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"), _around_0),
}


def written_exactly(model: Any) -> Any:
    """Return an estimator or pipeline that skl2onnx writes, and writes exactly."""
    last = model.steps[-1][1] if getattr(model, "steps", None) else model
    without = type(getattr(last, "intercept_", None)) is float
    return with_equivalent(model, {type(last).__name__: _with_array} if without else EXACT)
