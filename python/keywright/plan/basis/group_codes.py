"""Automorphisms as integers, for searches that add millions of them."""

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup


class GroupCodes:
    """Z/(N/2) x Z/2 as integers whose sum in the group is their sum as integers, masked.

    The low bits are the step, then a bit that is 0 in every code and takes the carry or lends to a
    difference, then the conjugation.

    Attributes:
        guard: the bit that is 0.
        mask: the bits of codes: (a + b) & mask is the sum, ((a | guard) - b) & mask the difference.
    """

    def __init__(self, group: AutomorphismGroup) -> None:
        self.guard = group.slots
        self.mask = (group.slots - 1) | group.slots << 1
        half, conjugation = group.slots // 2, group.slots << 1
        self._torsion = (0, half, conjugation, half | conjugation)

    def encode(self, automorphism: Automorphism) -> int:
        """The code, below 2 N."""
        return automorphism.step | (self.guard << 1 if automorphism.conjugate else 0)

    def decode(self, code: int) -> Automorphism:
        """The automorphism of a code."""
        return Automorphism(code & (self.guard - 1), code > self.guard)

    def add(self, a: int, b: int) -> int:
        """a + b."""
        return (a + b) & self.mask

    def subtract(self, a: int, b: int) -> int:
        """a - b."""
        return ((a | self.guard) - b) & self.mask

    def signed(self, sign: int, a: int) -> int:
        """a or -a."""
        return a if sign > 0 else self.subtract(0, a)

    def halves(self, a: int) -> tuple[int, ...]:
        """All x with x + x = a: four, or none where a conjugates or is an odd step."""
        if a & 1 or a > self.guard:
            return ()
        return tuple(self.add(a >> 1, torsion) for torsion in self._torsion)
