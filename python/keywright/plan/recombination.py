"""Better key sets than those of one descent: descents from what several good ones have together.

A descent takes keys away and cannot bring one back. So it begins again, from sets that hold more than one good
set: the keys of the best points for a time together, with those of another point, without a few that are
taken away first so that it goes another way, and with newcomers (`newcomers`), which may be automorphisms
that nothing in the program needs. What is worse than a point that is known is forgotten.

It begins with the fastest key for each use; the same with powers of two in both directions at every level of
use; the same with the differences of targets that occur most at every level. What is drawn comes from a
generator with a fixed seed, and the work is limited by a count, so that a search finds the same on every
machine.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence

from .frontier import descend, fastest_shape
from .galois import Automorphism
from .key_plan import IDENTITY, PlannedKey
from .program import Program
from .routes import code_of
from .search_state import INFINITY, FrontierPoint, SearchState

WORK = 60_000
"""Services of groups after which no further descent begins."""
DESCENTS = 64
"""Most descents."""
DIFFERENCES = 30
"""Differences of targets that have keys at a level to begin with."""
PARENTS = (1, 2, 3, 5)
"""How many of the points of fewest bytes within a time are taken together."""
DROPPED = (0.0, 0.05, 0.1, 0.2)
"""Share of keys that are taken away before a descent."""


class Recombination:
    """The points that are known of a program."""

    def __init__(self, state: SearchState, points: Iterable[FrontierPoint]) -> None:
        """Begin with the points of a descent.

        Args:
            state: of the program; it is begun again and again.
            points: what is known.
        """
        self._state = state
        self.points = frontier(points)
        self._random = random.Random(0)

    def search(self, work: int = WORK, descents: int = DESCENTS) -> list[FrontierPoint]:
        """All points that no other one beats, from the fewest bytes up."""
        every = self._state.open.every()
        fastest = self.points[-1].keys
        for extra in (ladders(every, self._state), differences(every, self._state)):
            self._descend({*fastest, *extra})
        until = self._state.served + work
        for _ in range(descents):
            if self._state.served > until:
                break
            self._descend(self._union())
        return self.points

    def _union(self) -> set[PlannedKey]:
        draw = self._random.random
        fast, slow = self.points[-1].seconds, self.points[0].seconds
        limit = fast * (slow / fast) ** draw()
        within = [point for point in self.points if point.seconds <= limit * (1 + 1e-12)]
        taken = within[: PARENTS[int(draw() * len(PARENTS))]]
        if draw() < 0.5:
            taken.append(self.points[int(draw() * len(self.points))])
        return set().union(*(point.keys for point in taken))

    def _descend(self, keys: Iterable[PlannedKey]) -> None:
        state, draw = self._state, self._random.random
        start = sorted(keys, key=_order)
        state.restart(start)
        share = DROPPED[int(draw() * len(DROPPED))]
        for key in start:
            if draw() < share:
                undo = state.change([key], [])
                if state.seconds == INFINITY:
                    state.undo(undo)
        self.points = frontier([*self.points, *descend(state)])


def ladders(program: Program, state: SearchState) -> list[PlannedKey]:
    """Powers of two in both directions at every level of use."""
    group = program.automorphisms
    steps = [sign << bit for bit in range(program.chain.log_n - 1) for sign in (1, -1)]
    return _keys(program, state, {level: [group.rotation(step) for step in steps] for level in state.levels})


def differences(program: Program, state: SearchState) -> list[PlannedKey]:
    """For every level of use the automorphisms that lead from one target to another most often."""
    subtract = program.automorphisms.subtract
    wanted = {}
    for level in state.levels:
        targets = sorted({target for group in program.groups if group.level == level for target in group.targets})
        found = Counter(subtract(a, b) for a in targets for b in targets if a != b)
        wanted[level] = sorted(found, key=lambda a: (-found[a], a))[:DIFFERENCES]
    return _keys(program, state, wanted)


def _keys(program, state, wanted) -> list[PlannedKey]:
    return [
        PlannedKey(a, fastest_shape(program, state.model, level))
        for level, automorphisms in wanted.items()
        for a in automorphisms
        if a != IDENTITY
    ]


def frontier(points: Iterable[FrontierPoint]) -> list[FrontierPoint]:
    """Points that no other point beats in bytes and seconds, from the fewest bytes up."""
    out: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.stored_bytes, point.seconds)):
        if not out or point.seconds < out[-1].seconds:
            out.append(point)
    return out


def _order(key: PlannedKey) -> tuple[int, int, int, int]:
    code = -1 if key.automorphism is None else code_of(key.automorphism)
    return code, key.shape.level, key.shape.alpha, key.shape.special
