"""Enumerates every plan of a small workload.

These are all sets of keys of the needed automorphisms, including several of one automorphism, and all trees
of hops.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product

from keywright.plan import CostModel, Workload
from keywright.plan.keys.key_plan import IDENTITY, Hop, PlannedKey, tree_seconds
from keywright.plan.ring.chain import shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.workload import Group

INFINITY = float("inf")
Ways = Mapping[Automorphism, list[tuple[Hop, ...]]]


class EveryPlan:
    """Bytes and least seconds of every set of keys of a workload."""

    def __init__(self, workload: Workload, model: CostModel, hops: int) -> None:
        """Enumerate plans with at most so many hops for a target."""
        self._workload, self._model, self._hops = workload, model, hops
        chain = workload.chain
        automorphisms: list[Automorphism | None] = [*workload.highest_levels]
        if workload.relinearizations:
            automorphisms.append(None)
        self.keys = sorted(
            (
                PlannedKey(automorphism, shape)
                for automorphism in automorphisms
                for level in range(chain.max_level + 1)
                for shape in shapes(chain, level)
            ),
            key=lambda key: key.shape.stored_bytes,
        )
        self._group_seconds = cache(self._seconds_of_group)

    def within(self, stored_bytes: float) -> Iterator[tuple[int, float]]:
        """Yield bytes and seconds of every set of at most so many bytes that serves the workload."""
        chosen: list[PlannedKey] = []

        def further(place: int, stored: int) -> Iterator[tuple[int, float]]:
            seconds = self.seconds(chosen)
            if seconds < INFINITY:
                yield stored, seconds
            for index in range(place, len(self.keys)):
                more = stored + self.keys[index].shape.stored_bytes
                if more > stored_bytes:
                    break
                chosen.append(self.keys[index])
                yield from further(index + 1, more)
                chosen.pop()

        return further(0, 0)

    def seconds(self, keys: Sequence[PlannedKey]) -> float:
        """Return the least time with these keys."""
        total = 0.0
        for index, group in enumerate(self._workload.groups):
            usable = frozenset(
                key for key in keys if key.automorphism is not None and key.shape.level >= group.level
            )
            total += group.count * self._group_seconds(index, usable)
            if total == INFINITY:
                return total
        for use in self._workload.relinearizations:
            costs = [self._model.switch(key.shape, use.level) for key in keys if key.automorphism is None]
            total += use.count * min((cost.alone for cost in costs if cost is not None), default=INFINITY)
        return total

    def _seconds_of_group(self, index: int, usable: frozenset[PlannedKey]) -> float:
        group = self._workload.groups[index]
        ways = self._ways(usable)
        return least_seconds(self._model, group, ways)

    def _ways(self, usable: frozenset[PlannedKey]) -> Ways:
        """Return every way of at most so many hops to everything."""
        add = self._workload.automorphisms.add
        out: dict[Automorphism, list[tuple[Hop, ...]]] = {}
        ways: list[tuple[Automorphism, tuple[Hop, ...]]] = [(IDENTITY, ())]
        for _ in range(self._hops):
            longer = []
            for place, way in ways:
                for key in usable:
                    assert key.automorphism is not None
                    child = add(place, key.automorphism)
                    longer.append((child, (*way, Hop(place, child, key))))
            ways = longer
            for place, way in ways:
                out.setdefault(place, []).append(way)
        return out


def least_seconds(model: CostModel, group: Group, ways: Ways) -> float:
    """Return the least time of one ciphertext of a group over all trees."""
    least = INFINITY
    for chosen in product(*(ways.get(target, []) for target in group.targets)):
        hops = {hop.child: hop for way in chosen for hop in way}
        if len(hops) == len({hop for way in chosen for hop in way}):
            least = min(least, tree_seconds(model, group.level, tuple(hops.values()), group.form))
    return least
