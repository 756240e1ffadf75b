"""All commands, their common options, and their exit statuses."""

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import keywright as kw
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.wording import failure
from keywright.commands.parsing import CommandParser, UsageError, command_name_of
from keywright.commands.terminal import LEVELS, Terminal
from keywright.errors import KeywrightError

GROUPS = {
    "Try": ("models.demo", "models.infer"),
    "Client and server": ("steps.keygen", "steps.encrypt", "steps.run", "steps.decrypt"),
    "Service": ("models.compile", "models.serve"),
    "Inspect": ("models.info", "planning.presets", "planning.security"),
    "Plan and measure": ("planning.plan", "planning.calibrate", "planning.bench"),
    "Shell": ("completion",),
}
"""The modules of the commands, which have their names. Only that of the command that runs is imported: all
together take half a second."""
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
        options = parser(arguments[0]).read(arguments)
    except (UsageError, KeywrightError) as error:  # the command needs a library that is not installed
        Terminal(json="--json" in arguments).error(failure(error))
        return FAILED
    command = f"keywright {command_name_of(options)}"
    terminal = Terminal(json=options.json, level=options.log_level)
    try:
        _require_own_output(options)
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


def _require_own_output(options: argparse.Namespace) -> None:
    """Refuse a result that would replace a file which the command reads.

    Raises:
        CommandError: it would.
    """
    out = vars(options).get("out")
    read = [each for name, each in vars(options).items() if name != "out" and isinstance(each, Path)]
    if isinstance(out, Path) and out.is_file() and any(each.exists() and each.samefile(out) for each in read):
        raise CommandError(f"--out {out} would replace a file that this command reads; name another file")


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads of the engine within the block; all cores by default.

    Raises:
        CommandError: the number is not positive.
    """
    if count is None:
        yield
        return
    if count < 1:
        raise CommandError(f"--threads {count} is too small; use at least 1 thread")
    before = kw.threads()
    kw.set_threads(count)
    try:
        yield
    finally:
        kw.set_threads(before)


def parser(name: str | None = None) -> CommandParser:
    """Return the parser of one command, or of all if none has the name."""
    out = CommandParser(_modules(name) or _modules(), kw.__version__)
    for command in out.commands.values():
        _add_common_arguments(command)
        command.set_defaults(all_commands=parser)
    out.finish()
    return out


def _modules(name: str | None = None) -> dict[str, tuple[ModuleType, ...]]:
    """Import the commands of a name, or all; return them by group."""
    chosen = {
        title: [path for path in paths if name in (None, path.rpartition(".")[2])]
        for title, paths in GROUPS.items()
    }
    return {
        title: tuple(_imported(f"keywright.commands.{path}") for path in paths)
        for title, paths in chosen.items()
        if paths
    }


def _imported(name: str) -> ModuleType:
    """Import a module, and collect no garbage meanwhile: imports leave none, and looking for it would be an
    eighth of their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if collects:
            gc.enable()


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    common = parser.add_argument_group("options of every command")
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
