"""Types of the arrays of a program."""

from collections.abc import Mapping, Sequence
from numbers import Complex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.errors.engine import EncodeError

Shape = tuple[int, ...]
Vector = NDArray[np.float64]
Numbers = NDArray[Any]
"""Of real or complex numbers."""


def shown_shape(shape: Sequence[int | str]) -> str:
    """Format a shape, of which axes may have names; long ones are truncated."""
    sizes = [str(size) for size in shape[:8]] + (["..."] if len(shape) > 8 else [])
    return f"({', '.join(sizes)})"


def require_samples(values: NDArray[Any], shape: Shape, what: str = "samples") -> None:
    """Refuse arrays that are no samples of a shape, (count, *shape), with at least one sample.

    Raises:
        EncodeError: states both shapes.
    """
    if values.ndim and len(values) and values.shape[1:] == shape:
        return
    taken, given = shown_shape(("count", *shape)), shown_shape(values.shape)
    way = ", without samples" if values.ndim and not len(values) else ""
    if what == "samples" and values.ndim > len(shape) > 1 and not way:
        way = "; cut or pad them to this shape, or compile the model for theirs"
    raise EncodeError(f"{what} have shape {taken}, got {given}{way}", code="samples")


def as_array(values: Any, what: str = "samples") -> NDArray[Any]:
    """Return values of a caller as an array of numbers, texts or objects that holds all that they say.

    numpy would drop masks and imaginary parts, and make numbers of times in a unit of its own.

    Args:
        values: anything that numpy takes.
        what: the values, in words.

    Raises:
        EncodeError: they are masked, complex, sparse, times or records, or numpy does not take them.
    """
    if np.ma.is_masked(values):
        raise EncodeError(
            f"{what} have masked values, which have no number; fill them: samples.filled(value)",
            code="samples",
        )
    if hasattr(values, "toarray"):
        raise EncodeError(
            f"{what} are a sparse matrix; pass all its numbers: samples.toarray()", code="samples"
        )
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise EncodeError(f"{what} are not an array of numbers: {error}", code="samples") from error
    if array.dtype.kind not in "biufOSUT":
        kinds = {"c": "complex numbers", "M": "dates", "m": "durations"}
        kind = kinds.get(array.dtype.kind, f"values of dtype {array.dtype}")
        raise EncodeError(f"{what} are {kind}, and the model takes real numbers", code="samples")
    for value in array.ravel() if array.dtype.kind == "O" else ():
        if isinstance(value, Complex) and not _is_float(value):
            raise EncodeError(f"{what} hold {value!r:.40}, which is no real number", code="samples")
    return array


def _is_float(value: Complex) -> bool:
    """Whether a number can be converted to floating point."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False
    return True


def as_numbers(values: Any, what: str = "samples") -> Vector:
    """Return values of a caller as real numbers, in double precision.

    Raises:
        EncodeError: as for `as_array`; they are texts, or a table with names of columns, whose order nobody
            can check.
    """
    names = table_names(values)
    if names is not None and (isinstance(values, Mapping) or names != list(range(len(names)))):
        raise EncodeError(
            f"{what} are a table with names, which are not known here: pass an array (to_numpy()) with the "
            "columns in the model's order, or compile an estimator that was fitted on a table",
            code="samples",
        )
    array = as_array(values, what)
    try:
        if array.dtype.kind in "SUT":
            raise ValueError(f"texts such as {str(array.ravel()[0])[:40]!r}")
        return np.asarray(array, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodeError(f"{what} hold values that are not numbers: {error}", code="samples") from error


def require_arrays(values: Any, what: str = "samples") -> None:
    """Refuse what `as_array` refuses, in a table or a mapping of arrays, too.

    Raises:
        EncodeError: names the column.
    """
    names = table_names(values)
    if names is None:
        as_array(values, what)
    for name in names or ():
        as_array(values[name], f"{what} of column {name!r}")


def table_names(values: Any) -> list[Any] | None:
    """Return the names of columns as a table spells them; None if values are no table.

    Tables are mappings of columns, data frames, and rows of these that carry the names.
    """
    if isinstance(values, Mapping):
        return list(values)
    for attribute in ("column_names", "columns"):
        if hasattr(values, attribute):
            return list(getattr(values, attribute))
    if callable(getattr(values, "keys", None)):
        names = list(values.keys())
        return names if any(isinstance(name, str) for name in names) else None
    return None
