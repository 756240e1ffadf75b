"""Polynomials as programs store them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from keywright._copies import Stated
from keywright._core import polynomial_relinearizations
from keywright.minimax.series import chebyshev
from keywright.program.arrays import Vector

Basis = Literal["monomial", "chebyshev"]


@dataclass(frozen=True, eq=False)
class PolynomialSpec(Stated):
    """A polynomial with real coefficients by ascending degree; Chebyshev polynomials are those on [-1, 1]."""

    coefficients: Vector
    basis: Basis = "chebyshev"

    @property
    def degree(self) -> int:
        """Highest index of a coefficient."""
        return len(self.coefficients) - 1

    @cached_property
    def relinearizations(self) -> list[int]:
        """How many levels below the operand each relinearization is; every run of a program asks for it."""
        return polynomial_relinearizations(self.coefficients, self.basis)

    def evaluate(self, values: Vector) -> Vector:
        """Return the polynomial's values."""
        if self.basis == "chebyshev":
            return chebyshev(values, self.coefficients)
        return np.asarray(np.polynomial.polynomial.polyval(values, self.coefficients))
