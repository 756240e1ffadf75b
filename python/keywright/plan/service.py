"""Serving a group from a given set of keys.

A group of one automorphism is served by its own key, by the fastest pair, or by the fewest hops if there is
no pair. In a larger group every automorphism that has a key is one hop from the ciphertext; the others are
added one after the other, each by the cheapest hop from a result that is there or could be had with one more
hop, or else by the fewest hops from the ciphertext.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .chain import Shape
from .cost import CostModel, Form, SwitchCost
from .galois import Automorphism, AutomorphismGroup
from .key_plan import IDENTITY, Hop, PlannedKey, tree_seconds
from .program import Group


@dataclass(frozen=True)
class Service:
    """How a group is served.

    Attributes:
        seconds: predicted time, of one occurrence.
        hops: the tree.
    """

    seconds: float
    hops: tuple[Hop, ...]


class KeySet:
    """Keys by automorphism, with the fastest one for each level."""

    def __init__(
        self,
        group: AutomorphismGroup,
        model: CostModel,
        keys: Iterable[PlannedKey] = (),
        *,
        max_hops: int = 2,
    ) -> None:
        """A set of keys.

        Args:
            group: what hops add up in.
            model: predicts times.
            keys: the keys.
            max_hops: most hops of a target, from 1 to 4.
        """
        self.group = group
        self.model = model
        self.max_hops = max_hops
        self._sums: dict[int, dict[Automorphism, tuple[Automorphism, Automorphism]]] = {}
        self._keys: dict[Automorphism | None, dict[PlannedKey, None]] = {}
        self._fastest: dict[int, dict[Automorphism | None, tuple[PlannedKey, SwitchCost]]] = {}
        for key in keys:
            self.add(key)

    def __iter__(self) -> Iterator[PlannedKey]:
        """All keys."""
        return (key for keys in self._keys.values() for key in keys)

    def __contains__(self, key: PlannedKey) -> bool:
        """Whether a key is there."""
        return key in self._keys.get(key.automorphism, ())

    def automorphisms(self) -> Iterable[Automorphism | None]:
        """What there is a key of; None for relinearisation."""
        return self._keys.keys()

    def add(self, key: PlannedKey) -> None:
        """Adds a key."""
        self._keys.setdefault(key.automorphism, {})[key] = None
        self._forget(key)

    def remove(self, key: PlannedKey) -> None:
        """Takes a key away."""
        del self._keys[key.automorphism][key]
        if not self._keys[key.automorphism]:
            del self._keys[key.automorphism]
        self._forget(key)

    def best(self, automorphism: Automorphism | None, level: int) -> tuple[PlannedKey, SwitchCost] | None:
        """The fastest key of an automorphism at a level, alone; None if there is none."""
        return self._usable(level).get(automorphism)

    def _usable(self, level: int) -> dict[Automorphism | None, tuple[PlannedKey, SwitchCost]]:
        """The fastest key of everything that has one for a level."""
        if level not in self._fastest:
            found = ((automorphism, self._find(automorphism, level)) for automorphism in self._keys)
            self._fastest[level] = {a: entry for a, entry in found if entry is not None}
        return self._fastest[level]

    def _find(self, automorphism: Automorphism | None, level: int) -> tuple[PlannedKey, SwitchCost] | None:
        found = [(key, self.model.switch(key.shape, level)) for key in self._keys.get(automorphism, ())]
        usable = [(key, cost) for key, cost in found if cost is not None]
        return min(usable, key=lambda entry: entry[1].alone, default=None)

    def _forget(self, key: PlannedKey) -> None:
        for level, fastest in self._fastest.items():
            if level <= key.shape.level:
                found = self._find(key.automorphism, level)
                if found is None:
                    fastest.pop(key.automorphism, None)
                else:
                    fastest[key.automorphism] = found
                self._sums.pop(level, None)

    def serve(self, group: Group) -> Service | None:
        """Serves a group; None if a target cannot be had."""
        if len(group.targets) == 1:
            return self._single(group.targets[0], group.level, group.form)
        hops: dict[Automorphism, Hop] = {}
        depths: dict[Automorphism, int] = {}
        decomposed: set[tuple[Automorphism, Shape]] = set()
        missing = []
        for target in group.targets:
            found = self.best(target, group.level)
            if found is None:
                missing.append(target)
            else:
                hops[target] = Hop(IDENTITY, target, found[0])
                depths[target] = 1
                decomposed.add((IDENTITY, found[0].shape))
        for target in missing:
            if target in hops:  # on the way to one before
                continue
            new = self._join(target, group, hops, depths, decomposed)
            if new is None:
                return None
            for hop in new:
                hops[hop.child] = hop
                depths[hop.child] = depths.get(hop.parent, 0) + 1
                decomposed.add((hop.parent, hop.key.shape))
        tree = tuple(hops[node] for node in sorted(hops, key=lambda node: (depths[node], node)))
        return Service(tree_seconds(self.model, group.level, tree, group.form), tree)

    def _single(self, target: Automorphism, level: int, form: Form) -> Service | None:
        direct = self.best(target, level)
        if direct is not None:
            seconds = direct[1].shared + direct[1].of_form(form)
            return Service(seconds, (Hop(IDENTITY, target, direct[0]),))
        if self.max_hops == 1:
            return None
        least, middle = float("inf"), IDENTITY
        usable, subtract = self._usable(level), self.group.subtract
        for between, first in usable.items():
            if between is not None:
                second = usable.get(subtract(target, between))
                if second is not None and (first[1].alone + second[1].alone, between) < (least, middle):
                    least, middle = first[1].alone + second[1].alone, between
        route = self._longer(target, level) if middle == IDENTITY else [middle, subtract(target, middle)]
        return None if route is None else self._along(route, level, form)

    def _along(self, route: Iterable[Automorphism], level: int, form: Form) -> Service | None:
        place, hops = IDENTITY, []
        for step in route:
            found = self.best(step, level)
            if found is None:
                return None
            child = self.group.add(place, step)
            hops.append(Hop(place, child, found[0]))
            place = child
        return Service(tree_seconds(self.model, level, hops, form), tuple(hops))

    def _longer(self, target: Automorphism, level: int) -> list[Automorphism] | None:
        """Three or four automorphisms with keys that sum to a target, as far as the number of hops allows."""
        pairs = self._pairs(level)
        if self.max_hops >= 3:
            for first in sorted(a for a in self._usable(level) if a is not None):
                rest = pairs.get(self.group.subtract(target, first))
                if rest is not None:
                    return [first, *rest]
        if self.max_hops >= 4:
            for total, first_pair in pairs.items():
                rest = pairs.get(self.group.subtract(target, total))
                if rest is not None:
                    return [*first_pair, *rest]
        return None

    def _pairs(self, level: int) -> dict[Automorphism, tuple[Automorphism, Automorphism]]:
        """Sums of two automorphisms with keys."""
        if level not in self._sums:
            keyed = sorted(a for a in self._usable(level) if a is not None)
            add = self.group.add
            self._sums[level] = {add(a, b): (a, b) for i, a in enumerate(keyed) for b in keyed[i:]}
        return self._sums[level]

    def _join(
        self,
        target: Automorphism,
        group: Group,
        hops: dict[Automorphism, Hop],
        depths: dict[Automorphism, int],
        decomposed: set[tuple[Automorphism, Shape]],
    ) -> list[Hop] | None:
        """The cheapest hops that bring in one more target."""
        best: tuple[float, int, Automorphism] | None = None
        chosen: list[Hop] | None = None
        level, form = group.level, group.form
        usable, subtract = self._usable(level), self.group.subtract
        # What comes before the last hop is the target less something that has a key.
        for last, second in usable.items():
            if last is None:
                continue
            between = subtract(target, last)
            if depths.get(between, 1) >= self.max_hops:
                continue
            seconds = second[1].own if form == "giant" else second[1].of_form(form)
            if (between, second[0].shape) not in decomposed:
                seconds += second[1].shared
            new = [Hop(between, target, second[0])]
            if between not in hops:
                first = usable.get(between)
                if first is None:
                    continue
                seconds += first[1].own
                if (IDENTITY, first[0].shape) not in decomposed:
                    seconds += first[1].shared
                new.insert(0, Hop(IDENTITY, between, first[0]))
            if best is None or (seconds, len(new), between) < best:
                best, chosen = (seconds, len(new), between), new
        if chosen is None:
            route = self._longer(target, level)
            service = None if route is None else self._along(route, level, form)
            # A result that is there already at a greater depth would make the route longer than allowed.
            if service is not None and not any(depths.get(hop.child, 1) > 1 for hop in service.hops[:-1]):
                chosen = [hop for hop in service.hops if hop.child not in hops]
        return chosen
