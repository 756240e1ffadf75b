"""Trees of scikit-learn, from its own fitted arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keywright.compiler.trees.ensemble import Ensemble, Tree, joined
from keywright.compiler.trees.last_step import LastStep
from keywright.program.arrays import Vector


def of_trees(model: Any) -> Ensemble:
    """Read a decision tree, a random forest or extra trees: the mean over the trees."""
    estimators = getattr(model, "estimators_", [model])
    count, single = len(estimators), hasattr(model, "classes_")
    trees = [estimator.tree_ for estimator in estimators]
    if not single:
        return _ensemble(
            model,
            [_tree(tree, tree.value[:, :, 0]) for tree in trees],
            np.zeros(model.n_outputs_),
            LastStep(values="variable"),
            1 / count,
        )
    shares = [tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) for tree in trees]
    two = len(model.classes_) == 2
    last = LastStep("complement" if two else "none", np.asarray(model.classes_), boundary=0.5)
    columns = slice(1, 2) if two else slice(None)
    made = [_tree(tree, share[:, columns]) for tree, share in zip(trees, shares, strict=True)]
    return _ensemble(model, made, np.zeros(made[0].values.shape[1]), last, 1 / count)


def _tree(tree: Any, values: Vector) -> Tree:
    leaf = tree.children_left < 0
    go_left = tree.__getstate__()["nodes"]["missing_go_to_left"]
    return Tree(
        np.where(leaf, -1, tree.feature).astype(np.int64),
        np.where(leaf, 0.0, tree.threshold).astype(np.float64),
        np.asarray(tree.children_left, np.int64),
        np.asarray(tree.children_right, np.int64),
        np.asarray(go_left, np.bool_),
        np.where(leaf[:, None], values, 0.0),
    )


def _ensemble(
    model: Any, trees: Sequence[Tree], base: Vector, last: LastStep, factor: float = 1.0
) -> Ensemble:
    missing = bool(model.__sklearn_tags__().input_tags.allow_nan)
    nodes: Any = joined(trees)
    return Ensemble(
        features=int(model.n_features_in_),
        base=base,
        last=last,
        factor=factor,
        single=True,
        missing=missing,
        **nodes,
    )
