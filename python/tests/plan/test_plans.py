"""Strategies, the integer program, the frontier and the bound, on workloads that can be checked in full."""

import json
import random
from dataclasses import replace
from itertools import pairwise

import keywright as kw
import pytest
from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    KeyPolicy,
    Planner,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.exact.bound import LowerBound
from keywright.plan.keys.key_plan import IDENTITY, Hop, PlannedKey, tree_seconds
from keywright.plan.ring.chain import Shape, shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.search.frontier import candidate_shapes, descend, fastest_state
from keywright.plan.search.serving import CandidateKeys

CHAIN = Chain(12, (30, 25, 25), (30,), 140)
MODEL = CostModel()
ZERO = Automorphism(0)


def random_workload(seed: int, groups: int = 4, steps: int = 6, several: bool = False) -> Workload:
    rng = random.Random(seed)
    group = Workload("", CHAIN, ()).automorphisms
    keygroups = []
    for order in range(groups):
        targets = [rng.randrange(1, steps) for _ in range(rng.choice((1, 2, 3)) if several else 1)]
        keygroups.append(make_group(group, f"g{order}", rng.choice((1, 2)), targets, rng.randrange(1, 4)))
    return Workload(f"random {seed}", CHAIN, tuple(keygroups), (Relinearizations(2, 1),))


def test_the_bound_by_counting_holds_for_any_number_of_hops() -> None:
    workload = random_workload(3, groups=12, steps=60, several=True)
    counted = [LowerBound(workload, MODEL, max_hops=hops).counted_bytes for hops in (1, 2, 3, 4)]
    assert counted == sorted(counted, reverse=True)
    assert counted[-1] > min(shape.stored_bytes for shape in shapes(CHAIN, 1))
    # One hop: a key for every automorphism, at its highest level.
    exact = sum(
        min(shape.stored_bytes for shape in candidate_shapes(workload.chain, MODEL, level))
        for level in [*workload.highest_levels.values(), 2]
    )
    assert counted[0] == exact
    for hops, least in zip((1, 2, 3, 4), counted, strict=True):
        state = fastest_state(workload, MODEL, max_hops=hops)
        smallest = min(descend(state), key=lambda point: point.stored_bytes)
        assert least <= smallest.stored_bytes
        assert state.plan("smallest", smallest).max_hops <= hops
    for strategy in STRATEGIES.values():
        for policy in (None, KeyPolicy("dynamic", "needed")):
            plan = strategy.plan(workload, MODEL, policy)
            assert LowerBound(workload, MODEL, max_hops=plan.max_hops).counted_bytes <= plan.stored_bytes
    planner = Planner(workload, MODEL, max_hops=4)
    with pytest.raises(InfeasibleBudgetError, match="By counting, no plan of at most 4 hops"):
        planner.best(Budget(stored_bytes=counted[-1] - 1))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))]
)
def test_optimal_is_never_worse_than_a_published_strategy(seed: int) -> None:
    workload = random_workload(seed, groups=8, steps=40, several=True)
    planner = Planner(workload, MODEL, max_hops=4)
    for strategy in STRATEGIES.values():
        for policy in (None, KeyPolicy("dynamic", "needed"), KeyPolicy("maximum", "all")):
            published = strategy.plan(workload, MODEL, policy)
            if published.max_hops > 4:
                continue
            best = planner.best(Budget(stored_bytes=published.stored_bytes))
            assert best.stored_bytes <= published.stored_bytes
            assert best.seconds(MODEL) <= published.seconds(MODEL) * (1 + 1e-9)
            assert best.max_hops <= 4
            assert best.gap is not None
            assert 0 <= best.gap <= 1
            best.check()


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_no_plan_has_more_hops_than_it_may(hops: int) -> None:
    """Without a time limit, the smallest plans are published ones with many hops."""
    workload = random_workload(3, groups=8, steps=40, several=True)
    published = [strategy.plan(workload, MODEL) for strategy in STRATEGIES.values()]
    longer = min(plan.stored_bytes for plan in published if plan.max_hops > hops)
    planner = Planner(workload, MODEL, max_hops=hops)
    best = planner.best(Budget(seconds=1e6))
    assert best.max_hops <= hops
    assert best.stored_bytes > longer or hops > 1
    assert all(plan.max_hops <= hops for plan in planner.published)


