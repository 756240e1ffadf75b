"""The fewest keys for automorphisms of one ciphertext with at most two hops and no extra key switches: exact.

In two hops a set D of keys makes D and the sums of two of its elements, for one ciphertext or many. If
intermediate results are unrestricted, a shared input needs as many keys as independent ones
(`smallest_basis`), and sharing only saves key switches. This module solves the other extreme: as few key
switches as automorphisms, so every intermediate result is wanted. With A the wanted elements of D,

    every wanted automorphism is in A or in A + D.

An element of D outside A is useful only as the difference of a wanted automorphism and one of A. For each A
of at most m elements, the search takes the first automorphism that is not made and branches over the elements
of A that it could be made from. It stops if the remaining keys are too few, even if each makes as many
automorphisms as the best one. The first m with a solution is proven smallest.
"""

from collections.abc import Iterable
from itertools import combinations
from time import monotonic

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup

from .basis import Basis
from .basis_search import SearchTimeoutError


def smallest_shared_basis(
    group: AutomorphismGroup, targets: Iterable[Automorphism], seconds: float = 60.0
) -> Basis:
    """Return the fewest keys that make every target of one ciphertext in one or two hops, with as many key
    switches as targets.

    On timeout, the targets themselves are returned as keys, with the bound reached so far.

    Args:
        group: automorphisms of the ring.
        targets: required automorphisms; the identity is left out.
        seconds: search time.
    """
    requests = sorted(set(targets) - {Automorphism(0)})
    search = _Search(group, requests, monotonic() + seconds)
    size = 0
    try:
        while True:
            result = search.exists(size)
            if result is not None:
                return Basis(tuple(sorted(result)), size)
            size += 1
    except SearchTimeoutError:
        return Basis(tuple(requests), size)


class _Search:
    def __init__(self, group: AutomorphismGroup, targets: list[Automorphism], deadline: float) -> None:
        self.targets, self.deadline = targets, deadline
        place = {target: 1 << index for index, target in enumerate(targets)}
        # By the indices of the start and the result: the key that leads there.
        self.key = [[group.subtract(result, first) for result in targets] for first in targets]
        keys = {*targets, *(key for row in self.key for key in row)}
        # For each key and each start, the result: a bit, or nothing wanted.
        self.makes = {key: [place.get(group.add(first, key), 0) for first in targets] for key in keys}
        self.itself = [1 << index for index in range(len(targets))]

    def exists(self, size: int) -> list[Automorphism] | None:
        """Return a basis of ``size`` elements, or None if there is none."""
        number = len(self.targets)
        for direct in range(min(size, number) + 1):
            if direct + direct * size < number:
                continue
            for first in combinations(range(number), direct):
                if monotonic() > self.deadline:
                    raise SearchTimeoutError
                kept = [self.targets[index] for index in first]
                left = (1 << number) - 1
                for index, key in zip(first, kept, strict=True):
                    left &= ~(self.itself[index] | self._made(first, key))
                result = self._branch(first, left, size - direct)
                if result is not None:
                    return kept + result
        return None

    def _made(self, first: tuple[int, ...], key: Automorphism) -> int:
        """Return what a key makes from the elements of A."""
        result, makes = 0, self.makes[key]
        for index in first:
            result |= makes[index]
        return result

    def _branch(self, first: tuple[int, ...], left: int, keys: int) -> list[Automorphism] | None:
        if not left:
            return []
        if left.bit_count() > keys * len(first):
            return None
        missing = [index for index in range(len(self.targets)) if left >> index & 1]
        gains = {
            key: self._made(first, key) & left
            for key in {self.key[index][target] for index in first for target in missing}
        }
        if len(missing) > keys * max(gain.bit_count() for gain in gains.values()):
            return None
        for index in first:
            key = self.key[index][missing[0]]
            result = self._branch(first, left & ~gains[key], keys - 1)
            if result is not None:
                return [key, *result]
        return None
