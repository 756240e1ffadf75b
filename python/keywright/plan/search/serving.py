"""Serves a group from a given set of keys.

A group of one automorphism is served by the cheapest sum of automorphisms with keys. In a larger group every
automorphism with a key is one hop from the ciphertext. The others are added one after the other, each by the
cheapest hop from a result that exists or takes one more hop, or else by the cheapest sum.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from keywright.plan.cost.model import CostModel, Form, SwitchCost
from keywright.plan.keys.key_plan import Digits, Hop, PlannedKey, digits_of
from keywright.plan.ring.galois import Automorphism, AutomorphismGroup
from keywright.plan.workload.workload import Group

from .cheapest_routes import CheapestRoutes, automorphism_of, code_of

INFINITY = float("inf")


@dataclass(frozen=True)
class KeyAtLevel:
    """A key at a level.

    Attributes:
        key: the key.
        cost: of a switch.
        digits: keys with equal digits share decompositions.
    """

    key: PlannedKey
    cost: SwitchCost
    digits: Digits


@dataclass(frozen=True, slots=True)
class CodedHop:
    """A hop of a serving, with automorphisms as numbers (`routes`).

    Attributes:
        parent, child: as in `Hop`.
        usable: its key, at the level.
    """

    parent: int
    child: int
    usable: KeyAtLevel


@dataclass(frozen=True)
class Serving:
    """How a group is served.

    Attributes:
        seconds: predicted time of one occurrence.
        coded_hops: the tree, every parent before its children.
    """

    seconds: float
    coded_hops: tuple[CodedHop, ...]

    @cached_property
    def keys(self) -> frozenset[PlannedKey]:
        return frozenset(hop.usable.key for hop in self.coded_hops)

    @cached_property
    def variance(self) -> float:
        """Return the variance of its noisiest automorphism, in units of the rounding of one key switch."""
        sums = {0: 0.0}
        for hop in self.coded_hops:
            sums[hop.child] = sums[hop.parent] + 1.0 + hop.usable.cost.noise
        return max(1.0, *sums.values())

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Return the tree."""
        return tuple(
            Hop(automorphism_of(hop.parent), automorphism_of(hop.child), hop.usable.key)
            for hop in self.coded_hops
        )


class _Level:
    """The fastest key for a level of each automorphism that has one."""

    def __init__(self, group: AutomorphismGroup, max_hops: int) -> None:
        self.usable: dict[int, KeyAtLevel] = {}
        self.routes = CheapestRoutes(group, max_hops)

    def set(self, code: int, usable: KeyAtLevel | None) -> None:
        if usable is None:
            if self.usable.pop(code, None) is not None:
                self.routes.set(code, INFINITY)
        elif self.usable.get(code) is not usable:
            self.usable[code] = usable
            self.routes.set(code, usable.cost.alone)


class CandidateKeys:
    """Keys by automorphism, with the fastest one for each level."""

    def __init__(
        self,
        group: AutomorphismGroup,
        model: CostModel,
        keys: Iterable[PlannedKey] = (),
        *,
        max_hops: int = 2,
    ) -> None:
        """Create a set of keys.

        Args:
            group: the group in which hops add up.
            model: predicts times.
            keys: the keys.
            max_hops: maximum hops of a target, from 1 to 4.
        """
        self.group = group
        self.model = model
        self.max_hops = max_hops
        self._keys: dict[Automorphism | None, dict[PlannedKey, None]] = {}
        self._levels: dict[int, _Level] = {}
        self._known: dict[tuple[PlannedKey, int], KeyAtLevel | None] = {}
        for key in keys:
            self.add(key)

    def __iter__(self) -> Iterator[PlannedKey]:
        """Iterate over all keys."""
        return (key for keys in self._keys.values() for key in keys)

    def __contains__(self, key: PlannedKey) -> bool:
        """Whether a key is in the set."""
        return key in self._keys.get(key.automorphism, ())

    def add(self, key: PlannedKey) -> None:
        self._keys.setdefault(key.automorphism, {})[key] = None
        self._renew(key)

    def remove(self, key: PlannedKey) -> None:
        del self._keys[key.automorphism][key]
        if not self._keys[key.automorphism]:
            del self._keys[key.automorphism]
        self._renew(key)

    def best(self, automorphism: Automorphism | None, level: int) -> tuple[PlannedKey, SwitchCost] | None:
        """Return the fastest key of an automorphism at a level, alone; None if there is none."""
        result = self._find(automorphism, level)
        return None if result is None else (result.key, result.cost)

    def routes(self, level: int) -> CheapestRoutes:
        """Return the automorphisms that have a key for a level, with the seconds of a switch alone."""
        return self._level(level).routes

    def _level(self, level: int) -> _Level:
        result = self._levels.get(level)
        if result is None:
            result = self._levels[level] = _Level(self.group, self.max_hops)
            for automorphism in self._keys:
                if automorphism is not None:
                    result.set(code_of(automorphism), self._find(automorphism, level))
        return result

    def _find(self, automorphism: Automorphism | None, level: int) -> KeyAtLevel | None:
        results = [self.use(key, level) for key in self._keys.get(automorphism, ())]
        usable = [use for use in results if use is not None]
        # Among equally fast keys choose the same one, independent of the order in which they were added.
        return min(usable, key=_speed, default=None)

    def use(self, key: PlannedKey, level: int) -> KeyAtLevel | None:
        """Return a key at a level; None above its own."""
        place = (key, level)
        if place not in self._known:
            cost = self.model.switch(key.shape, level)
            self._known[place] = None if cost is None else KeyAtLevel(key, cost, digits_of(key.shape, level))
        return self._known[place]

    def _renew(self, key: PlannedKey) -> None:
        if key.automorphism is not None:
            code = code_of(key.automorphism)
            for level, known in self._levels.items():
                if level <= key.shape.level:
                    known.set(code, self._find(key.automorphism, level))

    def serve(self, group: Group) -> Serving | None:
        """Serve a group; None if a target cannot be made."""
        level = self._level(group.level)
        if len(group.targets) == 1:
            return _along(level.usable, level.routes.cheapest(code_of(group.targets[0])), level, group.form)
        tree = _Tree(level, group.form, self.max_hops)
        targets = [code_of(target) for target in group.targets]
        missing = []
        for target in targets:
            usable = level.usable.get(target)
            if usable is None:
                missing.append(target)
            else:
                tree.add(CodedHop(0, target, usable))
        for target in missing:
            if target not in tree.depths and not tree.join(target):
                return None
        return tree.serving()


