"""What a program asks of the engine that runs it."""

from typing import Protocol, TypeVar

from keywright.nn.activations.polynomials import PolynomialSpec
from keywright.nn.graph.sparse import Vector
from keywright.nn.layout.diagonals import DiagonalMatrix

Ciphertext = TypeVar("Ciphertext")


class Backend(Protocol[Ciphertext]):
    """Ciphertexts are vectors of as many reals as their ring has slots, at a level; rotation by k is
    ``numpy.roll(v, -k)``.

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
        """The sum with a vector of as many values."""

    def mul(self, left: Ciphertext, right: Ciphertext) -> Ciphertext:
        """The product, relinearized and rescaled: one level below."""

    def polynomial(self, ct: Ciphertext, polynomial: PolynomialSpec) -> Ciphertext:
        """The polynomial of every slot, ceil(log2(degree + 1)) levels below."""

    def drop_level(self, ct: Ciphertext, level: int) -> Ciphertext:
        """The same values at a lower level."""

    def switch_ring(self, ct: Ciphertext, log_n: int) -> Ciphertext:
        """The same values in the ring of degree 2^log_n, or the largest for 0. Where it has fewer slots,
        values repeat after so many; where it has more, they are repeated."""

    def bootstrap(self, ct: Ciphertext, index: int) -> Ciphertext:
        """The same values, at most 1, in the largest ring, at the output level of bootstrap ``index``."""
