"""The integer program and its proofs compared with every possible plan."""

import random

import pytest
from keywright.errors import InfeasibleBudgetError
from keywright.plan import (
    STRATEGIES,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    Planner,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.model import FORMS
from keywright.plan.exact.bound import LowerBound
from keywright.plan.exact.optimizer import Optimizer
from keywright.plan.ring.galois import Automorphism
from keywright.plan.search import planner as planning
from keywright.plan.workload.workload import Group
from tests.plan.optimum.every_plan import EveryPlan

MODEL = CostModel()
CHAINS = (Chain(12, (30, 25, 25), (30, 30), 180), Chain(13, (50, 38, 38, 38), (50,)))


def random_workload(seed: int, forms: bool) -> Workload:
    """Return three automorphisms at the levels of a chain, several per ciphertext."""
    rng = random.Random(seed)
    chain = CHAINS[seed % 2]
    ring = Workload("", chain, ()).automorphisms
    first, second = rng.sample(range(-3, 6), 2)
    steps = sorted({first, second, rng.choice((first + second, 2 * first, first - second))} - {0})
    groups: list[Group] = []
    for order in range(rng.choice((2, 3))):
        targets = rng.sample(steps, rng.randrange(1, len(steps) + 1))
        group = make_group(
            ring, f"g{order}", rng.randrange(1, chain.max_level + 1), targets, rng.randrange(1, 6)
        )
        form = rng.choice(FORMS) if forms else "whole"
        groups.append(Group(group.name, group.level, group.targets, group.count, form))
    relinearizations = (Relinearizations(1, 1),) if rng.random() < 0.3 else ()
    return Workload(f"random {seed}", chain, tuple(groups), relinearizations)


def check_proofs(workload: Workload, hops: int) -> None:
    """Check plans of fewest bytes, and of least time."""
    one_each = STRATEGIES["kds"].plan(workload, MODEL)
    optimizer = Optimizer(workload, MODEL, hops=hops)
    assert optimizer.complete
    planner, bound = Planner(workload, MODEL, max_hops=hops), LowerBound(workload, MODEL, max_hops=hops)
    # One key each serves everything: no best plan has more bytes, whatever its time limit.
    every = list(EveryPlan(workload, MODEL, hops).within(one_each.stored_bytes))
    assert every

    def proven(plan: KeyPlan, value: float, best: float) -> None:
        assert plan.gap is not None
        assert (1 - plan.gap) * value <= best * (1 + 1e-9)
        assert best <= value * (1 + 1e-9)
        # The gap is closed, except where a whole switch is priced by its minimum.
        if all(group.form == "whole" for group in workload.groups):
            assert value <= best * (1 + 2e-4)

    for factor in (1.0, 1.4, 3.0):
        limit = factor * one_each.seconds(MODEL) * (1 + 1e-9)
        best = min(stored for stored, seconds in every if seconds <= limit)
        assert bound.stored_bytes(limit) <= best * (1 + 1e-9)
        for plan in (optimizer.solve(Budget(seconds=limit)), planner.best(Budget(seconds=limit))):
            if plan.seconds(MODEL) <= limit * (1 + 1e-6):
                proven(plan, plan.stored_bytes, best)
    for share in (0.5, 0.8, 1.0):
        limit = share * one_each.stored_bytes
        fastest = min((seconds for stored, seconds in every if stored <= limit), default=None)
        if fastest is None:
            with pytest.raises(InfeasibleBudgetError, match="at least"):
                optimizer.solve(Budget(stored_bytes=limit))
            continue
        assert bound.seconds(limit) <= fastest * (1 + 1e-9)
        for plan in (optimizer.solve(Budget(stored_bytes=limit)), planner.best(Budget(stored_bytes=limit))):
            assert plan.stored_bytes <= limit
            proven(plan, plan.seconds(MODEL), fastest)


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_proofs_against_every_plan(seed: int, hops: int) -> None:
    check_proofs(random_workload(seed, forms=False), hops)


@pytest.mark.parametrize("seed", range(20, 26))
def test_proofs_of_linear_transforms_against_every_plan(seed: int) -> None:
    check_proofs(random_workload(seed, forms=True), 2)


def test_a_key_may_have_a_level_at_which_it_only_serves_as_a_part() -> None:
    """Nothing rotates by 4093 at level 3, but its key there makes 4095 together with the key of 2."""
    ring = Workload("", CHAINS[1], ()).automorphisms
    groups = (make_group(ring, "g0", 2, [4093, 4095]), make_group(ring, "g1", 3, [2, 4095], 5))
    workload = Workload("part", CHAINS[1], groups)
    check_proofs(workload, 2)
    all_required = STRATEGIES["all-required"].plan(workload, MODEL)
    best = Planner(workload, MODEL, max_hops=2).best(Budget(seconds=2 * all_required.seconds(MODEL)))
    assert {(key.automorphism, key.shape.level) for key in best.keys} == {
        (Automorphism(2), 3),
        (Automorphism(4093), 3),
    }
    assert best.gap == 0


@pytest.mark.parametrize("seed", range(4))
def test_an_incomplete_program_proves_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the integer program over all keys is too large or leaves ways out, the linear program bounds."""
    workload = random_workload(seed, forms=False)
    limit = 2 * STRATEGIES["kds"].plan(workload, MODEL).seconds(MODEL)
    complete, restricted = Optimizer(workload, MODEL), Optimizer(workload, MODEL, every_level=False)
    assert complete.complete
    assert not restricted.complete
    assert not Optimizer(workload, MODEL, ways=0).complete or len(workload.highest_levels) == 1
    monkeypatch.setattr(planning, "EXACT_COLUMNS", restricted.columns)
    planner = Planner(workload, MODEL, max_hops=2)
    plan = planner.best(Budget(seconds=limit))
    assert plan.gap is not None
    if restricted.columns < complete.columns:
        bound = LowerBound(workload, MODEL, max_hops=2).stored_bytes(limit)
        assert plan.gap == pytest.approx(1 - bound / plan.stored_bytes)
