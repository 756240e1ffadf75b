"""Reads a model object of any library: an ensemble of trees, or what is exported to ONNX."""

from dataclasses import replace
from typing import Any

import onnx

from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.program.arrays import table_names

from .feature_names import feature_names
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
