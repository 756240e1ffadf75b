"""Fitted trees of other libraries: which classes they have, and what reads each."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keywright.compiler.trees.ensemble import Ensemble, Numbers, before_scaling
from keywright.program.arrays import Vector

from . import lightgbm, scikit_learn, xgboost

READERS: dict[str, Callable[[Any], Ensemble]] = {
    "sklearn.tree.DecisionTreeClassifier": scikit_learn.of_trees,
    "sklearn.tree.DecisionTreeRegressor": scikit_learn.of_trees,
    "sklearn.tree.ExtraTreeClassifier": scikit_learn.of_trees,
    "sklearn.tree.ExtraTreeRegressor": scikit_learn.of_trees,
    "sklearn.ensemble.RandomForestClassifier": scikit_learn.of_trees,
    "sklearn.ensemble.RandomForestRegressor": scikit_learn.of_trees,
    "sklearn.ensemble.ExtraTreesClassifier": scikit_learn.of_trees,
    "sklearn.ensemble.ExtraTreesRegressor": scikit_learn.of_trees,
    "sklearn.ensemble.GradientBoostingClassifier": scikit_learn.of_gradient_boosting,
    "sklearn.ensemble.GradientBoostingRegressor": scikit_learn.of_gradient_boosting,
    "sklearn.ensemble.HistGradientBoostingClassifier": scikit_learn.of_histogram_boosting,
    "sklearn.ensemble.HistGradientBoostingRegressor": scikit_learn.of_histogram_boosting,
    "sklearn.ensemble.IsolationForest": scikit_learn.of_isolation_forest,
    "xgboost.Booster": xgboost.of_booster,
    "xgboost.XGBModel": xgboost.of_model,
    "lightgbm.Booster": lightgbm.of_booster,
    "lightgbm.LGBMModel": lightgbm.of_model,
}
"""What reads the objects of a class, by the class's public name."""

SCALERS: dict[str, Sequence[tuple[np.ufunc, str]]] = {
    "MaxAbsScaler": [(np.divide, "scale_")],
    "MinMaxScaler": [(np.multiply, "scale_"), (np.add, "min_")],
    "RobustScaler": [(np.subtract, "center_"), (np.divide, "scale_")],
    "StandardScaler": [(np.subtract, "mean_"), (np.divide, "scale_")],
}
"""Operations on features in the order of `transform`, with the attribute that holds their operands."""


def ensemble_of(model: Any) -> Ensemble | None:
    """Return the ensemble of a fitted object, or of a pipeline of scalers before one; None for an object of
    another class, whose library is not imported for this.

    Raises:
        ModelRefusedError: the ensemble has a part that is not supported, or is too large.
    """
    for name, reader in READERS.items():
        module, _, kind = name.rpartition(".")
        result = getattr(sys.modules.get(module), kind, None)
        if result is not None and isinstance(model, result):
            return reader(model)
    scaling = _scaling(model.steps[:-1]) if type(model).__name__ == "Pipeline" else None
    ensemble = None if scaling is None else ensemble_of(model.steps[-1][1])
    return None if scaling is None or ensemble is None else _scaled(ensemble, scaling)


def _scaling(steps: Sequence[tuple[str, Any]]) -> list[tuple[np.ufunc, Any]] | None:
    """Return what scalers of scikit-learn do to features, one operation after the other as `transform` does
    them; None for other steps, or a scale that is not above 0."""
    result: list[tuple[np.ufunc, Any]] = []
    for _, step in steps:
        if step is None or step == "passthrough":
            continue
        if type(step).__name__ not in SCALERS or not type(step).__module__.startswith("sklearn."):
            return None
        own = vars(step) if getattr(step, "with_mean", True) else vars(step) | {"mean_": None}
        result += [(operation, own[name]) for operation, name in SCALERS[type(step).__name__] if name in own]
        if own.get("clip"):
            low, high = own.get("feature_range", (-1.0, 1.0))
            result += [(np.maximum, low), (np.minimum, high)]
    result = [(operation, np.asarray(value, np.float64)) for operation, value in result if value is not None]
    factors = [value for operation, value in result if operation in (np.multiply, np.divide)]
    return result if all((value > 0).all() for value in factors) else None


def _scaled(ensemble: Ensemble, steps: Sequence[tuple[np.ufunc, Vector]]) -> Ensemble | None:
    """Return an ensemble of features before scalers; None if it compares categories, which are not scaled."""
    if ensemble.nodes.members or ensemble.reads.coded:
        return None
    full = [(operation, np.broadcast_to(value, ensemble.features)) for operation, value in steps]

    def scaling(values: Vector, feature: Numbers) -> Vector:
        for operation, operand in full:
            values = operation(values, operand[feature])
        return values.astype(np.float32).astype(np.float64) if ensemble.single else values

    reads = replace(ensemble.reads, single=False)
    return replace(ensemble, reads=reads, nodes=before_scaling(ensemble.nodes, scaling))
