"""Decides whether so many keys make a set of targets in two hops, by a complete search.

A set S of keys *covers* a target that is in S or the sum of two of its elements. The *loss* of an element is
the number of targets that are covered only with it. A target counts for at most two elements, so some element
has a loss of at most 2 cover(S) / |S|, rounded down. Remove the element of least loss repeatedly, among ties
the one with the largest code: m keys that cover everything have subsets of every size k that cover at least
`need[k]`. The search reverses this, from the empty set up. Each new element increases the cover to at least
`need[k]` and has the least loss of all. Sets of a few elements seldom cover that much, so there are few of
them.

A new element is a target, half a target, or a target minus an earlier element. Otherwise it makes no target
before a later element is added, and it is a free parameter p. Then elements are p + c and t - c - p, and
parameters are fixed when a new element makes further targets. In this way, the search covers the whole group
without enumerating it.
"""

from collections.abc import Iterator, Sequence
from time import monotonic

from .group_codes import GroupCodes

# Parameter (0: none), sign, constant: sign * parameter + constant.
Element = tuple[int, int, int]


class SearchTimeoutError(Exception):
    """The search ran out of time."""


class BasisSearch:
    """Decides whether there are `size` keys that cover all targets."""

    def __init__(self, codes: GroupCodes, targets: Sequence[int], size: int, deadline: float) -> None:
        """Set up a search that ends by the deadline.

        Args:
            codes: the group.
            targets: different codes, none of them 0.
            size: number of keys, at least one.
            deadline: time of `monotonic` at which to give up.
        """
        self.codes, self.targets, self.size, self.deadline = codes, list(targets), size, deadline
        self.index = {target: i for i, target in enumerate(self.targets)}
        self.halves = [codes.halves(target) for target in self.targets]
        self.need = [0] * size + [len(self.targets)]
        for k in range(size, 0, -1):
            self.need[k - 1] = max(0, self.need[k] - 2 * self.need[k] // k)
        self.gains: dict[tuple[int, int, tuple[int, ...]], frozenset[int]] = {}
        self.visited = 0
        self.seen: set[object] = set()

    def run(self) -> list[int] | None:
        """Return at most `size` keys that cover all targets, or None if there are none.

        Raises:
            SearchTimeoutError: the deadline has passed.
        """
        if any(need > k * (k + 3) // 2 for k, need in enumerate(self.need)):
            return None
        return self._grow((), [], [0] * len(self.targets), 0) if self._gains(0, 0, ()) else None

    def _visit(self) -> None:
        self.visited += 1
        if self.visited % 256 == 0 and monotonic() > self.deadline:
            raise SearchTimeoutError

    def _gains(self, size: int, covered: int, losses: Sequence[int]) -> frozenset[int]:
        """Return how many more targets the next element may cover, if further elements can complete the set.

        An element that adds g to the cover has a loss of g and adds 1 to the losses of at most g elements
        before it. Its loss is the least, so theirs must be at least g. Elements below g must be raised by the
        gains up to then, by each new element at most 1 for each older one.
        """
        if size == self.size:
            return frozenset((0,))
        key = size, covered, tuple(sorted(losses))
        gains = self.gains.get(key)
        if gains is None:
            gains = frozenset(g for g in range(size + 3) if self._can_follow(key[2], size, covered, (g,)))
            self.gains[key] = gains
        return gains

    def _can_follow(self, losses: tuple[int, ...], size: int, covered: int, gains: tuple[int, ...]) -> bool:
        """Whether elements with these gains, and others after them, can complete the set."""
        size, covered, gain = size + 1, covered + gains[-1], gains[-1]
        if covered < self.need[size] or gain * size > 2 * covered or covered > len(self.targets):
            return False
        short = 0
        for age, loss in enumerate((*gains[-2::-1], *reversed(losses)), 1):
            if loss < gain:
                if gain - loss > min(age, len(gains)):
                    return False
                short += gain - loss
        if short > sum(gains):
            return False
        if size == self.size:
            return covered == len(self.targets)
        return any(self._can_follow(losses, size, covered, (*gains, g)) for g in range(size + 3))

    def _grow(
        self, elements: tuple[int, ...], losses: Sequence[int], sole: list[int], covered: int
    ) -> list[int] | None:
        """Extend a set without parameters.

        Args:
            elements: the set.
            losses: of each of them.
            sole: for each target the elements, as bits, that are in all of its sums; 0 if not covered.
            covered: the targets, as bits.
        """
        self._visit()
        size = len(elements)
        gains = self._gains(size, covered.bit_count(), losses)
        least = min(gains)
        mask, get = self.codes.mask, self.index.get
        for new in self._candidates(elements, losses, covered, least):
            # Targets that the new element makes, each in one way: with another element, or alone.
            hits = [(i, j) for j, s in enumerate(elements) if (i := get((new + s) & mask)) is not None]
            hits += [(i, size) for outcome in (new, (new + new) & mask) if (i := get(outcome)) is not None]
            gain = sum(not covered >> i & 1 for i, _ in hits)
            if gain not in gains:
                continue
            if size + 1 == self.size:
                return [*elements, new]
            grown, after, common, cover = (*elements, new), [*losses, gain], sole.copy(), covered
            for i, j in hits:
                if covered >> i & 1:
                    gone = common[i] & ~(1 << j)
                    common[i] ^= gone
                    while gone:
                        after[gone.bit_length() - 1] -= 1
                        gone ^= 1 << gone.bit_length() - 1
                else:
                    common[i] = 1 << j | 1 << size
                    cover |= 1 << i
                    if j < size:
                        after[j] += 1
            if self._is_next(grown, after) and self._gains(size + 1, cover.bit_count(), after):
                result = self._grow(grown, after, common, cover)
                if result is not None:
                    return result
        if least == 0:
            free = [*((0, 0, c) for c in elements), (1, 1, 0)]
            return self._enter(free, [*losses, 0], sole, covered)
        return None

    def _candidates(
        self, elements: tuple[int, ...], losses: Sequence[int], covered: int, least: int
    ) -> set[int]:
        """Return new elements that may make `least` uncovered targets."""
        guard, mask, size = self.codes.guard, self.codes.mask, len(elements)
        left = [i for i in range(len(self.targets)) if not covered >> i & 1]
        targets = [self.targets[i] | guard for i in left]
        alone = {self.targets[i] for i in left}.union(*(self.halves[i] for i in left))
        reach = [{(target - s) & mask for target in targets} for s in elements]
        # An element with too small a loss must make one of the targets together with the new one.
        gain = max(least, 2)
        lacking = [outcome for outcome, loss in zip(reach, losses, strict=True) if loss < gain]
        result = set.intersection(*lacking) if lacking else alone.union(*reach)
        if least < 2:
            # Elements that make one target, alone or with one element.
            for j, outcome in enumerate((*reach, alone)):
                after = [*losses, 1]
                after[j] += j < size
                if min(after) == 1 and self._gains(size + 1, covered.bit_count() + 1, after):
                    result |= outcome
        return result.difference((0, *elements))

    @staticmethod
    def _is_next(elements: Sequence[int], losses: Sequence[int]) -> bool:
        """Whether the last element would be the first to be removed."""
        loss, code = losses[-1], elements[-1]
        return all(
            other > loss or (other == loss and s <= code) for s, other in zip(elements, losses, strict=True)
        )

    def _settle(self, elements: list[Element], tried: set[tuple[Element, ...]]) -> list[int] | None:
        """Continue from a set to which the last element was added: as it is, and with parameters fixed such
        that the last element makes further targets.

        Losses smaller than that of the last element must grow, so the first of these is fixed first.
        """
        if tuple(elements) in tried:
            return None
        tried.add(tuple(elements))
        self._visit()
        size = len(elements)
        sole = self._sole(elements)
        losses = [sum(common >> j & 1 for common in sole) for j in range(size)]
        covered = sum(1 << i for i, common in enumerate(sole) if common)
        gain = max(losses[-1], self.need[size] - covered.bit_count() + losses[-1])
        lacking = next((j for j, loss in enumerate(losses) if loss < gain), size)
        if lacking == size:
            result = self._enter(elements, losses, sole, covered)
            if result is not None:
                return result
        left = [target for target, common in zip(self.targets, sole, strict=True) if not common]
        for fixed in self._fixings(elements, left, lacking):
            result = self._settle(fixed, tried)
            if result is not None:
                return result
        return None

    def _enter(
        self, elements: list[Element], losses: Sequence[int], sole: list[int], covered: int
    ) -> list[int] | None:
        """Continue from a set that may have parameters."""
        size = len(elements)
        if len(set(elements)) < size or (0, 0, 0) in elements:
            return None
        if size == self.size:
            return sorted({constant for _, _, constant in elements} - {0})
        key = self._canonical(elements)
        if key in self.seen or not (gains := self._gains(size, covered.bit_count(), losses)):
            return None
        self.seen.add(key)
        if all(p == 0 for p, _, _ in elements):
            return self._grow(tuple(c for _, _, c in elements), losses, sole, covered)
        least = min(gains)
        lacking = [element for element, loss in zip(elements, losses, strict=True) if loss < least]
        new: set[Element] = set()
        for i, target in enumerate(self.targets):
            if not sole[i]:
                new.update(
                    (p, -sign, self.codes.subtract(target, c)) for p, sign, c in lacking[:1] or elements
                )
                if not lacking:
                    new.update((0, 0, c) for c in (target, *self.halves[i]))
        tried: set[tuple[Element, ...]] = set()
        for element in sorted(new):
            result = self._settle([*elements, element], tried)
            if result is not None:
                return result
        if least == 0:
            free = [*elements, (1 + max(p for p, _, _ in elements), 1, 0)]
            return self._enter(free, [*losses, 0], sole, covered)
        return None

    def _sole(self, elements: Sequence[Element]) -> list[int]:
        """For each target, return the elements, as bits, that are in all sums that make it for all
        parameters."""
        sole = [0] * len(self.targets)
        for j, (p, sign, constant) in enumerate(elements):
            result = [(constant, 1 << j)] if p == 0 else []
            result += [
                (self.codes.add(constant, c), 1 << j | 1 << k)
                for k, (q, other, c) in enumerate(elements[j:], j)
                if p == q and (p == 0 or sign != other)
            ]
            for code, members in result:
                if (i := self.index.get(code)) is not None:
                    sole[i] = sole[i] & members if sole[i] else members
        return sole

    def _canonical(self, elements: Sequence[Element]) -> object:
        """Return a key that is equal for sets that differ in the order of elements and in names, signs and
        origins of parameters."""
        families: dict[int, list[tuple[int, int]]] = {}
        for p, sign, constant in elements:
            families.setdefault(p, []).append((sign, constant))
        fixed = tuple(sorted(families.pop(0, [])))
        codes = self.codes
        free = [
            min(
                # The parameter is the element with this sign and constant.
                tuple(
                    sorted((s * sign, codes.subtract(c, codes.signed(s * sign, constant))) for s, c in family)
                )
                for sign, constant in family
            )
            for family in families.values()
        ]
        return fixed, tuple(sorted(free))

    def _fixings(
        self, elements: list[Element], targets: Sequence[int], partner: int
    ) -> Iterator[list[Element]]:
        """Yield the set with a parameter fixed such that the last element makes one of the targets.

        It does so with the element of index `partner`, or in any way if that is not the index of another
        element.
        """
        codes, (p, sign, constant) = self.codes, elements[-1]
        partners = elements[partner : partner + 1] if partner < len(elements) - 1 else elements
        for target in targets:
            first = codes.subtract(target, constant)
            if p and partners is elements:
                yield self._replace(elements, p, 0, 0, codes.signed(sign, first))
            for q, other, c in partners:
                rest = codes.subtract(first, c)
                if p == q:
                    if p and sign == other:
                        for half in codes.halves(rest):
                            yield self._replace(elements, p, 0, 0, codes.signed(sign, half))
                elif q and p:
                    # other * q = rest - sign * p
                    yield self._replace(elements, q, p, -other * sign, codes.signed(other, rest))
                else:
                    yield self._replace(elements, p or q, 0, 0, codes.signed(sign or other, rest))

    def _replace(self, elements: list[Element], old: int, new: int, sign: int, value: int) -> list[Element]:
        """Return the elements with sign * new + value for the parameter `old`."""
        return [
            (new, s * sign, self.codes.add(c, self.codes.signed(s, value))) if p == old else (p, s, c)
            for p, s, c in elements
        ]
