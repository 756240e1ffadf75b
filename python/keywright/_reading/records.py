"""Reads untrusted JSON: strict numbers, and one exception that says what is wrong."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keywright.errors import KeywrightError

from .documents import Limits, read_json

MOST = (1 << 63) - 1
SHOWN = 40
"""Maximum characters of a wrong value in a message."""


@contextmanager
def refusing(what: str, refusal: type[KeywrightError], code: str | None = None) -> Iterator[None]:
    """Turn any exception from reading an object into one refusal: "not a program: ...".

    Args:
        what: the name of the record, with its article.
        refusal: the exception to raise; one that is raised inside passes.
        code: its code; by default that of the class.
    """
    try:
        yield
    except refusal:
        raise
    except KeyError as error:
        raise refusal(f"not {what}: {error} is missing", code=code) from None
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise refusal(f"not {what}: {error}", code=code) from None


def read_object(text: bytes | str, form: str, limits: Limits) -> Mapping[str, Any]:
    """Read a JSON object of a documented format.

    Args:
        text: JSON.
        form: required value of "format".
        limits: of documents of this format.

    Raises:
        ValueError: it exceeds the limits, is not JSON, or is of another format.
    """
    return require_form(read_json(text, limits), form)


def require_form(data: object, form: str) -> Mapping[str, Any]:
    """Return a JSON object that states its format.

    Raises:
        ValueError: it is of another format.
    """
    result = data.get("format") if isinstance(data, dict) else None
    if result != form:
        raise ValueError(f'"format" must be "{form}", it is {shown(result)}')
    assert isinstance(data, dict)
    return data


def whole(value: object, what: str) -> int:
    """Return a whole number of at most 64 bits.

    Raises:
        ValueError: it is not a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not -MOST <= value <= MOST:
        raise ValueError(f"{what} is {shown(value)}, not a whole number of 64 bits")
    return value


def number(value: object, what: str) -> float:
    """Return a finite number.

    Raises:
        ValueError: it is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{what} is {shown(value)}, not a finite number")
    return value


def shown(value: object) -> str:
    """Format a value for a message."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."
