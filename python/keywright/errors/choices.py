"""The refusal of strings that are none of a fixed set, and of numbers that are no integers."""

import difflib
from collections.abc import Iterable
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
    near = difflib.get_close_matches(str(value).lower(), known, 1)
    raise ParameterError(
        f"{what}={value!r} is not one of {', '.join(map(repr, known))}; "
        + (f"did you mean {near[0]!r}?" if near else "use one of them"),
        what=what,
        value=value if isinstance(value, str) else repr(value),
    )


def require_integer(name: str, value: object) -> int:
    """Return a number of any type of integers, as numpy's, as Python's own.

    Raises:
        ParameterError: the value is not an integer.
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; use an integer", what=name) from None
