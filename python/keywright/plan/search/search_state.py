"""A workload, a key set, and how the keys serve the workload: the state that searches change.

A change removes keys and adds others. Only the uses of a removed key, and the uses that could gain from an
added key, are served again. A state therefore depends on its history, but every serving in it is valid, and
an undone change leaves no trace.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from keywright.plan.cost.model import CostModel, Form
from keywright.plan.keys.key_plan import Hop, KeyPlan, PlannedKey
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Group, Workload

from .cheapest_routes import Codes, Floats, code_of
from .serving import CandidateKeys, Serving

INFINITY = float("inf")


@dataclass(frozen=True)
class FrontierPoint:
    """A key set of a search.

    Attributes:
        stored_bytes: bytes of the keys that the workload then uses.
        seconds: predicted time of the workload.
        noise_bits: as in `KeyPlan`.
        keys: these keys.
        selection: the fastest alternative of each choice with them.
        services: how each kind of group is served; None for one that only other alternatives have.
        relinearization: for each level with relinearizations the key.
    """

    stored_bytes: int
    seconds: float
    noise_bits: float
    keys: frozenset[PlannedKey]
    selection: tuple[int, ...]
    servings: tuple[Serving | None, ...]
    relinearization: Mapping[int, PlannedKey]

    @property
    def known(self) -> frozenset[PlannedKey]:
        """Its keys, and those that serve the alternatives that are not taken."""
        return self.keys.union(*(serving.keys for serving in self.servings if serving is not None))


Kind = tuple[int, tuple[Automorphism, ...], Form]
"""The properties that determine a group's time: level, targets and form."""


class Part:
    """A part with one or several alternatives: for each the kinds of groups, by index, and their counts.

    A group that is not open is a part with one alternative.
    """

    def __init__(self, ways: Sequence[Mapping[int, int]]) -> None:
        """Create a part with these alternatives."""
        self.ways = [tuple(way.items()) for way in ways]

    def fastest(self, servings: Sequence[Serving | None]) -> tuple[float, int]:
        """Return the seconds of the fastest alternative, and its index; infinite if there is none."""
        best, picked = INFINITY, 0
        for index, way in enumerate(self.ways):
            total = 0.0
            for kind, count in way:
                serving = servings[kind]
                total += INFINITY if serving is None else count * serving.seconds
            if total < best:
                best, picked = total, index
        return best, picked


@dataclass(frozen=True)
class Reversal:
    """The state that a change replaced.

    Attributes:
        removed, added: keys.
        services: of kinds of groups that are now served differently.
        fastest: seconds and alternative of parts.
        relinearization: seconds of relinearizations.
    """

    removed: tuple[PlannedKey, ...]
    added: tuple[PlannedKey, ...]
    servings: Mapping[int, Serving | None]
    fastest: Mapping[int, tuple[float, int]]
    relinearization: float


