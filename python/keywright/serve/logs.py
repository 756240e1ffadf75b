"""What is told of a service: lines for people, or JSON lines of the standard ``logging`` module.

Every request has an identifier, the client's own ``X-Request-Id`` or a new one. It is in the answer's header,
in a refusal's ``instance``, and in every line that is logged on behalf of the request, by whatever thread.
Nothing that is logged entitles to anything: no token, no identifier of keys or evaluations, no byte of them.
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
FIELDS = ("method", "path", "status", "received_bytes", "sent_bytes", "seconds")
"""Of a request, in the order of `log_request`."""

_request: ContextVar[str] = ContextVar("keywright_request", default="")


def request_identifier() -> str:
    """Of the request that is being answered; empty where there is none."""
    return _request.get()


def identify(sent: str | None) -> str:
    """The identifier of a request: the one that it was sent with, if it is one, or a new one."""
    return sent if sent is not None and IDENTIFIER.fullmatch(sent) else secrets.token_hex(8)


@contextmanager
def on_behalf(identifier: str) -> Iterator[None]:
    """Have what is logged inside carry the identifier of a request."""
    token = _request.set(identifier)
    try:
        yield
    finally:
        _request.reset(token)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``request``
    where there is one, the members of ``extra={"fields": ...}``, and ``traceback``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, in ASCII: nothing in it ends a line or moves a terminal's cursor."""
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
    """Have everything that this process logs, uvicorn's lines among it, be JSON lines.

    Args:
        stream: standard error unless given.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)


def log_event(line: str) -> None:
    """Log something that happened; a traceback is an error."""
    LOGGER.log(logging.ERROR if line.startswith("Traceback ") else logging.INFO, line)


def log_request(method: str, path: str, *numbers: float) -> None:
    """Log a request that was answered: its status, bytes received and sent, and seconds."""
    LOGGER.info("request", extra={"fields": dict(zip(FIELDS, (method, path, *numbers), strict=True))})
