"""Workloads with open parts, planned together with their keys, compared with every choice and every set of
keys."""

import random

import pytest
from keywright._units import format_bytes
from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    OpenWorkload,
    Planner,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.ephemeral import EphemeralSwitch
from keywright.plan.exact.bound import LowerBound
from keywright.plan.exact.optimizer import Optimizer
from keywright.plan.ring.galois import Automorphism
from keywright.plan.search.frontier import descend, fastest_state
from keywright.plan.search.joint_planner import JointPlanner
from keywright.plan.workload import Choice
from keywright.plan.workload.factors import COUNTS, factor_alternatives
from keywright.plan.workload.open_workload import Alternative
from keywright.plan.workload.workload import CommonWork

CHAIN = Chain(12, (30, 25, 25), (30,), 140)
WIDE = Chain(12, (30, 25, 25), (30, 30), 140)
GROUP = AutomorphismGroup(12)
MODEL = CostModel()


def toy(seed: int, chain: Chain = CHAIN) -> OpenWorkload:
    """Return a few rotations, and two parts with two alternatives each."""
    rng = random.Random(seed)
    fixed = [make_group(GROUP, f"g{i}", rng.choice((1, 2)), [rng.randrange(1, 6)], 2) for i in range(2)]
    choices = []
    for index in range(2):
        ways = []
        for way in range(2):
            steps = [rng.randrange(1, 6) for _ in range(rng.choice((1, 2)))]
            groups = [make_group(GROUP, f"c{index}", rng.choice((1, 2)), [step], 3) for step in steps]
            ways.append(Alternative(f"way {way}", tuple(groups)))
        choices.append(Choice(f"c{index}", (index,), tuple(ways)))
    workload = Workload(f"toy {seed}", chain, tuple(fixed), (Relinearizations(1, 1),))
    return OpenWorkload(workload, tuple(choices))


def selections(opened: OpenWorkload) -> list[list[int]]:
    out: list[list[int]] = [[]]
    for choice in opened.choices:
        out = [[*before, way] for before in out for way in range(len(choice.alternatives))]
    return out


@pytest.mark.parametrize("seed", range(6))
def test_parts_and_keys_are_chosen_together(seed: int) -> None:
    """Every selection is an integer program of its own, compared with every set of keys in test_plans.py."""
    opened = toy(seed)
    optimizer = Optimizer(opened, MODEL)
    bound = LowerBound(opened, MODEL)
    each = [Optimizer(opened.resolve(selection), MODEL) for selection in selections(opened)]
    fastest = min(plan.seconds(MODEL) for plan in (one.solve(Budget(stored_bytes=1e9)) for one in each))
    for factor in (1.0, 1.3, 2.0):
        budget = Budget(seconds=factor * fastest * (1 + 1e-9))
        plans: list[KeyPlan] = []
        for one in each:
            try:
                plans.append(one.solve(budget))
            except InfeasibleBudgetError:
                continue
        least = min(plan.stored_bytes for plan in plans)
        together = optimizer.solve(budget)
        assert together.stored_bytes == least
        assert together.seconds(MODEL) <= factor * fastest * (1 + 1e-6)
        assert bound.stored_bytes(factor * fastest) <= least * (1 + 1e-9)
        assert bound.seconds(least) <= factor * fastest * (1 + 1e-9)
    planned = Planner(opened, MODEL, max_hops=2).best(Budget(seconds=1.3 * fastest))
    exact = optimizer.solve(Budget(seconds=1.3 * fastest))
    assert planned.stored_bytes == exact.stored_bytes
    assert planned.gap == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_open_plans_are_never_worse(seed: int) -> None:
    """Compare with every selection and every published strategy; deterministic, with a gap."""
    opened = toy(seed + 50)
    planner = Planner(opened, MODEL, max_hops=4)
    for selection in selections(opened):
        fixed = Planner(opened.resolve(selection), MODEL, max_hops=2)
        plan = fixed.best(Budget(stored_bytes=1e9))
        best = planner.best(Budget(seconds=plan.seconds(MODEL) * (1 + 1e-9)))
        assert best.stored_bytes <= plan.stored_bytes
        assert best.gap is not None
        assert 0 <= best.gap <= 1
    for strategy in STRATEGIES.values():
        published = strategy.plan(opened.published, MODEL)
        if published.max_hops <= 4:
            assert (
                planner.best(Budget(seconds=published.seconds(MODEL))).stored_bytes <= published.stored_bytes
            )
    again = Planner(toy(seed + 50), MODEL, max_hops=4)
    assert [(p.stored_bytes, p.seconds) for p in again.points] == [
        (p.stored_bytes, p.seconds) for p in planner.points
    ]


