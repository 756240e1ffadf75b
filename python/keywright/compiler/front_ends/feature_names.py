"""Names of features: which column of a table is which feature of a model."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from keywright.program.arrays import table_names
from keywright.program.client.samples import by_name

from .model_file import listed

NAMES = "keywright.features"
"""Metadata of a model that takes an array: the names of its columns, as JSON."""

COUNTED = {"sklearn": "x", "lightgbm": "Column_", "xgboost": "f"}
"""What libraries put before the numbers of features that have no names."""


def feature_names(model: Any, samples: Any = None) -> tuple[str, ...]:
    """Return the names of a fitted object's features, in its order: those of itself or of the first step of
    a pipeline; none if it was fitted on arrays.

    Args:
        samples: a table, whose spelling of names is taken where the object's library replaced blanks.
    """
    names = _own_names(model)
    prefix = COUNTED.get(type(model).__module__.partition(".")[0], "x")
    if names == tuple(f"{prefix}{place}" for place in range(len(names))):
        return ()
    if type(model).__module__.startswith("lightgbm"):
        spelled = {str(name).replace(" ", "_"): str(name) for name in table_names(samples) or ()}
        names = tuple(spelled.get(name, name) for name in names)
    return names


def read_names(model: Any, samples: Any = None) -> tuple[str, ...]:
    """Return the names of the features that a fitted object reads: without those that a ColumnTransformer as
    its first step drops, which tables may lack."""
    names = feature_names(model, samples)
    first = _first_step(model)
    if not names or not hasattr(first, "_transformer_to_input_indices"):
        return names
    own = first._transformer_to_input_indices
    kept = [own[name] for name, step, _ in first.transformers_ if not isinstance(step, str) or step != "drop"]
    places = {int(place) for each in kept for place in each}
    return tuple(name for place, name in enumerate(names) if place in places)


def with_used_columns(model: Any, samples: Any) -> Any:
    """Return a table without columns that a fitted object reads no feature from: nothing is asked of their
    values. Other samples are returned as they are, and so are tables that lack a column or repeat one."""
    names, present = read_names(model, samples), table_names(samples) or []
    used = [each for each in present if str(each) in names]
    if not names or len(used) == len(present) or sorted(map(str, used)) != sorted(names):
        return samples
    if hasattr(samples, "select"):  # of Polars and Arrow
        return samples.select(used)
    return samples[used] if hasattr(samples, "iloc") else {each: samples[each] for each in used}


def _own_names(model: Any) -> tuple[str, ...]:
    for attribute in ("feature_names_in_", "feature_names", "feature_name"):
        try:  # of scikit-learn and of estimators like its own; of boosters of XGBoost, and of LightGBM
            names = getattr(model, attribute)
            names = names() if callable(names) else names
        except (AttributeError, ValueError):  # no names, or nothing is fitted
            continue
        if names is not None and len(names):
            return tuple(map(str, names))
    first = _first_step(model)
    return () if first is model else _own_names(first)


def _first_step(model: Any) -> Any:
    """Return the first step of a pipeline, or of the best one of a search; another object itself."""
    model = getattr(model, "best_estimator_", model)
    steps = [step for _, step in getattr(model, "steps", ()) if step is not None and step != "passthrough"]
    return _first_step(steps[0]) if steps else model


def as_fitted(model: Any, samples: Any) -> Any:
    """Return samples as a fitted object takes them: a data frame, or an array, in its order. A frame has the
    columns that the object reads.

    Raises:
        EncodeError: a table lacks one of these columns.
    """
    pandas: Any = sys.modules.get("pandas")
    names, present = feature_names(model, samples), table_names(samples)
    if present is None:
        known = names and pandas is not None
        return pandas.DataFrame(samples, columns=list(names)).infer_objects() if known else samples
    if not names and not isinstance(samples, Mapping):
        return samples
    every, names = names, read_names(model, samples)
    given = by_name(samples, names or tuple(map(str, present)))
    if names and hasattr(samples, "select"):  # of Polars and Arrow
        return samples.select(list(names))
    if names and pandas is not None:
        return samples[list(names)] if isinstance(samples, pandas.DataFrame) else pandas.DataFrame(given)
    columns = [given.get(name) for name in every or given]
    table = np.empty((len(next(iter(given.values()))), len(columns)), object)
    for place, each in enumerate(columns):
        table[:, place] = each
    return table


def with_names(exported: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return an exported model with the names of its input's columns."""
    if names:
        exported.metadata_props.add(key=NAMES, value=json.dumps(list(names)))
    return exported


def names_in(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of the columns of a model's input; most models have none."""
    return tuple(map(str, listed(model, NAMES, "names")))
