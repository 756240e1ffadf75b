"""Ciphertexts with operators."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from keywright._core import (
    SCALE_TOLERANCE,
    BfvCiphertext,
    BfvEvaluator,
    Ciphertext,
    Evaluator,
    LinearTransform,
)
from keywright.errors import PackingError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Operand: TypeAlias = "Encrypted | Ciphertext | ArrayLike"
    IntegerOperand: TypeAlias = "EncryptedIntegers | BfvCiphertext | ArrayLike"


class Encrypted:
    """A ciphertext bound to an evaluator, for formulas; made by ``evaluator(ciphertext)``.

    ``+ - *`` take another value, a ciphertext, or numbers on either side; ``/`` numbers; ``@`` a matrix on
    either side;
    ``**`` a positive integer; ``<<`` and ``>>`` rotate the slots. Products are relinearized and rescaled. A
    sum of different scales brings the operand of the higher level to the scale of the other, which costs it a
    level it has to spare: nothing is lost, and the sum has the level of the lower operand. Where no level is
    to spare the sum raises `ScaleError`.

    Attributes:
        evaluator: what computes.
        ciphertext: the ciphertext.
    """

    __array_ufunc__ = None  # numpy arrays on the left leave the operation to this class
    __slots__ = ("ciphertext", "evaluator")

    def __init__(self, evaluator: Evaluator, ciphertext: Ciphertext) -> None:
        self.evaluator = evaluator
        self.ciphertext = ciphertext

    def _with(self, ciphertext: Ciphertext) -> Self:
        return type(self)(self.evaluator, ciphertext)

    @property
    def _slots(self) -> int:
        slots = self.ciphertext.slots
        if slots is None:
            raise PackingError("the values are in coefficients; encrypt them in slots")
        return slots

    def _aligned(self, other: Ciphertext) -> tuple[Ciphertext, Ciphertext]:
        """Both ciphertexts with one scale, if the higher one has a level to spare."""
        mine = self.ciphertext
        if abs(mine.scale / other.scale - 1.0) <= SCALE_TOLERANCE or mine.level == other.level:
            return mine, other
        if mine.level > other.level:
            return self._rescaled_to(mine, other), other
        return mine, self._rescaled_to(other, mine)

    def _rescaled_to(self, high: Ciphertext, low: Ciphertext) -> Ciphertext:
        dropped = self.evaluator.drop_to_level(high, low.level + 1)
        return self.evaluator.set_scale(dropped, low.scale)

    def __add__(self, other: "Operand") -> Self:
        other = _ciphertext(other)
        if isinstance(other, Ciphertext):
            return self._with(self.evaluator.add(*self._aligned(other)))
        return self._with(self.evaluator.add(self.ciphertext, other))

    def __sub__(self, other: "Operand") -> Self:
        other = _ciphertext(other)
        if isinstance(other, Ciphertext):
            return self._with(self.evaluator.sub(*self._aligned(other)))
        return self._with(self.evaluator.sub(self.ciphertext, other))

    def __mul__(self, other: "Operand") -> Self:
        return self._with(self.evaluator.multiply(self.ciphertext, _ciphertext(other)))

    def __radd__(self, other: "Operand") -> Self:
        return self + other

    def __rsub__(self, other: "Operand") -> Self:
        return -self + other

    def __rmul__(self, other: "Operand") -> Self:
        return self * other

    def __neg__(self) -> Self:
        return self._with(self.evaluator.neg(self.ciphertext))

    def __pow__(self, exponent: int) -> Self:
        """Product of ``exponent`` copies, ceil(log2(exponent)) levels deep."""
        if isinstance(exponent, bool) or not isinstance(exponent, int):
            return NotImplemented
        if exponent < 1:
            raise ValueError(f"exponent {exponent}: encrypted values have positive integer powers only")
        if exponent == 1:
            return self
        half = self ** (exponent // 2)
        if exponent % 2 == 0:
            return self._with(self.evaluator.square(half.ciphertext))
        return half * self ** (exponent - exponent // 2)

    def __truediv__(self, other: "ArrayLike") -> Self:
        """Quotient by numbers; by another encrypted value there is none."""
        if isinstance(other, Encrypted | Ciphertext):
            return NotImplemented
        divisors = np.asarray(other)
        if not np.all(divisors):
            raise ZeroDivisionError("encrypted values cannot be divided by 0")
        return self * (1.0 / divisors)

    def __matmul__(self, matrix: "ArrayLike") -> Self:
        """The product of the values, as a row of ``slots`` numbers, with a matrix of up to so many rows and
        columns; what it has no columns for is 0. One level.

        Raises:
            EncodeError: the matrix has another shape.
            MissingKeyError: a rotation has no key.
        """
        if isinstance(matrix, LinearTransform):
            raise TypeError(
                "a LinearTransform multiplies from the left: transform @ x; for x @ M make it of M.T"
            )
        return self.__rmatmul__(np.transpose(matrix))

    def __rmatmul__(self, matrix: "ArrayLike | LinearTransform") -> Self:
        """The product of a matrix of up to ``slots`` rows and columns with the values, as a column; what it
        has no rows for is 0. One level.

        Args:
            matrix: real or complex, or a `LinearTransform`, which is encoded once and says the rotations that
                need keys.

        Raises:
            EncodeError: the matrix has another shape.
            MissingKeyError: a rotation has no key.
        """
        if not isinstance(matrix, LinearTransform):
            parameters, level = self.evaluator.parameters, self.ciphertext.level
            matrix = LinearTransform(parameters, matrix, self._slots, level)
        return self._with(self.evaluator.linear_transform(self.ciphertext, matrix))

    def dot(self, other: "Operand") -> Self:
        """The sum of products, in every slot: rotations by powers of two, one level."""
        return (self * other).sum()

    def sum(self) -> Self:
        """The sum of all slots, in every slot: rotations by powers of two."""
        return self._with(self.evaluator.inner_sum(self.ciphertext))

    def mean(self) -> Self:
        """The mean of all slots, in every slot; one level."""
        return self.sum() / self._slots

    def polyval(self, coefficients: "ArrayLike") -> Self:
        """The polynomial with these coefficients, that of x^0 first; ceil(log2(degree + 1)) levels."""
        return self._with(self.evaluator.polynomial(self.ciphertext, coefficients))

    def sign(self, bits: int = 8) -> Self:
        """The sign of values in [-1, 1], by a composition of minimax polynomials.

        Args:
            bits: 4 to 14. `keywright.nn.activations.approximation.composite.sign_composite` says by how much
                the result is off, from which distance from 0 on, and how many levels it takes.

        Raises:
            MinimaxError: there is no composition of so many bits.
        """
        found = self.ciphertext
        for stage in _sign_stages(bits):
            found = self.evaluator.polynomial(found, stage, "chebyshev")
        return self._with(found)

    def abs(self, bits: int = 8) -> Self:
        """The absolute value of values in [-1, 1], off by at most 2^(1 - bits); a level more than `sign`."""
        return self * self.sign(bits)

    def maximum(self, other: "Operand", bits: int = 8) -> Self:
        """The larger one of two values that are at most 1 apart, off by at most 2^-bits."""
        return (self + other + (self - other).abs(bits)) / 2

    def minimum(self, other: "Operand", bits: int = 8) -> Self:
        """The smaller one of two values that are at most 1 apart, off by at most 2^-bits."""
        return (self + other - (self - other).abs(bits)) / 2

    def compare(self, other: "Operand", bits: int = 8) -> Self:
        """1 where this value is larger than the other one, 0 where it is smaller, 1/2 where they are equal;
        of values that are at most 1 apart, where they are not too close: see `sign`."""
        return ((self - other).sign(bits) + 1) / 2

    def __lshift__(self, steps: int) -> Self:
        """Slots moved to the left: ``numpy.roll(slots, -steps)``."""
        return self._with(self.evaluator.rotate(self.ciphertext, steps))

    def __rshift__(self, steps: int) -> Self:
        """Slots moved to the right: ``numpy.roll(slots, steps)``."""
        return self._with(self.evaluator.rotate(self.ciphertext, -steps))

    def __repr__(self) -> str:
        return f"Encrypted({self.ciphertext!r})"


def _sign_stages(bits: int) -> "Sequence[NDArray[np.float64]]":
    """Chebyshev coefficients of what `Encrypted.sign` composes; networks take long to import."""
    composite = import_module("keywright.nn.activations.approximation.composite")
    stages: Sequence[NDArray[np.float64]] = composite.sign_composite(bits).stages
    return stages


def _ciphertext(operand: "Operand") -> "Ciphertext | ArrayLike":
    return operand.ciphertext if isinstance(operand, Encrypted) else operand


class EncryptedIntegers:
    """A BFV ciphertext bound to an evaluator, for formulas; made by ``evaluator(ciphertext)``.

    ``+ - *`` take another value, a ciphertext, or integers on either side; ``**`` a positive integer; ``<<``
    and ``>>`` rotate both rows of slots. Of two levels the higher one is switched down to the lower.

    Attributes:
        evaluator: what computes.
        ciphertext: the ciphertext.
    """

    __array_ufunc__ = None  # numpy arrays on the left leave the operation to this class
    __slots__ = ("ciphertext", "evaluator")

    def __init__(self, evaluator: BfvEvaluator, ciphertext: BfvCiphertext) -> None:
        self.evaluator = evaluator
        self.ciphertext = ciphertext

    def _with(self, ciphertext: BfvCiphertext) -> Self:
        return type(self)(self.evaluator, ciphertext)

    def _operands(self, other: "IntegerOperand") -> "tuple[BfvCiphertext, BfvCiphertext | ArrayLike]":
        """Both operands, at one level if they are ciphertexts."""
        mine = self.ciphertext
        theirs = other.ciphertext if isinstance(other, EncryptedIntegers) else other
        if not isinstance(theirs, BfvCiphertext) or mine.level == theirs.level:
            return mine, theirs
        if mine.level > theirs.level:
            return self.evaluator.mod_switch_to(mine, theirs.level), theirs
        return mine, self.evaluator.mod_switch_to(theirs, mine.level)

    def __add__(self, other: "IntegerOperand") -> Self:
        return self._with(self.evaluator.add(*self._operands(other)))

    def __sub__(self, other: "IntegerOperand") -> Self:
        return self._with(self.evaluator.sub(*self._operands(other)))

    def __mul__(self, other: "IntegerOperand") -> Self:
        return self._with(self.evaluator.multiply(*self._operands(other)))

    def __radd__(self, other: "IntegerOperand") -> Self:
        return self + other

    def __rsub__(self, other: "IntegerOperand") -> Self:
        return -self + other

    def __rmul__(self, other: "IntegerOperand") -> Self:
        return self * other

    def __neg__(self) -> Self:
        return self._with(self.evaluator.neg(self.ciphertext))

    def __pow__(self, exponent: int) -> Self:
        """Product of ``exponent`` copies, ceil(log2(exponent)) multiplications in a row."""
        if isinstance(exponent, bool) or not isinstance(exponent, int):
            return NotImplemented
        if exponent < 1:
            raise ValueError(f"exponent {exponent}: encrypted values have positive integer powers only")
        if exponent == 1:
            return self
        half = self ** (exponent // 2)
        if exponent % 2 == 0:
            return self._with(self.evaluator.square(half.ciphertext))
        return half * self ** (exponent - exponent // 2)

    def __lshift__(self, steps: int) -> Self:
        """Rows moved to the left: ``numpy.roll(rows, -steps, axis=1)``."""
        return self._with(self.evaluator.rotate_rows(self.ciphertext, steps))

    def __rshift__(self, steps: int) -> Self:
        """Rows moved to the right: ``numpy.roll(rows, steps, axis=1)``."""
        return self._with(self.evaluator.rotate_rows(self.ciphertext, -steps))

    def __repr__(self) -> str:
        return f"EncryptedIntegers({self.ciphertext!r})"
