"""Reading JSON that may be anything: numbers that are numbers, and one refusal that says what is wrong."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keywright.errors import KeywrightError

MOST = (1 << 63) - 1
SHOWN = 40
"""Most characters of a wrong value that a message has."""


@contextmanager
def refusing(what: str, refusal: type[KeywrightError]) -> Iterator[None]:
    """Turn whatever reading an object of another shape raises into one refusal: "not a program: ...".

    Args:
        what: what is read, with its article.
        refusal: what is raised; one that is raised inside passes.
    """
    try:
        yield
    except refusal:
        raise
    except KeyError as error:
        raise refusal(f"not {what}: {error} is missing") from None
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise refusal(f"not {what}: {error}") from None


def read_object(text: str, form: str, most: int) -> Mapping[str, Any]:
    """An object of a documented form.

    Args:
        text: JSON.
        form: what its "format" must be.
        most: characters that it may have.

    Raises:
        ValueError: it has more, is not JSON, or is of another form.
    """
    if len(text) > most:
        raise ValueError(f"{len(text)} bytes; there may be {most}")
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    found = data.get("format") if isinstance(data, dict) else None
    if found != form:
        raise ValueError(f'"format" must be "{form}", it is {shown(found)}')
    assert isinstance(data, dict)
    return data


def whole(value: object, what: str) -> int:
    """A whole number of at most 64 bits.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not -MOST <= value <= MOST:
        raise ValueError(f"{what} is {shown(value)}, no whole number of 64 bits")
    return value


def number(value: object, what: str) -> float:
    """A finite number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise ValueError(f"{what} is {shown(value)}, no finite number")
    return value


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
