"""The sample that exporters read, the version of ONNX that they write, and their packages."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.compiler.front_ends.model_file import require_left
from keywright.errors import PackageMissingError
from keywright.errors.engine import EncodeError
from keywright.program.arrays import as_array

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


def one_sample(example: ArrayLike | None, what: str, name: str | None = None) -> NDArray[np.float32]:
    """Return the first sample, (1, *input_shape).

    Args:
        what: is exported.
        name: of the input, if there are several.

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
        where = "an example has" if name is None else f"samples of input {name!r} have"
        text = f"{where} shape (count, *input_shape), got {samples.shape}"
        if samples.ndim == 1 and samples.size and name is not None:
            text += (
                f"; give one number a sample as ({samples.size}, 1), which the model reads as {name}[:, 0]"
            )
        raise EncodeError(text, code="samples")
    return samples[:1]


def beside_fixed(forward: Callable[..., Any], samples: Any, fixed: Mapping[str, Any]) -> Any:
    """Return samples with the values of fixed inputs, repeated: exporters of modules ask for all arguments.

    Args:
        forward: the module's function, whose arguments are its inputs.
        samples: of the other inputs; an array for the first of these.
        fixed: values by the names of arguments; others are left out.

    Raises:
        RefusalError: every input is fixed.
        EncodeError: samples or values are no arrays, or samples are a single number.
    """
    if not fixed or samples is None or (isinstance(samples, Mapping) and not samples):
        return samples
    names = list(inspect.signature(forward).parameters)
    require_left(names, fixed)
    if not isinstance(samples, Mapping):
        samples = {next(name for name in names if name not in fixed): samples}
    for name, each in samples.items():
        if not as_array(each, "calibration data").ndim:
            text = f"calibration data of input {name!r} are one value; pass an array, (count, *input_shape)"
            raise EncodeError(text, code="samples")
    count = len(next(iter(samples.values())))
    repeated = {
        name: np.repeat(np.atleast_1d(as_array(fixed[name], f"inputs of {name!r}"))[None], count, axis=0)
        for name in fixed
        if name in names
    }
    return repeated | dict(samples)
