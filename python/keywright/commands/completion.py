"""Print a script that makes a shell complete commands, options and files.

For bash, write it to the folder that bash-completion reads:

  cd ~/.local/share/bash-completion/completions
  keywright completion bash > keywright

For zsh, write it to a folder of $fpath:

  keywright completion zsh > _keywright
"""

import argparse
import sys
from pathlib import Path

import shtab

from keywright.commands.terminal import Terminal

EXAMPLE = "keywright completion bash"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    shells = shtab.SUPPORTED_SHELLS
    parser.add_argument(
        "shell", choices=shells, metavar="SHELL", help=f"{', '.join(shells[:-1])} or {shells[-1]}"
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the script."""
    commands = options.all_commands()
    for action in (each for parser in commands.commands.values() for each in parser._actions):
        if action.type is Path:
            action.complete = shtab.FILE
    script = shtab.complete(commands, options.shell)
    if terminal.json:
        terminal.record({"shell": options.shell, "script": script})
        return
    sys.stdout.write(script + "\n")
