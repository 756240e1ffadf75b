"""A service that listens: uvicorn on a socket that is bound before it runs."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import uvicorn

from .app import application
from .connections import Connection
from .edge import OnRequest
from .pages import Page
from .service import Service

BACKLOG = 512

DRAIN_S = 30
"""How long requests that are being answered have at the end."""


class _Uvicorn(uvicorn.Server):
    """Without handlers of signals: whoever runs it says when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """A service that listens from when it is made, and answers in `serve_forever`.

    Args:
        service: what is served.
        host: address to listen on; the loopback unless given.
        port: 0 for any that is free; see `url`.
        page: of `load_page`.
        names: under which it may be asked, besides its address.
        on_request: called with method, path, status, bytes received and sent, and seconds.

    Attributes:
        url: under which it is reached.
        server_address: (host, port).
    """

    def __init__(
        self,
        service: Service,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        page: Page | None = None,
        names: frozenset[str] = frozenset(),
        on_request: OnRequest | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.server_address: tuple[str, int] = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_address[1]}"
        self.app = application(service, page=page, names=names | {shown.lower()}, on_request=on_request)
        self._service, self._ended = service, threading.Event()
        config = uvicorn.Config(
            self.app,
            http=Connection,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=DRAIN_S,
        )
        self._uvicorn = _Uvicorn(config)

    def serve_forever(self) -> None:
        """Answer until `shutdown`."""
        self._ended.clear()
        self._service.draining = False
        try:
            asyncio.run(self._uvicorn.serve(sockets=[self._socket]))
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        """Have `serve_forever` return after the requests that are being answered, and wait for it. From now
        on the server says that it is not ready."""
        self._service.draining = True
        self._uvicorn.should_exit = True
        self._ended.wait()

    def server_close(self) -> None:
        """Give back the address."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server_close()
