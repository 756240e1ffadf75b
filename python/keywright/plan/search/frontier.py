"""Key sets from the fastest to the smallest, for workloads that are too large for an exact solution.

The search starts with the fastest key for each use, or with another set. It repeatedly makes the change that
loses the least time per byte saved: it removes a key, so that its uses move to a key of a higher level or to
several hops, or it makes a key smaller. Every set on the way is a point of memory against time. A change is
evaluated again only when it reaches the front of the queue: with few exceptions, changes become worse as keys
are removed.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection
from functools import lru_cache

from keywright.plan.cost.model import CostModel
from keywright.plan.keys.key_plan import PlannedKey
from keywright.plan.ring.chain import Chain, Shape, shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .search_state import INFINITY, FrontierPoint, SearchState


def fastest_state(workload: Workload | OpenWorkload, model: CostModel, *, max_hops: int = 2) -> SearchState:
    """Return the state with the fastest key for each automorphism and level of use, in any alternative.

    Args:
        workload: the workload.
        model: predicts times.
        max_hops: maximum hops of a target, from 1 to 4.
    """
    opened = OpenWorkload.of(workload)
    return SearchState(opened, model, fastest_keys(opened.every(), model), max_hops=max_hops)


def descend(state: SearchState, kept: Collection[PlannedKey] = ()) -> list[FrontierPoint]:
    """Return the points from the present key set to a minimal one.

    Args:
        state: the start.
        kept: keys that are removed last; otherwise keys that nothing uses yet would be removed first.
    """
    points = [state.point()]
    queue: list[tuple[float, int, PlannedKey, PlannedKey | None]] = []
    held = [(key, change) for key in state.keys if key in kept for change in _changes(state, key)]
    serial = 0

    def push(rate: float, key: PlannedKey, change: PlannedKey | None) -> None:
        nonlocal serial
        heapq.heappush(queue, (rate, serial, key, change))
        serial += 1

    for key in state.keys:
        if key not in kept:
            for change in _changes(state, key):
                push(0.0, key, change)
    while queue or held:
        if not queue:
            for key, change in held:
                push(0.0, key, change)
            held = []
        _, _, key, change = heapq.heappop(queue)
        if key not in state.keys or (change is not None and change in state.keys):
            continue
        saved = key.shape.stored_bytes - (0 if change is None else change.shape.stored_bytes)
        before = state.seconds
        undo = state.change([key], [] if change is None else [change])
        rate = (state.seconds - before) / saved
        if rate == INFINITY:
            state.undo(undo)
            continue
        if queue and rate > queue[0][0]:
            state.undo(undo)
            push(rate, key, change)
            continue
        if change is not None:
            for further in _changes(state, change):
                push(0.0, change, further)
        point = state.point()
        if point.stored_bytes < points[-1].stored_bytes:
            points.append(point)
    return points


@lru_cache(maxsize=1024)
def candidate_shapes(chain: Chain, model: CostModel, level: int) -> tuple[Shape, ...]:
    """Return the shapes that are tried for keys of a level: those not beaten in bytes, in time alone and in
    hoisted time at once."""
    results = []
    for shape in shapes(chain, level):
        cost = model.switch(shape, level)
        if cost is not None:
            results.append((shape.stored_bytes, cost.alone, cost.own, shape))
    return tuple(
        entry[3]
        for entry in results
        if not any(
            all(a <= b for a, b in zip(other[:3], entry[:3], strict=True)) and other[:3] != entry[:3]
            for other in results
        )
    )


def _changes(state: SearchState, key: PlannedKey) -> list[PlannedKey | None]:
    """Return the possible changes of a key: removal, or a smaller shape."""
    smaller: list[PlannedKey | None] = [
        PlannedKey(key.automorphism, shape)
        for shape in candidate_shapes(state.open.workload.chain, state.model, key.shape.level)
        if shape.stored_bytes < key.shape.stored_bytes
    ]
    return [None, *smaller]


def fastest_keys(workload: Workload, model: CostModel) -> list[PlannedKey]:
    """Return for each automorphism and level of use the key that is fastest alone."""
    uses: defaultdict[Automorphism | None, set[int]] = defaultdict(set)
    for group in workload.groups:
        for target in group.targets:
            uses[target].add(group.level)
    uses[None] |= {use.level for use in workload.relinearizations}
    return [
        PlannedKey(automorphism, fastest_shape(workload, model, level))
        for automorphism, levels in uses.items()
        for level in sorted(levels)
    ]


def fastest_shape(workload: Workload, model: CostModel, level: int) -> Shape:
    """Return the shape of the key that is fastest alone at its level."""

    def alone(shape: Shape) -> float:
        cost = model.switch(shape, level)
        return INFINITY if cost is None else cost.alone

    return min(candidate_shapes(workload.chain, model, level), key=alone)
