"""What a program asks of the engine that runs it."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np

from keywright.nn.graph.sparse import Vector

Basis = Literal["monomial", "chebyshev"]
Ciphertext = TypeVar("Ciphertext")


@dataclass(frozen=True, eq=False)
class DiagonalMatrix:
    """A block row of matrices by their diagonals: the sum over inputs k of M_k v_k.

    Diagonal r of M is ``M[i, (i + r) mod slots]``. Diagonals are evaluated by baby and giant steps: r = i + j
    with the baby step i = r mod n1, a rotation of the input, and the giant step j = r - i, a rotation of the
    sum over inputs and baby steps.

    Attributes:
        slots: slots of the ciphertexts; a power of two.
        diagonals: for each input, the nonzero diagonals by r in [0, slots); each of length ``slots``, or of a
            smaller power of two, which then repeats.
        n1: number of possible baby steps.
    """

    slots: int
    diagonals: tuple[dict[int, Vector], ...]
    n1: int

    def baby_steps(self, operand: int) -> list[int]:
        """Rotations of one input, ascending; 0 needs no key."""
        return sorted({r % self.n1 for r in self.diagonals[operand]})

    def giant_steps(self) -> list[int]:
        """Rotations of partial sums, ascending; 0 needs no key."""
        return sorted({r - r % self.n1 for diagonals in self.diagonals for r in diagonals})

    def full_diagonal(self, operand: int, r: int) -> Vector:
        """One diagonal with as many values as there are slots."""
        diagonal = self.diagonals[operand][r]
        return np.tile(diagonal, self.slots // len(diagonal))


@dataclass(frozen=True, eq=False)
class PolynomialSpec:
    """A polynomial with real coefficients by ascending degree; Chebyshev polynomials are those on [-1, 1]."""

    coefficients: Vector
    basis: Basis = "chebyshev"

    @property
    def degree(self) -> int:
        """The highest index of a coefficient."""
        return len(self.coefficients) - 1


class Backend(Protocol[Ciphertext]):
    """Ciphertexts are vectors of ``slots`` reals at a level; rotation by k is ``numpy.roll(v, -k)``.

    Operands of `add` and `mul` are at the same level: programs drop levels explicitly. Scales are the
    engine's affair.
    """

    def level(self, ct: Ciphertext) -> int:
        """The level of a ciphertext."""

    def linear_transform(self, cts: list[Ciphertext], transform: DiagonalMatrix) -> Ciphertext:
        """The block row applied to the inputs, all at one level; the result is one level below."""

    def rotate(self, ct: Ciphertext, step: int) -> Ciphertext:
        """Slots moved to the left by ``step``."""

    def add(self, left: Ciphertext, right: Ciphertext) -> Ciphertext:
        """The sum."""

    def add_plain(self, ct: Ciphertext, vector: Vector) -> Ciphertext:
        """The sum with a vector of ``slots`` values."""

    def mul(self, left: Ciphertext, right: Ciphertext) -> Ciphertext:
        """The product, relinearized and rescaled: one level below."""

    def polynomial(self, ct: Ciphertext, polynomial: PolynomialSpec) -> Ciphertext:
        """The polynomial of every slot, ceil(log2(degree + 1)) levels below."""

    def drop_level(self, ct: Ciphertext, level: int) -> Ciphertext:
        """The same values at a lower level."""

    def bootstrap(self, ct: Ciphertext, index: int) -> Ciphertext:
        """The same values, at most 1, at the output level of bootstrap ``index`` of the program."""
