"""How much memory a command may take, and what it plans to do with it."""

import argparse

from keywright import nn
from keywright._terminal import Column, Terminal
from keywright._units import format_bytes
from keywright.plan import CostModel
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import default_budget, map_large_allocations, resident_bytes
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan

from .inputs import parse_bytes
from .program_and_keys import Compiled

PARTS = [Column("part", "memory"), Column("bytes", "bytes", "bytes")]


def add_memory_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the budget of the process."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="most memory of this process, as 8GiB: keys, diagonals, ciphertexts and everything else "
        "(default: 80 percent of what the machine has free)",
    )


def memory_budget(options: argparse.Namespace) -> int:
    """Most bytes of the process: those that are named, or most of what is free. What is freed from now on is
    given back."""
    map_large_allocations()
    return default_budget() if options.memory is None else parse_bytes(options.memory)


def plan_inference(compiled: Compiled, samples: int, budget: int) -> ProcessPlan:
    """Keys and diagonals of a process that makes its keys and evaluates a number of samples.

    Raises:
        MemoryBudgetError: nothing is within the budget.
    """
    batches = -(-samples // compiled.program.batch)
    process = Process(resident_bytes(), compiled.program.outputs, samples=batches)
    model = stored_model() or CostModel()
    return plan_process(compiled.candidates, compiled.program, process, budget, model)


def plan_server(compiled: Compiled, budget: int) -> PlanExecution:
    """Keys that a server of so much memory is fastest with.

    Raises:
        MemoryBudgetError: nothing is within the budget.
    """
    process = Process(resident_bytes(), compiled.program.outputs, makes_keys=False)
    model = stored_model() or CostModel()
    return plan_process(compiled.candidates, compiled.program, process, budget, model).execution


def plan_run(
    program: nn.Program, execution: PlanExecution, batches: int, key_memory: int | None, budget: int
) -> ProcessPlan:
    """Keys of a folder, and diagonals, of a process that evaluates a number of batches.

    Args:
        key_memory: most bytes of keys in memory, where that is asked for.

    Raises:
        MemoryBudgetError: nothing is within the budget.
    """
    process = Process(
        resident_bytes(), program.outputs, samples=batches, makes_keys=False, key_memory=key_memory
    )
    return plan_process([execution], program, process, budget, stored_model() or CostModel())


def print_memory(planned: ProcessPlan, terminal: Terminal) -> None:
    """Print the predicted peak part by part."""
    rows: list[dict[str, str | int]] = [
        {"part": name, "bytes": size} for name, size in planned.memory.parts().items()
    ]
    title = (
        f"At most {format_bytes(planned.memory.total)} of {format_bytes(planned.budget)}: {planned.explain()}"
    )
    terminal.table(PARTS, [*rows, {"part": "peak", "bytes": planned.memory.total}], title=title)
