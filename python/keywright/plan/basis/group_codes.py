"""Automorphisms as integers, for searches that add millions of them."""

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup


class GroupCodes:
    """Z/(N/2) x Z/2 as integers whose sum, masked, is the sum in the group.

    The low bits are the step. The next bit is 0 in every code; it takes the carry of a sum or lends to a
    difference. The last bit is the conjugation.

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
        """Return the code, below 2 N."""
        return automorphism.step | (self.guard << 1 if automorphism.conjugate else 0)

    def decode(self, code: int) -> Automorphism:
        return Automorphism(code & (self.guard - 1), code > self.guard)

    def add(self, a: int, b: int) -> int:
        """Return a + b."""
        return (a + b) & self.mask

    def subtract(self, a: int, b: int) -> int:
        """Return a - b."""
        return ((a | self.guard) - b) & self.mask

    def signed(self, sign: int, a: int) -> int:
        """Return a or -a."""
        return a if sign > 0 else self.subtract(0, a)

    def halves(self, a: int) -> tuple[int, ...]:
        """Return all x with x + x = a: four, or none if a conjugates or is an odd step."""
        if a & 1 or a > self.guard:
            return ()
        return tuple(self.add(a >> 1, torsion) for torsion in self._torsion)
