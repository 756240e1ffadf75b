"""Exports models of other libraries to ONNX, through the exporters of these libraries."""

import importlib
import sys
from pathlib import Path
from typing import Any

import onnx

from .exporters.estimator import export_estimator
from .exporters.torch_module import export_module
from .model_file import load_model


def to_onnx(model: object, example: Any = None) -> onnx.ModelProto:
    """Export a model to ONNX.

    Args:
        model: an ONNX model, its bytes or its path; a ``torch.nn.Module``, exported by ``torch.onnx.export``;
            or a fitted estimator or pipeline of scikit-learn, exported by skl2onnx. Modules are exported in
            evaluation mode; their parameters are not changed.
        example: inputs, (count, *input_shape), whose shape the exporters use; for example calibration data.
            A table of columns for pipelines of such; a mapping of arrays by the names of the arguments for
            modules with several. Not needed for ONNX.

    Raises:
        TypeError: another kind of model, or a missing example.
        EncodeError: the example has no samples.
        PackageMissingError: the exporter is not installed.
        ModelRefusedError: the exporter cannot export the model, its samples depend on each other, or it is
            not a valid ONNX model.
        FileNotFoundError: there is no such file.
    """
    if isinstance(model, onnx.ModelProto | str | Path | bytes):
        return load_model(model)
    if _is_of(model, "torch", "torch.nn", "Module"):
        return export_module(model, example)
    if _is_of(model, "sklearn", "sklearn.base", "BaseEstimator"):
        return export_estimator(model, example, to_onnx)
    raise TypeError(
        "a model is an ONNX model, its bytes or its path, a torch.nn.Module, a fitted scikit-learn estimator "
        f"or trees of XGBoost or LightGBM; got {type(model).__module__}.{type(model).__qualname__}"
    )


def _is_of(model: object, library: str, module: str, name: str) -> bool:
    """Whether a model is of a class of a library, without importing the library."""
    return library in sys.modules and isinstance(model, getattr(importlib.import_module(module), name))
