"""Trees of XGBoost, from the JSON form of its boosters (``Booster.save_raw("json")``)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.documents import OWN, read_json
from keywright._reading.records import refusing, shown
from keywright.compiler.trees import last_step
from keywright.compiler.trees.ensemble import Ensemble, Features, Nodes, cut_off, joined, require_counts
from keywright.compiler.trees.last_step import Transform
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.operators import unsupported_attribute

IDENTITY = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror")
LOGISTIC = ("binary:logistic", "reg:logistic")
EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie")
SOFTMAX = ("multi:softprob", "multi:softmax")
RANKING = ("rank:pairwise", "rank:ndcg", "rank:map", "binary:logitraw")


def of_model(model: Any) -> Ensemble:
    """Read an estimator with scikit-learn's interface, up to its best iteration.

    Raises:
        ModelRefusedError: see `of_dump`; or another value than NaN is missing.
    """
    missing = getattr(model, "missing", None)
    if missing is not None and missing == missing:
        allowed = "the default, NaN: replace the value by numpy.nan before fit and predict"
        reason = unsupported_attribute("", type(model).__qualname__, "missing", missing, allowed)
        raise ModelRefusedError([reason])
    booster = model.get_booster()
    best = booster.attr("best_iteration")
    if best is not None:
        booster = booster[: int(best) + 1]
    return of_dump(read_json(booster.save_raw("json"), OWN), getattr(model, "classes_", None))


def of_booster(booster: Any) -> Ensemble:
    """Read a booster."""
    return of_dump(read_json(booster.save_raw("json"), OWN))


def of_dump(dump: Mapping[str, Any], labels: NDArray[Any] | None = None) -> Ensemble:
    """Read the JSON form of a booster.

    Args:
        labels: of classes; by default the numbers of classes, if there are any.

    Raises:
        ModelRefusedError: an objective or booster without an encrypted form, or an object that is not this
            form (`RefusalError`).
    """
    try:
        with refusing("a booster of XGBoost", RefusalError, code="model"):
            return _read(dump["learner"], labels)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason


def _read(learner: Mapping[str, Any], labels: NDArray[Any] | None) -> Ensemble:
    parameters, objective = learner["learner_model_param"], learner["objective"]["name"]
    booster, dart = learner["gradient_booster"], {}
    if booster["name"] == "dart":  # up to version 3.3
        booster, dart = booster["gbtree"], {"weight_drop": booster["weight_drop"]}
    elif booster["name"] != "gbtree":
        raise unsupported_attribute("", "Booster", "booster", booster["name"], "gbtree or dart")
    targets = int(parameters.get("num_target", 1))
    outputs = max(int(parameters.get("num_class", 0)), targets, 1)
    base = np.broadcast_to(np.float64(read_json(parameters["base_score"], OWN)), outputs).copy()
    transform = _transform(objective)
    if transform == "logistic":
        base = np.log(base / (1 - base))
    elif transform == "exponential":
        base = np.log(base)
    model = booster["model"]
    dart = model if "weight_drop" in model else dart
    stored = [_categories(each) for each in model.get("cats", {}).get("enc", ())]
    kinds = learner.get("feature_types") or []
    known = enumerate(stored or [[] for _ in kinds])
    entries = model["trees"]
    require_counts(len(entries), sum(len(tree["left_children"]) for tree in entries), outputs)
    weights = _weights(dart["weight_drop"], len(entries)) if dart else [1.0] * len(entries)
    trees = [
        _tree(tree, output, outputs, weight)
        for tree, output, weight in zip(entries, model["tree_info"], weights, strict=True)
    ]
    if targets > 1:
        labels = None  # each output is the probability of a label of its own, which is there or not
    elif labels is None and objective in (*SOFTMAX, "binary:logistic"):
        labels = np.arange(max(outputs, 2))
    last = last_step.of_booster(transform, labels, outputs)
    reads = Features(
        int(parameters["num_feature"]),
        single=True,
        missing=True,
        categories=tuple((place, each) for place, each in known if each or kinds[place : place + 1] == ["c"]),
        strict=True,
    )
    return Ensemble(reads, *joined(trees), base, last)


def _weights(given: object, count: int) -> Sequence[float]:
    """Return the weights of a DART booster's trees, which are in single precision. Raises `RefusalError`."""
    numbers = isinstance(given, list) and {type(each) for each in given} <= {int, float}
    if not isinstance(given, list) or not numbers or len(given) != count:
        raise RefusalError(f"weight_drop of a booster is {shown(given)}, not {count} numbers, one a tree")
    if not all(abs(each) <= float(np.finfo(np.float32).max) for each in given):
        raise RefusalError("weight_drop of a booster has a number that is not finite in single precision")
    return given


def _categories(encoding: Mapping[str, Any]) -> Sequence[float | str]:
    """Return the categories of a column of a data frame; none for a column without."""
    if "offsets" not in encoding:
        return list(encoding["values"])
    # Bytes of all texts together, which XGBoost writes with a sign.
    characters, offsets = bytes(value & 255 for value in encoding["values"]), encoding["offsets"]
    return [characters[first:end].decode() for first, end in pairwise(offsets)]


def _transform(objective: str) -> Transform:
    if objective in (*IDENTITY, *RANKING):
        return "none"
    if objective in LOGISTIC:
        return "logistic"
    if objective in EXPONENTIAL:
        return "exponential"
    if objective in SOFTMAX:
        return "softmax"
    known = ", ".join((*IDENTITY, *RANKING, *LOGISTIC, *EXPONENTIAL, *SOFTMAX))
    raise unsupported_attribute("", "Booster", "objective", objective, f"one of {known}")


def _tree(tree: Mapping[str, Any], output: int, outputs: int, weight: float) -> Nodes:
    left, right = (np.asarray(tree[f"{side}_children"], np.int64) for side in ("left", "right"))
    if int(tree.get("tree_param", {}).get("size_leaf_vector", 1) or 1) > 1:
        raise unsupported_attribute(
            "", "Booster", "multi_strategy", "multi_output_tree", "one_output_per_tree"
        )
    conditions = np.asarray(tree["split_conditions"], np.float32)
    leaf, count = left < 0, len(left)
    values = np.zeros((count, outputs))
    values[leaf, output] = conditions[leaf] * weight
    default_left = np.asarray(tree["default_left"], np.bool_)
    categorical = [int(node) for node in tree.get("categories_nodes", [])]
    members = {}
    for place, node in enumerate(categorical):
        first, size = tree["categories_segments"][place], tree["categories_sizes"][place]
        members[node] = cut_off(np.asarray(tree["categories"][first : first + size], np.float64))
        # Members go to the right here, and to the left in an ensemble.
        left[node], right[node] = right[node], left[node]
        default_left[node] = not default_left[node]
    # x < t in single precision is x <= the number before t.
    before = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
    before[categorical] = 0.0
    return Nodes(
        np.where(leaf, -1, np.asarray(tree["split_indices"], np.int64)),
        np.where(leaf, 0.0, before),
        left,
        right,
        default_left,
        values,
        members,
    )
