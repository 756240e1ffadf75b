"""Ciphertexts with operators."""

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebval

from keywright._core import SCALE_TOLERANCE, Ciphertext, Evaluator, LinearTransform
from keywright.errors import EncodeError, NoiseError, OperandError
from keywright.errors.choices import require_integer
from keywright.minimax.composite import sign_composite

from . import functions
from .functions import Interval
from .value import Value, shape_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Operand: TypeAlias = "Encrypted | Ciphertext | ArrayLike"

_GRID = np.cos(np.linspace(0.0, np.pi, 4097))
"""Points of [-1, 1] at which the stages of a sign are largest, up to their errors."""

_COEFFICIENT_BITS = 60
"""Coefficients have at most about so many bits: times a scale, the engine takes 127. The results of larger
ones are multiplied by a whole number, without a level."""

_ROUNDING = 1e-9
"""Relative excess of a magnitude over a range that rounding can cause."""

NEAR = 0.5
"""Relative difference of scales below which numbers are encoded at another one: at most one bit of precision
is lost. Those of primes differ by less."""


class Encrypted(Value[Evaluator, Ciphertext, "Operand"]):
    """A ciphertext bound to an evaluator, for formulas; made by ``evaluator(ciphertext)``.

    The operators ``+ - *`` take another value, a ciphertext, or numbers on either side, one for every slot or
    one for all; ``/`` takes numbers, or values with a declared range (`within`); ``@`` a matrix on either
    side, or another value, for their inner product; ``**`` a positive integer; ``<<`` and ``>>`` rotate the
    slots. Values in coefficients belong to a polynomial, and so do the numbers that they meet; ``*`` and
    ``**`` multiply polynomials. Products are relinearized and rescaled. If the operands of a sum differ in
    scale, as products of different origin do, an operand that is a product with numbers, such as a mean, is
    computed again at the scale of the other. Otherwise the operand of the higher level is brought to the
    scale of the other, which uses one of its spare levels, and the sum has the level of the lower operand.
    Two operands of the same level take one more level. Without a spare level the sum raises `ScaleError`.

    Thread safety: any number of threads may use one at the same time.

    Attributes:
        evaluator: the evaluator.
        ciphertext: the ciphertext.
        interval: the least and the largest number that a value can be, as `within` or a function declared
            them; None if that is unknown.
        approximation: bound on the error of polynomials in place of functions: the distance of what is
            encrypted, without the errors of encryption, from the functions of the operands. For values
            whose sign is closer to a jump than `sign` says, it does not hold.
    """

    __slots__ = ("_at_scale", "approximation", "interval")
    _computed = (
        "use their operators and methods, such as x.sum(), x.mean(), x.dot(y), M @ x, "
        "x.polyval(coefficients), x.abs(), x.exp() and x << steps, or decrypt them first"
    )
    _roots = "; use x.sqrt(), x.inverse_sqrt() or x.inverse(), on a range"

    def __init__(self, evaluator: Evaluator, ciphertext: Ciphertext) -> None:
        super().__init__(evaluator, ciphertext)
        self._at_scale: Callable[[float], Ciphertext] | None = None
        self.interval: Interval | None = None
        self.approximation = 0.0

    @property
    def error_bound(self) -> float:
        """Bound on the error of every decrypted value: `Ciphertext.error_bound`, that of encryption alone,
        and `approximation`. Flooding hides the first, which depends on the secret key, and judges it alone;
        the second is a function of the values. `decrypt` and the wire know the ciphertext alone."""
        return self.ciphertext.error_bound + self.approximation

    def _with(self, ciphertext: Ciphertext, approximation: float) -> Self:
        result = type(self)(self.evaluator, ciphertext)
        result.approximation = min(math.inf, approximation)  # infinite, too, if it is no number
        return result

    def _moved(self, move: Callable[[Ciphertext], Ciphertext], growth: float = 1.0) -> Self:
        """Return the result of an operation that keeps scales, and multiplies errors by up to ``growth``."""
        result, source = self._with(move(self.ciphertext), self.approximation * growth), self._at_scale
        if source is not None:
            result._at_scale = lambda scale: move(source(scale))
        return result

    @property
    def _count(self) -> int | None:
        return self.ciphertext.slots

    @property
    def _slots(self) -> int:
        slots = self._count
        if slots is None:
            raise OperandError("the values are packed in coefficients; encrypt them in slots", code="packing")
        return slots

    def _aligned(self, other: "Encrypted") -> tuple[Ciphertext, Ciphertext]:
        """Return both ciphertexts at one scale, if there is a way: a product with numbers has any scale near
        its own; else it takes a level, a spare one of the higher operand, or one below two operands of the
        same level."""
        mine, theirs = self.ciphertext, other.ciphertext
        ratio = mine.scale / theirs.scale
        if abs(ratio - 1.0) <= SCALE_TOLERANCE:
            return mine, theirs
        if mine.level == theirs.level and abs(ratio - 1.0) < NEAR:
            if self._at_scale is not None:
                return self._at_scale(theirs.scale), theirs
            if other._at_scale is not None:
                return mine, other._at_scale(mine.scale)
        if mine.level == theirs.level:
            if mine.level == 0:
                return mine, theirs
            theirs = self.evaluator.drop_to_level(theirs, theirs.level - 1)
        if mine.level > theirs.level:
            return self._rescaled_to(mine, theirs), theirs
        return mine, self._rescaled_to(theirs, mine)

    def _rescaled_to(self, high: Ciphertext, low: Ciphertext) -> Ciphertext:
        dropped = self.evaluator.drop_to_level(high, low.level + 1)
        return self.evaluator.set_scale(dropped, low.scale)

    def __add__(self, other: "Operand") -> Self:
        if isinstance(other, Ciphertext):
            other = self._with(other, 0.0)
        if isinstance(other, Encrypted):
            total = self.approximation + other.approximation
            return self._with(self.evaluator.add(*self._aligned(other)), total)
        numbers = self._numbers(other)
        return self._moved(lambda ct: self.evaluator.add(ct, numbers))

    def __sub__(self, other: "Operand") -> Self:
        if isinstance(other, Ciphertext):
            other = self._with(other, 0.0)
        if isinstance(other, Encrypted):
            total = self.approximation + other.approximation
            return self._with(self.evaluator.sub(*self._aligned(other)), total)
        numbers = self._numbers(other)
        return self._moved(lambda ct: self.evaluator.sub(ct, numbers))

    def __mul__(self, other: "Operand") -> Self:
        factor, source, evaluator = _ciphertext(other), self.ciphertext, self.evaluator
        if isinstance(factor, Ciphertext):
            theirs = other.approximation if isinstance(other, Encrypted) else 0.0
            return self._with(evaluator.multiply(source, factor), self._product(factor, theirs))
        numbers = self._numbers(factor)
        product = self._moved(lambda ct: evaluator.multiply(ct, numbers))
        if self.approximation:
            product.approximation = min(math.inf, self.approximation * _size(numbers))
        if product.ciphertext.level < source.level:
            product._at_scale = lambda scale: evaluator.multiply(source, numbers, scale=scale)
        return product

    def _product(self, factor: Ciphertext, approximation: float) -> float:
        """Return the error of a product by those of both factors."""
        mine, theirs = self.approximation, approximation
        # Magnitudes may be infinite.
        by_mine = mine and mine * factor.magnitude_bound
        by_theirs = theirs and theirs * self.ciphertext.magnitude_bound
        return by_mine + by_theirs + mine * theirs

    def __neg__(self) -> Self:
        return self._moved(self.evaluator.neg)

    def _squared(self) -> Self:
        error = self._product(self.ciphertext, self.approximation)
        return self._with(self.evaluator.square(self.ciphertext), error)

    def __truediv__(self, other: "Operand") -> Self:
        """Divide by numbers, or by values with a declared range; see `inverse`.

        Raises:
            OperandError: encrypted divisors have no declared range, or 0 is in it; or values in coefficients
                have several divisors.
        """
        if isinstance(other, Ciphertext):
            other = self._with(other, 0.0)
        if isinstance(other, Encrypted):
            return self * other.inverse()
        divisors = np.asanyarray(other)  # with its mask, which the product refuses
        if divisors.size > 1 and self._count is None:
            raise OperandError(
                "values in coefficients are multiplied by numbers as polynomials, and not divided one by "
                "one; encrypt them in slots, or divide by one number",
                code="packing",
            )
        if not np.all(divisors):
            raise ZeroDivisionError("encrypted values cannot be divided by 0; give other divisors")
        return self * (np.float64(1) / divisors)  # in double precision, whatever their type

    def __rtruediv__(self, other: "ArrayLike") -> Self:
        return self.inverse() * other

    def __matmul__(self, matrix: "Operand") -> Self:
        """Multiply the values, as a row of ``slots`` numbers, by a matrix of up to ``slots`` rows and
        columns; slots without a column become 0. Uses one level. With another value, return their inner
        product, as `dot`.

        Raises:
            EncodeError: the matrix has another shape.
            MissingKeyError: a rotation has no key.
        """
        if isinstance(matrix, LinearTransform):
            raise TypeError(
                "a LinearTransform multiplies from the left: transform @ x; for x @ M make it from M.T"
            )
        if isinstance(matrix, Encrypted | Ciphertext):
            return self.dot(matrix)
        return self.__rmatmul__(np.transpose(matrix))

    def __rmatmul__(self, matrix: "ArrayLike | LinearTransform") -> Self:
        """Multiply a matrix of up to ``slots`` rows and columns by the values, as a column; slots without a
        row become 0. Uses one level.

        Args:
            matrix: real or complex, or a `LinearTransform`, which is encoded once and lists the rotations
                that need keys.

        Raises:
            EncodeError: the matrix has another shape.
            MissingKeyError: a rotation has no key.
        """
        if not isinstance(matrix, LinearTransform):
            parameters, level = self.evaluator.parameters, self.ciphertext.level
            matrix = LinearTransform(parameters, matrix, self._slots, level)
        result = self.evaluator.linear_transform(self.ciphertext, matrix)
        error, before, after = self.approximation, self.ciphertext.magnitude_bound, result.magnitude_bound
        if error:
            # Magnitudes grow by the largest sum of a row's absolute values, as errors do. Those beyond the
            # largest number are stated as that, and below the smallest as 0.
            error *= after / before if before > 0 and after < sys.float_info.max else math.inf
        return self._with(result, error)

    def dot(self, other: "Operand") -> Self:
        """Return the sum of products in every slot; uses rotations by powers of two and one level."""
        return (self * other).sum()

    def sum(self) -> Self:
        """Return the sum of all slots in every slot; uses rotations by powers of two."""
        return self._moved(self.evaluator.inner_sum, self._count or 1)

    def mean(self, count: int | None = None) -> Self:
        """Return the mean in every slot; uses one level.

        Args:
            count: number of values, if the slots behind them hold 0, as those do that were not given to
                `Encryptor.encrypt`. By default all slots are values, unused ones too.

        Raises:
            ParameterError: the count is not an integer.
            ValueError: it is below 1, or above the number of slots.
        """
        values = self._slots if count is None else require_integer("count", count)
        if not 1 <= values <= self._slots:
            raise ValueError(f"{self._slots} slots hold 1 to {self._slots} values, got count={values}")
        return self.sum() / values

    def polyval(self, coefficients: "ArrayLike") -> Self:
        """Evaluate the polynomial with these coefficients, constant term first as in `numpy.polynomial`
        (`numpy.polyval` takes it last); uses ceil(log2(degree + 1)) levels.

        Raises:
            EncodeError: there is no coefficient.
        """
        if 0 in (shape_of(coefficients) or ()):
            raise EncodeError("a polynomial has at least one coefficient; give its constant term", count=0)
        result, error = self.evaluator.polynomial(self.ciphertext, coefficients), 0.0
        if self.approximation:
            # The largest slope, times the error.
            slopes = np.polynomial.polynomial.polyder(np.abs(np.asarray(coefficients, complex)))
            largest = self.ciphertext.magnitude_bound + self.approximation
            error = float(np.polynomial.polynomial.polyval(largest, slopes)) * self.approximation
        return self._with(result, error)

    def within(self, low: float, high: float) -> Self:
        """Declare that every value, unused slots included, is between two numbers.

        Functions and divisions rely on it: for a value outside, their results can be any number. Nobody but
        the owner of the secret key can check it.

        Raises:
            ValueError: the numbers are not finite, or out of order.
            OperandError: the values are complex, or no value can be there by the magnitude that the
                ciphertext declares.
        """
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"a range has two finite ends in order, got {low} and {high}")
        low, high = float(low), float(high)
        _require_real(self.ciphertext, "values with a range")
        least, largest = min(abs(low), abs(high)), max(abs(low), abs(high))
        declared = self.ciphertext.magnitude_bound
        if least > declared * (1 + _ROUNDING) and low * high > 0:
            raise OperandError(
                f"the values are at most {declared:.6g} by their declared magnitude, and none can be between "
                f"{low:.6g} and {high:.6g}; declare the range that they have",
                code="range",
            )
        same = self._with(self.ciphertext, self.approximation)
        result = self._declared(largest) if largest < declared else same
        result.interval = (low, high)
        return result

    def _declared(self, magnitude: float) -> Self:
        """Return the values with a bound on their absolute values."""
        return self._with(self.evaluator.declare(self.ciphertext, magnitude), self.approximation)

    def exp(self, error: float | None = None) -> Self:
        """Return the exponential of values with a declared range (`within`).

        Args:
            error: bound on the distance of the polynomial from the function, 2^-10 of the function's largest
                value by default. The polynomial has the fewest levels for which `functions.error_bound`
                proves it, and one level maps the range to [-1, 1]. `error_bound` of the result, and of what
                is computed with it, has this error and those of encryption; `Ciphertext.error_bound`, and
                flooding, have the latter alone.

        Raises:
            OperandError: no range is declared, or the function is not defined on it.
            NoiseError: the errors of the values are as large as half their range.
            ValueError: the error is not a finite number above 0.
            ParameterError: no polynomial of degree up to 1023 is proved to be that close, or values of the
                function exceed double precision.
        """
        return self._function("exp", error)

    def log(self, error: float | None = None) -> Self:
        """Return the natural logarithm of values with a declared range above 0; see `exp`."""
        return self._function("log", error)

    def sqrt(self, error: float | None = None) -> Self:
        """Return the square root of values with a declared range above 0; see `exp`."""
        return self._function("sqrt", error)

    def inverse_sqrt(self, error: float | None = None) -> Self:
        """Return the inverse of the square root of values with a declared range above 0; see `exp`."""
        return self._function("inverse_sqrt", error)

    def inverse(self, error: float | None = None) -> Self:
        """Return the inverse of values with a declared range above 0, or below; see `exp`."""
        if self.interval is not None and self.interval[1] < 0:
            low, high = self.interval
            positive = -self
            positive.interval = (-high, -low)
            result = -positive.inverse(error)
            assert positive.interval is not None
            image = functions.FUNCTIONS["inverse"].image(*positive.interval)
            result.interval = (-image[1], -image[0])
            return result
        return self._function("inverse", error)

    def _function(self, name: str, error: float | None) -> Self:
        if self.interval is None:
            raise OperandError(
                f"{name} is a polynomial on a range, and the range of the values is unknown; declare it "
                "before, by x.within(low, high)",
                code="range",
            )
        low, high = self.interval
        function = functions.FUNCTIONS[name]
        if error is not None and not 0 < error < math.inf:
            raise ValueError(f"error must be a finite number above 0, got {error}")
        if function.positive and low <= 0:
            side = "on one side of 0" if name == "inverse" else "above 0"
            raise OperandError(
                f"{name} is computed for values {side}, and these are declared to be between {low:.6g} and "
                f"{high:.6g}; declare a range {side} by within(), or add a number before",
                code="range",
            )
        least, largest = function.image(low, high)
        most = max(abs(least), abs(largest))
        polynomial = functions.approximation(name, low, high, 2.0**-10 * most if error is None else error)
        centre, half = (low + high) / 2, (high - low) / 2
        mapped = (self / half - centre / half).ciphertext
        if not mapped.error_bound < 1:
            raise NoiseError(
                f"the operand of {name} has errors of up to {mapped.error_bound * half:.3g}, at least half "
                f"the range from {low:.6g} to {high:.6g}; encrypt with a larger scale (precision=) or a "
                "smaller magnitude, or declare a wider range",
                code="values",
                error_bound=mapped.error_bound * half,
                limit=half,
            )
        # Errors move values out of the range of the polynomial, where it is steeper.
        mapped = self.evaluator.declare(mapped, 1.0 + mapped.error_bound)
        excess = max(0, math.frexp(most)[1] - _COEFFICIENT_BITS)
        value = self.evaluator.polynomial(mapped, polynomial.coefficients * 2.0**-excess, "chebyshev")
        for first in range(0, excess, _COEFFICIENT_BITS):
            value = self.evaluator.multiply(value, 2 ** min(excess - first, _COEFFICIENT_BITS))
        total = polynomial.error + value.error_bound
        carried = self.approximation * function.steepest(low, high)
        result = self._with(
            self.evaluator.declare(value, most + polynomial.error), polynomial.error + carried
        )
        result.interval = (least - total, largest + total)
        return result

    def sign(self, bits: int = 8, *, range: float = 1.0) -> Self:  # noqa: A002 (the range of the values)
        """Return the sign of values in [-range, range], by a composition of minimax polynomials. Outside of
        the range these can be any number, so values that may be there are refused.

        Args:
            bits: 4 to 14. `keywright.minimax.composite.sign_composite` gives the
                error, the distance from 0, for range 1, from which it holds, and the number of levels.
            range: a bound on the absolute values, not below the one that they declare
                (`Ciphertext.magnitude_bound`). A range other than 1 uses one more level.

        `error_bound` has the error of the composition, and holds for values that are at least that distance,
        and their own `error_bound`, from 0. Signs of values closer to 0 are undecided, and show it: if the
        bound is below 1/2, a decrypted number that is closer to -1 or 1 than the bound is the sign of the
        value, and any other number is undecided. `decrypt` returns both kinds.

        Raises:
            ParameterError: there is no composition for that many bits.
            ValueError: the range is not a finite number above 0.
            OperandError: by their declared magnitude, the values may be outside the range, or are complex.
            NoiseError: the errors of the values hide their signs.
        """
        return self._sign(bits, range, "the values of sign")

    def abs(self, bits: int = 8, *, range: float = 1.0) -> Self:  # noqa: A002
        """Return the absolute value of values in [-range, range], with an error of at most 2^(1 - bits) times
        the range; uses one level more than `sign`, with the same errors."""
        result = self * self._sign(bits, range, "the values of abs")
        result.approximation = self.approximation + math.ldexp(range, 1 - int(bits))
        return result

    def maximum(self, other: "Operand", bits: int = 8, *, range: float = 1.0) -> Self:  # noqa: A002
        """Return the larger of two values in [-range, range], with an error of at most 2^(1 - bits) times the
        range; uses two levels more than `sign`, with the same errors."""
        mean, distance, largest, error = self._extremum(other, bits, range, "maximum")
        return self._with(self.evaluator.declare((mean + distance).ciphertext, largest), error)

    def minimum(self, other: "Operand", bits: int = 8, *, range: float = 1.0) -> Self:  # noqa: A002
        """Return the smaller of two values in [-range, range]; see `maximum`."""
        mean, distance, largest, error = self._extremum(other, bits, range, "minimum")
        return self._with(self.evaluator.declare((mean - distance).ciphertext, largest), error)

    def compare(self, other: "Operand", bits: int = 8, *, range: float = 1.0) -> Self:  # noqa: A002
        """Compare two values in [-range, range]: 1 where this value is larger, 0 where it is smaller, 1/2
        where they are equal. Close values give other numbers, which are undecided; see `sign` for half the
        difference divided by the range. If `error_bound` is below 1/4, a number that is closer to 0 or 1 than
        the bound is right. Uses two more levels than `sign`, with the same errors."""
        half = (self - other) / (2 * _positive(range))
        return (half._sign(bits, 1.0, "half the differences of compare", unit=range) + 1) / 2

    def _extremum(
        self,
        other: "Operand",
        bits: int,
        range: float,  # noqa: A002
        name: str,
    ) -> tuple[Self, Self, float, float]:
        """Return the mean of two values, half their distance, a bound on the larger and the smaller, and one
        on the error of both by polynomials."""
        mean, half = (self + other) / 2, (self - other) / 2
        distance = half * half._sign(bits, range, f"half the differences of {name}")
        theirs = _ciphertext(other)
        bound = theirs.magnitude_bound if isinstance(theirs, Ciphertext) else _size(theirs)
        error = other.approximation if isinstance(other, Encrypted) else 0.0
        own = math.ldexp(range, 1 - int(bits))
        largest = max(self.ciphertext.magnitude_bound, bound) + own
        return mean, distance, largest, max(self.approximation, error) + own

    def _sign(self, bits: int, range: float, what: str, unit: float = 1.0) -> Self:  # noqa: A002
        """Return the sign of values that cannot be outside the range.

        Args:
            what: the values, in words.
            unit: factor of the numbers in an error.
        """
        _require_range(self.ciphertext, _positive(range), what, unit)
        evaluator, value = self.evaluator, self._over(range).ciphertext
        errors, largest = [value.error_bound], 1.0
        for stage in sign_composite(bits).stages:
            if not errors[-1] < 1:
                break
            # Errors move values out of the range of the polynomial, where it is steeper.
            reached = evaluator.declare(value, largest + errors[-1])
            value = evaluator.polynomial(reached, stage, "chebyshev")
            largest = max(1.0, float(np.abs(chebval(largest * _GRID, stage)).max()))
            errors.append(value.error_bound)
        if not errors[-1] < 1:
            raise NoiseError(
                f"{what} have errors of up to {errors[0]:.3g} of the range {unit * range:.6g}, which hide "
                "their signs; encrypt with a larger scale (precision=), declare a smaller magnitude, or use "
                "a larger range= or fewer bits=",
                code="values",
                error_bound=errors[-1],
                limit=1.0,
            )
        return self._with(evaluator.declare(value, largest), sign_composite(bits).error)

    def _over(self, range: float) -> Self:  # noqa: A002
        """Return the values divided by their range."""
        return self if range == 1 else self / range

    def __lshift__(self, steps: int) -> Self:
        """Rotate the slots to the left: ``numpy.roll(slots, -steps)``."""
        return self._moved(lambda ct: self.evaluator.rotate(ct, steps))


