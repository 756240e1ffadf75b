"""All commands, their common options, and their exit statuses."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import keywright as kw
from keywright.commands import completion
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.wording import failure
from keywright.commands.models import (
    compile,  # noqa: A004 (the command is called so)
    demo,
    infer,
    info,
    serve,
)
from keywright.commands.parsing import CommandParser, UsageError, command_name_of
from keywright.commands.planning import bench, calibrate, plan, presets, security
from keywright.commands.steps import decrypt, encrypt, keygen, run
from keywright.commands.terminal import LEVELS, Terminal
from keywright.errors import KeywrightError

GROUPS = {
    "Try": (demo, infer),
    "Client and server": (keygen, encrypt, run, decrypt),
    "Service": (compile, serve),
    "Inspect": (info, presets, security),
    "Plan and measure": (plan, calibrate, bench),
    "Shell": (completion,),
}
FAILED = 2


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 after an error.

    Raises:
        KeyboardInterrupt: at ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        sys.stdout.write(parser().format_help())
        return 0
    try:
        options = parser().read(arguments)
    except UsageError as error:
        Terminal(json="--json" in arguments).error(failure(error))
        return FAILED
    command = f"keywright {command_name_of(options)}"
    terminal = Terminal(json=options.json, level=options.log_level)
    try:
        with _threads(options.threads):
            options.run(options, terminal)
    except (CommandError, KeywrightError, OSError, MemoryError) as error:
        terminal.error(failure(error, options.names, command))
        return FAILED
    except RuntimeError as error:
        # Python has no exception class of its own for a thread that gets no stack.
        if "start new thread" not in str(error):
            raise
        terminal.error(failure(MemoryError(), options.names, command))
        return FAILED
    return 0


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads of the engine within the block; all cores by default."""
    if count is None:
        yield
        return
    before = kw.threads()
    kw.set_threads(count)
    try:
        yield
    finally:
        kw.set_threads(before)


def parser() -> CommandParser:
    """Return the parser of all commands."""
    out = CommandParser(GROUPS, kw.__version__)
    for command in out.commands.values():
        _add_common_arguments(command)
    out.finish()
    return out


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    common = parser.add_argument_group("of every command")
    common.add_argument("--json", action="store_true", help="print JSON, one object per line")
    common.add_argument("--threads", type=int, metavar="N", help="threads (default: all cores)")
    common.add_argument(
        "--log-level",
        choices=LEVELS,
        default="info",
        metavar="LEVEL",
        help="what to print besides results: error, warning, info (also notes and progress; the "
        "default), or debug (also tracebacks of errors)",
    )
