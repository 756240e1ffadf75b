"""The parser for all commands, their common options, and their exit statuses."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import shtab

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
from keywright.commands.planning import bench, calibrate, plan, presets, security
from keywright.commands.steps import decrypt, encrypt, keygen, run
from keywright.commands.terminal import LEVELS, Terminal
from keywright.errors import KeywrightError

COMMANDS = (
    demo,
    infer,
    keygen,
    encrypt,
    run,
    decrypt,
    compile,
    serve,
    info,
    presets,
    security,
    plan,
    calibrate,
    bench,
    completion,
)
FAILED = 2


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 after an error.

    Raises:
        KeyboardInterrupt: at ctrl-C.
    """
    options = parser().parse_args(arguments)
    terminal = Terminal(json=options.json, level=options.log_level)
    try:
        with _threads(options.threads):
            options.run(options, terminal)
    except (CommandError, KeywrightError, OSError, MemoryError) as error:
        terminal.error(failure(error, options.names))
        return FAILED
    except RuntimeError as error:
        # Python has no exception class of its own for a thread that gets no stack.
        if "start new thread" not in str(error):
            raise
        terminal.error(failure(MemoryError(), options.names))
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


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    result = argparse.ArgumentParser(
        prog="keywright", description="Private inference on encrypted data, with RNS-CKKS and planned keys."
    )
    result.add_argument("--version", action="version", version=f"keywright {kw.__version__}")
    subparsers = result.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        summary = (command.__doc__ or "").partition("\n")[0]
        subparser = subparsers.add_parser(name, help=summary, description=command.__doc__)
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        command.add_arguments(subparser)
        _add_common_arguments(subparser)
        for action in subparser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        names = frozenset(action.dest for action in subparser._actions if action.option_strings)
        subparser.set_defaults(run=command.run, names=names, parser=result)
    return result


def _add_common_arguments(subparser: argparse.ArgumentParser) -> None:
    subparser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    subparser.add_argument("--threads", type=int, metavar="N", help="threads; all cores by default")
    subparser.add_argument(
        "--log-level",
        choices=LEVELS,
        default="info",
        metavar="LEVEL",
        help="what to print besides results: error, warning, info (also notes and progress; the "
        "default), or debug (also tracebacks of errors)",
    )
