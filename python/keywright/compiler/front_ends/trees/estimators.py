"""Fitted trees of other libraries: which classes they have, and what reads each."""

import sys
from collections.abc import Callable
from typing import Any

from keywright.compiler.trees.ensemble import Ensemble

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


def ensemble_of(model: object) -> Ensemble | None:
    """Return the ensemble of a fitted object; None for an object of another class, whose library is not
    imported for this.

    Raises:
        ModelRefusedError: the ensemble has a part that is not supported, or is too large.
    """
    for name, reader in READERS.items():
        module, _, kind = name.rpartition(".")
        result = getattr(sys.modules.get(module), kind, None)
        if result is not None and isinstance(model, result):
            return reader(model)
    return None
