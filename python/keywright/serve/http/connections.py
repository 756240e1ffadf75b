"""Connections of the server: deadlines for slow senders, and eviction when there are too many connections.

uvicorn answers requests; this module adds the limits that it lacks. A request that does not arrive, or
arrives too slowly, is aborted. At `MAX_CONNECTIONS`, the connection that has waited longest for its request
is closed for the next one. So half-sent requests cannot lock others out.
"""

import asyncio
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 512

TIMEOUT_S = 30.0
"""Seconds for a request without its body, and a fixed allowance for each body and answer."""

SLOWEST = 16 << 10
"""Minimum average speed of a body or an answer, in bytes per second."""

REFUSED_BYTES, REFUSED_S = 8 << 20, 2.0
"""What is still read of what is no request, and for how long."""

CONNECTION = "keywright.connection"
"""Key of the `Connection` in a request's scope."""


class _Open:
    """A transport that is not closed yet."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.write = transport.write

    def close(self) -> None:
        """Not yet."""


class Connection(H11Protocol):
    """A connection with deadlines: `expect` sets one, `work` clears it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since: float | None = None
        self._unread: int | None = None
        answer: ASGIApp = self.app

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            self._waits_since = None
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
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [
                (each._waits_since, id(each), each)
                for each in self.connections
                if isinstance(each, Connection) and each._waits_since is not None
            ]
            # This connection is waiting, too, so there is always one.
            min(waiting)[2].transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.work()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; after a refusal, read and drop a few, or the sender would miss the answer."""
        if self._unread is None:
            super().data_received(data)
            return
        self._unread -= len(data)
        if self._unread < 0:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no request, among them headers that are too long, and end when the sender
        does."""
        self._unread = REFUSED_BYTES
        transport, self.transport = self.transport, _Open(self.transport)  # type: ignore[assignment]
        try:
            super().send_400_response(msg)
        finally:
            self.transport = transport
        if transport.can_write_eof():
            transport.write_eof()
        self.work()
        self._timer = self.loop.call_later(REFUSED_S, transport.close)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Still answer a client that has half-closed the connection after its request."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._unread is not None or self.transport.get_extra_info("sslcontext") is not None:
            # TLS has no half of a connection to keep.
            return None
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def on_response_complete(self) -> None:
        """Wait for the client to read this answer and to send its next request."""
        self._wait(self.transport.get_write_buffer_size())
        super().on_response_complete()

    def expect(self, length: int) -> None:
        """Give the peer time for so many bytes; the connection is aborted after that."""
        self.work()
        self._timer = self.loop.call_later(TIMEOUT_S + length / SLOWEST, self.transport.abort)

    def work(self) -> None:
        """Clear the deadline while the server works."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, length: int = 0) -> None:
        self._waits_since = time.monotonic()
        self.expect(length)
