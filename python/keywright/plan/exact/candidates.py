"""Candidate keys: a subset of all possible keys that contains those of a best plan.

A key may have any level at which it is useful, or a higher one: as a part of a composition it serves levels
at which its own automorphism is not needed. Shapes that another shape can replace are left out.

*Replacing.* Let every key of shape s of an automorphism become one of shape s', with no more bytes. A hop
with such a key at a level l takes its own part, in its form, and a share of a decomposition. The plan becomes
no slower if, at each level at which the automorphism is useful and s can be used,

    own'(form) <= own(form) for every form, and s and s' have the same digits there (same decompositions); or
    shared' + own'(form) <= own(form): not even a decomposition that s shared for free is missed; or
    no ciphertext of the level has several targets, and shared' + own'(form) <= shared + own(form): a route to
    one target shares nothing.

The relation is transitive, so every shape that is left out has a replacement among the others.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from keywright.plan.cost.model import FORMS, CostModel
from keywright.plan.keys.key_plan import digits_of
from keywright.plan.ring.chain import Shape, shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.workload import Workload

Levels = frozenset[int]


class Candidates:
    """The candidate shapes for keys of a workload."""

    def __init__(self, workload: Workload, model: CostModel) -> None:
        """Set up for the levels of a workload's groups and relinearizations."""
        self._workload = workload
        chain = workload.chain
        self._levels = sorted(
            {group.level for group in workload.groups} | {use.level for use in workload.relinearizations}
        )
        lowest = min(self._levels, default=0)
        results = (shape for level in range(lowest, chain.max_level + 1) for shape in shapes(chain, level))
        self._shapes = sorted(results, key=lambda shape: (shape.stored_bytes, shape.level, shape.alpha))
        stored = np.array([shape.stored_bytes for shape in self._shapes])
        self._smaller = stored[None, :] <= stored[:, None]
        shared = {group.level for group in workload.groups if len(group.targets) > 1}
        self._replaced = {level: self._at(model, level, level in shared) for level in self._levels}
        self._known: dict[tuple[Levels, Levels | None], tuple[Shape, ...]] = {}

    def _at(self, model: CostModel, level: int, shared: bool) -> NDArray[np.bool_]:
        """For each two shapes, return whether the second replaces the first at a level."""
        number = len(self._shapes)
        costs = [model.switch(shape, level) for shape in self._shapes]
        usable = np.array([cost is not None for cost in costs])
        own = np.array(
            [[np.inf] * len(FORMS) if c is None else [c.of_form(form) for form in FORMS] for c in costs]
        ).reshape(number, len(FORMS))
        decomposition = np.array([0.0 if cost is None else cost.shared for cost in costs])
        whole = decomposition[:, None] + own
        met = (whole[None, :] <= own[:, None]).all(axis=2)
        kinds: dict[object, int] = {}
        digits = np.array(
            [
                kinds.setdefault(digits_of(shape, level), len(kinds)) if able else -1
                for shape, able in zip(self._shapes, usable, strict=True)
            ]
        )
        met |= (digits[None, :] == digits[:, None]) & (own[None, :] <= own[:, None]).all(axis=2)
        if not shared:
            met |= (whole[None, :] <= whole[:, None]).all(axis=2)
        out: NDArray[np.bool_] = ~usable[:, None] | (usable[None, :] & met)
        return out

    def shapes(self, of_use: Levels, levels: Levels | None = None) -> tuple[Shape, ...]:
        """Return shapes that replace all others, by rising bytes.

        Args:
            of_use: levels at which a key is useful.
            levels: allowed levels of a key; None for all.
        """
        known = self._known.get((of_use, levels))
        if known is None:
            lowest = min(of_use)
            places = [
                place
                for place, shape in enumerate(self._shapes)
                if shape.level >= lowest and (levels is None or shape.level in levels)
            ]
            replaced = self._smaller[np.ix_(places, places)].copy()
            for level in of_use:
                replaced &= self._replaced[level][np.ix_(places, places)]
            # Of shapes that replace each other, the first one stays.
            order = np.arange(len(places))
            better = replaced & (~replaced.T | (order[None, :] < order[:, None]))
            known = tuple(self._shapes[places[index]] for index in np.flatnonzero(~better.any(axis=1)))
            self._known[of_use, levels] = known
        return known

    def of_use(self, automorphisms: Sequence[Automorphism], hops: int) -> Mapping[Automorphism, Levels]:
        """For each automorphism, return the levels at which a key for it can serve: where it is needed, or,
        with two hops, where it and another one of them make a target."""
        subtract = self._workload.automorphisms.subtract
        known = set(automorphisms)
        out: defaultdict[Automorphism, set[int]] = defaultdict(set)
        needed: defaultdict[Automorphism, set[int]] = defaultdict(set)
        for group in self._workload.groups:
            for target in group.targets:
                needed[target].add(group.level)
        for target, levels in needed.items():
            out[target] |= levels
            for first in automorphisms if hops > 1 else ():
                if first != target and subtract(target, first) in known:
                    out[first] |= levels
        return {automorphism: frozenset(levels) for automorphism, levels in sorted(out.items())}
