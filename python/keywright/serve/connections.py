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

CONNECTION = "keywright.connection"
"""Key of the `Connection` in a request's scope."""


class Connection(H11Protocol):
    """A connection with deadlines: `expect` sets one, `work` clears it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since: float | None = None
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

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Still answer a client that has half-closed the connection after its request."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.transport.get_extra_info("sslcontext") is not None:
            # TLS has no half-closed state.
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
