"""Improves on a single descent: new descents start from combinations of several good key sets.

A descent removes keys and cannot restore one. It is therefore repeated from the union of the keys of the best
points for one or several times, after the removal of some of these keys, which makes it take another path.
The first descents start with

* the fastest key for each use,
* these, and powers of two in both directions at every level of use,
* the same, but with the powers of two removed last: nothing may need them before other keys are removed,
* the fastest keys, and at every level of use the automorphisms that most often lead from one target to
  another.

Points that another one beats in bytes and time are dropped. Random choices come from a generator with a fixed
seed, and work is limited by a count, so a search gives the same result on every machine.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from keywright.plan.cost.model import CostModel
from keywright.plan.keys.key_plan import IDENTITY, KeyPlan, PlannedKey
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .cheapest_routes import code_of
from .frontier import descend, fastest_keys, fastest_shape
from .search_state import INFINITY, FrontierPoint, SearchState

WORK = 100_000
"""Number of served groups after which no further descent starts."""
PATIENCE = 12
"""Number of descents without a new point after which the search ends."""
DIFFERENCES = 30
"""Number of differences of targets that initially have keys at a level."""
TIMES = (1, 2, 5)
"""Numbers of times whose points are combined."""
PARENTS = (1, 2, 3, 6)
"""Numbers of smallest points within a time that are combined."""
DROPPED = (0.0, 0.05, 0.1, 0.2)
"""Share of keys that are removed before a descent."""


class Recombination:
    """The known points of a workload."""

    def __init__(
        self,
        workload: Workload | OpenWorkload,
        model: CostModel,
        *,
        max_hops: int = 2,
        noise_bits: float | None = None,
    ) -> None:
        """Start without points.

        Args:
            workload: the workload.
            model: predicts times.
            max_hops: maximum hops of a target, from 1 to 4.
            noise_bits: points with more noise are left out; None keeps all.
        """
        opened = OpenWorkload.of(workload)
        self._every = opened.every()
        self._fastest = fastest_keys(self._every, model)
        self._state = SearchState(opened, model, self._fastest, max_hops=max_hops)
        self._noise_bits = noise_bits
        self._random = random.Random(0)
        self.points: list[FrontierPoint] = []

    def search(self, work: int = WORK) -> list[FrontierPoint]:
        """Return the Pareto-optimal points, from the fewest bytes up; none if all are too noisy.

        Args:
            work: number of served groups after which no further descent starts; the first four always run.
        """
        self.begin()
        ladders, differences = self._ladders(), self._differences()
        self._descend(_ordered([*self._fastest, *ladders]), kept=ladders)
        self._descend(_ordered([*self._fastest, *differences]))
        vain = 0
        while len(self.points) > 1 and vain < PATIENCE and self._state.served < work:
            keys = _ordered(self._union())
            share = DROPPED[self._draw(len(DROPPED))]
            dropped = [key for key in keys if self._random.random() < share]
            vain = 0 if self._descend(keys, dropped) else vain + 1
        return self.points

    def begin(self) -> list[FrontierPoint]:
        """Return the points of the first two descents, as for `search`."""
        self._descend(self._fastest)
        self._descend(_ordered([*self._fastest, *self._ladders()]))
        return self.points

    def plan(self, name: str, point: FrontierPoint) -> KeyPlan:
        return self._state.plan(name, point)

    def _draw(self, below: int) -> int:
        return int(self._random.random() * below)

    def _union(self) -> set[PlannedKey]:
        """Return the keys of the best points for some random times."""
        fast, slow = self.points[-1].seconds, self.points[0].seconds
        taken: list[FrontierPoint] = []
        for _ in range(TIMES[self._draw(len(TIMES))]):
            limit = fast * (slow / fast) ** self._random.random()
            within = [point for point in self.points if point.seconds <= limit * (1 + 1e-12)]
            taken += within[: PARENTS[self._draw(len(PARENTS))]]
        return set().union(*(point.known for point in taken))

    def _descend(
        self,
        start: Iterable[PlannedKey],
        dropped: Sequence[PlannedKey] = (),
        kept: Collection[PlannedKey] = (),
    ) -> bool:
        """Run a descent, after removing those of the dropped keys that can be removed. Returns whether it
        finds a new Pareto-optimal point."""
        state, limit = self._state, self._noise_bits
        state.restart(start)
        for key in dropped:
            undo = state.change([key], [])
            if state.seconds == INFINITY:
                state.undo(undo)
        before = self.points
        results = [point for point in descend(state, kept) if limit is None or point.noise_bits <= limit]
        self.points = frontier([*before, *results])
        return {id(point) for point in self.points} != {id(point) for point in before}

    def _ladders(self) -> list[PlannedKey]:
        """Return powers of two in both directions."""
        group = self._every.automorphisms
        steps = [sign << bit for bit in range(self._every.chain.log_n - 1) for sign in (1, -1)]
        return self._keys({level: [group.rotation(step) for step in steps] for level in self._state.levels})

    def _differences(self) -> list[PlannedKey]:
        """Return the automorphisms that lead from one target of a level to another for the most pairs."""
        subtract = self._every.automorphisms.subtract
        requests = {}
        for level in self._state.levels:
            groups = (group for group in self._every.groups if group.level == level)
            targets = sorted({target for group in groups for target in group.targets})
            table = Counter(subtract(a, b) for a in targets for b in targets if a != b)
            requests[level] = sorted(table, key=lambda a: (-table[a], a))[:DIFFERENCES]
        return self._keys(requests)

    def _keys(self, targets: Mapping[int, Sequence[Automorphism]]) -> list[PlannedKey]:
        """Return the fastest keys, each new one once."""
        table = {
            PlannedKey(a, fastest_shape(self._every, self._state.model, level)): None
            for level, automorphisms in targets.items()
            for a in automorphisms
            if a != IDENTITY
        }
        known = set(self._fastest)
        return [key for key in table if key not in known]


def frontier(points: Iterable[FrontierPoint]) -> list[FrontierPoint]:
    """Return the points that no other point beats in bytes and seconds, from the fewest bytes up."""
    out: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.stored_bytes, point.seconds)):
        if not out or point.seconds < out[-1].seconds:
            out.append(point)
    return out


def _ordered(keys: Iterable[PlannedKey]) -> list[PlannedKey]:
    """Sort keys, independent of their source: among equal changes the first one is made."""

    def order(key: PlannedKey) -> tuple[int, int, int, int]:
        code = -1 if key.automorphism is None else code_of(key.automorphism)
        return code, key.shape.level, key.shape.alpha, key.shape.special

    return sorted(keys, key=order)
