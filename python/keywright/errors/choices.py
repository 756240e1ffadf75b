"""The refusal of strings that are none of a fixed set, and of numbers that are no integers."""

import difflib
from collections.abc import Iterable, Sequence
from numbers import Real
from operator import index

from .engine import ParameterError


def require_choice(what: str, value: object, choices: Iterable[object]) -> None:
    """Check an argument that is one of a fixed set of strings.

    Args:
        what: name of the argument.
        value: its value.
        choices: the strings.

    Raises:
        ParameterError: lists the choices, and asks whether the nearest is meant.
    """
    known = [str(choice) for choice in choices]
    if isinstance(value, str) and value in known:
        return
    raise ParameterError(
        f"{what}={value!r} is not one of {', '.join(map(repr, known))}; {meant(str(value), known)}",
        what=what,
        value=value if isinstance(value, str) else repr(value),
    )


def meant(value: str, known: Sequence[str]) -> str:
    """Return the question whether the nearest of some strings is meant, or else the advice to use one."""
    near = difflib.get_close_matches(value.lower(), known, 1)
    return f"did you mean {near[0]!r}?" if near else "use one of them"


def require_number(name: str, value: object) -> None:
    """Check an argument that is a real number.

    Raises:
        ParameterError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(f"{name} is {value!r:.60}; use a number", what=name)


def require_integer(name: str, value: object) -> int:
    """Return a number of any type of integers, as numpy's, as Python's own.

    Raises:
        ParameterError: the value is not an integer.
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; use an integer", what=name) from None