def _along(usable: dict[int, KeyAtLevel], route: Sequence[int], level: _Level, form: Form) -> Serving | None:
    """Serve one automorphism by a sum."""
    if not route:
        return None
    place, hops = 0, []
    for part in route:
        child = level.routes.add(place, part)
        hops.append(CodedHop(place, child, usable[part]))
        place = child
    return Serving(coded_seconds(hops, form), tuple(hops))


class _Tree:
    """The hops of a group of several automorphisms."""

    def __init__(self, level: _Level, form: Form, max_hops: int) -> None:
        self._level, self._form, self._max_hops = level, form, max_hops
        self._hops: dict[int, CodedHop] = {}
        self.depths: dict[int, int] = {}
        self._decomposed: set[tuple[int, Digits]] = set()

    def add(self, hop: CodedHop) -> None:
        self._hops[hop.child] = hop
        self.depths[hop.child] = self.depths.get(hop.parent, 0) + 1
        self._decomposed.add((hop.parent, hop.usable.digits))

    def join(self, target: int) -> bool:
        """Add one more target by the cheapest hops; False if there are none."""
        level, usable, depths = self._level, self._level.usable, self.depths
        rest, decomposed = level.routes.rest, self._decomposed
        # Seconds, hops and the result between: the least of equal ones is taken.
        best = (INFINITY, 0, 0)
        for between, depth in depths.items():
            second = usable.get(rest(target, between)) if depth < self._max_hops else None
            if second is not None:
                best = min(best, (self._last(between, second), 1, between))
        for between in level.routes.halves(target) if self._max_hops > 1 else ():
            if between not in depths:
                first = usable[between]
                seconds = self._last(between, usable[rest(target, between)]) + first.cost.own
                if (0, first.digits) not in decomposed:
                    seconds += first.cost.shared
                best = min(best, (seconds, 2, between))
        _, count, between = best
        if count:
            chosen = [CodedHop(between, target, usable[rest(target, between)])]
            if count == 2:
                chosen.insert(0, CodedHop(0, between, usable[between]))
        else:
            serving = _along(usable, level.routes.cheapest(target), level, self._form)
            if serving is None:
                return False
            chosen = list(serving.coded_hops)
        for hop in chosen:
            if hop.child not in depths:
                self.add(hop)
            elif depths[hop.child] > depths.get(hop.parent, 0) + 1:
                # A result with more hops would make the sum too long.
                self.add(hop)
                self._measure()
        return True

    def _measure(self) -> None:
        """Recompute depths, after a result has come nearer to the ciphertext."""
        for child in self.depths:
            depth, place = 0, child
            while place != 0:
                depth, place = depth + 1, self._hops[place].parent
            self.depths[child] = depth

    def _last(self, between: int, usable: KeyAtLevel) -> float:
        seconds = usable.cost.of_form(self._form) if self._form != "giant" else usable.cost.own
        return seconds if (between, usable.digits) in self._decomposed else seconds + usable.cost.shared

    def serving(self) -> Serving:
        order = sorted(self._hops, key=lambda child: (self.depths[child], child))
        hops = tuple(self._hops[child] for child in order)
        return Serving(coded_seconds(hops, self._form), hops)


def coded_seconds(hops: Sequence[CodedHop], form: Form) -> float:
    """Return what `tree_seconds` returns for the same hops."""
    again = {hop.parent for hop in hops}
    shared: dict[tuple[int, Digits], float] = {}
    own = 0.0
    for hop in hops:
        cost = hop.usable.cost
        last = hop.child not in again and (form != "giant" or hop.parent == 0)
        own += cost.of_form(form) if last else cost.own
        shared[hop.parent, hop.usable.digits] = cost.shared
    return own + sum(shared.values())


def _speed(usable: KeyAtLevel) -> tuple[float, int, int, int]:
    shape = usable.key.shape
    return usable.cost.alone, shape.level, shape.alpha, shape.special
