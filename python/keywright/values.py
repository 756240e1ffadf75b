"""Ciphertexts with operators."""

from typing import TYPE_CHECKING, Self, TypeAlias

from keywright._core import SCALE_TOLERANCE, BfvCiphertext, BfvEvaluator, Ciphertext, Evaluator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Operand: TypeAlias = "Encrypted | Ciphertext | ArrayLike"
    IntegerOperand: TypeAlias = "EncryptedIntegers | BfvCiphertext | ArrayLike"


class Encrypted:
    """A ciphertext bound to an evaluator, for formulas; made by ``evaluator(ciphertext)``.

    ``+ - *`` take another value, a ciphertext, or numbers on either side; ``**`` a positive integer;
    ``<<`` and ``>>`` rotate the slots. Products are relinearized and rescaled. A sum of different scales
    brings the operand of the higher level to the scale of the other, which costs it a level it has to spare:
    nothing is lost, and the sum has the level of the lower operand. Where no level is to spare the sum raises
    `ScaleError`.

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

    def __lshift__(self, steps: int) -> Self:
        """Slots moved to the left: ``numpy.roll(slots, -steps)``."""
        return self._with(self.evaluator.rotate(self.ciphertext, steps))

    def __rshift__(self, steps: int) -> Self:
        """Slots moved to the right: ``numpy.roll(slots, steps)``."""
        return self._with(self.evaluator.rotate(self.ciphertext, -steps))

    def __repr__(self) -> str:
        return f"Encrypted({self.ciphertext!r})"


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
