"""Trees behind scalers give what their pipeline gives, for rows exactly at thresholds too."""

from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.scikit_learn.comparison import own_answers
from keywright.compiler.trees.ensemble import Ensemble
from keywright.compiler.trees.quantising import quantise
from sklearn import ensemble, tree
from sklearn.base import is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from tests.matrices import cells

from .fitted import Array, answers, ensemble_of

COUNT, FITTED, SHOWN = 800, 500, 600
SCALERS: dict[str, list[Any]] = {
    "standard": [StandardScaler()],
    "standard without mean": [StandardScaler(with_mean=False)],
    "extremes": [MinMaxScaler()],
    "clipped": [MinMaxScaler(clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "three": [RobustScaler(), "passthrough", MinMaxScaler((-3, 7)), StandardScaler()],
}
TREES = [
    tree.DecisionTreeClassifier(max_depth=6, random_state=0),
    tree.DecisionTreeRegressor(max_depth=6, random_state=0),
    ensemble.RandomForestClassifier(5, max_depth=5, random_state=0),
    ensemble.RandomForestRegressor(5, max_depth=5, random_state=0),
    ensemble.ExtraTreesRegressor(3, max_depth=5, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
    ensemble.HistGradientBoostingClassifier(max_iter=5, max_depth=3),
    ensemble.IsolationForest(n_estimators=5, random_state=0),
]


def data(grid: float) -> tuple[Array, Array, Array]:
    """Return features that are multiples of a number, values and labels."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(low, high, COUNT) for low, high in ((18, 90), (0, 12), (0, 40))]
    features = np.stack(columns, axis=1) * grid
    labels = (features[:, 0] > 50 * grid) ^ (features[:, 1] > 6 * grid) ^ (rng.random(COUNT) < 0.1)
    return features, features[:, 0] + 3 * features[:, 1], labels.astype(int)


def at_thresholds(trees: Ensemble, features: Array) -> Array:
    """Return features of which most are a threshold, or a double beside one."""
    rng = np.random.default_rng(1)
    result = features[:SHOWN].copy()
    for feature in range(trees.features):
        known = trees.nodes.threshold[trees.nodes.feature == feature]
        near = np.concatenate([known, np.nextafter(known, np.inf), np.nextafter(known, -np.inf)])
        near = near[np.abs(near) < 1e6]  # others part missing values from all numbers
        chosen = rng.random(SHOWN) < 0.7 * bool(len(near))
        result[chosen, feature] = rng.choice(near, chosen.sum()) if len(near) else 0.0
    return result


@pytest.mark.parametrize(("scalers", "trees", "grid"), cells([*SCALERS], TREES, [1, 0.1]))
def test_scaled_trees_give_what_their_pipeline_gives(scalers: str, trees: Any, grid: float) -> None:
    features, values, labels = data(grid)
    model = make_pipeline(*SCALERS[scalers], trees)
    model.fit(features[:FITTED], (values if is_regressor(trees) else labels)[:FITTED])
    source = ensemble_of(model)
    public = quantise(source, compiler.Fit(thresholds="public", error=0.05))
    for samples in (features[:SHOWN], at_thresholds(source, features)):
        given = [*answers(public, samples).values()]
        expected, targets = own_answers(model, samples)
        if expected is not None:
            assert np.array_equal(given.pop(0).ravel(), expected.ravel())
        rounding = 1e-5 * np.abs(targets[0]).max()  # of the leaves
        np.testing.assert_allclose(given[0].reshape(targets[0].shape), targets[0], atol=rounding, rtol=0)
