"""Connections of a client: heads are bounded, and so is the time of a call, however slowly a server sends.

Each wait for a server is one wait of a socket, whose timeout is the rest of the call, or of the server's
credit if that is less; no thread watches it.
"""

import contextlib
import http.client
import io
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import IO, Any

from keywright.errors import ParameterError
from keywright.errors.service import ServeError, UnreachableError

MAX_HEAD = 1 << 16
"""Most bytes of the status line and the headers of an answer, with those of interim answers."""

TIMEOUT_S = 60.0
"""How long a server may send or take nothing, and its credit for a message or an answer at the beginning."""

SLOWEST = 16 << 10
"""Bytes that give it credit for a second: servers demand the same of their clients."""

PIECE_BYTES = 16 << 10
"""Most bytes whose sending is one wait: a record of TLS."""

DEADLINE_S = 6 * 3600.0
"""How long an upload of keys, and a request with all its retries, may take by default: 32 GiB of keys take
three hours at 25 megabits a second."""

SHORT_S = 30.0
"""How long calls without keys and samples may take by default: their answers are small, and a manifest of 16
MiB arrives in that time at 5 megabits a second."""

CLOSE_S = 5.0
"""How long the end of a session may take: the server deletes forgotten keys later by itself."""


class Deadline:
    """The end of a call, with all its requests, retries and pauses.

    Args:
        seconds: that it may take.
        longer: how its caller can allow more, for messages.

    Attributes:
        refusal: why the last request failed, if it is to be sent again.

    Raises:
        ParameterError: not a number of seconds above 0.
    """

    def __init__(self, seconds: float, longer: str = ", or allow more (deadline=)") -> None:
        if not 0 < seconds < math.inf:
            raise ParameterError(
                f"deadline must be a number of seconds above 0, got {seconds}", what="deadline"
            )
        self.seconds, self.end, self._longer = seconds, time.monotonic() + seconds, longer
        self.refusal: ServeError | None = None
        self._waiting: dict[int, socket.socket] = {}
        """The socket of each thread, for `abandon`."""

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
            why = "" if self.refusal is None else f"; the last request failed: {self.refusal}"
            raise UnreachableError(
                f"the server did not end this call within {self.seconds:g} s; ask again{self._longer}{why}",
                code="deadline",
            ) from self.refusal

    def limit(self, sock: socket.socket, seconds: float) -> socket.socket:
        """Bound the next wait of a socket by the rest of the call, up to some seconds.

        Raises:
            UnreachableError: of the code ``deadline``.
        """
        self._waiting[threading.get_ident()] = sock
        self.require()
        sock.settimeout(min(seconds, max(self.left, 0.001)))
        return sock

    def abandon(self) -> None:
        """End the call now, and the waits of its other threads for the server."""
        self.end = time.monotonic()
        for sock in list(self._waiting.values()):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


_CURRENT: ContextVar[Deadline | None] = ContextVar("keywright deadline", default=None)


def current() -> Deadline:
    """Return the deadline of the call that runs, or a new one."""
    return _CURRENT.get() or Deadline(DEADLINE_S)


@contextlib.contextmanager
def within(seconds: float, **advice: str) -> Iterator[Deadline]:
    """Give a call some seconds, or what an enclosing call has left if that is less; see `Deadline`."""
    own, outer = Deadline(seconds, **advice), _CURRENT.get()
    if outer is not None and outer.end < own.end:
        own = outer
    token = _CURRENT.set(own)
    try:
        yield own
    finally:
        _CURRENT.reset(token)


