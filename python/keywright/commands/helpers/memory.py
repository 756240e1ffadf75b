"""How much memory a command may take, and what it plans to do with it."""

import argparse

from keywright._terminal import Column, Terminal
from keywright._units import format_bytes
from keywright.plan.memory.machine import default_budget
from keywright.plan.memory.process import ProcessPlan

from .inputs import parse_bytes

PARTS = [Column("part", "memory"), Column("bytes", "bytes", "bytes")]


def add_memory_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the budget of the process."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="most memory of this process, as 8GiB: keys, diagonals, ciphertexts and everything else "
        "(default: 80 percent of what the machine has free)",
    )


def add_key_memory_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the budget of the keys."""
    parser.add_argument(
        "--key-memory",
        metavar="SIZE",
        help="most bytes of keys in memory, as 2GiB: others are read, or derived from master keys, ahead of "
        "their use, and dropped (default: all, or as many as --memory leaves room for)",
    )


def key_memory(options: argparse.Namespace) -> int | None:
    """Most bytes of keys at a time, if they are named."""
    return None if options.key_memory is None else parse_bytes(options.key_memory)


def memory_budget(options: argparse.Namespace) -> int:
    """Most bytes of the process: those that are named, or most of what is free."""
    return default_budget() if options.memory is None else parse_bytes(options.memory)


def print_memory(planned: ProcessPlan, terminal: Terminal) -> None:
    """Print the predicted peak part by part."""
    rows: list[dict[str, str | int]] = [
        {"part": name, "bytes": size} for name, size in planned.memory.parts().items()
    ]
    title = (
        f"At most {format_bytes(planned.memory.total)} of {format_bytes(planned.budget)}: {planned.explain()}"
    )
    terminal.table(PARTS, [*rows, {"part": "peak", "bytes": planned.memory.total}], title=title)
