"""A program whose batch, keys and diagonals are within a budget of memory."""

from collections.abc import Callable

from keywright.errors import MemoryBudgetError
from keywright.plan.memory.process import ProcessPlan

from .memory import plan_inference
from .program_and_keys import Compiled


def plan_batches(
    compiled: Compiled, samples: int, budget: int, with_batch: Callable[[int], Compiled]
) -> tuple[Compiled, ProcessPlan]:
    """What evaluates samples within a budget: what was compiled, or the same for half as many samples at a
    time, a quarter, and so on, as long as more do not fit.

    Args:
        compiled: for the batch that is best without a budget.
        with_batch: compiles for another one.

    Raises:
        MemoryBudgetError: not even one sample at a time is within the budget.
    """
    while True:
        try:
            return compiled, plan_inference(compiled, samples, budget)
        except MemoryBudgetError:
            if compiled.program.batch == 1:
                raise
        compiled = with_batch(compiled.program.batch // 2)
