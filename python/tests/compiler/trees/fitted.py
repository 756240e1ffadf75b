"""Data with ties and missing values, fitted ensembles of every kind, and an evaluation node by node."""

from collections.abc import Callable
from typing import Any

import numpy as np
from keywright import compiler
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.trees.ensemble import Ensemble, Features, Nodes, exactly, joined
from keywright.compiler.trees.last_step import LastStep
from keywright.compiler.trees.quantising import QuantisedEnsemble, quantise
from numpy.typing import NDArray
from sklearn import ensemble, tree

Array = NDArray[Any]

RNG = np.random.default_rng(37)
COUNT, FEATURES = 1000, 6
VALUES = RNG.normal(size=(COUNT, FEATURES))
VALUES[:, 2] = np.round(VALUES[:, 2] * 2) / 2  # ties
VALUES[:, 5] = RNG.integers(0, 4, COUNT)
MISSING = VALUES.copy()
MISSING[RNG.random(VALUES.shape) < 0.1] = np.nan
TWO = (VALUES[:, 0] + VALUES[:, 2] * VALUES[:, 1] + 0.1 * RNG.normal(size=COUNT) > 0).astype(int)
THREE = np.array(["low", "middle", "high"])[(VALUES[:, 0] > 0).astype(int) + (VALUES[:, 1] > 0.3)]
REAL = VALUES[:, 0] * 2 + np.sin(VALUES[:, 1])
CONSTANT = np.zeros(COUNT, int)

Case = tuple[Callable[[], Any], Array, Array | None]
CASES: dict[str, Case] = {
    "tree of depth 8 with missing values": (
        lambda: tree.DecisionTreeClassifier(max_depth=8, random_state=0), MISSING, TWO,
    ),
    "tree of three labels": (lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=0), VALUES, THREE),
    "tree of one leaf": (tree.DecisionTreeClassifier, VALUES, CONSTANT),
    "tree of one comparison": (lambda: tree.DecisionTreeRegressor(max_depth=1), VALUES, REAL),
    "tree of two comparisons": (lambda: tree.DecisionTreeRegressor(max_depth=2), VALUES, TWO + VALUES[:, 2]),
    "tree of two values": (
        lambda: tree.DecisionTreeRegressor(max_depth=5), MISSING, np.stack((REAL, -TWO), axis=1),
    ),
    "extra tree": (lambda: tree.ExtraTreeClassifier(max_depth=5, random_state=0), VALUES, TWO),
    "extra tree of values": (lambda: tree.ExtraTreeRegressor(max_depth=5, random_state=0), VALUES, REAL),
    "forest": (lambda: ensemble.RandomForestClassifier(20, max_depth=8, random_state=0), MISSING, TWO),
    "forest of three labels": (
        lambda: ensemble.RandomForestClassifier(20, max_depth=4, random_state=0), VALUES, THREE,
    ),
    "forest of values": (
        lambda: ensemble.RandomForestRegressor(9, max_depth=5, random_state=0), MISSING, REAL,
    ),
    "extra trees": (lambda: ensemble.ExtraTreesClassifier(9, max_depth=6, random_state=0), VALUES, THREE),
    "extra trees of values": (
        lambda: ensemble.ExtraTreesRegressor(9, max_depth=6, random_state=0), VALUES, REAL,
    ),
    "boosting": (lambda: ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0), VALUES, TWO),
    "boosting of three labels": (
        lambda: ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0), VALUES, THREE,
    ),
    "exponential boosting": (
        lambda: ensemble.GradientBoostingClassifier(n_estimators=8, loss="exponential", random_state=0),
        VALUES,
        TWO,
    ),
    "boosting from zero": (
        lambda: ensemble.GradientBoostingRegressor(n_estimators=9, init="zero", random_state=0), VALUES, REAL,
    ),
    "histogram boosting": (
        lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0), MISSING, TWO,
    ),
    "histogram boosting of three labels": (
        lambda: ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0), MISSING, THREE,
    ),
    "histogram boosting of values": (
        lambda: ensemble.HistGradientBoostingRegressor(max_iter=20, random_state=0), MISSING, REAL,
    ),
    "histogram boosting of counts": (
        lambda: ensemble.HistGradientBoostingRegressor(max_iter=8, loss="poisson", random_state=0),
        MISSING,
        np.exp(REAL / 2),
    ),
    "isolation forest": (lambda: ensemble.IsolationForest(n_estimators=20, random_state=0), MISSING, None),
    "isolation forest of some features": (
        lambda: ensemble.IsolationForest(n_estimators=20, max_features=3, random_state=0), VALUES, None,
    ),
}  # fmt: skip


