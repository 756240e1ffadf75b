"""Ways to put polynomials in the place of a function, and what they take."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from keywright._core import polynomial_depth, polynomial_relinearizations
from keywright.nn.graph.sparse import Vector

from .composite import DEGREES

Kind = Literal["chebyshev", "minimax"]
MAX_DEGREE = 1023


@dataclass(frozen=True)
class Method:
    """One way.

    Attributes:
        kind: "chebyshev", one polynomial of the Chebyshev basis, for any function; or "minimax", a
            composition that follows the sign, for functions made of straight pieces such as ReLU.
        number: the degree of the former, 1 to 1023; bits of precision of the latter, 4 to 14: a ReLU of
            values in [-B, B] is off by at most 2^-bits B.

    Raises:
        ValueError: the number is out of its bounds.
    """

    kind: Kind
    number: int

    def __post_init__(self) -> None:
        low, high = (1, MAX_DEGREE) if self.kind == "chebyshev" else (min(DEGREES), max(DEGREES))
        if not low <= self.number <= high:
            what = "the degree of chebyshev" if self.kind == "chebyshev" else "the bits of minimax"
            raise ValueError(f"{what} must be between {low} and {high}, got {self.number}")

    @staticmethod
    def parse(text: str) -> "Method":
        """A method as people write it: "chebyshev:31" or "minimax:13".

        Raises:
            ValueError: it is none.
        """
        kind, _, number = text.strip().partition(":")
        if kind not in ("chebyshev", "minimax") or not (number.isascii() and number.isdigit()):
            raise ValueError(f"{text!r} is no method; write chebyshev:DEGREE or minimax:BITS, as minimax:13")
        return Method(kind, int(number[:9]))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """Of its polynomials, in order of evaluation."""
        return (self.number,) if self.kind == "chebyshev" else DEGREES[self.number]

    @cached_property
    def levels(self) -> int:
        """Levels that it consumes: degree 2 is one square, and a composition ends in a product."""
        if self.kind == "chebyshev":
            return 1 if self.number == 2 else polynomial_depth(self.number)
        return sum(polynomial_depth(degree) for degree in self.degrees) + 1

    @cached_property
    def products(self) -> int:
        """Products of ciphertexts that it takes, for coefficients of which no two are alike."""
        if self.kind == "chebyshev":
            return 1 if self.number == 2 else _products(np.sqrt(np.arange(2, self.number + 3)))
        total = 1
        for degree in self.degrees:
            index = np.arange(degree + 1, dtype=np.float64)
            total += _products(np.sqrt(index) * (index % 2))
        return total


def _products(coefficients: Vector) -> int:
    return len(polynomial_relinearizations(coefficients, "chebyshev"))
