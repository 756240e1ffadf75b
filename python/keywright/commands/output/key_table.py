"""Compares the keys of a model with common key sets: bytes as sent and as held, and time."""

from keywright import plan as planning
from keywright._core import key_set_head
from keywright.commands.terminal import Column, Value
from keywright.keys import inspect
from keywright.model import Model
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.keys.time_prediction import predict_plan

USUAL = {
    "all-required": "every rotation, at the top level",
    "power-of-two": "powers of two, at the top level",
}
"""Strategies of other libraries, and what the table calls their keys."""

KEY_COLUMNS = [
    Column("set", "evaluation keys"),
    Column("keys", "keys", "number"),
    Column("sent_bytes", "sent", "bytes"),
    Column("held_bytes", "held", "bytes"),
    Column("relative", "time", "ratio"),
]


def key_table(model: Model) -> list[dict[str, Value]]:
    """Compare the keys of a model with the keys of common strategies.

    One strategy has a key for every rotation, as in libraries whose keys have no level; the other has powers
    of two, from which other rotations are composed. Each set includes the relinearization keys. Sent are the
    bytes of a client's file, and held the bytes in a server's memory, both with seeds. Times are predicted,
    relative to the model's own plan.
    """
    own, costs = model.execution, stored_model() or planning.CostModel()
    seconds = predict_plan(own.plan, costs).seconds

    def row(name: str, plan: KeyPlan, execution: PlanExecution) -> dict[str, Value]:
        return {
            "set": name,
            "keys": len(execution.key_specs),
            "sent_bytes": inspect(key_set_head(execution.key_specs))["bytes"],
            "held_bytes": sum(spec.bytes for spec in execution.key_specs),
            "relative": predict_plan(plan, costs).seconds / seconds,
        }

    rows = [row("this model's, as planned", own.plan, own)]
    for strategy, name in USUAL.items():
        plan = planning.STRATEGIES[strategy].plan(own.plan.workload, costs)
        rows.append(row(name, plan, model.with_plan(plan).execution))
    return rows
