"""Encodes model values as integers whose sums are exact."""

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import SumParameters
from keywright._units import quantity
from keywright.errors import EncodeError, ParameterError
from keywright.errors.choices import require_choice

from .array_layout import ArrayLayout

MIN_BITS, MAX_BITS = 2, 40
MAX_TOTAL = 2**64 - 1
"""Largest sum of weights that a message states."""

OutOfRange = Literal["refuse", "clip"]


@dataclass(frozen=True)
class Encoding:
    """The public agreement of clients and server: bounds, precision and number of clients.

    A value ``w`` of a client with ``n`` samples becomes the integer ``round(w / step * n / max_weight)``. The
    sum over the clients, times ``step * max_weight / sum(n)``, is the weighted average. Rounding changes it
    by at most `error_bound`.

    Attributes:
        bound: largest absolute value of a model value.
        bits: bits of an integer with its sign, 2 to 40. Training amplifies rounding: see
            docs/reproduction/federated.md.
        max_clients: maximum number of clients in a round. More are allowed if the modulus has room for them
            (`capacity`).
        max_weight: maximum number of samples of one client.
        min_clients: minimum number of clients in a round whose sum is used, 2 or more: a sum of one would
            reveal that client's model.
        out_of_range: "refuse" an update with a value above the bound, or "clip" its values to the bound and
            count them.
    """

    bound: float
    max_clients: int
    max_weight: int
    bits: int = 30
    min_clients: int = 2
    out_of_range: OutOfRange = "refuse"
    parameters: SumParameters = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the declaration and choose the modulus.

        Raises:
            ParameterError: a number is out of range, or no modulus is large enough for the sums.
        """
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise ParameterError(
                f"bound={self.bound} must be a positive number", what="bound", value=self.bound
            )
        for what, value, low, high in (
            ("bits", self.bits, MIN_BITS, MAX_BITS),
            ("max_weight", self.max_weight, 1, 2**32 - 1),
            ("max_clients", self.max_clients, 2, 2**20),
            ("min_clients", self.min_clients, 2, self.max_clients),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ParameterError(f"{what} is {value!r}; it must be an integer", what=what, maximum=high)
            _require(what, value, low, high)
            # Arithmetic of numpy's own integers wraps.
            object.__setattr__(self, what, int(value))
        require_choice("out_of_range", self.out_of_range, get_args(OutOfRange))
        object.__setattr__(self, "parameters", SumParameters(self.max_clients, self.magnitude))

    def __reduce__(self) -> tuple[type["Encoding"], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @property
    def magnitude(self) -> int:
        """Largest integer: ``2^(bits-1) - 1``."""
        return (1 << (self.bits - 1)) - 1

    @cached_property
    def step(self) -> float:
        """Model value of the integer 1."""
        return self.bound / self.magnitude

    @property
    def capacity(self) -> int:
        """Number of clients for which the modulus has room."""
        return self.parameters.capacity

    def require_weight(self, weight: object) -> int:
        """Return the weight as an integer.

        Raises:
            ParameterError: it is not a whole number from 1 to ``max_weight``.
        """
        return _whole("number of samples", weight, self.max_weight)

    def encode(
        self, values: ArrayLike, weight: int, layout: ArrayLayout | None = None
    ) -> tuple[NDArray[np.int64], int]:
        """Return the weighted values as integers, and the number of clipped values.

        Args:
            values: of all arrays, one after another, (count,): real numbers, which are rounded from double
                precision.
            weight: number of samples of the client.
            layout: layout of the arrays, which names them in errors.

        Raises:
            EncodeError: the values have another shape or are not real numbers, or one is not finite, or
                exceeds the bound and ``out_of_range`` is "refuse".
            ParameterError: the weight is not a whole number from 1 to ``max_weight``.
        """
        weight = self.require_weight(weight)
        if np.ma.is_masked(values):
            raise EncodeError(
                "values are masked; give the masked ones a number, for instance values.filled(0)"
            )
        values = np.asarray(values)
        if values.dtype.kind not in "buif":
            raise EncodeError(f"values are of type {values.dtype}; they must be real numbers")
        if values.ndim != 1:
            raise EncodeError(f"values have shape {values.shape}; pass a vector, for instance values.ravel()")
        values = values.astype(np.float64)
        name = str if layout is None else layout.name
        finite = np.isfinite(values)
        if not finite.all():
            index = int(np.argmin(finite))
            raise EncodeError(
                f"value {name(index)} is {values[index]}; training has diverged, so this update is not sent",
                value=float(values[index]),
                index=index,
            )
        outside = np.abs(values) > self.bound
        clipped = int(np.count_nonzero(outside))
        if clipped and self.out_of_range == "refuse":
            index = int(np.argmax(np.abs(values)))
            raise EncodeError(
                f"{quantity(clipped, 'value')} above the bound {self.bound}, the largest is value "
                f"{name(index)}, {float(values[index])}; declare a larger bound, leave the array out, or "
                'declare out_of_range="clip"',
                value=float(values[index]),
                index=index,
                bound=self.bound,
            )
        scaled = np.clip(values, -self.bound, self.bound)
        scaled *= weight / self.max_weight / self.step
        # A quotient of floats may exceed the largest integer by half a unit in the last place.
        integers = np.clip(np.rint(scaled), -self.magnitude, self.magnitude).astype(np.int64)
        return integers, clipped

    def decode(self, integers: NDArray[np.int64], total_weight: int) -> NDArray[np.float64]:
        """Return the weighted averages from the sums of integers and of weights.

        Raises:
            ParameterError: the total weight is not a whole number from 1 on.
        """
        total_weight = _whole("total weight", total_weight, MAX_TOTAL)
        return integers.astype(np.float64) * (self.step * self.max_weight / total_weight)

    def error_bound(self, clients: int, total_weight: int) -> float:
        """Return the largest change of an average by rounding, for values within the bound and apart from
        double precision; errors as for `decode`."""
        total_weight = _whole("total weight", total_weight, MAX_TOTAL)
        clients = _whole("number of clients", clients, total_weight)
        return clients * self.step / 2 * self.max_weight / total_weight


def _require(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ParameterError(
            f"{what} is {value}, outside {low}..={high}", what=what, value=value, minimum=low, maximum=high
        )


def _whole(what: str, value: object, most: int) -> int:
    """Return a whole number from 1 to ``most`` as an integer."""
    if isinstance(value, (int, float, np.integer)) and not isinstance(value, bool) and value == value // 1:
        _require(what, int(value), 1, most)
        return int(value)
    raise ParameterError(f"{what} is {value!r}; it must be a whole number", what=what, maximum=most)
