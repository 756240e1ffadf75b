"""The cheapest compositions of automorphisms from a few that have prices.

Automorphisms are numbers here, `2 step + conjugate`, so that many sums are array operations and every number
below N is an index into a table of all of them.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup

Floats: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
Codes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


def code_of(a: Automorphism) -> int:
    """Return the number of an automorphism."""
    return 2 * a.step + a.conjugate


def automorphism_of(code: int) -> Automorphism:
    """Return the automorphism of a number."""
    return Automorphism(code >> 1, bool(code & 1))


class CheapestRoutes:
    """Automorphisms with a price each, and the least cost of sums of up to four of them."""

    def __init__(self, group: AutomorphismGroup, max_hops: int) -> None:
        """Create a table without prices.

        Args:
            group: the group of the sums.
            max_hops: maximum terms of a sum, from 1 to 4.
        """
        self._mask = 2 * group.slots - 1
        self._max_hops = max_hops
        self.one: Floats = np.full(2 * group.slots, np.inf)
        """Price of every automorphism."""
        self._changed = True
        self._codes = self._steps = self._conjugates = np.empty(0, dtype=np.int64)
        self._prices: Floats = np.empty(0)
        self._least = np.inf
        self._two: Floats | None = None
        self._reached: Codes = np.empty(0, dtype=np.int64)

    def set(self, code: int, price: float) -> None:
        """Set the price of an automorphism; an infinite price removes it."""
        self.one[code] = price
        self._changed = True

    @property
    def codes(self) -> Codes:
        """Return the automorphisms that have a price, ascending."""
        self._refresh()
        return self._codes

    @property
    def two(self) -> tuple[Codes, Floats]:
        """Return the sums of one or two terms, ascending, and the least cost of every automorphism by
        them."""
        self._refresh()
        if self._two is None:
            left, right = np.triu_indices(len(self._codes))
            sums = self.sums(self._codes[left], self._codes[right])
            prices = self._prices[left] + self._prices[right]
            # Of several writes to one place the last one stays, the cheapest.
            order = np.argsort(-prices, kind="stable")
            table = np.full(len(self.one), np.inf)
            table[sums[order]] = prices[order]
            table[self._codes] = np.minimum(table[self._codes], self._prices)
            table[0] = np.inf
            self._two, self._reached = table, np.flatnonzero(table < np.inf)
        return self._reached, self._two

    def sums(self, a: Codes, b: Codes) -> Codes:
        """Add element by element."""
        return ((a & ~1) + (b & ~1)) & self._mask | ((a ^ b) & 1)

    def rests(self, targets: "Codes | int", parts: "Codes | int") -> Codes:
        """Return the remaining automorphisms after a part, element by element."""
        return np.asarray(((targets & ~1) - (parts & ~1)) & self._mask | ((parts ^ targets) & 1))

    def rest(self, target: int, part: int) -> int:
        """Return the same for one pair."""
        return ((target & ~1) - (part & ~1)) & self._mask | ((part ^ target) & 1)

    def add(self, a: int, b: int) -> int:
        """Return the composition."""
        return ((a & ~1) + (b & ~1)) & self._mask | ((a ^ b) & 1)

    def halves(self, target: int) -> Sequence[int]:
        """Return the first terms of all sums of two, ascending."""
        self._refresh()
        rests = ((target & ~1) - self._steps) & self._mask | (self._conjugates ^ (target & 1))
        results: list[int] = self._codes[self.one[rests] < np.inf].tolist()
        return results

    def cheapest(self, target: int) -> Sequence[int]:
        """Return the terms of the cheapest sum; among equals one with the fewest terms. Empty if there is
        none."""
        self._refresh()
        price, route = self.one[target], (target,)
        results: tuple[int, ...] = route if price < np.inf else ()
        if self._max_hops < 2 or price <= 2 * self._least or not len(self._codes):
            return results
        rests = self.rests(target, self._codes)
        totals = self._prices + self.one[rests]
        at = int(totals.argmin())
        if totals[at] < price:
            price, results = totals[at], (int(self._codes[at]), int(rests[at]))
        if self._max_hops < 3 or price <= 3 * self._least:
            return results
        reached, two = self.two
        totals = self._prices + two[rests]
        at = int(totals.argmin())
        if totals[at] < price:
            price, results = totals[at], (int(self._codes[at]), *self._pair(int(rests[at])))
        if self._max_hops < 4 or price <= 4 * self._least:
            return results
        rests = self.rests(target, reached)
        totals = two[reached] + two[rests]
        at = int(totals.argmin())
        if totals[at] < price:
            results = (*self._pair(int(reached[at])), *self._pair(int(rests[at])))
        return results

    def _pair(self, target: int) -> Sequence[int]:
        """Return the terms of the cheapest sum of at most two."""
        rests = self.rests(target, self._codes)
        totals = self._prices + self.one[rests]
        at = int(totals.argmin())
        if self.one[target] <= totals[at]:
            return (target,)
        return int(self._codes[at]), int(rests[at])

    def _refresh(self) -> None:
        if self._changed:
            self._codes = np.flatnonzero(self.one < np.inf)
            self._steps, self._conjugates = self._codes & ~1, self._codes & 1
            self._prices = self.one[self._codes]
            self._least = self._prices.min(initial=np.inf)
            self._two = None
            self._changed = False
