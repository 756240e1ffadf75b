"""Errors of the package in the words of the command line: what is wrong, then what to do, with options."""

import re
from collections.abc import Collection

from keywright.commands.terminal import Failure
from keywright.errors import KeywrightError
from keywright.errors.network import ModelRefusedError

ARGUMENT = re.compile(r"(?<![\w.-])([a-z]+(?:_[a-z]+)*)=(?!=)(?:True\b)?(?=([\w\"'(\[{/.]?))")

OPTIONS = {"parameters": "preset", "input_range": "range"}
"""Options of the command line by the name of the argument of `keywright.compile` that they give."""


def in_options(text: str, options: Collection[str]) -> str:
    """Replace arguments written ``name=value`` by ``--name value`` where the command has such an option. An
    argument of several values, as ``activations=``, is an option that may be repeated.

    Args:
        options: names of the command's options, as ``calibration_count``.
    """

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        name = alias if (alias := OPTIONS.get(name, name)) in options else name
        name = name if name in options else name.removesuffix("s")
        if name not in options:
            return match[0]
        return f"--{name.replace('_', '-')}{' ' if value else ''}"

    return ARGUMENT.sub(option, text)


def failure(error: Exception, options: Collection[str] = ()) -> Failure:
    """Return what a command prints about an error.

    Args:
        options: as for `in_options`.
    """
    if isinstance(error, ModelRefusedError):
        reasons = [failure(reason, options) for reason in error.exceptions]
        kind = type(error).__name__
        if len(reasons) > 1:
            text = f"the model cannot be compiled, for {len(reasons)} reasons"
            return Failure(kind, text, reasons=reasons, error=error)
        (reason,) = reasons
        text = f"the model cannot be compiled: {reason.message}"
        return Failure(reason.kind, text, reason.advice, reason.details, error=error)
    if isinstance(error, OSError):
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        text = f"{' to '.join(named)}: {error.strerror}" if named else str(error)
        return Failure(type(error).__name__, text, error=error)
    if type(error) is MemoryError and not str(error):
        text = "memory ran out"
        return Failure("MemoryError", text, "end other programs, or raise the limit of this one", error=error)
    text = in_options(" ".join(str(error).split("\n")), options) or type(error).__name__
    # Messages of the package state the advice behind their last semicolon: see `keywright.errors`.
    what, _, advice = text.rpartition("; ")
    details = _details(error) if isinstance(error, KeywrightError) else {}
    return Failure(type(error).__name__, what or advice, advice if what else "", details, error=error)


def _details(error: KeywrightError) -> dict[str, object]:
    """Return the attributes of an error that JSON can represent."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(error).items()
        if isinstance(value, str | int | float | tuple) and value != "" and _plain(value)
    }


def _plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(entry, str | int | float) and _plain(entry) for entry in value)
    return not isinstance(value, float) or abs(value) < float("inf")
