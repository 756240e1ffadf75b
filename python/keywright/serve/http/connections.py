"""Connections of the server: deadlines for slow peers, and a fair share of the slots for each of them.

uvicorn answers requests; this module adds the limits that it lacks. A head that another server could read in
another way is refused. A peer has credit: `GRACE_S` at the
beginning of a body or an answer, and a second for every `SLOWEST` bytes that move, up to `TIMEOUT_S`. Without
credit its connection is aborted. At `MAX_CONNECTIONS`, a newcomer replaces a connection of the holder who has
the most (see `connection_slots`). TLS is negotiated within a slot. Above the pace of its address, a request
waits. Reads have a pace of their own: bytes that come one by one cost a turn of the event loop each, and wait
for each other above it. With TLS, a read has one record, whether that carries bytes of requests or not.
"""

import asyncio
import contextlib
import json
import re
import ssl
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from keywright.errors.service import BadRequestError, ServeError
from keywright.serve.logs import request_identifier
from keywright.serve.tenants.holders import neighbourhood

from .connection_slots import OPENING, ConnectionSlots, Pace, Slot

MAX_CONNECTIONS = 512

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

TLS_LOW, TLS_HIGH = 32 << 10, 64 << 10
"""Bytes of TLS that wait while a request is not read. Both are above the longest record, which waits until it
is whole."""

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
        pace, reads: of the addresses' requests, and of reads from their connections; None where `TlsReads`
            counts these.
    """

    def __init__(
        self, *arguments: Any, slots: ConnectionSlots, pace: Pace, reads: Pace | None, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self.conn = self._requests = StrictRequests()
        self._slots, self._pace, self._reads = slots, pace, reads
        self._holding = False
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
        super().connection_made(transport)
        self._wait()
        self._slots.enter(self._slot, MAX_CONNECTIONS)

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
        delay = self._reads.delay(self.client[0]) if self._reads and self.client else 0.0
        if delay > 0:
            # More arrives meanwhile, and the next read takes all of it.
            self._holding = True
            self.transport.pause_reading()
            self.loop.call_later(delay, self._go_on)
        if self._unread is None:
            if self._takes:
                self._move(len(data))
            super().data_received(data)
            return
        self._unread -= len(data)
        if self._unread < 0:
            self.transport.close()

    def hold(self, *, on: bool) -> None:
        """Note whether reads wait for their turn: the peer is not slow then."""
        self._holding = on

    def _go_on(self) -> None:
        """Read again, unless the request that was read has to be answered first."""
        self._holding = False
        if not self.flow.read_paused:
            self.transport.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not a request, such as headers that are too long, and close when the sender
        does."""
        self._unread = REFUSED_BYTES
        error = self._requests.fault or BadRequestError("these bytes are not a request of HTTP/1.1")
        body = json.dumps(problem(error)).encode()
        head = [("content-type", PROBLEM), ("content-length", str(len(body))), ("connection", "close")]
        reason = error.status.phrase.encode()
        refusal = h11.Response(status_code=error.status, headers=head, reason=reason)
        for event in (refusal, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.work()
        self._timer = self.loop.call_later(REFUSED_S, self.transport.close)

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
        self._expect(min(GRACE_S, TIMEOUT_S), takes=True)

    def pause(self, length: int) -> float:
        """Return the seconds until it is the turn of a body of the peer, see `Pace.body`."""
        return 0.0 if self.client is None else self._pace.body(self.client[0], length)

    def send(self) -> None:
        """Give the peer credit for an answer."""
        self._expect(min(GRACE_S, TIMEOUT_S))

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
        self._expect(TIMEOUT_S)

    def _expect(self, seconds: float, *, takes: bool = False) -> None:
        self.work()
        self._takes, self._slot.until = takes, self.loop.time() + seconds
        self._timer = self.loop.call_at(self._slot.until, self._look)

    def _move(self, count: int) -> None:
        """Give credit for bytes that have moved."""
        until = self._slot.until + count / SLOWEST
        self._slot.until = min(until, max(self._slot.until, self.loop.time() + TIMEOUT_S))

    def _look(self) -> None:
        """Abort the connection if its credit is used up."""
        if not self._takes:
            sent = max(self._sent, self._written - self.transport.get_write_buffer_size())
            self._sent, moved = sent, sent - self._sent
            self._move(moved)
        now = self.loop.time()
        if self._takes and (self._holding or self.flow.read_paused):
            # The server is slow, not the peer.
            self._slot.until = max(self._slot.until, now + GRACE_S)
        if self._slot.until <= now:
            self.transport.abort()
        else:
            self._timer = self.loop.call_at(self._slot.until, self._look)


class TlsReads(asyncio.BufferedProtocol):
    """What arrives on a connection that speaks TLS, before it is decrypted: at a time at most the rest of a
    record and the head of the next one, when it is the turn of its address. A record may carry a single byte,
    or none, as one that changes the keys, and 700 of those in one read would take as long as ten handshakes.

    Args:
        tls: asyncio's protocol for TLS.
        transport: of the connection.
        connection: its protocol within TLS.
        reads: the pace of reads.
        address: of the peer.
    """

    def __init__(
        self,
        tls: asyncio.BufferedProtocol,
        transport: asyncio.Transport,
        connection: Connection,
        reads: Pace,
        address: str,
    ) -> None:
        self._tls, self._transport, self._connection = tls, transport, connection
        self._reads, self._address = reads, address
        self._buffer = memoryview(b"")
        self._turn: asyncio.Handle | None = None
        # Bytes that wait until the peer reads: TLS answers changes of keys, and keeps what is not read.
        self._full, self._kept = False, 0
        # What has arrived of the head of a record, and what is missing of its content.
        self._head, self._missing = bytearray(), 0

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place of the next bytes."""
        most = self._missing + TLS_HEAD - len(self._head)
        self._buffer = memoryview(self._tls.get_buffer(sizehint))[:most]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes on when it is their turn."""
        if self._full:
            self._transport.pause_reading()
            # It is the peer that is slow now.
            self._connection.hold(on=False)
            self._kept = nbytes
            return
        if (delay := self._reads.wait(self._address)) > 0:
            self._transport.pause_reading()
            self._connection.hold(on=True)
            later = max(delay, TLS_HELD_S)
            self._turn = self._connection.loop.call_later(later, self.buffer_updated, nbytes)
            return
        if self._turn is not None:
            # First this, because TLS may pause.
            self._turn = None
            self._connection.hold(on=False)
            self._transport.resume_reading()
        self._head += self._buffer[self._missing : nbytes]
        self._missing = max(0, self._missing - nbytes)
        if len(self._head) == TLS_HEAD:
            self._missing = int.from_bytes(self._head[-2:])
            self._head.clear()
        self._tls.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._tls.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on."""
        if self._turn is not None:
            self._turn.cancel()
        self._tls.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on, and no bytes until the peer reads."""
        self._full = True
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on, and the bytes that have waited."""
        self._full = False
        self._tls.resume_writing()
        if self._kept:
            self._turn = self._connection.loop.call_soon(self.buffer_updated, self._kept)
            self._kept = 0


class Handshake(asyncio.Protocol):
    """The TLS negotiation on a new connection, which counts like any other connection from its first packet
    on.

    Args:
        connection: the protocol after the negotiation.
        slots: the slots of the server's connections.
        reads: the pace of reads.
        tls: settings of the server.
    """

    def __init__(
        self, connection: Connection, slots: ConnectionSlots, reads: Pace, tls: ssl.SSLContext
    ) -> None:
        self._connection, self._slots, self._reads, self._tls = connection, slots, reads, tls
        self._slot, self._early = Slot(self._abort), bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        # Its bytes are for TLS.
        transport.pause_reading()
        self._transport, loop = transport, self._connection.loop
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        self._slot.holder = f"waiting {neighbourhood(address)}"
        self._slot.until = loop.time() + HANDSHAKE_S
        self._slots.enter(self._slot, MAX_CONNECTIONS)
        self._task = loop.create_task(self._negotiate(transport, address))

    def data_received(self, data: bytes) -> None:
        """Keep the bytes after the end of the negotiation."""
        self._early += data

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _count_reads(self, transport: asyncio.Transport, address: str) -> None:
        """Count what arrives before TLS gets it."""
        tls = transport.get_protocol()
        if isinstance(tls, asyncio.BufferedProtocol):
            transport.set_protocol(TlsReads(tls, transport, self._connection, self._reads, address))

    async def _negotiate(self, transport: asyncio.Transport, address: str) -> None:
        encrypted: asyncio.Transport | None = None
        # It runs when TLS has the connection, and before it reads.
        self._connection.loop.call_soon(self._count_reads, transport, address)
        try:
            # A peer that ends or speaks no TLS is no error of the server.
            with contextlib.suppress(OSError):
                encrypted = await self._connection.loop.start_tls(
                    transport, self, self._tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_S
                )
        finally:
            self._slots.leave(self._slot)
            if encrypted is None:
                transport.abort()
        if encrypted is None or encrypted.is_closing():
            return
        limit = getattr(encrypted, "set_read_buffer_limits", None)
        if limit is not None:
            limit(TLS_HIGH, TLS_LOW)
        encrypted.set_protocol(self._connection)
        self._connection.connection_made(encrypted)
        if self._early:
            self._connection.data_received(bytes(self._early))


def protocol(
    slots: ConnectionSlots, pace: Pace, reads: Pace, tls: ssl.SSLContext | None, **named: Any
) -> asyncio.Protocol:
    """Return the protocol of a new connection.

    Args:
        slots: the slots of the server's connections.
        pace, reads: of the addresses' requests, and of reads from their connections.
        tls: settings of a server that speaks TLS.
        named: uvicorn's arguments.
    """
    if tls is None:
        return Connection(slots=slots, pace=pace, reads=reads, **named)
    return Handshake(Connection(slots=slots, pace=pace, reads=None, **named), slots, reads, tls)
