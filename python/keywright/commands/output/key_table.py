"""Compares the keys of a model with common key sets: bytes as sent and in memory, and predicted time."""

from collections.abc import Sequence

from keywright import plan as planning
from keywright.commands.terminal import Column, Value
from keywright.keys import inspect, set_head
from keywright.model import Model
from keywright.plan.cost import stored_model

USUAL = {
    "all-required": "one full-size key for every rotation",
    "power-of-two": "powers of 2 only, as SEAL makes them",
}
"""Strategies of other libraries, and what the table calls their keys."""

KEY_COLUMNS = [
    Column("set", "evaluation keys"),
    Column("keys", "keys", "number"),
    Column("sent_bytes", "sent once", "bytes"),
    Column("relative", "predicted answer time", "ratio"),
]


def key_table(model: Model, candidates: Sequence[planning.PlanExecution]) -> list[dict[str, Value]]:
    """Compare the keys of a model with the keys of common strategies.

    The second row has the fewest bytes of the candidates among which the first row was chosen; `keywright
    plan` searches further. One strategy has a key for every rotation, as in libraries whose keys have no
    level; another has powers of two, from which other rotations are composed. Each set includes the
    relinearization keys. Bytes count the file that a client sends and, in JSON only, the server's memory,
    both with seeds. Times are predicted, relative to the model's own plan.
    """
    own, costs = model.execution, stored_model()
    seconds = planning.predict_plan(own.plan, costs).seconds

    def row(name: str, plan: planning.KeyPlan, execution: planning.PlanExecution) -> dict[str, Value]:
        return {
            "set": name,
            "keys": len(execution.key_specs),
            "sent_bytes": inspect(set_head(execution.key_specs))["bytes"],
            "held_bytes": sum(spec.bytes for spec in execution.key_specs),
            "relative": planning.predict_plan(plan, costs).seconds / seconds,
        }

    rows = [row("Keywright's plan, used here", own.plan, own)]
    smallest = min(candidates, key=lambda execution: execution.plan.stored_bytes)
    rows.append(row("Keywright's plan, fewest bytes", smallest.plan, smallest))
    for strategy, name in USUAL.items():
        plan = planning.STRATEGIES[strategy].plan(own.plan.workload, costs)
        rows.append(row(name, plan, model.with_plan(plan).execution))
    return rows
