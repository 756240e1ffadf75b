"""Reads untrusted JSON: strict numbers, and one exception that says what is wrong."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from keywright.errors import KeywrightError

from .documents import Limits, read_json

Record = TypeVar("Record")

MOST = (1 << 63) - 1
MAX_TEXT = 1 << 12
"""Maximum characters of a text of a record."""
MAX_LIST = 1 << 17
"""Maximum entries of a list of a record."""
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


def whole(value: object, what: str, low: int = -MOST, high: int = MOST) -> int:
    """Return a whole number from ``low`` to ``high``, by default of at most 64 bits.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        which = "of 64 bits" if (low, high) == (-MOST, MOST) else f"from {low} to {high}"
        raise ValueError(f"{what} is {shown(value)}, not a whole number {which}")
    return value


def number(value: object, what: str) -> float:
    """Return a finite number.

    Raises:
        ValueError: it is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{what} is {shown(value)}, not a finite number")
    return value


def read_record(
    kind: type[Record],
    entry: Mapping[str, Any] | Sequence[Any],
    what: str,
    signed: Collection[str] = (),
) -> Record:
    """Return a dataclass of whole and finite numbers, truth values, texts, tuples of these and such
    dataclasses.

    Args:
        kind: the dataclass.
        entry: values by the names of its fields, of which others are left out; or in their order. Fields with
            a default may be missing.
        what: the record, with its article.
        signed: fields that may be below 0.

    Raises:
        ValueError: a value has another type or is below 0; names it.
        KeyError: a field is missing.
    """
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    if isinstance(entry, list | tuple):
        if len(entry) > len(names):
            raise ValueError(f"{what} has {len(entry)} values, and at most {len(names)} are read")
        entry = dict(zip(names, entry, strict=False))
    if not isinstance(entry, dict):
        raise ValueError(f"{what} is {shown(entry)}, not an object")
    hints = _hints(kind)  # type: ignore[arg-type]
    values = {
        each.name: _read_value(hints[each.name], entry[each.name], f"{each.name} of {what}", signed)
        for each in fields(kind)  # type: ignore[arg-type]
        if each.name in entry or (each.default is MISSING and each.default_factory is MISSING)
    }
    for name in values.keys() - {*signed}:
        if isinstance(values[name], int | float) and values[name] < 0:
            raise ValueError(f"{name} of {what} is {values[name]}; it must be at least 0")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_value(hint: Any, value: object, what: str, signed: Collection[str]) -> Any:
    if isinstance(hint, UnionType):
        hint, _ = get_args(hint)
        return None if value is None else _read_value(hint, value, what, signed)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or len(value) > MAX_LIST:
            raise ValueError(f"{what} is {shown(value)}, not a list of at most {MAX_LIST} entries")
        return tuple(_read_value(get_args(hint)[0], each, what, signed) for each in value)
    if is_dataclass(hint):
        return read_record(hint, value, what, signed)  # type: ignore[arg-type]
    if hint is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{what} is {shown(value)}, neither true nor false")
        return value
    if hint is int:
        return whole(value, what)
    if hint is float:
        return number(value, what)
    assert hint is str or get_origin(hint) is Literal, hint
    return text(value, what)


def text(value: object, what: str, most: int = MAX_TEXT) -> str:
    """Return a text of at most ``most`` characters.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"{what} is {shown(value)}, not a text of at most {most} characters")
    return value


def shown(value: object) -> str:
    """Format a value for a message."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."
