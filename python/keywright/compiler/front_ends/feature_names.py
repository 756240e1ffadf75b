"""Names of features: which column of a table is which feature of a model."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from keywright._reading.documents import Limits, read_json
from keywright._reading.records import refusing
from keywright.errors.network import RefusalError
from keywright.program.arrays import table_names
from keywright.program.client.samples import by_name

NAMES = "keywright.features"
"""Metadata of a model that takes an array: the names of its columns, as JSON."""

LIMITS = Limits(16 << 20, 1 << 20)
"""Names of as many features as a model can have."""

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


def with_used_columns(model: Any, samples: Any) -> Any:
    """Return a table without columns that a fitted object takes no feature from: nothing is asked of their
    values. Other samples are returned as they are, and so are tables that lack a column or repeat one."""
    names, present = feature_names(model, samples), table_names(samples) or []
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
    steps = [step for _, step in getattr(model, "steps", ()) if step is not None and step != "passthrough"]
    return _own_names(steps[0]) if steps else ()


def as_fitted(samples: Any, names: Sequence[str]) -> Any:
    """Return samples as an object with such names takes them: a data frame, or an array, in its order.

    Raises:
        EncodeError: a table lacks one of the names.
    """
    pandas: Any = sys.modules.get("pandas")
    present = table_names(samples)
    if present is None:
        known = names and pandas is not None
        return pandas.DataFrame(samples, columns=list(names)).infer_objects() if known else samples
    if not names and not isinstance(samples, Mapping):
        return samples
    given = by_name(samples, names or tuple(map(str, present)))
    if names and hasattr(samples, "select"):  # of Polars and Arrow
        return samples.select(list(names))
    if names and pandas is not None:
        return samples[list(names)] if isinstance(samples, pandas.DataFrame) else pandas.DataFrame(given)
    columns = list(given.values())
    table = np.empty((len(columns[0]), len(columns)), object)
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
    value = next((entry.value for entry in model.metadata_props if entry.key == NAMES), "[]")
    with refusing("a list of names", RefusalError, code="model"):
        return tuple(map(str, read_json(value, LIMITS)))
