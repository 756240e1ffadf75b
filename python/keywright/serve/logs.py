"""Logs of a service: lines for people, or JSON lines of the standard ``logging`` module.

Every request has an identifier, the client's own
``X-Request-Id`` or a new one. It is in the header of the answer, in the ``instance`` of a refusal, and in
every line that any thread logs on behalf of the request. Logs contain nothing that grants access: no token,
and no identifier or byte of keys or evaluations.
"""

import json
import logging
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, TextIO

Format = Literal["text", "json"]

LOGGER = logging.getLogger("keywright.serve")

IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_GRANTING = re.compile(
    r"(?:(?<![0-9a-f])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9a-f]{2})|(?<=\\u[0-9a-f]{4})|(?<=\\U[0-9a-f]{8}))"
    r"[0-9a-f]{32}(?![0-9a-f])"
)
"""Identifiers of key sets and evaluations, also behind an escape, as in the address of a list of objects.
Hashes of models have twice their digits."""

FIELDS = ("method", "path", "status", "received_bytes", "sent_bytes", "seconds")
"""Fields of a request, in the order of `log_request`."""

_request: ContextVar[str] = ContextVar("keywright_request", default="")


def request_identifier() -> str:
    """Return the identifier of the current request; empty outside a request."""
    return _request.get()


def identify(sent: str | None) -> str:
    """Return the identifier of a request: the one that was sent, if it is valid, or a new one."""
    return sent if sent is not None and IDENTIFIER.fullmatch(sent) else secrets.token_hex(8)


def redacted(line: str) -> str:
    """Return a line with stars for the identifiers in it: errors of the system name files, and tracebacks
    quote values."""
    return _GRANTING.sub("*", line)


@contextmanager
def on_behalf(identifier: str) -> Iterator[None]:
    """Attach the identifier of a request to the lines logged inside the context."""
    token = _request.set(identifier)
    try:
        yield
    finally:
        _request.reset(token)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``request``
    where there is one, the members of ``extra={"fields": ...}``, and ``traceback``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line in ASCII, without line ends and terminal control characters."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_identifier():
            entry["request"] = request_identifier()
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def log_json(stream: TextIO | None = None) -> None:
    """Log everything in this process as JSON lines, including uvicorn's lines.

    Args:
        stream: standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)


def log_event(line: str) -> None:
    """Log an event; a traceback is logged as an error."""
    LOGGER.log(logging.ERROR if line.startswith("Traceback ") else logging.INFO, line)


def log_request(method: str, path: str, *numbers: float) -> None:
    """Log an answered request: its status, bytes received and sent, and seconds."""
    LOGGER.info("request", extra={"fields": dict(zip(FIELDS, (method, path, *numbers), strict=True))})
