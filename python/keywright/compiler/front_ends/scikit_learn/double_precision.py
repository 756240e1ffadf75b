"""Estimators that their exporter writes in single precision alone, for features that it would round: what is
before the last step, in double precision, and the last step on its results."""

import warnings
from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, compose, helper

Export = Callable[[Any, NDArray[Any]], onnx.ModelProto]
"""Exports an estimator for a sample, (1, features), in whose precision it computes."""

FIRST = "first/"
"""Prefix of the names of values before the last step."""


def export_in_double(model: Any, sample: NDArray[np.float64], export: Export) -> onnx.ModelProto | None:
    """Return a fitted estimator in two precisions; None for one that has no steps before and is not linear.

    A linear classifier alone is shifted to the sample, and its intercepts with it.

    Args:
        sample: (1, features).
        export: refuses what it cannot export.

    Raises:
        ModelRefusedError: a part cannot be exported.
    """
    steps = _steps(model, sample)
    if steps is None:
        return None
    *before, (_, last) = steps
    first = import_module("sklearn.pipeline").Pipeline(before)
    front = export(first, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an array instead of a table with names
        features = first.transform(sample)
    back = export(last, np.asarray(features, np.float32))
    (source,) = back.graph.input
    end = front.graph.output[0].name
    front.graph.node.append(helper.make_node("Cast", [end], ["single"], to=TensorProto.FLOAT))
    del front.graph.output[:]
    front.graph.output.append(onnx.ValueInfoProto(name="single", type=source.type))
    front = compose.add_prefix(front, FIRST, rename_inputs=False)
    front.ir_version = back.ir_version
    versions: dict[str, int] = {}
    for each in [*front.opset_import, *back.opset_import]:
        versions[each.domain] = max(each.version, versions.get(each.domain, 1))
    for part in (front, back):
        del part.opset_import[:]
        part.opset_import.extend(helper.make_opsetid(*each) for each in versions.items())
    return compose.merge_models(front, back, io_map=[(f"{FIRST}single", source.name)])


def _steps(model: Any, sample: NDArray[np.float64]) -> list[tuple[str, Any]] | None:
    """Return the steps of a pipeline, or of a linear classifier that is moved to a sample."""
    if hasattr(model, "steps"):
        return list(model.steps) if len(model.steps) > 1 else _steps(model.steps[0][1], sample)
    if not (hasattr(model, "classes_") and hasattr(model, "coef_") and hasattr(model, "intercept_")):
        return None
    centre = sample[0].astype(np.float64)
    moved = copy(model)
    moved.intercept_ = model.intercept_ + np.asarray(model.coef_, np.float64) @ centre
    scaler = import_module("sklearn.preprocessing").StandardScaler(with_std=False)
    scaler.mean_, scaler.scale_, scaler.var_ = centre, None, None
    scaler.n_features_in_, scaler.n_samples_seen_ = len(centre), 1
    return [("centre", scaler), ("classifier", moved)]
