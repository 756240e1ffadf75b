"""Trees of scikit-learn, from its own fitted arrays."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from keywright.compiler.trees.ensemble import Ensemble, Features, Nodes, Numbers, cut_off, joined
from keywright.compiler.trees.last_step import LastStep, Transform
from keywright.errors.network import ModelRefusedError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.arrays import Vector

LARGEST = float(np.finfo(np.float64).max)
"""Stands for an infinite threshold, which only tells missing values from others."""


def of_trees(model: Any) -> Ensemble:
    """Read a decision tree, a random forest or extra trees: the mean over the trees."""
    estimators = getattr(model, "estimators_", [model])
    count, single = len(estimators), hasattr(model, "classes_")
    if single and model.n_outputs_ > 1:
        raise _refused(model, "labels in several columns", model.n_outputs_, "one column; fit one each")
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
    results = [_tree(tree, share[:, columns]) for tree, share in zip(trees, shares, strict=True)]
    return _ensemble(model, results, np.zeros(results[0].values.shape[1]), last, 1 / count)


def of_gradient_boosting(model: Any) -> Ensemble:
    """Read a gradient boosting of regression trees."""
    base = np.zeros(model.estimators_.shape[1])
    if model.init_ != "zero":
        if type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor"):
            raise _refused(model, "init", type(model.init_).__name__, "'zero' or none")
        base = np.ravel(model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32)))
    trees = []
    for row in model.estimators_:
        trees += [
            _tree(each.tree_, _column(each.tree_.value[:, 0, 0], k, len(base))) for k, each in enumerate(row)
        ]
    factor = float(model.learning_rate)
    if not hasattr(model, "classes_"):
        return _ensemble(model, trees, base, LastStep(values="variable"), factor)
    sharper = 2.0 if model.loss == "exponential" else 1.0
    transform: Transform = "logistic" if len(base) == 1 else "softmax"
    return _ensemble(
        model, trees, sharper * base, LastStep(transform, np.asarray(model.classes_)), sharper * factor
    )


def of_histogram_boosting(model: Any) -> Ensemble:
    """Read a histogram gradient boosting, whose categories are places among those that it knows."""
    base = np.ravel(model._baseline_prediction).astype(np.float64)
    order, categories = _places_of(model), tuple[tuple[int, Sequence[Any]], ...]()
    if model._preprocessor is not None:
        encoder = model._preprocessor.named_transformers_["encoder"]
        categories = tuple(zip(order.tolist(), map(list, encoder.categories_), strict=False))
    trees = [
        _histogram_tree(each, order, k, len(base)) for row in model._predictors for k, each in enumerate(row)
    ]
    if hasattr(model, "classes_"):
        transform: Transform = "logistic" if len(base) == 1 else "softmax"
        last = LastStep(transform, np.asarray(model.classes_))
    else:
        link = type(model._loss.link).__name__
        if link not in ("IdentityLink", "LogLink"):
            raise _refused(model, "loss", model.loss, "one with the link identity or log")
        last = LastStep("none" if link == "IdentityLink" else "exponential", values="variable")
    ensemble = _ensemble(model, trees, base, last, single=False)
    return replace(
        ensemble, reads=replace(ensemble.reads, categories=categories, coded=bool(categories), missing=True)
    )


def _places_of(model: Any) -> Numbers:
    """Return which column each feature of the trees is: those of categories come first."""
    own = getattr(model, "is_categorical_", None)
    chosen = np.zeros(model.n_features_in_, np.bool_) if own is None else np.asarray(own, np.bool_)
    return np.concatenate((np.flatnonzero(chosen), np.flatnonzero(~chosen)))


def with_places(model: Any) -> Any:
    """Return a histogram gradient boosting that takes places of categories; another estimator itself."""
    if getattr(model, "_preprocessor", None) is None:
        return model
    other, order = copy(model), _places_of(model)
    other._preprocessor = SimpleNamespace(
        transform=lambda samples: np.ascontiguousarray(np.asarray(samples, np.float64)[:, order])
    )
    return other


def _histogram_tree(predictor: Any, order: Numbers, output: int, outputs: int) -> Nodes:
    nodes, members = predictor.nodes, {}
    leaf, chosen = nodes["is_leaf"].astype(bool), nodes["is_categorical"].astype(bool)
    for node in np.flatnonzero(chosen & ~leaf):
        bits = np.asarray(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]], np.uint32)
        known = np.flatnonzero(np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little"))
        members[int(node)] = cut_off(known.astype(np.float64))
    return Nodes(
        np.where(leaf, -1, order[nodes["feature_idx"]]).astype(np.int64),
        np.where(leaf | chosen, 0.0, np.clip(nodes["num_threshold"], -LARGEST, LARGEST)),
        nodes["left"].astype(np.int64),
        nodes["right"].astype(np.int64),
        nodes["missing_go_to_left"].astype(np.bool_),
        np.where(leaf[:, None], _column(nodes["value"], output, outputs), 0.0),
        members,
    )


def of_isolation_forest(model: Any) -> Ensemble:
    """Read an isolation forest: the mean depth of leaves."""
    trees = []
    for number, (each, features) in enumerate(
        zip(model.estimators_, model.estimators_features_, strict=True)
    ):
        depth = model._decision_path_lengths[number] + model._average_path_length_per_tree[number] - 1.0
        tree = _tree(each.tree_, np.asarray(depth, np.float64)[:, None])
        named = np.where(tree.feature < 0, -1, np.asarray(features)[tree.feature])
        trees.append(replace(tree, feature=named.astype(np.int64)))
    # The mean depth of a sample in a tree of this many samples; scikit-learn's function for it is private.
    samples = int(model._max_samples)
    harmonic = math.log(samples - 1) + np.euler_gamma if samples > 2 else 0.0
    usual = 2 * harmonic - 2 * (samples - 1) / samples if samples > 2 else float(samples == 2)
    if not usual:
        raise _refused(model, "max_samples", samples, "at least 2")
    offset = float(model.offset_)
    last = LastStep(
        "isolation", np.asarray([-1, 1]), values="scores", boundary=-math.log2(-offset), offset=offset
    )
    return _ensemble(model, trees, np.zeros(1), last, 1 / (len(trees) * usual))


def _column(values: Vector, output: int, outputs: int) -> Vector:
    """Return values as one of several outputs, (count, outputs)."""
    result = np.zeros((len(values), outputs))
    result[:, output] = values
    return result


def _refused(model: Any, attribute: str, value: object, allowed: str) -> ModelRefusedError:
    kind = type(model).__name__
    return ModelRefusedError([unsupported_attribute("", kind, attribute, value, allowed)])


def _tree(tree: Any, values: Vector) -> Nodes:
    leaf = tree.children_left < 0
    go_left = tree.__getstate__()["nodes"]["missing_go_to_left"]
    return Nodes(
        np.where(leaf, -1, tree.feature).astype(np.int64),
        np.where(leaf, 0.0, np.clip(tree.threshold, -LARGEST, LARGEST)),
        np.asarray(tree.children_left, np.int64),
        np.asarray(tree.children_right, np.int64),
        np.asarray(go_left, np.bool_),
        np.where(leaf[:, None], values, 0.0),
    )


def _ensemble(
    model: Any,
    trees: Sequence[Nodes],
    base: Vector,
    last: LastStep,
    factor: float = 1.0,
    *,
    single: bool = True,
) -> Ensemble:
    missing = bool(model.__sklearn_tags__().input_tags.allow_nan)
    features = int(model.n_features_in_)
    return Ensemble(Features(features, single, missing), *joined(trees), base, last, factor)
