"""The plaintext operands of a program's instructions."""

from dataclasses import dataclass

from keywright.program.arrays import Vector

from .bootstraps import Bootstrap
from .diagonals import DiagonalMatrix
from .polynomials import PolynomialSpec


@dataclass(frozen=True, eq=False)
class Operands:
    """What instructions name by its index.

    Attributes:
        transforms: of "linear_transform" instructions.
        vectors: of "add_plain" and "add_both" instructions, in slots.
        polynomials: of "polynomial" instructions.
        bootstraps: of "bootstrap" instructions.
    """

    transforms: tuple[DiagonalMatrix, ...] = ()
    vectors: tuple[Vector, ...] = ()
    polynomials: tuple[PolynomialSpec, ...] = ()
    bootstraps: tuple[Bootstrap, ...] = ()