def test_variants_are_planned_together() -> None:
    ephemeral = (EphemeralSwitch(32, 2, 1, 1),)
    narrow, wide = toy(1), toy(1, WIDE)
    with_keys = OpenWorkload(
        Workload(
            "toy", WIDE, wide.workload.groups, wide.workload.relinearizations, common=CommonWork(ephemeral)
        ),
        wide.choices,
    )
    joint = JointPlanner([narrow, with_keys], MODEL, max_hops=2)
    for factor in (1.0, 2.0):
        budget = Budget(seconds=factor * 1e-3 + 1e-2)
        each = [planner.best(budget) for planner in joint.planners]
        best = joint.best(budget)
        assert best.stored_bytes == min(plan.stored_bytes for plan in each)
        assert best.gap is not None
        assert best.gap <= max(plan.gap or 0.0 for plan in each) + 1e-9
    fixed = joint.planners[1].best(Budget(stored_bytes=1e9))
    keys = sum(key.shape.stored_bytes for key in fixed.keys)
    assert fixed.stored_bytes == keys + (8 << 12) * 4 + 32
    assert Workload.from_json(fixed.workload.to_json()) == fixed.workload
    # The least of all variants.
    least = min(planner.smallest().stored_bytes for planner in joint.planners)
    with pytest.raises(InfeasibleBudgetError, match=f"The smallest has {format_bytes(least)}"):
        joint.best(Budget(stored_bytes=1000))
    with pytest.raises(ValueError, match="variants is empty"):
        JointPlanner([], MODEL)


def test_time_is_bounded_by_counting_keys() -> None:
    groups = tuple(make_group(GROUP, f"g{step}", 2, [step * step]) for step in range(1, 25))
    workload = Workload("single", CHAIN, groups)
    smallest = min(key.shape.stored_bytes for key in STRATEGIES["kds"].plan(workload, MODEL).keys)
    for hops in (1, 2, 3, 4):
        bound = LowerBound(workload, MODEL, max_hops=hops)
        points = descend(fastest_state(workload, MODEL, max_hops=hops))
        fastest = points[0].seconds
        for point in points:
            assert bound.seconds(point.stored_bytes) <= point.seconds * (1 + 1e-9)
            assert bound.stored_bytes(point.seconds) <= point.stored_bytes * (1 + 1e-9)
        # With a third of the keys of level 2 there are at least two hops for the others.
        if hops > 1:
            assert bound.seconds(8 * smallest) > 1.2 * bound.seconds(24 * smallest)
        assert bound.seconds(24 * smallest) <= fastest * (1 + 1e-9)
    assert LowerBound(workload, MODEL, max_hops=2).seconds(smallest) == float("inf")


def test_factors_of_a_transform() -> None:
    ways = factor_alternatives(GROUP, "f", 2, range(-6 * 8, 7 * 8, 8))
    assert [len(way.groups) for way in ways] == [1, 2, 2, 2, 2, 2, 2]
    for way, babies in zip(ways, COUNTS, strict=False):
        hoisted = [group for group in way.groups if group.name.endswith("baby")]
        chained = [group for group in way.groups if group.name.endswith("giant")]
        assert [a.step for group in hoisted for a in group.targets] == [8 * k for k in range(1, babies)]
        # Every diagonal is a baby step after giant steps.
        assert sum(group.count for group in chained) + 1 == -(-13 // babies)
        assert all(group.targets == (Automorphism(8 * babies),) for group in chained)
    # Diagonals that go all the way round.
    round_way = factor_alternatives(GROUP, "f", 2, range(-1024, 1024, 128))
    assert round_way[-1].name == "16 baby steps, chain of 0"
    assert len(round_way[-1].groups) == 1


def test_open_workloads_that_are_not_ones() -> None:
    workload = Workload("p", CHAIN, (make_group(GROUP, "g", 1, [1]),))
    way = Alternative("w", (make_group(GROUP, "g", 2, [1]),))
    for choice, message in (
        (Choice("c", (0,), ()), "at least one alternative"),
        (Choice("c", (), (way,)), "one place"),
        (Choice("c", (2,), (way,)), r"place 2 is not in \[0, 1\]"),
        (Choice("c", (0,), (Alternative("w", (make_group(GROUP, "g", 3, [1]),)),)), "level 3"),
    ):
        with pytest.raises(WorkloadError, match=message):
            OpenWorkload(workload, (choice,))
    opened = OpenWorkload(workload, (Choice("c", (0, 1), (way,)),))
    assert [group.level for group in opened.published.groups] == [2, 1, 2]
    with pytest.raises(WorkloadError, match="1 choices"):
        opened.resolve([])
    with pytest.raises(WorkloadError, match="alternative 1"):
        opened.resolve([1])
    with pytest.raises(WorkloadError, match="ephemeral key of level 0"):
        Workload("p", Chain(16, (61,), (61,)), (), common=CommonWork((EphemeralSwitch(32, 0, 1, 1),)))
    with pytest.raises(WorkloadError, match="2 special primes"):
        Workload("p", Chain(16, (51,), (51,)), (), common=CommonWork((EphemeralSwitch(32, 0, 2, 1),)))
