"""The time of planning, and the saving of longer routes (section IV and figure 4 of ARK)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from keywright.errors import InfeasibleBudgetError
from keywright.plan import STRATEGIES, Budget, CostModel, Planner, Workload
from published import convfhe

HOPS = (1, 2, 3, 4)
FACTORS = (1.0, 1.5)
"""Times within which keys are planned, of what a program takes with a key for every rotation."""


def rows(workloads: Mapping[str, Workload], model: CostModel) -> Iterator[dict[str, object]]:
    """For each program: ARK's two configurations, then the fewest bytes with routes of at most 1, 2, 3 and 4
    rotations, within a budget of time. Each has the processor seconds of planning, on one thread. The first
    includes the search that all budgets share."""
    for name, workload in workloads.items():
        for strategy in ("ark-memory", "ark-time"):
            begin = time.process_time()
            plan = STRATEGIES[strategy].plan(workload, model)
            spent = time.process_time() - begin
            yield {"program": name, "plan": strategy, "keys": len(plan.keys), "processor_s": spent}
        every = STRATEGIES["all-required"].plan(workload, model)
        if name[0].isdigit():
            every = convfhe.with_own_keys(every)
        for hops in HOPS:
            begin = time.process_time()
            planner = Planner(workload, model, max_hops=hops)
            for factor in FACTORS:
                try:
                    plan = planner.best(Budget(seconds=factor * every.seconds(model)))
                except InfeasibleBudgetError:
                    continue
                yield {
                    "program": name,
                    "plan": "optimal",
                    "hops": hops,
                    "of_own_time": factor,
                    "keys": len(plan.keys),
                    "stored_bytes": plan.stored_bytes,
                    "longest_way": plan.max_hops,
                    "processor_s": time.process_time() - begin,
                }
                begin = time.process_time()
