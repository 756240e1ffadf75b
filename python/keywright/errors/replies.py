"""Texts, names and numbers of a peer's answer: the one place that reads them.

A server chooses all of them. Text is printable and short, because it reaches terminals and logs. Names are
ASCII, because they become parts of addresses. Numbers are finite and bounded, so that no arithmetic with them
fails.
"""

import math
from collections.abc import Mapping

from .service import REFUSALS, BusyError, InvalidReplyError, ServeError

MAX_MESSAGE = 1000
MAX_DETAIL = 200
"""Most characters of a text among a refusal's details."""

MAX_ADDRESS = 8192
"""Most characters of an address to write to; signed ones have about 1,000."""

MAX_IDENTIFIER = 64
MOST = (1 << 63) - 1
LONGEST_WAIT_S = 7 * 86_400
"""The longest wait that a server can ask for; quotas begin again every day."""

PASSING = (429, 502, 503, 504)
"""Statuses of a proxy whose server is away or has no room."""


def printable(text: str, most: int = MAX_MESSAGE) -> str:
    """Return the beginning of a text, with ``?`` for characters that a terminal or log could not show."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])


def identifier(entry: Mapping[str, object], name: str) -> str:
    """Return an identifier of ASCII letters and digits.

    Raises:
        InvalidReplyError: it is something else.
    """
    value = entry.get(name)
    if isinstance(value, str) and value.isascii() and value.isalnum() and len(value) <= MAX_IDENTIFIER:
        return value
    raise InvalidReplyError(f"the answer of the server has no valid {name!r}")


def count(entry: Mapping[str, object], name: str) -> int:
    """Return a whole number from 0 to `MOST`.

    Raises:
        InvalidReplyError: it is something else.
    """
    value = entry.get(name)
    if type(value) is int and 0 <= value <= MOST:
        return value
    raise InvalidReplyError(f"the answer of the server has no {name!r} from 0 to {MOST}")


def address(entry: Mapping[str, object], name: str) -> str:
    """Return an address of printable ASCII.

    Raises:
        InvalidReplyError: it is something else.
    """
    value = entry.get(name)
    if isinstance(value, str) and value.isascii() and value.isprintable() and len(value) <= MAX_ADDRESS:
        return value
    raise InvalidReplyError("the server gives no address to write a part to")


def refusal(status: int, reply: object, retry_after: str | None = None) -> ServeError:
    """Return the exception of an error reply; `InvalidReplyError` if the reply is malformed. One without a
    reason may be that of a proxy whose server is away: `BusyError`, with the seconds of ``Retry-After``."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        code, message, details = (error.get(name) for name in ("type", "message", "details"))
        if code == ServeError.code and isinstance(message, str):
            return ServeError(printable(message))
        known = REFUSALS.get(code) if isinstance(code, str) else None
        if known is not None and isinstance(message, str) and isinstance(details, dict):
            # Take only attributes that the class declares, with the types that it declares.
            kind = known[1]
            taken = {
                name: details[name]
                for name, default in vars(kind).items()
                if name in details and name != "code" and _is_like(name, details[name], default)
            }
            return kind(printable(message), code=code, **taken)
    if status in PASSING and not isinstance(error, dict):
        text = retry_after or ""
        seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        return BusyError(
            f"the server, or a proxy before it, answered with status {status} and no reason; ask again later",
            retry_after=min(seconds, LONGEST_WAIT_S),
        )
    return InvalidReplyError(
        f"the server answered with status {status} and no reason; is it keywright serve?"
    )


def _is_like(name: str, value: object, default: object) -> bool:
    """Return whether a detail has the type of its default and a sensible size; a whole number is also a
    number."""
    if type(default) is str:
        return isinstance(value, str) and value.isprintable() and len(value) <= MAX_DETAIL
    if type(value) is not type(default) and not (type(default) is float and type(value) is int):
        return False
    assert isinstance(value, int | float)
    low, high = (0, LONGEST_WAIT_S) if name == "retry_after" else (-MOST, MOST)
    return math.isfinite(value) if type(value) is float else low <= value <= high
