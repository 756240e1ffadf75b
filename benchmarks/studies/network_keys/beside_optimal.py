"""Compares `optimal` with every published strategy: whether any of their plans is better."""

from __future__ import annotations

from dataclasses import dataclass

from keywright.plan import STRATEGIES, Budget, KeyPlan, KeyPolicy, Planner
from keywright.plan.search.planner import POLICIES

ALL_POLICIES = (None, *POLICIES, KeyPolicy(1, "all"))
"""Keys as they are by default, as the planner tries them, and one prime a digit at the top level."""


@dataclass(frozen=True)
class Comparison:
    """Results of the comparison with every strategy under every policy.

    Attributes:
        compared: number of plans with at most the planner's hops.
        longer: strategies, and their hops, with plans of more hops.
        smaller: whether one of those has fewer bytes than the smallest plan found.
        worse: plans that are better than `optimal`, in words; must be empty.
    """

    compared: int
    longer: dict[str, int]
    smaller: bool
    worse: list[str]


def compare(planner: Planner) -> Comparison:
    """Compare with a plan of every strategy under every policy: in its time there must be a plan of no more
    bytes, within its bytes one of no more time."""
    compared, longer, smaller, worse = 0, {}, False, []
    least = planner.smallest(solve=False).stored_bytes
    for strategy in STRATEGIES.values():
        for policy in ALL_POLICIES:
            plan = strategy.plan(planner.workload, planner.model, policy)
            if plan.max_hops > planner.max_hops:
                longer[strategy.name] = plan.max_hops
                smaller = smaller or plan.stored_bytes < least
                continue
            compared += 1
            worse += [
                f"{planner.workload.name}: {plan.strategy}, {policy}: {how}" for how in _worse(planner, plan)
            ]
    return Comparison(compared, longer, smaller, worse)


def _worse(planner: Planner, plan: KeyPlan) -> list[str]:
    seconds = planner.seconds(plan)
    smaller = planner.quick(Budget(seconds=seconds))
    faster = planner.quick(Budget(stored_bytes=plan.stored_bytes))
    out = []
    if smaller.stored_bytes > plan.stored_bytes or planner.seconds(smaller) > seconds * (1 + 1e-9):
        out.append(f"{smaller.stored_bytes} bytes in {seconds} s, not {plan.stored_bytes}")
    if planner.seconds(faster) > seconds * (1 + 1e-9) or faster.stored_bytes > plan.stored_bytes:
        out.append(f"{planner.seconds(faster)} s within {plan.stored_bytes} bytes, not {seconds}")
    return out