def fitted(name: str) -> tuple[Any, Array]:
    """A fitted estimator, and its data."""
    make, samples, expected = CASES[name]
    return make().fit(samples, expected), samples


def answers(trees: QuantisedEnsemble, samples: Array) -> dict[str, Array]:
    """The model's own outputs from the graph in the clear, of each kind of scores once."""
    bits = trees.binning.apply(samples)
    scores = np.concatenate([values[trees.graph.output] for _, values in trees.graph.runs(bits)])
    different, places = np.unique(scores, axis=0, return_inverse=True)
    return {name: array[places.ravel()] for name, array in trees.client_part.run(different).items()}


def ensemble_of(model: Any) -> Ensemble:
    source = to_source(model)
    assert isinstance(source, Ensemble)
    return source


def quantised(model: Any, samples: Array, **options: Any) -> QuantisedEnsemble:
    return quantise(ensemble_of(model), compiler.Fit(calibration=samples, **options))


def own(model: Any, samples: Array) -> dict[str, Array]:
    """What the library itself returns, by the names that a program gives."""
    if isinstance(model, ensemble.IsolationForest):
        return {"label": model.predict(samples), "scores": model.decision_function(samples)[:, None]}
    if hasattr(model, "predict_proba"):
        return {"label": model.predict(samples), "probabilities": model.predict_proba(samples)}
    values = model.predict(samples)
    return {"variable": values.reshape(len(samples), -1)}


def walked(trees: Ensemble, sample: Array) -> Array:
    """The sums of leaves of one sample, one comparison after the other."""
    total = np.zeros(trees.outputs)
    values = sample.astype(np.float32).astype(float) if trees.single else sample
    for root in trees.roots:
        node = int(root)
        while trees.nodes.feature[node] >= 0:
            value = values[trees.nodes.feature[node]]
            if np.isnan(value):
                left = bool(trees.nodes.missing_left[node])
            elif node in trees.nodes.members:
                left = any(low <= value < high for low, high in trees.nodes.members[node])
            else:
                left = value <= trees.nodes.threshold[node]
            node = int(trees.nodes.left[node] if left else trees.nodes.right[node])
        total += trees.nodes.values[node]
    return total


def random_ensemble(rng: np.random.Generator, trees: int, depth: int, features: int) -> Ensemble:
    """An ensemble with random thresholds, memberships and missing directions, of irregular trees."""

    def grown() -> Nodes:
        feature: list[int] = []
        threshold: list[float] = []
        children: list[tuple[int, int]] = []
        missing: list[bool] = []
        values: list[list[float]] = []
        members = {}

        def node(left: int) -> int:
            number = len(feature)
            inner = left > 0 and rng.random() < 0.8
            feature.append(int(rng.integers(features)) if inner else -1)
            threshold.append(float(np.round(rng.normal(), 1)) if inner else 0.0)
            missing.append(bool(rng.random() < 0.5))
            values.append([0.0] if inner else [float(rng.normal())])
            children.append((-1, -1))
            if inner:
                if rng.random() < 0.2:
                    members[number] = exactly(np.round(rng.normal(size=2), 1))
                children[number] = node(left - 1), node(left - 1)
            return number

        node(depth)
        both = np.asarray(children, np.int64)
        return Nodes(
            np.asarray(feature, np.int64), np.asarray(threshold), both[:, 0], both[:, 1],
            np.asarray(missing), np.asarray(values), members,
        )  # fmt: skip

    roots, nodes = joined([grown() for _ in range(trees)])
    reads = Features(features, missing=True)
    return Ensemble(reads, roots, nodes, np.asarray([0.5]), LastStep(values="variable"))


def samples_of(rng: np.random.Generator, count: int, features: int) -> Array:
    """Samples with ties on thresholds and with missing values."""
    samples = np.round(rng.normal(size=(count, features)), 1)
    samples[rng.random(samples.shape) < 0.1] = np.nan
    return samples