class Credit:
    """The time that a server has for one message, or for one answer: it would otherwise keep a call to its
    end with a byte a minute. Only waits for the server count, not what this process does between them.

    Args:
        until: the end of the call.
        slowest: bytes that give the server a second.
        queued: bytes of the message that may not have left this machine yet.
    """

    def __init__(self, until: Deadline, slowest: float, queued: int = 0) -> None:
        self._until, self._slowest, self._moved = until, slowest, False
        self._left = TIMEOUT_S + self._earned(queued)

    def _earned(self, count: int) -> float:
        """Return the seconds that bytes give."""
        return count and (count / self._slowest if self._slowest > 0 else TIMEOUT_S)

    def wait(self, sock: socket.socket, move: Callable[[], int | None]) -> int | None:
        """Let the server send or take bytes, and return their number; None if there are none yet.

        Raises:
            UnreachableError: of the code ``deadline``, or ``slow`` if the credit is used up.
            TimeoutError: it has moved nothing at all.
        """
        longest = max(0.001, self._left)
        self._until.limit(sock, longest)
        begun = time.monotonic()
        try:
            count = move()
        except TimeoutError:
            self._until.require()
            if self._moved:
                raise self._slow() from None
            raise
        # A wait takes longer only if this process is stopped.
        self._left -= min(time.monotonic() - begun, longest)
        if count:
            self._moved = True
            self._left = min(self._left + self._earned(count), TIMEOUT_S)
            if self._left <= 0:
                raise self._slow()
        return count

    def _slow(self) -> UnreachableError:
        return UnreachableError(
            f"the server moves fewer than {self._slowest:g} bytes per second; ask again, or set the "
            "attribute slowest of the model or search to less",
            code="slow",
        )


class Connection(http.client.HTTPConnection):
    """A connection over HTTP, each of whose waits ends with a deadline, or with the credit of the server.

    Args:
        host, port: the server's.
        until: the deadline.
        slowest: see `Credit`.
    """

    def __init__(
        self, host: str, port: int | None, until: Deadline, slowest: float, **arguments: Any
    ) -> None:
        super().__init__(host, port, **arguments)
        self.until, self._slowest, self._sent = until, slowest, 0
        self.response_class = self._response  # type: ignore[assignment]

    def _response(self, sock: socket.socket, **arguments: Any) -> "_Response":
        """Return the answer. Its server has time for what the socket still has to send, too."""
        queued = min(self._sent, sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        return _Response(Credit(self.until, self._slowest, queued), sock, **arguments)

    def connect(self) -> None:
        """Connect to the first address of the host that answers."""
        failure = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            sock = self._prepared(socket.socket(family, kind, protocol))
            try:
                self.until.limit(sock, TIMEOUT_S).connect(address)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sock = sock
                return
        raise failure

    def _prepared(self, sock: socket.socket) -> socket.socket:
        """Return the socket that connects."""
        return sock

    def send(self, data: Any) -> None:
        """Send bytes as fast as the server takes them, if that is fast enough."""
        if self.sock is None:
            self.connect()
            self._credit = Credit(self.until, self._slowest)
        rest = memoryview(data)
        self._sent += len(rest)
        while rest:
            # TLS returns when all bytes are sent.
            rest = rest[self._credit.wait(self.sock, partial(self.sock.send, rest[:PIECE_BYTES])) or 0 :]


class _Secure(Connection):
    """The same over TLS."""

    default_port = http.client.HTTPS_PORT

    def _prepared(self, sock: socket.socket) -> ssl.SSLSocket:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context.wrap_socket(sock, server_hostname=self.host, do_handshake_on_connect=False)

    def connect(self) -> None:
        super().connect()
        # A failed handshake closes the socket with the connection.
        self.until.limit(self.sock, TIMEOUT_S)
        assert isinstance(self.sock, ssl.SSLSocket)
        self.sock.do_handshake()


def connected(
    scheme: str, host: str, port: int | None, until: Deadline, slowest: float = SLOWEST
) -> Connection:
    """Return a connection to a server, which opens with its first request; see `Connection`."""
    return (_Secure if scheme == "https" else Connection)(host, port, until, slowest)


class _Stream(io.RawIOBase):
    """The bytes that a server sends; each wait for some ends with the credit of the server."""

    def __init__(self, sock: socket.socket, credit: Credit) -> None:
        self._sock, self._credit = sock, credit
        # It keeps the socket open after the connection is closed, until the answer is.
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Wait for bytes; 0 is the end."""
        return self._credit.wait(self._sock, partial(self._raw.readinto, buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)


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
    """An answer that ends with a deadline, and whose head is bounded as a whole, with interim answers, of
    which a server can send any number."""

    def __init__(self, credit: Credit, sock: socket.socket, **arguments: Any) -> None:
        super().__init__(_Stream(sock, credit), **arguments)  # type: ignore[arg-type]

    def begin(self) -> None:
        """Read the head."""
        stream = self.fp
        self.fp = _Head(stream)  # type: ignore[assignment]
        super().begin()
        # An answer without a body has closed the stream.
        if self.fp is not None:
            self.fp = stream