class SearchState:
    """Keys and services."""

    def __init__(
        self,
        workload: Workload | OpenWorkload,
        model: CostModel,
        start: Iterable[PlannedKey],
        *,
        max_hops: int,
    ) -> None:
        """Serve a workload with the initial keys.

        Args:
            workload: the workload.
            model: predicts times.
            start: keys.
            max_hops: maximum hops of a target, from 1 to 4.

        Raises:
            ValueError: the keys do not serve the workload.
        """
        self.open = OpenWorkload.of(workload)
        every = self.open.every()
        self.model = model
        self.levels = sorted({group.level for group in every.groups})
        self._constant = every.ephemeral_seconds(model)
        self.relinearizations = [(use.level, use.count) for use in every.relinearizations]
        self.max_hops = max_hops
        self.served = 0
        self._kinds: dict[Kind, int] = {}
        self.groups: list[Group] = []
        self.parts = self._make_parts()
        self._parts_of: list[list[int]] = [[] for _ in self.groups]
        for index, part in enumerate(self.parts):
            for kind in sorted({kind for way in part.ways for kind, _ in way}):
                self._parts_of[kind].append(index)
        self.singles: dict[int, tuple[list[int], Codes]] = {}
        self.several: dict[int, list[int]] = {}
        for level in self.levels:
            kinds = [kind for kind, group in enumerate(self.groups) if group.level == level]
            single = [kind for kind in kinds if len(self.groups[kind].targets) == 1]
            codes = np.array([code_of(self.groups[kind].targets[0]) for kind in single], dtype=np.int64)
            self.singles[level] = single, codes
            self.several[level] = [kind for kind in kinds if len(self.groups[kind].targets) > 1]
        self._targets = [tuple(map(code_of, group.targets)) for group in self.groups]
        self.restart(start)

    def restart(self, start: Iterable[PlannedKey]) -> None:
        """Start again with other keys.

        Raises:
            ValueError: the keys do not serve the workload.
        """
        self.keys = CandidateKeys(self.open.workload.automorphisms, self.model, start, max_hops=self.max_hops)
        self.servings: list[Serving | None] = [None] * len(self.groups)
        self.users: defaultdict[PlannedKey, set[int]] = defaultdict(set)
        self.kind_seconds: Floats = np.full(len(self.groups), np.inf)
        for kind in range(len(self.groups)):
            self._set(kind, self._serve(kind))
        self._fastest = [part.fastest(self.servings) for part in self.parts]
        self._relinearization = self._relinearization_seconds()
        for part, (seconds, _) in zip(self.parts, self._fastest, strict=True):
            if seconds == INFINITY:
                group = self.groups[part.ways[0][0][0]]
                raise ValueError(f"{group.name}: the initial keys do not serve it; add keys")
        if self._relinearization == INFINITY:
            raise ValueError(
                f"{self.open.workload.name}: there are no initial keys for its relinearizations; add one"
            )

    def _make_parts(self) -> list[Part]:
        """Return the choices, in their order, then every kind of group of the workload by itself."""
        parts = [
            Part(
                [self._counts(alternative.groups, len(choice.places)) for alternative in choice.alternatives]
            )
            for choice in self.open.choices
        ]
        counts = self._counts(self.open.workload.groups, 1)
        return parts + [Part([{kind: count}]) for kind, count in counts.items()]

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
    def seconds(self) -> float:
        """Predicted time with the present keys; infinite if they do not serve the workload."""
        return sum(seconds for seconds, _ in self._fastest) + self._relinearization + self._constant

    def _relinearization_seconds(self) -> float:
        total = 0.0
        for level, count in self.relinearizations:
            result = self.keys.best(None, level)
            total += INFINITY if result is None else count * result[1].alone
        return total

    def point(self) -> FrontierPoint:
        """Return the present key set."""
        table = {level: self.keys.best(None, level) for level, _ in self.relinearizations}
        relinearization = {level: entry[0] for level, entry in table.items() if entry is not None}
        served = [
            self.servings[kind]
            for part, (_, way) in zip(self.parts, self._fastest, strict=True)
            for kind, _ in part.ways[way]
        ]
        keys = frozenset(relinearization.values()).union(
            *(serving.keys for serving in served if serving is not None)
        )
        stored = sum(key.shape.stored_bytes for key in keys) + self.open.workload.ephemeral_bytes
        variance = max((serving.variance for serving in served if serving is not None), default=1.0)
        return FrontierPoint(
            stored,
            self.seconds,
            0.5 * log2(variance),
            keys,
            tuple(way for _, way in self._fastest[: len(self.open.choices)]),
            tuple(self.servings),
            relinearization,
        )

    def plan(self, name: str, point: FrontierPoint) -> KeyPlan:
        """Return the plan of a point of this workload."""
        workload = self.open.resolve(point.selection)
        # The engine makes equal sets of automorphisms of ciphertexts of one level in the same way, in any
        # form.
        trees: dict[tuple[int, tuple[Automorphism, ...]], tuple[Hop, ...]] = {}
        hops = []
        for group in workload.groups:
            serving = point.servings[self._kinds[group.level, group.targets, group.form]]
            tree = () if serving is None else serving.hops
            hops.append(trees.setdefault((group.level, group.targets), tree))
        plan = KeyPlan(name, workload, tuple(hops), point.relinearization)
        plan.check()
        return plan

    def change(self, removed: Sequence[PlannedKey], added: Sequence[PlannedKey]) -> Reversal:
        """Remove keys and add others; `seconds` is infinite if the workload can then not be served."""
        affected: set[int] = set()
        for key in removed:
            self.keys.remove(key)
            affected |= self.users[key]
        gaining: set[int] = set()
        for key in added:
            self.keys.add(key)
            gaining |= self._gaining(key)
        servings: dict[int, Serving | None] = {}
        for kind in sorted(affected | gaining):
            serving = self._serve(kind)
            # Uses that lost no key are only served differently if that is faster.
            if kind in affected or (
                serving is not None and serving.seconds < self.kind_seconds[kind] * (1 - 1e-12)
            ):
                servings[kind] = self.servings[kind]
                self._set(kind, serving)
        fastest = {}
        for part in sorted({part for kind in servings for part in self._parts_of[kind]}):
            fastest[part] = self._fastest[part]
            self._fastest[part] = self.parts[part].fastest(self.servings)
        undo = Reversal(tuple(removed), tuple(added), servings, fastest, self._relinearization)
        if any(key.automorphism is None for key in (*removed, *added)):
            self._relinearization = self._relinearization_seconds()
        return undo

    def undo(self, undo: Reversal) -> None:
        """Revert the last change that was not undone."""
        for key in undo.added:
            self.keys.remove(key)
        for key in undo.removed:
            self.keys.add(key)
        for kind, serving in undo.servings.items():
            self._set(kind, serving)
        for part, fastest in undo.fastest.items():
            self._fastest[part] = fastest
        self._relinearization = undo.relinearization

    def _serve(self, kind: int) -> Serving | None:
        self.served += 1
        return self.keys.serve(self.groups[kind])

    def _set(self, kind: int, serving: Serving | None) -> None:
        old = self.servings[kind]
        for used in old.keys if old is not None else ():
            self.users[used].discard(kind)
        for used in serving.keys if serving is not None else ():
            self.users[used].add(kind)
        self.servings[kind] = serving
        self.kind_seconds[kind] = INFINITY if serving is None else serving.seconds

    def _gaining(self, key: PlannedKey) -> set[int]:
        """Return the kinds of groups that an added key may serve faster, by at most three hops."""
        if key.automorphism is None:
            return set()
        out: set[int] = set()
        code, hops = code_of(key.automorphism), self.keys.max_hops
        for level in self.levels:
            use = self.keys.use(key, level)
            if use is None:
                continue
            routes = self.keys.routes(level)
            kinds, targets = self.singles[level]
            if kinds:
                rests = routes.rests(targets, code)
                least = np.where(rests == 0, 0.0, np.inf)
                if hops > 1:
                    least = np.minimum(least, routes.one[rests])
                if hops > 2:
                    least = np.minimum(least, routes.two[1][rests])
                won = use.cost.alone + least < self.kind_seconds[kinds]
                out.update(kinds[index] for index in np.flatnonzero(won))
            for kind in self.several[level]:
                if self._may_join(kind, code, routes.one):
                    out.add(kind)
        return out

    def _may_join(self, kind: int, code: int, one: Floats) -> bool:
        serving, targets = self.servings[kind], self._targets[kind]
        if serving is None:
            return True
        table = {hop.child: hop.parent for hop in serving.coded_hops}
        routes = self.keys.routes(self.groups[kind].level)
        for target in targets:
            if table[target] != 0:
                rest = routes.rest(target, code)
                if rest == 0 or rest in table or one[rest] < INFINITY:
                    return True
        return False