def test_the_frontier_descends_and_its_plans_hold() -> None:
    workload = random_workload(1, groups=20, steps=200, several=True)
    points = descend(fastest_state(workload, MODEL, max_hops=3))
    assert len(points) > 10
    for before, after in pairwise(points):
        assert after.stored_bytes < before.stored_bytes
    planner = Planner(workload, MODEL, max_hops=3)
    for point in (planner.points[0], planner.points[len(planner.points) // 2], planner.points[-1]):
        plan = planner.plan(point)
        assert plan.stored_bytes <= point.stored_bytes
        plan.check()
        assert plan.seconds(MODEL) == pytest.approx(point.seconds)
        assert plan.max_hops <= 3


def test_a_group_shares_its_decomposition() -> None:
    group = Workload("", CHAIN, ()).automorphisms
    shape = shapes(CHAIN, 2)[0]
    keys = CandidateKeys(group, MODEL, [PlannedKey(group.rotation(step), shape) for step in (1, 2, 3)])
    cost = MODEL.switch(shape, 2)
    assert cost is not None
    together = keys.serve(make_group(group, "", 2, [1, 2, 3]))
    assert together is not None
    assert together.seconds == pytest.approx(cost.shared + 3 * cost.own)
    chained = keys.serve(make_group(group, "", 2, [3, 5]))
    assert chained is not None
    assert chained.seconds == pytest.approx(2 * (cost.shared + cost.own))
    assert tree_seconds(MODEL, 2, chained.hops) == pytest.approx(chained.seconds)
    assert keys.serve(make_group(group, "", 2, [7])) is None


def test_a_target_on_the_way_to_another_is_made_once() -> None:
    group = Workload("", CHAIN, ()).automorphisms
    shape = shapes(CHAIN, 2)[0]
    keys = CandidateKeys(
        group, MODEL, [PlannedKey(group.rotation(k), shape) for k in (10, 43, 2000)], max_hops=3
    )
    targets = make_group(group, "", 2, [5, 53])  # 10 + 43 + 2000 is 5 modulo 2048
    served = keys.serve(targets)
    assert served is not None
    assert [hop.child.step for hop in served.hops] == [10, 53, 5]
    KeyPlan("x", Workload("", CHAIN, (targets,)), (served.hops,)).check()


def test_published_routes() -> None:
    group = Workload("", CHAIN, ()).automorphisms
    workload = Workload("p", CHAIN, (make_group(group, "a", 2, [7, 24, -1, 1000]),))
    hops = {name: strategy.plan(workload, MODEL).switches for name, strategy in STRATEGIES.items()}
    # Binary: 7 = 4 + 2 + 1 and so on, prefixes shared; signed: 8 - 1, 32 - 8, -1, 1024 - 16 - 8.
    assert hops["all-required"] == 4
    assert hops["signed-power-of-two"] <= hops["power-of-two"]
    assert STRATEGIES["fhelipe"].plan(workload, MODEL).max_hops <= 6
    kernel = [32 * i + j for i in range(-2, 3) for j in range(-2, 3)]
    convolution = Workload("k", CHAIN, (make_group(group, "5x5", 2, kernel),))
    lowmem = STRATEGIES["lowmem"].plan(convolution, MODEL)
    assert (len(lowmem.keys), lowmem.switches) == (4, 24)
    assert len(STRATEGIES["ark-memory"].plan(convolution, MODEL).keys) == 8


def test_bytes_are_those_of_the_engine() -> None:
    parameters = kw.Parameters.preset("N16_QP1660_S50")
    chain = Chain(
        16,
        tuple(q.bit_length() for q in parameters.q),
        tuple(p.bit_length() for p in parameters.p),
    )
    for level, alpha in ((26, 5), (26, 3), (18, 5), (10, 4), (3, 4)):
        special = len(kw.KeySpec.rotation(parameters, 1, level=level, alpha=alpha).special)
        spec = kw.KeySpec.rotation(parameters, 1, level=level, alpha=alpha)
        shape = Shape(chain, level, alpha, special)
        assert shape.stored_bytes == spec.bytes
        assert list(shape.digits) == [digit[0] for digit in spec.digits]


def test_workloads_survive_their_json_form() -> None:
    workload = random_workload(5, several=True)
    again = Workload.from_json(workload.to_json())
    assert again == workload
    assert again.digest == workload.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "format"),
        ({"groups": [{"name": "g", "level": 9, "count": 1, "targets": [1]}]}, "level 9"),
        ({"groups": [{"name": "g", "level": 1, "count": 0, "targets": [1]}]}, "count 0"),
        ({"groups": [{"name": "g", "level": 1, "count": 1, "targets": [2048]}]}, "rotation 2048"),
        ({"groups": [{"name": "g", "level": 1, "count": 1, "targets": [0]}]}, "identity"),
        ({"groups": [{"name": "g", "level": 1, "count": 1, "targets": [[1, 2]]}]}, "conjugation 2"),
        ({"chain": {"log_n": 99, "q": [30], "p": [30]}}, "log2 of the ring degree is 99"),
        ({"chain": {"log_n": 12, "q": [], "p": [30]}}, "0 primes q"),
        ({"groups": 3}, "not a workload"),
    ],
)
def test_bad_workloads_are_refused(change: dict[str, object], message: str) -> None:
    data = json.loads(random_workload(0).to_json())
    with pytest.raises(WorkloadError, match=message):
        Workload.from_json(json.dumps({**data, **change}))
    with pytest.raises(WorkloadError, match="not JSON"):
        Workload.from_json("{" + json.dumps(data))


