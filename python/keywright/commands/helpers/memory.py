"""Memory budgets of a command, and the planned use."""

import argparse

from keywright._units import format_bytes
from keywright.commands.terminal import Column, Terminal
from keywright.plan.memory import ProcessPlan

from .inputs import parse_bytes

PARTS = [Column("part", "memory"), Column("bytes", "bytes", "bytes")]


def key_memory(options: argparse.Namespace) -> int | None:
    """Return the budget of keys in memory, if it is given."""
    return None if options.key_memory is None else parse_bytes(options.key_memory)


def memory_budget(options: argparse.Namespace) -> int | None:
    """Return the budget of the process, if it is given."""
    return None if options.memory is None else parse_bytes(options.memory)


def print_memory(planned: ProcessPlan, terminal: Terminal) -> None:
    """Print the predicted peak part by part."""
    rows: list[dict[str, str | int]] = [
        {"part": name, "bytes": size} for name, size in planned.memory.parts().items()
    ]
    title = (
        f"Needs at most {format_bytes(planned.memory.total)} of {format_bytes(planned.budget)}: "
        f"{planned.explain()}"
    )
    terminal.table(PARTS, [*rows, {"part": "peak", "bytes": planned.memory.total}], title=title)
