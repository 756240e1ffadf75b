"""Names, shapes and types of a model's arrays: public, and equal for all clients."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from keywright._reading.documents import Limits, read_json
from keywright.errors import AggregationError, EncodeError, FormatError

LIMITS = Limits(1 << 24, 1 << 20)
"""An array has a name, a type and about three sizes: a hundred thousand arrays."""
MAX_VALUES = 2**32 - 1
MAX_DIMENSIONS = 32
DTYPES = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)) | {
    "float16",
    "float32",
    "float64",
}
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ArrayLayout:
    """The arrays of a model in the order in which they are concatenated into one vector.

    Attributes:
        entries: name, shape and dtype of each.
    """

    entries: tuple[tuple[str, tuple[int, ...], str], ...]

    @classmethod
    def of(cls, arrays: Arrays) -> Self:
        """Return the layout of arrays.

        Raises:
            EncodeError: there are no values, or an array's numbers cannot be averaged.
        """
        for name, array in arrays.items():
            if str(array.dtype) not in DTYPES:
                raise EncodeError(
                    f"array {name!r} has dtype {array.dtype}; only integers and floats can be averaged"
                )
        layout = cls(tuple((name, array.shape, str(array.dtype)) for name, array in arrays.items()))
        if not 1 <= layout.count <= MAX_VALUES:
            raise EncodeError(
                f"the model has {layout.count} values, outside 1..={MAX_VALUES}; use a model within the "
                "limit",
                count=layout.count,
                bound=MAX_VALUES,
            )
        return layout

    @property
    def count(self) -> int:
        """Number of values of all arrays."""
        return sum(math.prod(shape) for _, shape, _ in self.entries)

    def name(self, index: int) -> str:
        """Return the position of a value of `flatten` in its array, as "7 of array 'weight'"."""
        for name, shape, _ in self.entries:
            if index < math.prod(shape):
                return f"{index} of array {name!r}"
            index -= math.prod(shape)
        raise IndexError(f"the arrays have {self.count} values")

    def flatten(self, arrays: Arrays, client: int | None = None) -> NDArray[np.float64]:
        """Return the values of all arrays, one after another.

        Raises:
            AggregationError: the arrays have other names or shapes, or fractions where the received array has
                integers, to which `unflatten` rounds.
        """
        results = tuple((name, array.shape) for name, array in arrays.items())
        expected = tuple((name, shape) for name, shape, _ in self.entries)
        if results != expected:
            wrong = next(
                (f"{f} instead of {e}" for f, e in zip(results, expected, strict=False) if f != e),
                f"{len(results)} arrays instead of {len(expected)}",
            )
            raise AggregationError(
                f"the trained model has another layout than the received one: {wrong}",
                code="shapes",
                client=client,
                found=results,
                expected=expected,
            )
        for (name, array), (_, _, dtype) in zip(arrays.items(), self.entries, strict=True):
            if array.dtype.kind not in "iub" and np.dtype(dtype).kind in "iu":
                raise AggregationError(
                    f"array {name!r} was received as {dtype} and is {array.dtype} after training: its "
                    "average would be rounded to integers; begin with an array of floats",
                    code="types",
                    client=client,
                    found=str(array.dtype),
                    expected=dtype,
                )
        return np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays.values()])

    def unflatten(self, values: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a vector, in their types: averages of integers are rounded to integers."""
        arrays, start = {}, 0
        for name, shape, dtype in self.entries:
            part = values[start : start + math.prod(shape)].reshape(shape)
            start += part.size
            arrays[name] = np.rint(part).astype(dtype) if np.dtype(dtype).kind in "iu" else part.astype(dtype)
        return arrays

    def to_bytes(self) -> bytes:
        """Return the layout as JSON."""
        return json.dumps([[name, list(shape), dtype] for name, shape, dtype in self.entries]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the layout from `to_bytes`.

        Raises:
            FormatError: the bytes are malformed.
        """
        if len(data) > LIMITS.bytes:
            raise FormatError("the layout is too long", code="length", found=len(data), expected=LIMITS.bytes)
        try:
            layout = cls(tuple(_entry(entry) for entry in read_json(data, LIMITS)))
        except (ValueError, TypeError) as error:
            raise FormatError(f"the layout cannot be read: {error}", code="contents") from None
        names = [name for name, _, _ in layout.entries]
        if len(set(names)) != len(names) or not 1 <= layout.count <= MAX_VALUES:
            raise FormatError(
                f"the layout has {layout.count} values in {len(names)} arrays, outside the limits",
                code="contents",
            )
        return layout


def _entry(entry: object) -> tuple[str, tuple[int, ...], str]:
    if not isinstance(entry, list):
        raise TypeError(f"{entry!r} is not a list")
    name, shape, dtype = entry
    sizes = tuple(shape)
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{name!r} of dtype {dtype!r}")
    if len(sizes) > MAX_DIMENSIONS or not all(
        type(size) is int and 0 <= size <= MAX_VALUES for size in sizes
    ):
        raise ValueError(f"shape {shape!r} of {name!r}")
    return name, sizes, dtype
