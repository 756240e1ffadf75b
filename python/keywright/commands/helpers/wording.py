"""Errors of the package in the words of the command line: arguments are options."""

import re
from collections.abc import Collection

ARGUMENT = re.compile(r"(?<![\w.-])([a-z]+(?:_[a-z]+)*)=(?!=)(?=([\w\"'(\[{/.]?))")


def in_options(text: str, options: Collection[str]) -> str:
    """A text that names arguments as ``name=value``, with ``--name value`` for those that are options.

    Args:
        options: names of those that the command takes, as ``calibration_count``.
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in options:
            return found[0]
        return f"--{name.replace('_', '-')}{' ' if value else ''}"

    return ARGUMENT.sub(option, text)
