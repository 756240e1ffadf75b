"""Plans of several rings, joined."""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import keywright as kw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keywright.errors import InfeasibleBudgetError
from keywright.plan import CostModel, KeyFrontier
from keywright.plan.cost.model import RING_FACTORS, TYPICAL_WEIGHTS
from keywright.plan.keys.budget import Budget
from keywright.plan.search.joint_planner import divide_budget
from keywright.plan.search.network_planner import plan_jointly, with_steps


def frontier(points: list[tuple[int, int]]) -> list[tuple[Any, float]]:
    """Plans of a ring, from the fewest bytes up, times falling."""
    out: list[tuple[Any, float]] = []
    for size, seconds in sorted(points):
        if not out or seconds < out[-1][1]:
            out.append((SimpleNamespace(stored_bytes=size), float(seconds)))
    return out


POINTS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=6)


@given(st.lists(POINTS, min_size=2, max_size=3))
def test_no_other_choice_is_below_the_line_between_two_that_are_found(
    points: list[list[tuple[int, int]]],
) -> None:
    rings = [frontier(one) for one in points]
    choices = [(sum(plan.stored_bytes for plan in plans), seconds) for plans, seconds in plan_jointly(rings)]
    every = [
        (sum(plan.stored_bytes for plan, _ in one), sum(seconds for _, seconds in one))
        for one in product(*rings)
    ]
    assert choices == sorted(choices)
    assert choices[0][0] == min(size for size, _ in every)
    assert choices[-1][1] == pytest.approx(min(seconds for _, seconds in every))
    for (small, slow), (large, fast) in pairwise(choices):
        for size, seconds in every:
            if small <= size <= large and large > small:
                share = (size - small) / (large - small)
                assert seconds >= slow + share * (fast - slow) - 1e-9


@given(st.lists(POINTS, min_size=2, max_size=3))
def test_steps_between_choices_meet_limits_more_closely(points: list[list[tuple[int, int]]]) -> None:
    rings = [frontier(one) for one in points]
    choices, steps = (
        [(sum(plan.stored_bytes for plan in plans), time) for plans, time in kind(rings)]
        for kind in (plan_jointly, with_steps)
    )
    for plans, time in with_steps(rings):
        own = {id(plan): each for ring in rings for plan, each in ring}
        assert time == pytest.approx(sum(own[id(plan)] for plan in plans))
    assert {each for each, _ in choices} <= {each for each, _ in steps}
    assert all(small[0] < large[0] and small[1] > large[1] for small, large in pairwise(steps))


@given(POINTS)
def test_one_ring_has_all_its_plans(points: list[tuple[int, int]]) -> None:
    ring = frontier(points)
    assert plan_jointly([ring]) == [((plan,), seconds) for plan, seconds in ring]


@given(st.lists(POINTS, min_size=2, max_size=3), st.integers(1, 150))
def test_a_budget_is_divided_as_all_rings_together_are_best(
    points: list[list[tuple[int, int]]], amount: int
) -> None:
    """The rest is enough for the largest ring's own plan of the joint choice, if there is one."""
    largest, *smaller = (frontier(one) for one in points)
    joint = [
        (sum(plan.stored_bytes for plan in plans), seconds, plans)
        for plans, seconds in plan_jointly([largest, *smaller])
    ]
    times = {id(plan): seconds for ring in smaller for plan, seconds in ring}
    for budget in (Budget(stored_bytes=amount), Budget(seconds=amount)):
        by_bytes = budget.stored_bytes is not None
        within = [one for one in joint if (one[0] if by_bytes else one[1]) <= amount]
        try:
            plans, left = divide_budget(largest, smaller, budget)
        except InfeasibleBudgetError:
            assert not within
            continue
        if within:
            own = within[-1] if by_bytes else within[0]
            assert plans == own[2][1:]
        if by_bytes:
            assert left.stored_bytes == amount - sum(plan.stored_bytes for plan in plans)
        else:
            assert left.seconds == pytest.approx(amount - sum(times[id(plan)] for plan in plans))
    assert divide_budget(largest, [], Budget(seconds=amount)) == ((), Budget(seconds=amount))


def test_a_faster_machine_has_the_same_plans() -> None:
    """Rounded sums must not decide between changes that cost the same."""
    model = kw.compile((files("keywright") / "data" / "digits.onnx").read_bytes())
    plans = []
    for factor in (1.0, 0.57, 0.6, *RING_FACTORS.values()):
        costs = CostModel(TYPICAL_WEIGHTS.times(factor))
        frontier = KeyFrontier(model.program, model.parameters, model=costs)
        plans.append([execution.plan.keys for execution in frontier.candidates])
    assert all(plan == plans[0] for plan in plans)
