"""Connections of a client: heads are bounded, and so is the time of a call, however slowly a server sends."""

import contextlib
import http.client
import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import IO, Any

from keywright.errors import ParameterError
from keywright.errors.service import UnreachableError

MAX_HEAD = 1 << 16
"""Most bytes of the status line and the headers of an answer, with those of interim answers."""

TIMEOUT_S = 60.0
"""How long a server may send nothing."""

DEADLINE_S = 6 * 3600.0
"""How long an upload of keys, and a request with all its retries, may take by default: 32 GiB of keys take
three hours at 25 megabits a second."""

SHORT_S = 300.0
"""How long calls without keys and samples may take."""


class Deadline:
    """The end of a call, with all its requests, retries and pauses.

    Args:
        seconds: that it may take.

    Raises:
        ParameterError: not a number of seconds above 0.
    """

    def __init__(self, seconds: float) -> None:
        if not 0 < seconds < math.inf:
            raise ParameterError(
                f"deadline must be a number of seconds above 0, got {seconds}", what="deadline"
            )
        self.seconds, self.end = seconds, time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end, at least 0."""
        return max(0.0, self.end - time.monotonic())

    def require(self) -> None:
        """Refuse to go on after the end.

        Raises:
            UnreachableError: of the code ``deadline``.
        """
        if not self.left:
            raise UnreachableError(
                f"the server did not end this call within {self.seconds:g} s; ask again, or allow more "
                "(deadline=)",
                code="deadline",
            )

    @contextlib.contextmanager
    def watching(self, connection: "Connection") -> Iterator[None]:
        """Cut a connection at the end, whatever it waits for."""
        done = threading.Event()

        def watch() -> None:
            pause = self.left
            while not done.wait(pause):
                connection.cut()
                pause = 1.0

        threading.Thread(target=watch, name="keywright deadline", daemon=True).start()
        try:
            yield
        finally:
            done.set()


_CURRENT: ContextVar[Deadline | None] = ContextVar("keywright deadline", default=None)


def current() -> Deadline:
    """Return the deadline of the call that runs, or a new one."""
    return _CURRENT.get() or Deadline(DEADLINE_S)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Give a call some seconds, or what an enclosing call has left if that is less."""
    own, outer = Deadline(seconds), _CURRENT.get()
    if outer is not None and outer.end < own.end:
        own = outer
    token = _CURRENT.set(own)
    try:
        yield own
    finally:
        _CURRENT.reset(token)


class Connection:
    """What both kinds of connection share: the socket that is cut."""

    kept: socket.socket | None = None

    def cut(self) -> None:
        """End all reading and writing, in any thread."""
        if self.kept is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self.kept, socket.SHUT_RDWR)


class _Plain(Connection, http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.kept = self.sock


class _Secure(Connection, http.client.HTTPSConnection):
    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        secure = context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = self.kept = secure
        secure.do_handshake()


def connected(scheme: str, host: str, port: int | None, seconds: float) -> Any:
    """Return a connection to a server, which waits for bytes for at most some seconds, up to `TIMEOUT_S`."""
    kind = _Secure if scheme == "https" else _Plain
    connection = kind(host, port, timeout=min(TIMEOUT_S, max(seconds, 0.001)))
    connection.response_class = _Response
    return connection


class _Head:
    """The head of an answer: a stream that ends with an error after `MAX_HEAD` bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self._left = stream, MAX_HEAD

    def readline(self, limit: int = -1) -> bytes:
        """Read a line."""
        line = self.stream.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise http.client.HTTPException(f"its head has more than {MAX_HEAD} bytes")
        return line

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def flush(self) -> None:
        """Do nothing: the stream is only read."""


class _Response(http.client.HTTPResponse):
    """An answer whose head is bounded as a whole, with interim answers, of which a server can send any
    number."""

    def begin(self) -> None:
        """Read the head."""
        stream = self.fp
        self.fp = _Head(stream)  # type: ignore[assignment]
        super().begin()
        # An answer without a body has closed the stream.
        if self.fp is not None:
            self.fp = stream
