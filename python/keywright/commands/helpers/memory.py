"""Memory budgets of a command, and the planned use."""

import argparse

from keywright._units import format_bytes
from keywright.commands.terminal import Column, Terminal
from keywright.plan.memory import ProcessPlan

from .inputs import parse_bytes

PARTS = [Column("part", "memory"), Column("bytes", "bytes", "bytes")]


def add_memory_argument(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare the budget of the process."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory budget of this process, e.g. 8GB: keys, diagonals, ciphertexts and everything else "
        "(default: as much as makes it fast, within 80 percent of the free memory)",
    )


def add_key_memory_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the budget of the keys."""
    parser.add_argument(
        "--key-memory",
        metavar="SIZE",
        help="budget of keys in memory, e.g. 2GB: other keys are read or derived from master keys before "
        "each use and evicted after it (default: all keys, or as many as --memory leaves room for)",
    )


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
