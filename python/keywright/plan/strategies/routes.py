"""Turns routes through the group into a plan: the common part of all published strategies."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from keywright.plan.cost.model import CostModel
from keywright.plan.keys.key_plan import KeyPlan, PlannedKey, tree_of_routes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.workload import Group, Workload

from .policy import KeyPolicy

Router = Callable[[Group], dict[Automorphism, Sequence[Automorphism]]]
"""For each target of a group its keys' automorphisms, first hop first."""


def plan_routes(
    name: str, workload: Workload, model: CostModel, policy: KeyPolicy, router: Router
) -> KeyPlan:
    """Return a plan that follows the given routes with keys of the given policy."""
    routes = [router(group) for group in workload.groups]
    uses: defaultdict[Automorphism | None, set[int]] = defaultdict(set)
    for group, ways in zip(workload.groups, routes, strict=True):
        for way in ways.values():
            for hop in way:
                uses[hop].add(group.level)
    for use in workload.relinearizations:
        uses[None].add(use.level)
    keys = policy.keys(workload, model, uses)
    add = workload.automorphisms.add
    hops = []
    for group, ways in zip(workload.groups, routes, strict=True):
        keyed: dict[Automorphism, list[PlannedKey]] = {
            target: [keys[hop, group.level] for hop in way] for target, way in ways.items()
        }
        hops.append(tree_of_routes(group, keyed, add))
    relinearization = {use.level: keys[None, use.level] for use in workload.relinearizations}
    plan = KeyPlan(name, workload, tuple(hops), relinearization)
    plan.check()
    return plan
