"""Methods of approximating a function by polynomials, and their costs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from keywright._copies import Stated
from keywright._core import polynomial_depth, polynomial_relinearizations
from keywright.minimax.composite import DEGREES
from keywright.program.arrays import Vector

Kind = Literal["chebyshev", "minimax", "stored"]
MAX_DEGREE = 1023


@dataclass(frozen=True)
class Method(Stated):
    """A method of approximation.

    Attributes:
        kind: "chebyshev", one polynomial in the Chebyshev basis, for any function; "minimax", a composition
            that approximates the sign, for piecewise linear functions such as ReLU; or "stored", a constant,
            for the inverses of a normalisation, whose statistics then come from the calibration data.
        number: for chebyshev the degree, 1 to 1023; for minimax the bits of precision, 4 to 14: a ReLU of
            values in [-B, B] has an error of at most 2^-bits B; for stored 0.

    Raises:
        ValueError: the number is out of range.
    """

    kind: Kind
    number: int

    def __post_init__(self) -> None:
        if self.kind == "stored" and self.number == 0:
            return
        low, high = (1, MAX_DEGREE) if self.kind == "chebyshev" else (min(DEGREES), max(DEGREES))
        if not low <= self.number <= high:
            what = "the degree of chebyshev" if self.kind == "chebyshev" else "the bits of minimax"
            raise ValueError(f"{what} must be between {low} and {high}, got {self.number}")

    @staticmethod
    def parse(text: str) -> "Method":
        """Parse a method: "chebyshev:31", "minimax:13" or "stored".

        Raises:
            ValueError: the text is malformed.
        """
        if text.strip() == "stored":
            return Method("stored", 0)
        kind, _, number = text.strip().partition(":")
        if kind not in ("chebyshev", "minimax") or not (number.isascii() and number.isdigit()):
            raise ValueError(
                f"{text!r} is not a method; write chebyshev:DEGREE, minimax:BITS, as minimax:13, or stored"
            )
        return Method(kind, int(number[:9]))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.kind if self.kind == "stored" else f"{self.kind}:{self.number}"

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """Degrees of its polynomials, in order of evaluation."""
        return DEGREES[self.number] if self.kind == "minimax" else (self.number,)

    @cached_property
    def levels(self) -> int:
        """Levels that it consumes: one for degree 2, which is one square; a composition ends in one more
        product."""
        if self.kind == "stored":
            return 0
        if self.kind == "chebyshev":
            return 1 if self.number == 2 else polynomial_depth(self.number)
        return sum(polynomial_depth(degree) for degree in self.degrees) + 1

    @cached_property
    def products(self) -> int:
        """Number of ciphertext products that it takes if all coefficients differ."""
        if self.kind == "stored":
            return 0
        if self.kind == "chebyshev":
            return 1 if self.number == 2 else _products(np.sqrt(np.arange(2, self.number + 3)))
        total = 1
        for degree in self.degrees:
            index = np.arange(degree + 1, dtype=np.float64)
            total += _products(np.sqrt(index) * (index % 2))
        return total


def _products(coefficients: Vector) -> int:
    return len(polynomial_relinearizations(coefficients, "chebyshev"))
