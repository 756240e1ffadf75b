"""Connections of the server: deadlines for slow peers, and a fair share of the slots for each of them.

uvicorn answers requests; this module adds the limits that it lacks. A head that another server could read in
another way is refused. A peer has credit: `GRACE_S` at the beginning of a body or an answer, and a second
for every `SLOWEST` bytes that move, up to `TIMEOUT_S`. Without credit its connection is aborted. Where all
slots are taken, a newcomer replaces a connection of the holder who has the most (see `connection_slots`).
TLS is negotiated within a slot. Above the pace of its address, a request waits. Reads have a pace of their
own: bytes that come one by one cost a turn of the event loop each, and wait for each other above it, which
excuses only reads of many bytes. With TLS, a read has one record, whether that carries bytes of requests or
not.
"""

import asyncio
import contextlib
import json
import logging
import re
import ssl
from typing import Any, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from keywright.errors.service import BadRequestError, ServeError
from keywright.serve.logs import request_identifier
from keywright.serve.metrics import Metrics
from keywright.serve.tenants.holders import neighbourhood

from .connection_slots import OPENING, ConnectionSlots, Pace, Slot

TIMEOUT_S = 30.0
"""Seconds for a request without its body, and the most credit of a body or an answer."""

GRACE_S = 5.0
"""Credit in seconds at the beginning of a body or an answer."""

SLOWEST = 16 << 10
"""Minimum average speed of a body or an answer, in bytes per second."""

HANDSHAKE_S = 10.0
"""Seconds for the negotiation of TLS."""

TLS_HEAD = 5
"""Bytes of the head of a record; the last two are the length of its content."""

TLS_HELD_S = 0.05
"""Least seconds until a read above the pace is tried again: many connections of an address may wait."""

TLS_CONTENT = 16 << 10
"""Maximum bytes of content of a record."""

TLS_RECORD = TLS_CONTENT + 256 + TLS_HEAD
"""Maximum bytes of a record with its head."""

READ_BYTES = 64 << 10
"""Maximum bytes that are read from a connection at a time."""

HELD_BYTES = 1 << 10
"""Bytes of a body in a read for which all of its wait for its turn is excused, and of less in proportion: a
peer that sends bytes one by one, or as many records of TLS, makes its reads wait itself."""

REFUSED_BYTES, REFUSED_S = 8 << 20, 2.0
"""Maximum bytes and seconds of reading after a malformed request."""

MAX_HEAD = 16 << 10
"""Maximum bytes of the head of a request: half of it may be an issuer's token."""

MAX_LINES = 100
"""Maximum lines of a head."""

MAX_REQUEST_LINE = 1 << 10
"""Maximum bytes of its first line: method, path and query."""

MAX_LISTS = 1 << 10
"""Maximum bytes of the headers that are split at commas, together."""

_END = re.compile(rb"\n\r?\n")
"""Where h11 ends a head."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    _TOKEN + rb" [!-~]+ HTTP/1\.[01]\r\n(?:" + _TOKEN + rb":[\t -~\x80-\xff]*\r\n)*\r\n", re.DOTALL
)
_LENGTHS = re.compile(rb"\r\ncontent-length:([^\r]*)", re.IGNORECASE)
_LISTS = re.compile(rb"\r\n(?:connection|expect|upgrade|x-forwarded-for):([^\r]*)", re.IGNORECASE)
_ENCODING = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)

ERRORS = logging.getLogger("uvicorn.error.service")
"""What uvicorn logs of connections. Its warnings are about what peers send, as often as they like."""
ERRORS.setLevel(logging.ERROR)

CONNECTION = "keywright.connection"
"""Key of the `Connection` in a request's scope."""


PROBLEM = "application/problem+json"
"""Media type of refusals: problem details of RFC 9457."""


def problem(error: ServeError) -> dict[str, object]:
    """Return the body of a refusal, for JSON; this package's clients read the member ``error``."""
    return {**error.to_json(), "instance": f"urn:keywright:request:{request_identifier()}"}


def excess_of(head: bytes) -> str:
    """Return of what a head has too much, or "". Each line, name and list costs the event loop time before
    the request counts for anyone; bytes alone cost little."""
    if len(head) > MAX_HEAD or head.count(b"\n") > MAX_LINES:
        return f"the head of this request has more than {MAX_HEAD} bytes or {MAX_LINES} lines; send fewer"
    if head.find(b"\n") > MAX_REQUEST_LINE:
        return f"path and query of this request have more than {MAX_REQUEST_LINE} bytes; send fewer"
    if sum(map(len, _LISTS.findall(head))) > MAX_LISTS:
        return f"Connection, Expect, Upgrade and X-Forwarded-For have more than {MAX_LISTS} bytes; send fewer"
    return ""


