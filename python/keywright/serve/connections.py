"""Connections of the server: how long a sender may take, and who makes room when there are too many.

uvicorn answers requests; what it leaves open is here. A request that does not come, or comes too slowly, is
broken off. Where there are `MAX_CONNECTIONS`, the one that has waited longest for its request is closed for
the next one: half-sent requests keep nobody out.
"""

import asyncio
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 512

TIMEOUT_S = 30.0
"""For a request without its body, and for a body or an answer beside what its bytes take."""

SLOWEST = 16 << 10
"""Bytes per second that a connection moves at least, on the average of a body or an answer."""

CONNECTION = "keywright.connection"
"""Where a request's scope has its `Connection`."""


class Connection(H11Protocol):
    """A connection with deadlines: `expect` sets one, `work` takes it away."""

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
                    # What came before the connection broke counts.
                    message = {"type": "http.request", "body": bytes(cycle.body), "more_body": True}
                    cycle.body.clear()
                return message

            await answer(scope, rest, send)

        self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and make room if there are too many."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [
                (each._waits_since, id(each), each)
                for each in self.connections
                if isinstance(each, Connection) and each._waits_since is not None
            ]
            # This one waits, too: there is always one.
            min(waiting)[2].transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.work()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer whoever has sent a whole request and sends no more."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.transport.get_extra_info("sslcontext") is not None:
            # TLS has no half of a connection to keep.
            return None
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def on_response_complete(self) -> None:
        """Wait for the next request, and for this answer to be read."""
        self._wait(self.transport.get_write_buffer_size())
        super().on_response_complete()

    def expect(self, length: int) -> None:
        """Give the other side time for so many bytes; the connection is broken after it."""
        self.work()
        self._timer = self.loop.call_later(TIMEOUT_S + length / SLOWEST, self.transport.abort)

    def work(self) -> None:
        """What follows is the server's own time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, length: int = 0) -> None:
        self._waits_since = time.monotonic()
        self.expect(length)
