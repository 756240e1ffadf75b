"""A budget for the keys of several rings: what the smaller ones get, and what is left for the largest."""

from collections.abc import Sequence

from keywright._units import format_bytes, format_seconds
from keywright.plan.keys.budget import Budget, InfeasibleBudgetError
from keywright.plan.keys.key_plan import KeyPlan

from .quick import TimedPlan, plan_jointly


def divide_budget(
    largest: Sequence[TimedPlan], smaller: Sequence[Sequence[TimedPlan]], budget: Budget
) -> tuple[tuple[KeyPlan, ...], Budget]:
    """The plans of the smaller rings as the keys of all rings together are best, and what they leave.

    Args:
        largest: plans of the largest ring with their times, from the fewest bytes up.
        smaller: the same of each smaller ring.
        budget: for all rings.

    Raises:
        InfeasibleBudgetError: the smaller rings alone take more.
    """
    if not smaller:
        return (), budget
    joint = plan_jointly([largest, *smaller])
    sizes = [sum(plan.stored_bytes for plan in plans) for plans, _ in joint]
    seconds = {id(plan): time for ring in (largest, *smaller) for plan, time in ring}
    if budget.stored_bytes is not None:
        within = [place for place, size in enumerate(sizes) if size <= budget.stored_bytes]
        plans = joint[within[-1] if within else 0][0][1:]
        left = budget.stored_bytes - sum(plan.stored_bytes for plan in plans)
        if left < 0:
            least = format_bytes(sum(plan.stored_bytes for plan in plans))
            raise InfeasibleBudgetError(f"the keys of the smaller rings alone take {least} at least")
        return plans, Budget(stored_bytes=left)
    assert budget.seconds is not None
    fast = [place for place, (_, time) in enumerate(joint) if time <= budget.seconds]
    plans = joint[fast[0] if fast else -1][0][1:]
    own = sum(seconds[id(plan)] for plan in plans)
    if own >= budget.seconds:
        raise InfeasibleBudgetError(f"the smaller rings alone take {format_seconds(own)} at least")
    return plans, Budget(seconds=budget.seconds - own)
