"""The key sets of KDS (sections 6.2 to 6.4), those of ARK and LowMem, and planned ones, for one program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from keywright.errors import InfeasibleBudgetError
from keywright.plan import STRATEGIES, Budget, CostModel, KeyPlan, KeyPolicy, Planner, Workload
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.search.network_planner import quick_plans
from keywright.plan.workload.workload import Group

from studies.network_keys.kds import published_bytes

INDICES = {"pot": "signed-power-of-two", "all": "all-required"}
"""Of KDS."""
OTHERS = {"arkmemory": "ark-memory", "arktime": "ark-time", "lowmem": "lowmem"}
"""Of ARK, with the fastest digits at the levels needed."""
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
NAMES = (
    *(f"{index}-{alpha}" for index in INDICES for alpha in ALPHAS),
    *PLANNED,
    *WITHIN,
    *(f"{index}-pdyn" for index in OTHERS),
)
DEFAULT = tuple(name for name in NAMES if not name.endswith("-top") and name.partition("-")[0] not in OTHERS)
HOPS = 2


def of_bootstrap(group: Group) -> bool:
    """Whether a group is of a bootstrap: its name has the stage after the ciphertext's."""
    return "/" in group.name and not group.name.partition("/")[2].isdigit()


def published(workload: Workload, model: CostModel, name: str) -> KeyPlan:
    """A published key set. Rotations of bootstraps have keys of their own with every index selection, as
    bootstrapping keys are made with the bootstrapping. So has a group of the network with the same
    targets and level, which the engine does not tell from them."""
    index, _, alpha = name.partition("-")
    policy = ALPHAS[alpha]
    every = STRATEGIES["all-required"].plan(workload, model, policy)
    if index == "all":
        return every
    fewer = STRATEGIES[{**INDICES, **OTHERS}[index]].plan(workload, model, policy)
    kept = {(group.level, group.targets) for group in workload.groups if of_bootstrap(group)}
    hops = tuple(
        own if (group.level, group.targets) in kept else hop
        for group, own, hop in zip(workload.groups, every.hops, fewer.hops, strict=True)
    )
    return replace(fewer, hops=hops)


def planned(workload: Workload, model: CostModel, names: list[str]) -> Iterator[tuple[str, KeyPlan]]:
    """The fewest bytes within times of the fastest published set, and the least time within bytes: by
    `optimal`, or of a frontier that is found in seconds where there are bootstraps. A name is left out where
    no plan is within its budget."""
    if not names:
        return
    fastest = predict_plan(published(workload, model, BEST), model).seconds
    if workload.common.bootstraps:
        yield from _of_frontier(quick_plans(workload, model, max_hops=HOPS), fastest, names)
        return
    planner = Planner(workload, model, max_hops=HOPS)
    for name in names:
        bytes_, factor = WITHIN.get(name), PLANNED.get(name)
        budget = Budget(stored_bytes=bytes_) if factor is None else Budget(seconds=factor * fastest)
        try:
            yield name, planner.best(budget)
        except InfeasibleBudgetError:
            continue


def _of_frontier(
    timed: Sequence[tuple[KeyPlan, float]], fastest: float, names: list[str]
) -> Iterator[tuple[str, KeyPlan]]:
    for name in names:
        if name in WITHIN:
            within = [(seconds, plan) for plan, seconds in timed if plan.stored_bytes <= WITHIN[name]]
            nearest = min(within, key=lambda entry: entry[0], default=None)
        else:
            limit = PLANNED[name] * fastest
            within = [(seconds, plan) for plan, seconds in timed if seconds <= limit]
            nearest = min(within, key=lambda entry: entry[1].stored_bytes, default=None)
        if nearest is not None:
            yield name, nearest[1]


def formula_bytes(plan: KeyPlan) -> int:
    """Bytes of a plan's rotation keys by the paper's formula, both halves."""
    log_n = plan.workload.chain.log_n
    rotations = [key.shape for key in plan.keys if key.automorphism is not None]
    return sum(published_bytes(log_n, shape.level, shape.alpha) for shape in rotations)


def facts(plan: KeyPlan, model: CostModel) -> dict[str, str | int | float]:
    """What a plan says of itself, for one thread; keys to and from ephemeral secrets are not among them."""
    rotations = [key.shape for key in plan.keys if key.automorphism is not None]
    return {
        "strategy": plan.strategy,
        "keys": len(plan.keys),
        "rotations": len(plan.workload.highest_levels),
        "switches": plan.switches,
        "longest_way": plan.max_hops,
        "formula_bytes": formula_bytes(plan),
        "rotation_seeded_bytes": sum(shape.stored_bytes for shape in rotations),
        "predicted_s": predict_plan(plan, model).seconds,
        "switches_predicted_s": plan.seconds(model),
    }
