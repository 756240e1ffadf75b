"""Trees of LightGBM, from the JSON form of its boosters (``Booster.dump_model()``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.records import refusing
from keywright.compiler.trees import last_step
from keywright.compiler.trees.ensemble import (
    MAX_NODES,
    Ensemble,
    Features,
    Nodes,
    cut_off,
    joined,
    require_counts,
)
from keywright.compiler.trees.last_step import Transform
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.operators import unsupported_attribute

TRANSFORMS: dict[str, Transform] = {
    "regression": "none",
    "regression_l1": "none",
    "huber": "none",
    "fair": "none",
    "quantile": "none",
    "mape": "none",
    "lambdarank": "none",
    "rank_xendcg": "none",
    "binary": "logistic",
    "cross_entropy": "logistic",
    "multiclass": "softmax",
    "multiclassova": "logistic",
    "poisson": "exponential",
    "gamma": "exponential",
    "tweedie": "exponential",
}

ZERO = float(np.float32(1e-35))
"""Numbers up to this one are read as 0."""


def of_model(model: Any) -> Ensemble:
    """Read an estimator with scikit-learn's interface, up to its best iteration.

    Raises:
        ModelRefusedError: see `of_dump`; or predictions stop before the last tree.
    """
    booster = model.booster_
    if model.get_params().get("pred_early_stop"):
        reason = unsupported_attribute("", type(model).__qualname__, "pred_early_stop", True, "False")
        raise ModelRefusedError([reason])
    return of_booster(booster, getattr(model, "classes_", None))


def of_booster(booster: Any, labels: NDArray[Any] | None = None) -> Ensemble:
    """Read a booster, up to its best iteration; see `of_dump`."""
    dump, text = (
        read(num_iteration=booster.best_iteration) for read in (booster.dump_model, booster.model_to_string)
    )
    # Thresholds are rounded to 15 digits in the JSON form, and not in the text.
    settings = [line.partition("=") for line in text.splitlines()]
    lines = [value for name, _, value in settings if name == "threshold"]
    return of_dump(dump, labels, [line.split() for line in lines])


def of_dump(
    dump: Mapping[str, Any],
    labels: NDArray[Any] | None = None,
    thresholds: Sequence[Sequence[str]] | None = None,
) -> Ensemble:
    """Read the JSON form of a booster.

    Args:
        labels: of classes; by default the numbers of classes, if there are any.
        thresholds: of the inner nodes of each tree, by ``split_index``; by default those of the JSON form.

    Raises:
        ModelRefusedError: an objective or kind of missing value without an encrypted form, or an object that
            is not this form (`RefusalError`).
    """
    try:
        with refusing("a booster of LightGBM", RefusalError, code="model"):
            return _read(dump, labels, thresholds)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason


def _read(
    dump: Mapping[str, Any], labels: NDArray[Any] | None, thresholds: Sequence[Sequence[str]] | None
) -> Ensemble:
    objective, *options = str(dump.get("objective") or "regression").split()
    if objective not in TRANSFORMS or "sqrt" in options:
        known = ", ".join(TRANSFORMS)
        raise _refused("objective", " ".join([objective, *options]), f"one of {known}, without sqrt")
    outputs = int(dump["num_tree_per_iteration"])
    factor = next((float(o.removeprefix("sigmoid:")) for o in options if o.startswith("sigmoid:")), 1.0)
    entries = dump["tree_info"]
    require_counts(len(entries), sum(2 * int(entry["num_leaves"]) - 1 for entry in entries), outputs)
    exact = [None] * len(entries) if thresholds is None else thresholds
    trees = [
        _tree(entry["tree_structure"], number % outputs, outputs, own)
        for number, (entry, own) in enumerate(zip(entries, exact, strict=True))
    ]
    if dump.get("average_output", False):
        factor /= max(len(trees) // outputs, 1)
    transform = TRANSFORMS[objective]
    if labels is None and objective in ("binary", "multiclass", "multiclassova"):
        labels = np.arange(max(outputs, 2))
    last = last_step.of_booster(transform, labels, outputs)
    categories = tuple((None, list(each)) for each in dump.get("pandas_categorical") or ())
    reads = Features(int(dump["max_feature_idx"]) + 1, missing=True, categories=categories)
    return Ensemble(reads, *joined(trees), np.zeros(outputs), last, factor)


def _tree(structure: Mapping[str, Any], output: int, outputs: int, thresholds: Sequence[str] | None) -> Nodes:
    feature: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    missing: list[bool] = []
    values: list[float] = []
    members: dict[int, NDArray[np.float64]] = {}
    waiting: list[tuple[Mapping[str, Any], int, int]] = [(structure, -1, 0)]
    while waiting:
        entry, parent, side = waiting.pop()
        number = len(feature)
        if number > MAX_NODES:
            require_counts(1, number, outputs)
        if parent >= 0:
            children[parent][side] = number
        children.append([-1, -1])
        if "leaf_coeff" in entry:
            raise _refused("linear_tree", True, "linear_tree=False")
        if "split_feature" not in entry:
            feature.append(-1)
            threshold.append(0.0)
            missing.append(False)
            values.append(float(entry["leaf_value"]))
            continue
        values.append(0.0)
        feature.append(int(entry["split_feature"]))
        kind = entry["missing_type"]
        if kind not in ("None", "NaN"):
            raise _refused("missing values", kind, "zero_as_missing=false")
        if entry["decision_type"] == "==":
            known = np.asarray([float(each) for each in str(entry["threshold"]).split("||")])
            members[number] = cut_off(known, toward_zero=True)
            threshold.append(0.0)
            missing.append(False)
        else:
            largest = np.finfo(np.float64).max
            given = entry["threshold"] if thresholds is None else thresholds[int(entry["split_index"])]
            limit = float(np.clip(float(given), -largest, largest))
            if abs(limit) <= ZERO:
                limit = ZERO if limit >= 0.0 else float(np.nextafter(-ZERO, -1.0))
            threshold.append(limit)
            # Without missing values in training, they are read as 0.
            missing.append(bool(entry["default_left"]) if kind == "NaN" else limit >= 0.0)
        waiting += [(entry["left_child"], number, 0), (entry["right_child"], number, 1)]
    both = np.asarray(children, np.int64)
    column = np.zeros((len(values), outputs))
    column[:, output] = values
    return Nodes(
        np.asarray(feature, np.int64),
        np.asarray(threshold, np.float64),
        both[:, 0],
        both[:, 1],
        np.asarray(missing, np.bool_),
        column,
        members,
    )


def _refused(attribute: str, value: object, allowed: str) -> RefusalError:
    return unsupported_attribute("", "Booster", attribute, value, allowed)