def _positive(range: float) -> float:  # noqa: A002
    if np.ndim(range) or not 0 < range < float("inf"):
        raise ValueError(f"range must be a finite number above 0, got {range}")
    return float(range)


def _require_range(values: Ciphertext, range: float, what: str, unit: float) -> None:  # noqa: A002
    """Refuse values that are not certainly in [-range, range].

    No result shows that an operand was outside: it can be any number, those of the function's own range, too.
    """
    _require_real(values, what)
    largest = values.magnitude_bound
    if largest > range * (1 + _ROUNDING):
        enough = float(np.nextafter(np.float32(unit * largest), np.float32(np.inf)))
        raise OperandError(
            f"{what} may be as large as {unit * largest:.6g}, by their declared magnitude, and the range is "
            f"{unit * range:.6g}; pass range={enough:.9g}, encrypt with a smaller magnitude=, or, if you "
            "know that the values are smaller, use evaluator.declare",
            code="range",
        )


def _require_real(values: Ciphertext, what: str) -> None:
    """Refuse values that may be complex."""
    if not values.real:
        raise OperandError(
            f"{what} are real numbers, and these are complex; encrypt an array of real numbers", code="range"
        )


def _size(numbers: "ArrayLike") -> float:
    """Return the largest absolute value, of any type: among 8-bit integers there is none of -128."""
    return float(np.abs(np.asarray(numbers, complex)).max())


def _ciphertext(operand: "Operand") -> "Ciphertext | ArrayLike":
    return operand.ciphertext if isinstance(operand, Encrypted) else operand