def fault_of(head: bytes) -> str:
    """Return what is wrong with a head, or "". RFC 9112 allows several readings of lines that end with LF,
    folded lines, equal lengths and unknown versions; a proxy in front of this server may have another one."""
    if not _HEAD.fullmatch(head):
        return (
            "these bytes are not a request of HTTP/1.1; each line of its head ends with CR LF, and none is "
            "folded"
        )
    if _ENCODING.search(head):
        return "Content-Length is missing; send it, bodies of unknown length are not read"
    lengths = _LENGTHS.findall(head)
    if len(lengths) > 1 or any(b"," in length for length in lengths):
        return "the header content-length is sent twice; send it once"
    return ""


class StrictRequests(h11.Connection):
    """Requests of one connection, without those that have a fault.

    Attributes:
        fault: what was wrong with the last one; h11 itself does not say it for people.
    """

    fault: BadRequestError | None = None

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD)
        self._searched = 0

    def next_event(self) -> Any:
        """Return what has arrived.

        Raises:
            h11.RemoteProtocolError: the head of a request has a fault.
        """
        if self.their_state is h11.IDLE:
            arrived = self.trailing_data[0]
            end = _END.search(arrived, self._searched)
            # A head may arrive byte by byte; its end has three at most.
            self._searched = 0 if end else max(0, len(arrived) - 2)
            head = arrived[: end.end()] if end else arrived[: MAX_HEAD + 1]
            if excess := excess_of(head) if end or len(head) > MAX_HEAD else "":
                self.fault = BadRequestError(excess, code="head_too_large")
            elif end and (fault := fault_of(head)):
                self.fault = BadRequestError(fault)
            if self.fault is not None:
                raise h11.RemoteProtocolError(str(self.fault))
        return super().next_event()


