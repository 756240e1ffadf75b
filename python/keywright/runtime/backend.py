"""The interface of the engines that run programs."""

from typing import Protocol, TypeVar

from keywright.program.arrays import Vector
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.polynomials import PolynomialSpec

Ciphertext = TypeVar("Ciphertext")


class Backend(Protocol[Ciphertext]):
    """An engine whose ciphertexts are vectors at a level, with a number for each slot of their ring: real, or
    complex between `join` and `real` or `imaginary`. Rotation by k is ``numpy.roll(v, -k)``.

    Operands of `add` and `mul` are at the same level: programs drop levels explicitly. The engine manages
    scales.
    """

    def level(self, ct: Ciphertext) -> int:
        """Return the level of a ciphertext."""

    def linear_transform(self, cts: list[Ciphertext], transform: DiagonalMatrix) -> Ciphertext:
        """Apply the block row to the inputs, all at one level; the result is one level below."""

    def rotate(self, ct: Ciphertext, step: int) -> Ciphertext:
        """Rotate the slots to the left by ``step``."""

    def add(self, left: Ciphertext, right: Ciphertext) -> Ciphertext:
        """Return the sum."""

    def add_plain(self, ct: Ciphertext, vector: Vector) -> Ciphertext:
        """Return the sum with a vector of as many values."""

    def mul(self, left: Ciphertext, right: Ciphertext) -> Ciphertext:
        """Return the product, relinearized and rescaled: one level below."""

    def polynomial(self, ct: Ciphertext, polynomial: PolynomialSpec) -> Ciphertext:
        """Evaluate the polynomial in every slot, ceil(log2(degree + 1)) levels below."""

    def add_both(self, ct: Ciphertext, vector: Vector) -> Ciphertext:
        """Return the sum with a vector of as many values, of the real and of the imaginary parts."""

    def conjugate(self, ct: Ciphertext) -> Ciphertext:
        """Return the complex conjugates."""

    def join(self, real: Ciphertext, imaginary: Ciphertext) -> Ciphertext:
        """Return the complex values of two ciphertexts of real ones."""

    def real(self, ct: Ciphertext, conjugate: Ciphertext) -> Ciphertext:
        """Return twice the real parts of values whose conjugates are given."""

    def imaginary(self, ct: Ciphertext, conjugate: Ciphertext) -> Ciphertext:
        """Return twice the imaginary parts of values whose conjugates are given."""

    def drop_level(self, ct: Ciphertext, level: int) -> Ciphertext:
        """Return the same values at a lower level."""

    def switch_ring(self, ct: Ciphertext, log_n: int) -> Ciphertext:
        """Return the same values in the ring of degree 2^log_n, or in the largest ring for 0. For a ring with
        fewer slots, values must repeat after that number of slots; in a ring with more slots, they are
        repeated."""

    def bootstrap(self, cts: list[Ciphertext], index: int) -> list[Ciphertext]:
        """Return the same values, at most 1, in the largest ring, at the output level of bootstrap
        ``index``: of one ciphertext, or of two at once if the bootstrap takes pairs."""
