"""The sample that exporters read, the version of ONNX that they write, and their packages."""

import importlib
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.errors import PackageMissingError
from keywright.errors.engine import EncodeError

OPSET = 18
"""Opset of exported models: the newest that every exporter here writes without conversion."""


def imported(module: str, package: str, extra: str) -> ModuleType:
    """Return a module of a package.

    Raises:
        PackageMissingError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PackageMissingError(package, extra) from error


def one_sample(example: ArrayLike | None, what: str) -> NDArray[np.float32]:
    """Return the first sample, (1, *input_shape).

    Raises:
        TypeError: there is no example.
        EncodeError: the example has no samples.
    """
    if example is None:
        raise TypeError(
            f"exporting {what} needs an example; give samples, (count, *input_shape), as calibration= of "
            "kw.compile or example= of to_onnx"
        )
    try:
        samples = np.asarray(example, np.float32)
    except (TypeError, ValueError) as error:
        raise EncodeError(
            f"samples hold values that are not numbers ({error}); encode them before, with the steps of a "
            "pipeline that do so, and compile the steps after these for their output",
            code="samples",
        ) from error
    if samples.ndim < 2 or samples.size == 0:
        raise EncodeError(f"an example has shape (count, *input_shape), got {samples.shape}", code="samples")
    return samples[:1]
