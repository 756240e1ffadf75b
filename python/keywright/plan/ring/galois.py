"""The group of automorphisms, in which hops between rotations add up.

The automorphisms X -> X^g of Z[X]/(X^N + 1) form (Z/2N)^*, which is <5> x <-1>: every odd g modulo 2N is 5^r
or -5^r for one r modulo N/2. Rotations are the powers of 5; the conjugation is -1. Composing automorphisms
multiplies Galois elements and adds their exponents; it does not add Galois elements.
"""

from typing import NamedTuple


class Automorphism(NamedTuple):
    """An automorphism in additive notation.

    Attributes:
        step: exponent r of 5, in [0, N/2): the slots move r places to the left.
        conjugate: whether slots are also conjugated, so that g = -5^r.
    """

    step: int
    conjugate: bool = False


class AutomorphismGroup:
    """(Z/2N)^* for N = 2^log_n, written additively as Z/(N/2) x Z/2.

    Thread safety: any number of threads may use one at the same time.
    """

    def __init__(self, log_n: int) -> None:
        """Create the group of a ring.

        Args:
            log_n: base-2 logarithm of the ring degree N, from 2 to 20.

        Raises:
            ValueError: the degree is out of range.
        """
        if not 2 <= log_n <= 20:
            raise ValueError(f"log2 of the ring degree is {log_n}; it must be from 2 to 20")
        self.log_n = log_n
        self.slots = 1 << (log_n - 1)
        self.modulus = 2 << log_n

    def rotation(self, step: int) -> Automorphism:
        """Return the rotation by any number of slots to the left; negative steps rotate to the right."""
        return Automorphism(step % self.slots)

    def add(self, a: Automorphism, b: Automorphism) -> Automorphism:
        """Return the composition."""
        return Automorphism((a.step + b.step) % self.slots, a.conjugate != b.conjugate)

    def subtract(self, a: Automorphism, b: Automorphism) -> Automorphism:
        """Return the automorphism that must follow b to make a."""
        return Automorphism((a.step - b.step) % self.slots, a.conjugate != b.conjugate)

    def galois_element(self, a: Automorphism) -> int:
        """Return g in [1, 2N), odd."""
        power = pow(5, a.step, self.modulus)
        return self.modulus - power if a.conjugate else power

    def from_galois_element(self, g: int) -> Automorphism:
        """Return the automorphism X -> X^g: a discrete logarithm, one bit at a time.

        Raises:
            ValueError: g is even, or outside [1, 2N).
        """
        if not 0 < g < self.modulus or g % 2 == 0:
            raise ValueError(f"Galois element {g} is not an odd number in [1, {self.modulus})")
        conjugate = g % 4 == 3
        if conjugate:
            g = self.modulus - g
        step = 0
        for bit in range(self.log_n - 1):
            # 5^(2^bit) = 1 + 2^(bit+2) modulo 2^(bit+3), so this bit of the exponent is bit + 2 of the
            # quotient.
            quotient = g * pow(5, -step, self.modulus) % self.modulus
            if quotient >> (bit + 2) & 1:
                step |= 1 << bit
        return Automorphism(step, conjugate)
