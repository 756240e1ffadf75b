"""Key sets from the fastest to the smallest, for programs that are too large for an exact solution.

Beginning with the fastest key for each use, the change that loses the least time for each byte saved is made
again and again: a key is taken away, its uses going to a key of a higher level or to two hops, or it is made
in a smaller shape. Every set on the way is a point of memory against time. A change is only evaluated again
when it comes to the front of the queue: changes become worse as keys go, with few exceptions.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .chain import Shape
from .cost import CostModel, Form
from .galois import Automorphism
from .key_plan import Hop, KeyPlan, PlannedKey
from .open_program import OpenProgram
from .optimal import candidate_shapes
from .program import Group, Program
from .service import KeySet, Service

INFINITY = float("inf")


@dataclass(frozen=True)
class FrontierPoint:
    """A key set on the way.

    Attributes:
        stored_bytes: bytes of its keys.
        seconds: predicted time of the program.
        selection: the fastest alternative of each choice with these keys.
        services: how each kind of group is served; None for one that only other alternatives have.
        relinearization: for each level that has relinearisations the key.
    """

    stored_bytes: int
    seconds: float
    selection: tuple[int, ...]
    services: tuple[Service | None, ...]
    relinearization: Mapping[int, PlannedKey]


Kind = tuple[int, tuple[Automorphism, ...], Form]
"""What groups that take as long have in common: level, targets and form."""


class _Part:
    """What is made in one of several ways: for each the kinds of groups, by index, and how often.

    Groups that are not open are the one way of a part of their own.
    """

    def __init__(self, ways: Sequence[Mapping[int, int]]) -> None:
        self.ways = [tuple(way.items()) for way in ways]

    def fastest(self, services: Sequence[Service | None]) -> tuple[float, int]:
        """Seconds of the fastest way, and which one it is; infinite if there is none."""
        best, picked = INFINITY, 0
        for index, way in enumerate(self.ways):
            total = 0.0
            for kind, count in way:
                service = services[kind]
                total += INFINITY if service is None else count * service.seconds
            if total < best:
                best, picked = total, index
        return best, picked


class FrontierSearch:
    """The state of one descent."""

    def __init__(
        self,
        program: Program | OpenProgram,
        model: CostModel,
        start: Sequence[PlannedKey] | None = None,
        *,
        max_hops: int = 2,
    ) -> None:
        """Begin with a key set.

        Args:
            program: what is planned.
            model: predicts times.
            start: keys; by default the fastest one for each automorphism and level of use, in any
                alternative.
            max_hops: most hops of a target, from 1 to 4.

        Raises:
            ValueError: keys that do not serve the program.
        """
        self.open = OpenProgram.of(program)
        every = self.open.every()
        self.model = model
        self._constant = every.ephemeral_seconds(model)
        self.relinearizations = [(use.level, use.count) for use in every.relinearizations]
        keys = list(start) if start is not None else fastest_keys(every, model)
        self.keys = KeySet(every.automorphisms, model, keys, max_hops=max_hops)
        self._kinds: dict[Kind, int] = {}
        self.groups: list[Group] = []
        self._parts = self._make_parts()
        self._parts_of: list[list[int]] = [[] for _ in self.groups]
        for index, part in enumerate(self._parts):
            for kind in sorted({kind for way in part.ways for kind, _ in way}):
                self._parts_of[kind].append(index)
        self.services: list[Service | None] = []
        self.users: defaultdict[PlannedKey, set[int]] = defaultdict(set)
        for index, group in enumerate(self.groups):
            service = self.keys.serve(group)
            self.services.append(service)
            for key in service.keys if service is not None else ():
                self.users[key].add(index)
        self._times = [part.fastest(self.services)[0] for part in self._parts]
        for part, time in zip(self._parts, self._times, strict=True):
            if time == INFINITY:
                group = self.groups[part.ways[0][0][0]]
                raise ValueError(f"{group.name}: the keys to begin with do not serve it")

    def _make_parts(self) -> list[_Part]:
        """The choices first, in their order, then every kind of group of the program by itself."""
        parts = [
            _Part(
                [self._counts(alternative.groups, len(choice.places)) for alternative in choice.alternatives]
            )
            for choice in self.open.choices
        ]
        counts = self._counts(self.open.program.groups, 1)
        return parts + [_Part([{kind: count}]) for kind, count in counts.items()]

    def _counts(self, groups: Sequence[Group], times: int) -> Mapping[int, int]:
        counts: Counter[int] = Counter()
        for group in groups:
            kind = (group.level, group.targets, group.form)
            if kind not in self._kinds:
                self._kinds[kind] = len(self.groups)
                self.groups.append(group)
            counts[self._kinds[kind]] += times * group.count
        return counts

    @property
    def stored_bytes(self) -> int:
        """Bytes of the present keys."""
        return sum(key.shape.stored_bytes for key in self.keys) + self.open.program.ephemeral_bytes

    @property
    def seconds(self) -> float:
        """Predicted time with the present keys."""
        return sum(self._times) + self._relinearization_seconds() + self._constant

    def _relinearization_seconds(self) -> float:
        total = 0.0
        for level, count in self.relinearizations:
            found = self.keys.best(None, level)
            total += INFINITY if found is None else count * found[1].alone
        return total

    def descend(self) -> list[FrontierPoint]:
        """Points from the start to a set that nothing can be taken from."""
        points = [self.point()]
        queue: list[tuple[float, int, PlannedKey, PlannedKey | None]] = []
        serial = 0
        for key in self.keys:
            for change in self._changes(key):
                heapq.heappush(queue, (0.0, serial, key, change))
                serial += 1
        while queue:
            _, _, key, change = heapq.heappop(queue)
            if key not in self.keys:
                continue
            rate = self._rate(key, change)
            if rate is None:
                continue
            if queue and rate > queue[0][0]:
                heapq.heappush(queue, (rate, serial, key, change))
                serial += 1
                continue
            self._apply(key, change)
            if change is not None:
                for further in self._changes(change):
                    heapq.heappush(queue, (0.0, serial, change, further))
                    serial += 1
            points.append(self.point())
        return points

    def point(self) -> FrontierPoint:
        """The present key set."""
        found = {level: self.keys.best(None, level) for level, _ in self.relinearizations}
        relinearization = {level: entry[0] for level, entry in found.items() if entry is not None}
        choices = self._parts[: len(self.open.choices)]
        selection = tuple(part.fastest(self.services)[1] for part in choices)
        return FrontierPoint(
            self.stored_bytes, self.seconds, selection, tuple(self.services), relinearization
        )

    def plan(self, name: str, point: FrontierPoint) -> KeyPlan:
        """The plan of a point of this search."""
        program = self.open.resolve(point.selection)
        # The engine makes the same automorphisms of ciphertexts of one level in the same way, whatever
        # their form.
        trees: dict[tuple[int, tuple[Automorphism, ...]], tuple[Hop, ...]] = {}
        hops = []
        for group in program.groups:
            service = point.services[self._kinds[group.level, group.targets, group.form]]
            tree = () if service is None else service.hops
            hops.append(trees.setdefault((group.level, group.targets), tree))
        plan = KeyPlan(name, program, tuple(hops), point.relinearization)
        plan.check()
        return plan

    def _changes(self, key: PlannedKey) -> list[PlannedKey | None]:
        smaller: list[PlannedKey | None] = [
            PlannedKey(key.automorphism, shape)
            for shape in candidate_shapes(self.open.program, self.model, key.shape.level)
            if shape.stored_bytes < key.shape.stored_bytes
        ]
        return [None, *smaller]

    def _served(self, affected: Sequence[int]) -> dict[int, Service | None]:
        return {kind: self.keys.serve(self.groups[kind]) for kind in affected}

    def _touched(self, affected: Sequence[int]) -> list[int]:
        return sorted({part for kind in affected for part in self._parts_of[kind]})

    def _rate(self, key: PlannedKey, change: PlannedKey | None) -> float | None:
        """Seconds lost for each byte saved; None if the program could not be run."""
        saved = key.shape.stored_bytes - (0 if change is None else change.shape.stored_bytes)
        before = self._relinearization_seconds() if key.automorphism is None else 0.0
        self.keys.remove(key)
        if change is not None:
            self.keys.add(change)
        affected = sorted(self.users[key])
        old = {kind: self.services[kind] for kind in affected}
        for kind, service in self._served(affected).items():
            self.services[kind] = service
        lost = 0.0
        for part in self._touched(affected):
            lost += self._parts[part].fastest(self.services)[0] - self._times[part]
        for kind, service in old.items():
            self.services[kind] = service
        if key.automorphism is None:
            lost += self._relinearization_seconds() - before
        if change is not None:
            self.keys.remove(change)
        self.keys.add(key)
        return None if lost == INFINITY else lost / saved

    def _apply(self, key: PlannedKey, change: PlannedKey | None) -> None:
        affected = sorted(self.users[key])
        self.keys.remove(key)
        if change is not None:
            self.keys.add(change)
        for kind, service in self._served(affected).items():
            old = self.services[kind]
            for used in old.keys if old is not None else ():
                self.users[used].discard(kind)
            for used in service.keys if service is not None else ():
                self.users[used].add(kind)
            self.services[kind] = service
        for part in self._touched(affected):
            self._times[part] = self._parts[part].fastest(self.services)[0]
            if self._times[part] == INFINITY:
                raise ValueError(f"{self.open.program.name}: cannot be served without {key}")


def fastest_keys(program: Program, model: CostModel) -> list[PlannedKey]:
    """For each automorphism and level of use the key that is fastest alone."""
    uses: defaultdict[Automorphism | None, set[int]] = defaultdict(set)
    for group in program.groups:
        for target in group.targets:
            uses[target].add(group.level)
    uses[None] |= {use.level for use in program.relinearizations}
    out = []
    for automorphism, levels in uses.items():
        for level in sorted(levels):
            best = min(candidate_shapes(program, model, level), key=lambda shape: _alone(model, shape, level))
            out.append(PlannedKey(automorphism, best))
    return out


def _alone(model: CostModel, shape: Shape, level: int) -> float:
    cost = model.switch(shape, level)
    return float("inf") if cost is None else cost.alone
