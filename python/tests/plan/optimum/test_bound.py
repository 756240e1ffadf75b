"""The lower bound compared with every plan of small workloads, and with plans found for larger ones."""

import random
from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    OpenWorkload,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.model import FORMS
from keywright.plan.exact import linear_program
from keywright.plan.exact.bound import LowerBound
from keywright.plan.exact.linear_program import LinearProgram
from keywright.plan.keys.key_plan import IDENTITY, Hop, PlannedKey
from keywright.plan.ring.chain import shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.search.frontier import descend, fastest_state
from keywright.plan.workload import Choice
from keywright.plan.workload.open_workload import Alternative
from keywright.plan.workload.workload import Group
from tests.plan.optimum.every_plan import least_seconds

CHAIN = Chain(12, (30, 25, 25), (30, 30), 180)
RING = AutomorphismGroup(12)
MODEL = CostModel()
INFINITY = float("inf")

Keys = Mapping[Automorphism, PlannedKey]


def small_workload(seed: int) -> OpenWorkload:
    """Return three or four automorphisms at two levels, alone and of one ciphertext, and a part with two
    alternatives."""
    rng = random.Random(seed)
    steps = [1, 2, 3, 4] if seed % 2 else rng.sample(range(1, 8), 3)

    def group(name: str, size: int) -> Group:
        targets = tuple(sorted(RING.rotation(step) for step in rng.sample(steps, size)))
        return Group(name, rng.choice((1, 2)), targets, rng.randrange(1, 4), rng.choice(FORMS))

    fixed = tuple(group(f"g{order}", size) for order, size in enumerate((1, 1, len(steps))))
    ways = tuple(Alternative(f"way {way}", (group("way", 1 + way),)) for way in range(2))
    workload = Workload(f"small {seed}", CHAIN, fixed, (Relinearizations(1, 2),))
    return OpenWorkload(workload, (Choice("part", (0, 1), ways),))


def routes(keys: Keys, level: int, hops: int) -> dict[Automorphism, list[tuple[Hop, ...]]]:
    """Every way of at most so many hops to everything."""
    usable = [key for key in keys.values() if key.shape.level >= level]
    out: dict[Automorphism, list[tuple[Hop, ...]]] = {}
    ways: list[tuple[Automorphism, tuple[Hop, ...]]] = [(IDENTITY, ())]
    for _ in range(hops):
        longer = []
        for place, way in ways:
            for key in usable:
                assert key.automorphism is not None
                child = RING.add(place, key.automorphism)
                longer.append((child, (*way, Hop(place, child, key))))
        ways = longer
        for place, way in ways:
            out.setdefault(place, []).append(way)
    return out


def every_plan(opened: OpenWorkload, hops: int) -> Iterator[tuple[int, float]]:
    """Bytes and least seconds of every set of keys, one of any level and shape for each automorphism."""
    every = opened.every()
    levels = sorted({group.level for group in every.groups})
    (relinearization,) = every.relinearizations
    plan = [shape for level in levels for shape in shapes(every.chain, level)]
    options = [[None, *(PlannedKey(a, shape) for shape in plan)] for a in every.highest_levels]
    relinearized = [
        (shape.stored_bytes, relinearization.count * cost.alone)
        for shape in plan
        if (cost := MODEL.switch(shape, relinearization.level)) is not None
    ]
    for chosen in product(*options):
        keys = {key.automorphism: key for key in chosen if key is not None and key.automorphism is not None}
        by_level = {level: routes(keys, level, hops) for level in levels}
        seconds = sum(
            group.count * least_seconds(MODEL, group, by_level[group.level])
            for group in opened.workload.groups
        )
        for choice in opened.choices:
            ways = (
                sum(group.count * least_seconds(MODEL, group, by_level[group.level]) for group in way.groups)
                for way in choice.alternatives
            )
            seconds += len(choice.places) * min(ways)
        stored = sum(key.shape.stored_bytes for key in keys.values())
        if seconds < INFINITY:
            for more_bytes, more_seconds in relinearized:
                yield stored + more_bytes, seconds + more_seconds


