"""Key sets from the fastest to the smallest, for programs that are too large for an exact solution.

Beginning with the fastest key for each use, the change that loses the least time for each byte saved is made
again and again: a key is taken away, its uses going to a key of a higher level or to two hops, or it is made
in a smaller shape. Every set on the way is a point of memory against time. A change is only evaluated again
when it comes to the front of the queue: changes become worse as keys go, with few exceptions.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .chain import Shape
from .cost import CostModel
from .galois import Automorphism
from .key_plan import KeyPlan, PlannedKey
from .optimal import candidate_shapes
from .program import Group, Program
from .service import KeySet, Service


@dataclass(frozen=True)
class FrontierPoint:
    """A key set on the way.

    Attributes:
        stored_bytes: bytes of its keys.
        seconds: predicted time of the program.
        services: how each group of the merged program is served.
        relinearization: for each level that has relinearisations the key.
    """

    stored_bytes: int
    seconds: float
    services: tuple[Service, ...]
    relinearization: Mapping[int, PlannedKey]


class FrontierSearch:
    """The state of one descent."""

    def __init__(
        self,
        program: Program,
        model: CostModel,
        start: Sequence[PlannedKey] | None = None,
        *,
        max_hops: int = 2,
    ) -> None:
        """Begin with a key set.

        Args:
            program: what is planned.
            model: predicts times.
            start: keys; by default the fastest one for each automorphism and level of use.
            max_hops: most hops of a target, from 1 to 4.

        Raises:
            ValueError: keys that do not serve the program.
        """
        self.program = program
        self.model = model
        self.merged = program.merged()
        relinearizations = [(use.level, use.count) for use in program.relinearizations]
        self.relinearizations = relinearizations
        keys = list(start) if start is not None else fastest_keys(program, model)
        self.keys = KeySet(program.automorphisms, model, keys, max_hops=max_hops)
        self.services: list[Service] = []
        self.users: defaultdict[PlannedKey, set[int]] = defaultdict(set)
        for index, group in enumerate(self.merged.groups):
            service = self.keys.serve(group)
            if service is None:
                raise ValueError(f"{group.name}: the keys to begin with do not serve it")
            self.services.append(service)
            for hop in service.hops:
                self.users[hop.key].add(index)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the present keys."""
        return sum(key.shape.stored_bytes for key in self.keys)

    @property
    def seconds(self) -> float:
        """Predicted time with the present keys."""
        groups = zip(self.merged.groups, self.services, strict=True)
        return (
            sum(group.count * service.seconds for group, service in groups) + self._relinearization_seconds()
        )

    def _relinearization_seconds(self) -> float:
        total = 0.0
        for level, count in self.relinearizations:
            found = self.keys.best(None, level)
            total += float("inf") if found is None else count * found[1].alone
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
        return FrontierPoint(self.stored_bytes, self.seconds, tuple(self.services), relinearization)

    def plan(self, name: str, point: FrontierPoint) -> KeyPlan:
        """The plan of a point of this search."""
        trees = {
            (group.level, group.targets): service.hops
            for group, service in zip(self.merged.groups, point.services, strict=True)
        }
        hops = tuple(trees[group.level, group.targets] for group in self.program.groups)
        plan = KeyPlan(name, self.program, hops, point.relinearization)
        plan.check()
        return plan

    def _changes(self, key: PlannedKey) -> list[PlannedKey | None]:
        smaller: list[PlannedKey | None] = [
            PlannedKey(key.automorphism, shape)
            for shape in candidate_shapes(self.program, self.model, key.shape.level)
            if shape.stored_bytes < key.shape.stored_bytes
        ]
        return [None, *smaller]

    def _affected(self, key: PlannedKey) -> list[tuple[int, Group]]:
        return [(index, self.merged.groups[index]) for index in sorted(self.users[key])]

    def _rate(self, key: PlannedKey, change: PlannedKey | None) -> float | None:
        """Seconds lost for each byte saved; None if the program could not be run."""
        saved = key.shape.stored_bytes - (0 if change is None else change.shape.stored_bytes)
        before = self._relinearization_seconds() if key.automorphism is None else 0.0
        self.keys.remove(key)
        if change is not None:
            self.keys.add(change)
        lost = 0.0
        for index, group in self._affected(key):
            service = self.keys.serve(group)
            if service is None:
                lost = float("inf")
                break
            lost += group.count * (service.seconds - self.services[index].seconds)
        if key.automorphism is None:
            lost += self._relinearization_seconds() - before
        if change is not None:
            self.keys.remove(change)
        self.keys.add(key)
        return None if lost == float("inf") else lost / saved

    def _apply(self, key: PlannedKey, change: PlannedKey | None) -> None:
        affected = self._affected(key)
        self.keys.remove(key)
        if change is not None:
            self.keys.add(change)
        for index, group in affected:
            service = self.keys.serve(group)
            if service is None:
                raise ValueError(f"{group.name}: cannot be served without {key}")
            for hop in self.services[index].hops:
                self.users[hop.key].discard(index)
            for hop in service.hops:
                self.users[hop.key].add(index)
            self.services[index] = service


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
