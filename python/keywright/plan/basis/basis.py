"""Fewest keys for a set of automorphisms, two hops at most: exact.

A set D of keys serves an automorphism s if s is in D or a sum of two elements of D. The smallest D is an
additive basis of order two of the targets, and its elements need not be targets. A beam search finds a small
one, and `BasisSearch` proves for one size after the other that there is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from time import monotonic

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup

from .basis_search import BasisSearch, SearchTimeoutError
from .group_codes import GroupCodes

BEAM = 64
"""Sets of each size that the search for a small basis goes on with."""


@dataclass(frozen=True)
class Basis:
    """Keys that serve a set of automorphisms with one or two hops.

    Attributes:
        keys: the keys, sorted.
        lower_bound: no fewer keys can serve the set; equal to the number of keys if that is proven smallest.
    """

    keys: tuple[Automorphism, ...]
    lower_bound: int

    @property
    def proven(self) -> bool:
        """Whether there is no smaller basis."""
        return len(self.keys) == self.lower_bound


def smallest_basis(group: AutomorphismGroup, targets: Iterable[Automorphism], seconds: float = 60.0) -> Basis:
    """The fewest keys that make every target with one or two hops.

    Sizes are excluded from the counting bound m + m (m + 1) / 2 >= number of targets up, until only the size
    of the basis that is known is left. When the time is over, the smallest basis found is returned, with the
    bound reached so far.

    Args:
        group: automorphisms of the ring.
        targets: what is needed; the identity is left out.
        seconds: for how long to search.
    """
    deadline = monotonic() + seconds
    codes = GroupCodes(group)
    wanted = sorted(codes.encode(target) for target in set(targets) - {Automorphism(0)})
    best = _small_basis(codes, wanted, deadline)
    size = 0
    while size * (size + 3) // 2 < len(wanted):
        size += 1
    try:
        while size < len(best):
            found = BasisSearch(codes, wanted, size, deadline).run()
            if found is not None:
                best = found
                break
            size += 1
    except SearchTimeoutError:
        pass
    return Basis(tuple(sorted(map(codes.decode, best))), size)


def _small_basis(codes: GroupCodes, targets: list[int], deadline: float) -> list[int]:
    """A small basis: of the sets that add one element to those so far, the ones that make most are kept.

    When the time is over, what the best set does not make is added to it.
    """
    guard, mask = codes.guard, codes.mask
    generator = Random(0)
    everything = (1 << len(targets)) - 1
    halves = [codes.halves(target) for target in targets]
    # Sets, and what they make as bits.
    beam: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while beam[0][1] != everything and monotonic() <= deadline:
        grown: dict[tuple[int, ...], int] = {}
        for elements, covered in beam:
            gains: dict[int, int] = {}
            for i, target in enumerate(targets):
                if not covered >> i & 1:
                    for new in (target, *halves[i], *(((target | guard) - s) & mask for s in elements)):
                        gains[new] = gains.get(new, 0) | 1 << i
            for new, gain in gains.items():
                grown[tuple(sorted((*elements, new)))] = covered | gain
        # Equal ones at random, since neighbours are much alike.
        beam = sorted(grown.items(), key=lambda made: (-made[1].bit_count(), generator.random()))[:BEAM]
    elements, covered = beam[0]
    return [*elements, *(target for i, target in enumerate(targets) if not covered >> i & 1)]
