"""What the encrypted values of both schemes have in common."""

from copy import deepcopy
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from keywright._copies import Unchanging
from keywright.errors import EncodeError

from .refusals import Incomparable, NoArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

AnyEvaluator = TypeVar("AnyEvaluator")
AnyCiphertext = TypeVar("AnyCiphertext")
AnyOperand = TypeVar("AnyOperand")


class Value(
    Incomparable,
    NoArray,
    Unchanging,
    Generic[AnyEvaluator, AnyCiphertext, AnyOperand],
    elsewhere="send ciphertext.to_bytes(), and bind the ciphertext to an evaluator in the other process",
):
    """What the ciphertexts of both schemes, bound to an evaluator, have in common."""

    __slots__ = ("ciphertext", "evaluator")
    _roots: ClassVar[str] = ""
    """What stands for other powers, as the end of a message."""

    if TYPE_CHECKING:

        def __add__(self, other: AnyOperand) -> Self: ...
        def __mul__(self, other: AnyOperand | Self) -> Self: ...
        def __neg__(self) -> Self: ...
        def __lshift__(self, steps: int) -> Self: ...
        def _squared(self) -> Self: ...
        @property
        def _count(self) -> int | None:
            """The number of slots; None for coefficients, where numbers are a polynomial."""

    def __init__(self, evaluator: AnyEvaluator, ciphertext: AnyCiphertext) -> None:
        self.evaluator = evaluator
        self.ciphertext = ciphertext

    def __radd__(self, other: AnyOperand) -> Self:
        return self + other

    def __rsub__(self, other: AnyOperand) -> Self:
        return -self + other

    def __rmul__(self, other: AnyOperand) -> Self:
        return self * other

    def __pow__(self, exponent: "int | np.integer[Any]") -> Self:
        """Product of ``exponent`` copies, ceil(log2(exponent)) multiplications in a row."""
        if isinstance(exponent, bool) or not isinstance(exponent, int | np.integer):
            raise TypeError(
                f"encrypted values have powers of whole numbers, not of {exponent!r:.40}{self._roots}"
            )
        exponent = int(exponent)
        if exponent < 1:
            raise ValueError(
                f"exponent {exponent} is not supported; encrypted values have positive integer powers only"
                f"{self._roots}"
            )
        if exponent == 1:
            return self
        half = self ** (exponent // 2)
        if exponent % 2 == 0:
            return half._squared()
        return half * self ** (exponent - exponent // 2)

    def __rshift__(self, steps: int) -> Self:
        """Rotate to the right: ``<<`` by the negative number of steps."""
        return self << -index(steps)  # unsigned integers have no negatives

    def _numbers(self, operand: "ArrayLike") -> "ArrayLike":
        """Return a copy of numbers, one for every slot or one for all, as numpy broadcasts them."""
        numbers, shape, slots = deepcopy(operand), shape_of(operand), self._count
        if shape is None or len(shape) != 1 or slots is None or shape[0] >= slots:
            return numbers
        if shape == (1,):
            return np.asarray(numbers).item()  # type: ignore[no-any-return]
        raise EncodeError(
            f"{shape[0]} numbers meet {slots} encrypted values; give {slots} numbers, or one for all",
            count=shape[0],
            bound=slots,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ciphertext!r})"


def shape_of(operand: "ArrayLike") -> tuple[int, ...] | None:
    """Return the shape of numbers; None for what the engine refuses, with a reason."""
    try:
        return None if np.ma.is_masked(operand) else np.shape(operand)
    except (TypeError, ValueError, RuntimeError):
        return None
