"""Polynomials as programs hold them, and how deep they are.

The rest of a polynomial's schedule is the engine's: `_core.polynomial_relinearizations`.
"""

from dataclasses import dataclass
from typing import Literal

from keywright.nn.graph.sparse import Vector

Basis = Literal["monomial", "chebyshev"]


@dataclass(frozen=True, eq=False)
class PolynomialSpec:
    """A polynomial with real coefficients by ascending degree; Chebyshev polynomials are those on [-1, 1]."""

    coefficients: Vector
    basis: Basis = "chebyshev"

    @property
    def degree(self) -> int:
        """The highest index of a coefficient."""
        return len(self.coefficients) - 1


def polynomial_depth(degree: int) -> int:
    """Levels that evaluation consumes: ceil(log2(degree + 1))."""
    return degree.bit_length()