class Connection(H11Protocol):
    """A connection with deadlines: a fixed time for a request, and credit for a body (`receive`) and an
    answer (`send`). While the server works there is no deadline (`work`).

    Args:
        slots: the slots of the server's connections.
        pace, reads: of the addresses' requests, and of reads from their connections; None where
            `EncryptedTransport` counts these.
    """

    def __init__(
        self,
        *arguments: Any,
        slots: ConnectionSlots,
        pace: Pace,
        reads: Pace | None,
        metrics: Metrics,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self.logger, self._metrics = ERRORS, metrics
        self.conn = self._requests = StrictRequests()
        self._slots, self._pace, self._reads = slots, pace, reads
        # When the next read began to wait for its turn, and how long reads have waited since the last bytes.
        self._held_since: float | None = None
        self._held = 0.0
        self._slot = Slot(self._abort)
        self._timer: asyncio.TimerHandle | None = None
        self._takes = False
        self._written = self._sent = 0
        self._unread: int | None = None
        answer: ASGIApp = self.app

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope[CONNECTION] = self
            cycle: RequestResponseCycle = self.cycle

            async def rest() -> Message:
                message = await receive()
                if message["type"] == "http.disconnect" and cycle.body:
                    # Bytes that arrived before the connection broke count.
                    message = {"type": "http.request", "body": bytes(cycle.body), "more_body": True}
                    cycle.body.clear()
                return message

            await answer(scope, rest, send)

        self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, and evict a connection if there are too many."""
        if self._reads is not None:
            # asyncio would read four times as much, and keep it while the request waits for its turn.
            transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        super().connection_made(transport)
        self._wait()
        self._slots.enter(self._slot)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.work()
        self._slots.leave(self._slot)
        super().connection_lost(exc)

    def _abort(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes; after a refusal, read and drop a few, because the sender would otherwise miss the
        answer."""
        if self._takes:
            self._slot.until += self._held * min(1.0, len(data) / HELD_BYTES)
            self._add_credit(len(data))
        self._held = 0.0
        delay = self._reads.delay(self.client[0]) if self._reads and self.client else 0.0
        if delay > 0:
            # More arrives meanwhile, and the next read takes all of it.
            self.hold(on=True)
            self.transport.pause_reading()
            self.loop.call_later(delay, self._go_on)
        if self._unread is None:
            super().data_received(data)
            if self._takes and self._slot.until <= self.loop.time() and self.cycle.more_body:
                self._abort()
            return
        self._unread -= len(data)
        if self._unread < 0:
            self._end()

    def hold(self, *, on: bool) -> None:
        """Note whether the next read waits for its turn: the peer is not slow then, if that read has bytes of
        a body."""
        now = self.loop.time()
        if self._held_since is not None:
            self._held += now - self._held_since
        self._held_since = now if on else None

    def _go_on(self) -> None:
        """Read again, unless the request that was read has to be answered first."""
        self.hold(on=False)
        if not self.flow.read_paused:
            self.transport.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not a request, such as headers that are too long, and close when the sender
        does."""
        self._unread = REFUSED_BYTES
        error = self._requests.fault or BadRequestError("these bytes are not a request of HTTP/1.1")
        self._metrics.count("refusals_total", code=error.code)
        body = json.dumps(problem(error)).encode()
        head = [("content-type", PROBLEM), ("content-length", str(len(body))), ("connection", "close")]
        reason = error.status.phrase.encode()
        refusal = h11.Response(status_code=error.status, headers=head, reason=reason)
        for event in (refusal, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.work()
        self._slot.until = self.loop.time() + REFUSED_S
        self._timer = self.loop.call_at(self._slot.until, self._end)

    def _end(self) -> None:
        """End after the bytes that are being sent, for which the peer has credit."""
        self.transport.close()
        self.send()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Still answer a client that has half-closed the connection after its request."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._unread is not None or self.transport.get_extra_info("sslcontext") is not None:
            # TLS has no half of a connection to keep.
            return None
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def on_response_complete(self) -> None:
        """Wait until the client has read this answer, and then for its next request and its turn."""
        self._wait()
        delay = 0.0
        if self.client is not None:
            if (self.scope["method"], self.scope["path"]) == ("POST", "/v1/keys"):
                self._pace.charge(self.client[0], OPENING - 1)
            if not self.transport.is_closing():
                delay = self._pace.delay(self.client[0])
        if delay > 0:
            self.loop.call_later(delay, super().on_response_complete)
        else:
            super().on_response_complete()

    def begin(self, holder: str) -> None:
        """Count the connection for the sender of its request."""
        self._slot.holder = holder

    def receive(self) -> None:
        """Give the peer credit for a body."""
        self.expect(min(GRACE_S, TIMEOUT_S), takes=True)

    def pause(self, length: int) -> float:
        """Return the seconds until it is the turn of a body of the peer, see `Pace.body`."""
        return 0.0 if self.client is None else self._pace.body(self.client[0], length)

    def send(self) -> None:
        """Give the peer credit for an answer."""
        self.expect(min(GRACE_S, TIMEOUT_S))

    def wrote(self, length: int) -> None:
        """Note bytes of an answer that the peer has to read."""
        self._written += length

    def give_up(self) -> None:
        """End the connection within an answer."""
        self._abort()

    def work(self) -> None:
        """Clear the deadline while the server works."""
        self._takes, self._slot.until = False, float("inf")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        """Give the peer time for a request, and to read what was answered before."""
        address = self.client[0] if self.client is not None else ""
        self._slot.holder = f"waiting {neighbourhood(address)}"
        self.expect(TIMEOUT_S)

    def expect(self, seconds: float, *, takes: bool = False) -> None:
        """Give the peer some seconds."""
        self.work()
        self._takes, self._slot.until = takes, self.loop.time() + seconds
        self._timer = self.loop.call_at(self._slot.until, self._check_credit)

    def _add_credit(self, count: int) -> None:
        """Give credit for bytes that have moved."""
        until = self._slot.until + count / SLOWEST
        self._slot.until = min(until, max(self._slot.until, self.loop.time() + TIMEOUT_S))

    def _check_credit(self) -> None:
        """Abort the connection if its credit is used up."""
        if not self._takes:
            sent = max(self._sent, self._written - self.transport.get_write_buffer_size())
            self._sent, moved = sent, sent - self._sent
            self._add_credit(moved)
        now = self.loop.time()
        if self._takes and self.flow.read_paused:
            # The server is slow, not the peer.
            self._slot.until = max(self._slot.until, now + GRACE_S)
        # Bytes that wait for their turn, or have waited, are judged when they are read.
        held = self._takes and self._held_since is not None
        until = max(self._slot.until + self._held * self._takes, now + GRACE_S * held)
        if until > now:
            self._timer = self.loop.call_at(until, self._check_credit)
        else:
            self.transport.abort()


class EncryptedTransport(asyncio.BufferedProtocol, asyncio.Transport):
    """TLS between a socket and a `Connection`: one record is read, decrypted and passed on at a time, when it
    is the turn of its address, and one is encrypted and written at a time. asyncio's TLS would keep a
    megabyte for a slow peer. A record may carry a single byte, or none, as one that changes the keys, and 700
    of those in one read would take as long as ten handshakes.

    Args:
        connection: its protocol within TLS.
        reads: the pace of reads.
        tls: settings of the server.
    """

    def __init__(self, connection: Connection, reads: Pace, tls: ssl.SSLContext) -> None:
        super().__init__({"sslcontext": tls})
        self._connection, self._reads = connection, reads
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._buffer, self._arrived = bytearray(TLS_RECORD), 0
        # What has arrived of the head of a record, and what is missing of its content.
        self._head, self._missing = bytearray(), 0
        self._address, self._turn = "", cast("asyncio.Handle | None", None)
        self._negotiated = self._closing = False
        # Whether the application pauses, and whether the peer has bytes to read first: TLS answers changes of
        # keys.
        self._paused = self._full = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the negotiation, for which the peer has `HANDSHAKE_S`."""
        self._socket = transport
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        self._connection.connection_made(self)
        self._connection.expect(HANDSHAKE_S)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place of the next bytes: the rest of a record, and the head of the next one."""
        return memoryview(self._buffer)[: self._missing + TLS_HEAD - len(self._head)]

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes."""
        self._arrived = nbytes
        self._advance()

    def _advance(self) -> None:
        """Pass on what has arrived, when it is its turn, and read more."""
        self._turn = None
        takes = self._arrived > 0 and not (self._paused or self._full)
        delay = self._reads.wait(self._address) if takes else 0.0
        self._connection.hold(on=delay > 0)
        if delay > 0:
            self._turn = self._connection.loop.call_later(max(delay, TLS_HELD_S), self._advance)
        elif takes:
            self._head += self._buffer[self._missing : self._arrived]
            self._missing = max(0, self._missing - self._arrived)
            if len(self._head) == TLS_HEAD:
                self._missing = int.from_bytes(self._head[-2:])
                self._head.clear()
            self._incoming.write(memoryview(self._buffer)[: self._arrived])
            self._arrived = 0
        if not self._arrived:
            self._decrypt()
        if self._arrived or self._paused:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()

    def _decrypt(self) -> None:
        """Pass on what has been read of the peer, until the application pauses."""
        speaks = True
        try:
            while not (self._paused or self.is_closing()):
                if not self._negotiated:
                    self._tls.do_handshake()
                    self._negotiated = True
                    self._connection.expect(TIMEOUT_S)
                elif data := self._tls.read(TLS_RECORD):
                    self._connection.data_received(data)
                else:
                    self._connection.eof_received()
                    self.close()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            speaks = False
        self._flush()
        if not speaks:
            # It has been told so, if it reads.
            self.abort() if self.get_write_buffer_size() else self.close()

    def _flush(self) -> None:
        if (data := self._outgoing.read()) and not self._socket.is_closing():
            self._socket.write(data)

    def eof_received(self) -> None:
        """End."""
        self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._closing = True
        if self._turn is not None:
            self._turn.cancel()
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the peer reads."""
        self._full = True
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._connection.resume_writing()
        self._schedule()

    def _schedule(self) -> None:
        if self._turn is None and not self.is_closing():
            self._turn = self._connection.loop.call_soon(self._advance)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection."""
        return super().get_extra_info(name) or self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether it ends, or has ended."""
        return self._closing or self._socket.is_closing()

    def pause_reading(self) -> None:
        """Pass nothing on."""
        self._paused = True
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        self._paused = False
        self._schedule()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        if self.is_closing():
            return
        try:
            for start in range(0, len(data), TLS_CONTENT):
                self._tls.write(memoryview(data)[start : start + TLS_CONTENT])
                self._flush()
        except ssl.SSLError:
            # The peer is in the middle of a message of TLS itself.
            self.abort()

    def can_write_eof(self) -> bool:
        """TLS has no half of a connection to keep."""
        return False

    def get_write_buffer_size(self) -> int:
        """Bytes that the peer has to read."""
        return self._socket.get_write_buffer_size()

    def close(self) -> None:
        """End after the bytes that are being sent."""
        if not self._closing:
            self._closing = True
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
            self._socket.close()

    def abort(self) -> None:
        """End now."""
        self._closing = True
        self._socket.abort()


def protocol(
    slots: ConnectionSlots,
    pace: Pace,
    reads: Pace,
    tls: ssl.SSLContext | None,
    metrics: Metrics,
    **named: Any,
) -> asyncio.BaseProtocol:
    """Return the protocol of a new connection.

    Args:
        slots: the slots of the server's connections.
        pace, reads: of the addresses' requests, and of reads from their connections.
        tls: settings of a server that speaks TLS.
        metrics: counts refusals of bytes that are not a request.
        named: uvicorn's arguments.
    """
    connection = Connection(slots=slots, pace=pace, reads=None if tls else reads, metrics=metrics, **named)
    return connection if tls is None else EncryptedTransport(connection, reads, tls)
