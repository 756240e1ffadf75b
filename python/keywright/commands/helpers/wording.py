"""Errors of the package in the words of the command line: the cause, then the remedy, with options."""

import difflib
import errno
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from keywright.commands.terminal import Failure
from keywright.errors import KeywrightError, ModelRefusedError, RefusalError

ARGUMENT = re.compile(r"(?<![\w.-])([a-z]+(?:_[a-z]+)*)=(?!=)(?:True\b)?(?=([\w\"'(\[{/.]?))")

FIT = {"calibration", "activation", "accuracy", "error", "range", "noise"}
"""Options by which ``keywright compile`` and others compile, as advice names them for every command."""

OPTIONS = {"parameters": "preset", "input_range": "range"}
"""Options of the command line by the name of the argument of `keywright.compile` that they give."""


def in_options(text: str, options: Collection[str]) -> str:
    """Replace arguments written ``name=value`` by ``--name value`` where the command has such an option. An
    argument of several values, such as ``activations=``, is an option that may be repeated.

    Args:
        options: names of the command's options, as ``calibration_count``.
    """

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        name = alias if (alias := OPTIONS.get(name, name)) in options else name
        name = name if name in options else name.removesuffix("s")
        if name not in options and name not in FIT:
            return match[0]
        return f"--{name.replace('_', '-')}{' ' if value else ''}"

    return ARGUMENT.sub(option, text)


def failure(error: Exception, options: Collection[str] = (), command: str = "keywright") -> Failure:
    """Return what a command prints about an error: the message, and advice, at least the command's help.

    Args:
        options: as for `in_options`.
        command: its name, after the name of the program.
    """
    out = _failure(error, options)
    return out if out.advice or out.reasons else replace(out, advice=f"see {command} --help")


def _failure(error: Exception, options: Collection[str]) -> Failure:
    if isinstance(error, ModelRefusedError):
        reasons = [_failure(reason, options) for reason in error.exceptions]
        kind = type(error).__name__
        if len(reasons) > 1:
            text = f"the model cannot be compiled, for {len(reasons)} reasons"
            return Failure(kind, text, reasons=reasons, error=error)
        (reason,) = reasons
        text = f"the model cannot be compiled: {reason.message}"
        return Failure(reason.kind, text, reason.advice, reason.details, error=error, code=reason.code)
    if isinstance(error, OSError):
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        text = f"{' to '.join(named)}: {error.strerror}" if named else str(error)
        return Failure(type(error).__name__, text, _file_advice(error), error=error)
    if type(error) is MemoryError and not str(error):
        text = "memory ran out"
        return Failure("MemoryError", text, "end other programs, or raise the limit of this one", error=error)
    text = in_options(" ".join(str(error).split("\n")), options) or type(error).__name__
    # Messages of the package state the advice behind their last semicolon: see `keywright.errors`.
    what, _, advice = text.rpartition("; ")
    details, code = (_details(error), error.code) if isinstance(error, KeywrightError) else ({}, "")
    advice = advice if what else ""
    return Failure(type(error).__name__, what or text, advice, details, error=error, code=code)


def _file_advice(error: OSError) -> str:
    """Return what to do about an error of a file system."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return _present(Path(str(error.filename)))
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "change its permissions, or name a place that this user may use"
        case errno.EEXIST:
            return "remove it first, or choose another name"
        case errno.EISDIR:
            return "name a file in it"
        case errno.ENOSPC | errno.EDQUOT:
            return "free some space, or choose another place"
        case errno.EADDRINUSE:
            return "choose another port, or 0 for any that is free"
        case _:
            return ""


def _present(path: Path) -> str:
    """Return the files beside a missing one whose names are like it."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either; check the path"
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == path.suffix]
        near = difflib.get_close_matches(path.name, names, 3)
    except OSError:
        near = []
    return f"did you mean {' or '.join(near)}?" if near else "check the path"


def _details(error: KeywrightError) -> dict[str, object]:
    """Return the attributes of an error that JSON can represent, other than its code."""
    attributes = {**vars(error), **(error.details if isinstance(error, RefusalError) else {})}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in attributes.items()
        if name != "code" and isinstance(value, str | int | float | tuple) and _plain(value)
    }


def _plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(entry, str | int | float) and _plain(entry) for entry in value)
    return not isinstance(value, float) or abs(value) < float("inf")
