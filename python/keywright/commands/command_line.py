"""The commands, what they have in common, and how they end."""

import argparse
from collections.abc import Sequence

from keywright import __version__
from keywright._terminal import Terminal
from keywright.commands import (
    bench,
    calibrate,
    compile,  # noqa: A004 (the command is called so)
    decrypt,
    demo,
    encrypt,
    infer,
    info,
    keygen,
    plan,
    run,
    serve,
)
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.wording import in_options
from keywright.errors import KeywrightError
from keywright.nn import ModelRefusedError

COMMANDS = (demo, infer, keygen, encrypt, run, decrypt, compile, serve, info, plan, calibrate, bench)
FAILED = 2


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 after an error.

    Raises:
        KeyboardInterrupt: at ctrl-C.
    """
    options = _parser().parse_args(arguments)
    terminal = Terminal(json=options.json)
    try:
        options.run(options, terminal)
    except ModelRefusedError as refusal:
        reasons = "; ".join(str(reason) for reason in refusal.exceptions)
        text = f"the model cannot be compiled: {reasons}"
        terminal.error(CommandError(in_options(text, options.names)))
        return FAILED
    except CommandError as error:
        terminal.error(error)
        return FAILED
    except KeywrightError as error:
        terminal.error(CommandError(in_options(str(error), options.names)))
        return FAILED
    except OSError as error:
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        terminal.error(CommandError(f"{' to '.join(named)}: {error.strerror}") if named else error)
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="keywright", description="Private inference on encrypted data, with RNS-CKKS and planned keys."
    )
    parser.add_argument("--version", action="version", version=f"keywright {__version__}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        summary = (command.__doc__ or "").partition("\n")[0]
        subparser = subparsers.add_parser(name, help=summary, description=command.__doc__)
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        command.add_arguments(subparser)
        subparser.add_argument("--json", action="store_true", help="print JSON, one object per line")
        names = frozenset(action.dest for action in subparser._actions if action.option_strings)
        subparser.set_defaults(run=command.run, names=names)
    return parser
