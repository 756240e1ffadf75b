"""The key sets of KDS (sections 6.2 to 6.4), and planned ones, for one program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from keywright.plan import (
    STRATEGIES,
    Budget,
    CostModel,
    Group,
    InfeasibleBudgetError,
    KeyPlan,
    KeyPolicy,
    Planner,
    Workload,
    published_bytes,
)
from keywright.plan.keys.time_prediction import predict_plan

INDICES = {"pot": "signed-power-of-two", "all": "all-required"}
ALPHAS: dict[str, KeyPolicy] = {
    "p1": KeyPolicy(1, "needed"),
    "p1-top": KeyPolicy(1, "all"),
    "pdyn": KeyPolicy("dynamic", "needed"),
    "pdyn-top": KeyPolicy("dynamic", "all"),
}
"""alpha = 1 and dynamic, keys for the highest level of their use; `top`: for the highest level of all."""
BEST = "all-pdyn"
"""The key set whose time the planned ones are given: the fastest of the published ones."""
PLANNED = {"optimal-1.0": 1.0, "optimal-1.05": 1.05}
WITHIN = {"optimal-2gb": 2e9}
NAMES = (*(f"{index}-{alpha}" for index in INDICES for alpha in ALPHAS), *PLANNED, *WITHIN)
HOPS = 2


def of_bootstrap(group: Group) -> bool:
    """Whether a group is of a bootstrap: its name has the stage after the ciphertext's."""
    return "/" in group.name and not group.name.partition("/")[2].isdigit()


def published(workload: Workload, model: CostModel, name: str) -> KeyPlan:
    """A key set of the paper. Rotations of bootstraps have keys of their own with every index selection, as
    bootstrapping keys are made with the bootstrapping."""
    index, _, alpha = name.partition("-")
    policy = ALPHAS[alpha]
    every = STRATEGIES["all-required"].plan(workload, model, policy)
    if index == "all":
        return every
    powers = STRATEGIES[INDICES[index]].plan(workload, model, policy)
    hops = tuple(
        own if of_bootstrap(group) else hop
        for group, own, hop in zip(workload.groups, every.hops, powers.hops, strict=True)
    )
    return replace(powers, hops=hops)


def planned(workload: Workload, model: CostModel, names: list[str]) -> Iterator[tuple[str, KeyPlan]]:
    """`optimal` within times of the fastest published set, and within bytes. A name is left out where no plan
    is within its bytes."""
    if not names:
        return
    planner = Planner(workload, model, max_hops=HOPS)
    fastest = predict_plan(published(workload, model, BEST), model).seconds
    for name in names:
        try:
            if name in WITHIN:
                yield name, planner.best(Budget(stored_bytes=WITHIN[name]))
            else:
                yield name, planner.best(Budget(seconds=PLANNED[name] * fastest))
        except InfeasibleBudgetError:
            continue


def formula_bytes(plan: KeyPlan) -> int:
    """Bytes of a plan's keys by the paper's formula, both halves."""
    log_n = plan.workload.chain.log_n
    return sum(published_bytes(log_n, key.shape.level, key.shape.alpha) for key in plan.keys)