def check_every_plan(opened: OpenWorkload, hops: int) -> None:
    bound = LowerBound(opened, MODEL, max_hops=hops)
    best: list[tuple[int, float]] = []
    for stored, seconds in sorted(every_plan(opened, hops)):
        if not best or seconds < best[-1][1]:
            best.append((stored, seconds))
    assert best
    for stored, seconds in best:
        assert bound.stored_bytes(seconds) <= stored * (1 + 1e-9)
        assert bound.seconds(stored) <= seconds * (1 + 1e-9)
    # What the smallest and the fastest plan take is bounded well.
    assert bound.stored_bytes(best[0][1]) > 0.5 * best[0][0]
    assert bound.seconds(best[-1][0]) > 0.8 * best[-1][1]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_of_a_small_workload_is_below_the_bound(seed: int, hops: int) -> None:
    check_every_plan(small_workload(seed), hops)


@pytest.mark.parametrize("hops", [1, 2])
def test_larger_keys_that_are_faster_are_not_below_the_bound(hops: int) -> None:
    chain = Chain(12, (30,) * 9, (30,) * 9, 1000)
    groups = (make_group(RING, "three", 8, [1, 2, 3], 2), make_group(RING, "one", 7, [2]))
    workload = Workload("shapes", chain, groups, (Relinearizations(7, 1),))
    check_every_plan(OpenWorkload(workload), hops)
    if hops == 1:
        # The least bytes and the least time exclude each other.
        bound = LowerBound(workload, MODEL, max_hops=hops)
        fastest = min(seconds for _, seconds in every_plan(OpenWorkload(workload), hops))
        assert bound.stored_bytes(fastest * (1 + 1e-9)) > 1.05 * bound.counted_bytes


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_no_plan_that_is_found_is_below_the_bound(hops: int) -> None:
    rng = random.Random(hops)
    groups = [
        make_group(RING, f"g{order}", rng.choice((1, 2)), rng.sample(range(1, 90), rng.choice((1, 1, 2, 5))))
        for order in range(30)
    ]
    workload = Workload("found", CHAIN, tuple(groups), (Relinearizations(2, 3), Relinearizations(1, 1)))
    bound = LowerBound(workload, MODEL, max_hops=hops)
    points = [
        (point.stored_bytes, point.seconds)
        for point in descend(fastest_state(workload, MODEL, max_hops=hops))[::12]
    ]
    if hops > 2:
        plans = [strategy.plan(workload, MODEL) for strategy in STRATEGIES.values()]
        points += [(plan.stored_bytes, plan.seconds(MODEL)) for plan in plans if plan.max_hops <= hops]
    for stored, seconds in points:
        assert bound.stored_bytes(seconds) <= stored * (1 + 1e-9)
        assert bound.seconds(stored) <= seconds * (1 + 1e-9)
    fastest = points[0][1]
    assert bound.stored_bytes(fastest) > 0.6 * points[0][0]
    assert bound.stored_bytes(0.99 * bound.seconds(1e12)) == INFINITY
    assert bound.seconds(bound.counted_bytes - 1) == INFINITY
    # More time never needs more bytes, nor more bytes more time.
    bytes_within = [bound.stored_bytes(factor * fastest) for factor in (1.0, 1.3, 2.0, 9.0)]
    assert bytes_within == sorted(bytes_within, reverse=True)
    assert bytes_within[-1] >= bound.counted_bytes


def test_a_bound_of_a_linear_program_holds_however_early_the_solver_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(5)
    for _ in range(20):
        workload = LinearProgram()
        point = [rng.random() for _ in range(12)]
        for _ in point:
            workload.column(0.0, 1.0)
        for _ in range(9):
            terms = {column: rng.uniform(-1, 1) for column in rng.sample(range(12), 4)}
            workload.at_least(terms, sum(value * point[column] for column, value in terms.items()) - 0.1)
        objective = {column: rng.uniform(-1, 1) for column in range(12)}
        value = sum(weight * point[column] for column, weight in objective.items())
        solved = workload.least(objective)
        monkeypatch.setattr(linear_program, "ITERATIONS", 2)
        early = workload.least(objective)
        monkeypatch.undo()
        assert solved is not None
        assert early is not None
        assert early.value <= solved.value + 1e-9
        assert solved.value <= value
        assert workload.least(objective, ({0: 1.0}, -1.0)) is None