def test_plans_that_do_not_serve_are_refused() -> None:
    workload = random_workload(2)
    plan = STRATEGIES["kds"].plan(workload, MODEL)
    with pytest.raises(WorkloadError, match="nothing makes"):
        KeyPlan("x", workload, tuple(() for _ in workload.groups), plan.relinearization).check()
    with pytest.raises(WorkloadError, match="relinearization"):
        KeyPlan("x", workload, plan.hops, {}).check()


def test_hops_that_do_not_make_what_they_say_are_refused() -> None:
    group = make_group(AutomorphismGroup(CHAIN.log_n), "g", 2, [1, 3])
    workload = Workload("p", CHAIN, (group,))
    one, two = group.targets[0], AutomorphismGroup(CHAIN.log_n).rotation(2)
    keys = {level: PlannedKey(one, shapes(CHAIN, level)[0]) for level in (1, 2)}
    step = PlannedKey(two, shapes(CHAIN, 2)[0])
    first, second = Hop(IDENTITY, one, keys[2]), Hop(one, group.targets[1], step)
    KeyPlan("x", workload, ((first, second),)).check()
    for hops, message in (
        ((second, first), "not made before"),
        ((first, replace(second, key=keys[2])), "does not lead to"),
        ((replace(first, key=keys[1]), second), "a key of level 1 is used at the higher level 2"),
        ((replace(first, key=PlannedKey(None, keys[2].shape)), second), "does not lead to"),
    ):
        with pytest.raises(WorkloadError, match=message):
            KeyPlan("x", workload, (hops,)).check()


def test_workloads_that_need_more_than_any_plan_can_give() -> None:
    # 180 bits of ciphertext primes leave 34 for special ones, which have to be as wide as the widest.
    chain = Chain(13, (60, 60, 60), (60,))
    workload = Workload("deep", chain, (make_group(AutomorphismGroup(13), "g", 2, [1, 2]),))
    for name in STRATEGIES:
        with pytest.raises(WorkloadError, match=r"deep: no key of level 2 .* 214 bits"):
            STRATEGIES[name].plan(workload, MODEL)
    with pytest.raises(WorkloadError, match="214 bits"):
        Planner(workload, MODEL)


def test_budgets() -> None:
    for numbers in ({}, {"stored_bytes": 1.0, "seconds": 1.0}):
        with pytest.raises(ValueError, match="either"):
            Budget(**numbers)
    for bad in ({"stored_bytes": -1.0}, {"stored_bytes": float("nan")}, {"seconds": 0.0}, {"seconds": -1.0}):
        with pytest.raises(ValueError, match="it must be"):
            Budget(**bad)
    planner = Planner(random_workload(4), MODEL, max_hops=2)
    for bytes_of_keys in (0.0, 10.0):
        with pytest.raises(InfeasibleBudgetError, match=r"The smallest has .*B, of which .* or more hops"):
            planner.best(Budget(stored_bytes=bytes_of_keys))
    with pytest.raises(InfeasibleBudgetError, match=r"at most 1 ns. The fastest, with .*; allow more time"):
        planner.best(Budget(seconds=1e-9))
