"""Support vector machines, written so that single precision does not lose their digits.

Exporters write coefficients of support vectors in single precision, and a kernel of values far from 0, such
as a year or a pressure in hectopascal, is a small difference of large numbers.
"""

from copy import copy
from importlib import import_module
from typing import Any

import numpy as np

MACHINES = frozenset(["NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"])


def centred(model: Any) -> Any:
    """Return a fitted estimator or pipeline that computes the same, whose last step is a machine around 0.

    A radial kernel does not change if the samples and the support vectors are shifted. A linear regression by
    support vectors is written as its one vector; other linear machines are shifted, and their intercepts with
    them. Other kernels, and other estimators, stay as they are.
    """
    steps = list(model.steps) if hasattr(model, "steps") else [("machine", model)]
    name, machine = steps[-1]
    kernel = getattr(machine, "kernel", None)
    if type(machine).__name__ not in MACHINES or kernel not in ("linear", "rbf"):
        return model
    vectors = machine.support_vectors_
    if not isinstance(vectors, np.ndarray):
        return model
    pipeline = import_module("sklearn.pipeline").Pipeline
    if kernel == "linear" and type(machine).__name__ in ("SVR", "NuSVR"):
        linear = import_module("sklearn.linear_model").LinearRegression()
        linear.coef_ = np.asarray(machine.coef_, np.float64).ravel()
        linear.intercept_ = np.float64(np.ravel(machine.intercept_)[0])
        linear.n_features_in_ = machine.n_features_in_
        return pipeline([*steps[:-1], (name, linear)])
    if kernel == "linear" and type(machine).__name__ == "OneClassSVM":
        return model
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
    return pipeline([*steps[:-1], ("centre", scaler), (name, moved)])
