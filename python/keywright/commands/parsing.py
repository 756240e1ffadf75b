"""The parser of all commands: help in groups, and errors with advice in the form of all other errors."""

import argparse
import difflib
import re
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from keywright.commands.helpers.errors import CommandError

WIDTH = 80
LIKENESS = 0.78
"""How like an option must be to a wrong one to be named."""
METAVARS: dict[object, str] = {Path: "FILE", int: "N", float: "NUMBER"}
UNITS = {"folder": "FOLDER", "seconds": "SECONDS"}
"""Names of values by the first word of a help text, where it says more than the type."""
MISSING = "the following arguments are required: "
MOST = (1 << 63) - 1
"""The largest whole number of an option."""


class Paragraphs(argparse.HelpFormatter):
    """Wraps the paragraphs of a description to the terminal; indented lines, lists and examples stay as they
    are. Names with hyphens stay whole."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = re.split(r"\n\s*\n", text.strip())
        return "\n\n".join(
            block
            if re.search(r"^(\s|\*|example: )", block, re.MULTILINE)
            else textwrap.fill(" ".join(block.split()), width, break_on_hyphens=False)
            for block in blocks
        )

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class UsageError(CommandError):
    """A command line that names no command, or options and values that the command does not have."""


def given_path(text: str) -> Path:
    """Return a path; an empty one, from a variable that is not set, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a file or folder, '.' for this one")
    return Path(text)


class Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process. Its whole numbers have 64 bits, and its paths are
    not empty."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.register("type", int, _whole)
        self.register("type", Path, given_path)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with the remedy."""
        if message.startswith(MISSING):
            missing = message.removeprefix(MISSING)
            raise UsageError(f"{self.prog} needs {missing}; see {self.prog} --help")
        chosen = re.fullmatch(r"argument (\S+): invalid choice: (.*) \(choose from (.*)\)", message)
        if chosen:
            name, value = chosen[1], chosen[2].strip("'")
            choices = [choice.strip("'") for choice in chosen[3].split(", ")]
            what = "command" if name == "COMMAND" else f"value of {name}"
            raise UsageError(f"{value!r} is not a {what}; {nearest(value, choices)}")
        if typed := re.fullmatch(r"argument (\S+): invalid (int|float) value: (.*)", message):
            kind = "a whole number" if typed[2] == "int" else "a number"
            raise UsageError(f"{typed[3]} is not a value of {typed[1]}; write {kind}")
        text = message.removeprefix("argument ")
        raise UsageError(text if "; " in text else f"{text}; see {self.prog} --help")


def _whole(text: str) -> int:
    number = int(text)
    if not -MOST <= number <= MOST:
        raise argparse.ArgumentTypeError(
            f"{text[:20]}... is not from -{MOST} to {MOST}; write a number of these"
        )
    return number


def nearest(value: str, choices: Sequence[str]) -> str:
    """Return advice that names the choices that were probably meant, or all."""
    near = difflib.get_close_matches(value, choices, 3)
    return f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(choices)}"


class CommandParser(Parser):
    """The parser of ``keywright``, with its commands in groups.

    Args:
        groups: titles and modules of commands. A module has a docstring, ``add_arguments``, ``run``, and an
            ``EXAMPLE``.
        version: of the package.
    """

    def __init__(self, groups: dict[str, tuple[ModuleType, ...]], version: str) -> None:
        description = "Private inference on encrypted data, with RNS-CKKS and planned keys."
        super().__init__(prog="keywright", description=description)
        self.add_argument("--version", action="version", version=f"keywright {version}")
        self.groups, self.commands = groups, {}
        subparsers = self.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
        for modules in groups.values():
            for module in modules:
                self.commands[command_name(module)] = self._add(subparsers, module)

    def _add(
        self, subparsers: "argparse._SubParsersAction[Parser]", module: ModuleType
    ) -> argparse.ArgumentParser:
        summary, _, rest = (module.__doc__ or "").partition("\n")
        parser = subparsers.add_parser(
            command_name(module),
            help=summary,
            description=f"{summary}\n\n{rest}".strip(),
            epilog=f"example: {module.EXAMPLE}",
            formatter_class=Paragraphs,
        )
        module.add_arguments(parser)
        parser.set_defaults(run=module.run)
        return parser

    def finish(self) -> None:
        """Give options of all commands the names of their values."""
        for parser in self.commands.values():
            for action in parser._actions:
                given = action.nargs != 0 and action.option_strings
                if action.metavar is None and action.choices is None and given:
                    first = (action.help or "").partition(" ")[0]
                    action.metavar = UNITS.get(first, METAVARS.get(action.type, "TEXT"))
            names = frozenset(action.dest for action in parser._actions if action.option_strings)
            parser.set_defaults(names=names)

    def format_help(self) -> str:
        """Return the help: the commands in groups, and three lines to begin with."""
        lines = ["usage: keywright COMMAND ...", "", self.description or ""]
        for title, modules in self.groups.items():
            lines += ["", title]
            for module in modules:
                summary = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
                wrapped = textwrap.wrap(summary, WIDTH - 14, break_on_hyphens=False)
                lines += [
                    f"  {command_name(module):<12}{wrapped[0]}",
                    *(f"{'':14}{line}" for line in wrapped[1:]),
                ]
        examples = [module.EXAMPLE for module in next(iter(self.groups.values()))]
        lines += ["", "Examples", *(f"  {example}" for example in examples)]
        return "\n".join([*lines, "", "keywright COMMAND --help explains a command.", ""])

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command line.

        Raises:
            UsageError: it names no command, or an option or value that the command does not have.
            SystemExit: after help or the version, with status 0.
        """
        first = arguments[0].partition("=")[0] if arguments else ""
        if first.startswith("-") and first not in self._option_string_actions:
            raise UsageError(
                f"{self.prog} has no option {first}; options follow the command: see {self.prog} --help"
            )
        options, rest = self.parse_known_args(arguments)
        if rest:
            command = self.commands[command_name_of(options)]
            known = [name for action in command._actions for name in action.option_strings]
            unknown = rest[0].partition("=")[0]
            if not unknown.startswith("-"):
                raise UsageError(
                    f"{command.prog} does not take {shlex.join(rest)!r}; see {command.prog} --help"
                )
            near = difflib.get_close_matches(unknown, known, 3, LIKENESS)
            example = (command.epilog or "").removeprefix("example: ")
            advice = f"did you mean {' or '.join(near)}?" if near else f"write, e.g., {example} (see --help)"
            raise UsageError(f"{command.prog} has no option {unknown}; {advice}")
        return options


def command_name(module: ModuleType) -> str:
    """Return the name of a module's command."""
    return module.__name__.rpartition(".")[2]


def command_name_of(options: argparse.Namespace) -> str:
    """Return the name of the command to which options belong."""
    return str(options.run.__module__).rpartition(".")[2]
