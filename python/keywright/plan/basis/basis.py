"""The fewest keys for a set of automorphisms with at most two hops: exact.

A set D of keys serves an automorphism s if s is in D or a sum of two elements of D. The smallest D is an
additive basis of order two of the targets; its elements need not be targets. A beam search finds a small one,
and `BasisSearch` proves for one size after the other that there is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from time import monotonic

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup

from .basis_search import BasisSearch, SearchTimeoutError
from .group_codes import GroupCodes

BEAM = 64
"""Beam width: sets of each size that the search for a small basis keeps."""


@dataclass(frozen=True)
class Basis:
    """Keys that serve a set of automorphisms with one or two hops.

    Attributes:
        keys: the keys, sorted.
        lower_bound: a proven minimum of the number of keys.
    """

    keys: tuple[Automorphism, ...]
    lower_bound: int

    @property
    def proven(self) -> bool:
        """Whether the basis is proven smallest."""
        return len(self.keys) == self.lower_bound


def smallest_basis(group: AutomorphismGroup, targets: Iterable[Automorphism], seconds: float = 60.0) -> Basis:
    """Return the fewest keys that make every target with one or two hops.

    Sizes are excluded upwards from the counting bound m + m (m + 1) / 2 >= number of targets, until only the
    size of the known basis is left. On timeout, the smallest basis found is returned, with the bound reached
    so far.

    Args:
        group: automorphisms of the ring.
        targets: required automorphisms; the identity is left out.
        seconds: search time.
    """
    deadline = monotonic() + seconds
    codes = GroupCodes(group)
    requests = sorted(codes.encode(target) for target in set(targets) - {Automorphism(0)})
    best = _small_basis(codes, requests, deadline)
    size = 0
    while size * (size + 3) // 2 < len(requests):
        size += 1
    try:
        while size < len(best):
            result = BasisSearch(codes, requests, size, deadline).run()
            if result is not None:
                best = result
                break
            size += 1
    except SearchTimeoutError:
        pass
    return Basis(tuple(sorted(map(codes.decode, best))), size)


def _small_basis(codes: GroupCodes, targets: list[int], deadline: float) -> list[int]:
    """Return a small basis by beam search: among sets extended by one element, those that make most targets
    are kept.

    On timeout, the targets that the best set does not make are added to it.
    """
    guard, mask = codes.guard, codes.mask
    generator = Random(0)
    everything = (1 << len(targets)) - 1
    halves = [codes.halves(target) for target in targets]
    # Sets, and the targets that they make, as bits.
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
        # Break ties at random, because neighbouring sets are much alike.
        beam = sorted(grown.items(), key=lambda result: (-result[1].bit_count(), generator.random()))[:BEAM]
    elements, covered = beam[0]
    return [*elements, *(target for i, target in enumerate(targets) if not covered >> i & 1)]
