"""Reads a model object of any library: an ensemble of trees, or what is exported to ONNX."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx

from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.program.arrays import table_names

from .exporters.samples import beside_fixed
from .feature_names import feature_names
from .model_file import with_fixed_inputs
from .scikit_learn.pipeline import unfrozen
from .to_onnx import to_onnx
from .trees.comparison import require_same, require_same_encoded
from .trees.encoding import trees_of


def to_source(model: object, example: Any = None) -> onnx.ModelProto | Ensemble | EncodedEnsemble:
    """Return what the compiler takes: the ensemble of a fitted object of trees, behind first steps if there
    are any, otherwise an ONNX model.

    Args:
        model, example: see `to_onnx`, also for the errors.
    """
    model = unfrozen(model)
    source = trees_of(model, example)
    if source is None:
        return to_onnx(model, example)
    if isinstance(source, EncodedEnsemble):
        require_same_encoded(model, source, example)
        return source
    names = feature_names(model, example) or tuple(map(str, table_names(example) or ()))
    ensemble = replace(source, reads=replace(source.reads, names=names))
    require_same(model, ensemble, example)
    if hasattr(model, "steps"):
        to_source(model.steps[-1][1])  # behind the scalers too, no special value is read otherwise
    return ensemble


def with_fixed(
    model: object, calibration: Any, fixed: Mapping[str, Any]
) -> tuple[onnx.ModelProto | Ensemble | EncodedEnsemble, Any]:
    """Return what the compiler takes, in which fixed inputs are constants, and the calibration data of the
    others: an array if one input is left, of the model or of the data.

    Args:
        model: see `to_onnx`, also for the errors.
        calibration: samples, with or without those of fixed inputs.
        fixed: values of fixed inputs by name; trees have none.

    Raises:
        RefusalError: the model has no such input, or all its inputs are fixed.
        EncodeError: calibration data or values are no arrays.
    """
    forward = getattr(model, "forward", None)
    source = to_source(model, beside_fixed(forward, calibration, fixed) if callable(forward) else calibration)
    if not fixed or not isinstance(source, onnx.ModelProto):
        return source, calibration
    source = with_fixed_inputs(source, fixed)
    if not isinstance(calibration, Mapping):
        return source, calibration
    left = {name: each for name, each in calibration.items() if name not in fixed}
    known = set(fixed) & set(calibration) or set(left) <= {each.name for each in source.graph.input}
    return source, next(iter(left.values())) if len(left) == 1 and known else left
