"""Fewest keys for a set of automorphisms, two hops at most: exact.

A set D of keys serves an automorphism s if s is in D or a sum of two elements of D. The smallest D is an
additive basis of order two of the targets, and its elements need not be targets. The search decides whether
one of m elements exists.

Elements are determined or depend on a free parameter. It branches on a target that is not yet a sum; in any
solution that target is (1) an element, (2) an element so far plus another one, (3) twice an element, (4) the
sum of two elements that are both still missing, t and s - t with t free, or (5) fixes a parameter. So every
solution is found, whatever group elements it uses, although the group is never enumerated. Branches are cut
when the sums that m elements can have, less those that are fixed and of no use, are fewer than the targets.
After a branch for an element is exhausted, the element is forbidden in its siblings.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from .galois import Automorphism, AutomorphismGroup


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


class SearchTimeoutError(Exception):
    """The time for a search is over."""


# A group element (r, c) is the integer 2 r + c; an element of a basis is sign * parameter + constant,
# parameter 0 meaning none.
_Element = tuple[int, int, int]


class _Search:
    def __init__(self, group: AutomorphismGroup, targets: Iterable[int], deadline: float) -> None:
        self.mask = group.slots - 1
        self.targets = frozenset(targets)
        self.deadline = deadline
        half = group.slots // 2
        self.torsion = (0, 1, 2 * half, 2 * half + 1)
        self.visited = 0

    def add(self, a: int, b: int) -> int:
        return ((((a >> 1) + (b >> 1)) & self.mask) << 1) | ((a ^ b) & 1)

    def sub(self, a: int, b: int) -> int:
        return ((((a >> 1) - (b >> 1)) & self.mask) << 1) | ((a ^ b) & 1)

    def halves(self, a: int) -> list[int]:
        """All x with 2 x = a."""
        if a & 1 or (a >> 1) & 1:
            return []
        return [self.add((a >> 2) << 1, t) for t in self.torsion]

    def place(self, sign: int, value: int, constant: int) -> int:
        return self.add(constant, value) if sign > 0 else self.sub(constant, value)

    def fixed_sums(self, elements: list[_Element]) -> tuple[set[int], int]:
        """Sums that no longer depend on a parameter, and how many pairs and elements make them."""
        sums: set[int] = set()
        count = 0
        for i, (p, sign, constant) in enumerate(elements):
            if p == 0:
                sums.add(constant)
                count += 1
            for q, other, c in elements[i:]:
                if p == q and (p == 0 or sign != other):
                    sums.add(self.add(constant, c))
                    count += 1
        return sums, count

    def exists(self, size: int) -> list[int] | None:
        """A basis of at most `size` elements, or None if there is none."""
        found = self._branch([], size, frozenset(), 1)
        if found is None:
            return None
        return sorted({constant for _, _, constant in found})

    def _branch(
        self, elements: list[_Element], size: int, forbidden: frozenset[int], fresh: int
    ) -> list[_Element] | None:
        self.visited += 1
        if self.visited % 4096 == 0 and monotonic() > self.deadline:
            raise SearchTimeoutError
        sums, count = self.fixed_sums(elements)
        missing = self.targets - sums
        if not missing:
            return elements
        if len(self.targets & sums) + size + size * (size + 1) // 2 - count < len(self.targets):
            return None
        s = min(missing)
        banned = set(forbidden)
        for extended in self._options(elements, s, size, fresh):
            known = {constant for p, _, constant in extended if p == 0}
            if banned & known or len(set(extended)) < len(extended):
                continue
            found = self._branch(extended, size, frozenset(banned), fresh + 1)
            if found is not None:
                return found
            new = extended[len(elements) :]
            if len(new) == 1 and new[0][0] == 0 and extended[: len(elements)] == elements:
                banned.add(new[0][2])
        return None

    def _options(self, elements: list[_Element], s: int, size: int, fresh: int) -> Iterator[list[_Element]]:
        if len(elements) < size:
            yield [*elements, (0, 0, s)]
            for p, sign, constant in elements:
                yield [*elements, (p, -sign, self.sub(s, constant))]
            for half in self.halves(s):
                yield [*elements, (0, 0, half)]
        yield from self._fixings(elements, s)
        if len(elements) + 2 <= size:
            yield [*elements, (fresh, 1, 0), (fresh, -1, s)]

    def _fixings(self, elements: list[_Element], s: int) -> Iterator[list[_Element]]:
        """Values of a parameter for which s becomes an element or a sum of two."""
        values: set[tuple[int, int]] = set()
        for i, (p, sign, constant) in enumerate(elements):
            if p:
                rest = self.sub(s, constant)
                values.add((p, rest if sign > 0 else self.sub(0, rest)))
            for q, other, c in elements[i:]:
                rest = self.sub(self.sub(s, constant), c)
                if p == q and p and sign == other:
                    values.update((p, t if sign > 0 else self.sub(0, t)) for t in self.halves(rest))
                elif bool(p) != bool(q):
                    name, direction = (p, sign) if p else (q, other)
                    values.add((name, rest if direction > 0 else self.sub(0, rest)))
                elif p != q:
                    # sign t_p + other t_q = rest: t_q = other (rest - sign t_p)
                    yield [
                        self._link(e, q, p, -other * sign, rest if other > 0 else self.sub(0, rest))
                        for e in elements
                    ]
        for name, value in sorted(values):
            yield [(0, 0, self.place(d, value, c)) if p == name else (p, d, c) for p, d, c in elements]

    def _link(self, element: _Element, old: int, new: int, direction: int, constant: int) -> _Element:
        """Puts direction * new + constant in the place of a parameter."""
        p, sign, c = element
        if p != old:
            return element
        return (new, sign * direction, self.place(sign, constant, c))


def smallest_basis(group: AutomorphismGroup, targets: Iterable[Automorphism], seconds: float = 60.0) -> Basis:
    """The fewest keys that make every target with one or two hops.

    Sizes are tried from the counting bound m + m (m + 1) / 2 >= number of targets up; the first that
    succeeds is proven smallest. When the time is over, what is known is returned: the targets themselves,
    with the bound reached so far.

    Args:
        group: automorphisms of the ring.
        targets: what is needed; the identity is left out.
        seconds: for how long to search.
    """
    identity = Automorphism(0)
    wanted = sorted(set(targets) - {identity})
    codes = [2 * a.step + int(a.conjugate) for a in wanted]
    search = _Search(group, codes, monotonic() + seconds)
    size = 0
    while size + size * (size + 1) // 2 < len(wanted):
        size += 1
    try:
        while True:
            found = search.exists(size)
            if found is not None:
                return Basis(tuple(Automorphism(code >> 1, bool(code & 1)) for code in found), size)
            size += 1
    except SearchTimeoutError:
        return Basis(tuple(wanted), size)
