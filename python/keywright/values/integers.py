"""Encrypted integers with operators."""

from typing import TYPE_CHECKING, Self, TypeAlias

from keywright._core import BfvCiphertext, BfvEvaluator

from .value import Value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    IntegerOperand: TypeAlias = "EncryptedIntegers | BfvCiphertext | ArrayLike"


class EncryptedIntegers(Value[BfvEvaluator, BfvCiphertext, "IntegerOperand"]):
    """A BFV ciphertext bound to an evaluator, for formulas; made by ``evaluator(ciphertext)``.

    The operators ``+ - *`` take another value, a ciphertext, or integers on either side, one for every slot
    or one for all; for values in coefficients, integers are a polynomial's. ``**`` takes a positive
    integer; ``<<`` and ``>>`` rotate both rows of slots. If two operands differ in level, the higher one is
    switched down.

    Thread safety: any number of threads may use one at the same time.

    Attributes:
        evaluator: the evaluator.
        ciphertext: the ciphertext.
    """

    __slots__ = ()
    _computed = "use their operators, + - * ** << >>, or decrypt them first"

    def _with(self, ciphertext: BfvCiphertext) -> Self:
        return type(self)(self.evaluator, ciphertext)

    @property
    def _count(self) -> int | None:
        return self.ciphertext.parameters.n if self.ciphertext.packing == "slots" else None

    def _operands(self, other: "IntegerOperand") -> "tuple[BfvCiphertext, BfvCiphertext | ArrayLike]":
        """Return both operands, at one level if they are ciphertexts."""
        mine = self.ciphertext
        theirs = other.ciphertext if isinstance(other, EncryptedIntegers) else other
        if not isinstance(theirs, BfvCiphertext):
            return mine, self._numbers(theirs)
        if mine.level == theirs.level:
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

    def __neg__(self) -> Self:
        return self._with(self.evaluator.neg(self.ciphertext))

    def _squared(self) -> Self:
        return self._with(self.evaluator.square(self.ciphertext))

    def __lshift__(self, steps: int) -> Self:
        """Rotate the rows to the left: ``numpy.roll(rows, -steps, axis=1)``."""
        return self._with(self.evaluator.rotate_rows(self.ciphertext, steps))
