"""A service that listens: uvicorn on a socket that is bound before the server runs."""

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import uvicorn

from keywright._copies import Unpicklable
from keywright._processes import OfOneProcess
from keywright.errors.service import BadRequestError, ConfigurationError
from keywright.serve.service import Service

from .app import application
from .connection_slots import READS, ConnectionSlots, Pace, PacedListener
from .connections import protocol
from .pages import Page
from .request_checks import OnRequest

UNSENT_BYTES = 1 << 17
"""Bytes that a connection's kernel buffer takes beyond those that are on their way."""

BACKLOG = 4096
"""Connections that the system holds until they are accepted. Where they are too many for it, newcomers wait
for a second at least."""

COMPLAIN_S = 60.0
"""How often it is said that connections cannot be accepted."""

DRAIN_S = 30
"""Seconds that running requests have to finish at shutdown."""


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers: the caller decides when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server(OfOneProcess, Unpicklable, elsewhere="make one in the process that serves"):
    """A service that listens from its construction on, and answers in `serve_forever`.

    Thread safety: one thread at a time, except for `shutdown`, which another thread calls.

    Args:
        service: the service.
        host: address to listen on; the loopback by default.
        port: 0 for any free port; see `url`.
        page: result of `load_page`.
        names: host names that requests may use, besides the address.
        on_request: called with method, path, status, bytes received and sent, and seconds.
        certificate: PEM files of a certificate, with its chain, and of its key. The server then speaks TLS
            (1.2 or later) only.
        proxies: addresses or networks whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are trusted; none
            by default.

    Attributes:
        url: URL of the server.
        server_address: (host, port).

    Raises:
        ConfigurationError: the files are not a certificate and its key.
        BadRequestError: a proxy address is malformed.
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
        certificate: tuple[Path, Path] | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        for address in proxies:
            try:
                ipaddress.ip_network(address)
            except ValueError as error:
                raise BadRequestError(
                    f"{address!r} is not an address or network of a proxy: {error}"
                ) from error
        self._certificate, tls = certificate, None if certificate is None else _tls(*certificate)
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        pace, reads = Pace(proxies), Pace(proxies, times=READS)
        self._slots = slots = ConnectionSlots(service.connections)
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self._socket = PacedListener(listener, pace, slots)
        # Connections inherit this option. asyncio sets it only on sockets that name their protocol. Without
        # it, every answer waits 40 ms for the client to acknowledge its header.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # Nor does the kernel keep megabytes for a peer that reads nothing.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self.server_address: tuple[str, int] = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://{shown}:{self.server_address[1]}"
        self.app = application(service, page=page, names=names | {shown.lower()}, on_request=on_request)
        self._service, self._ended = service, threading.Event()
        self._complained = -COMPLAIN_S
        config = uvicorn.Config(
            self.app,
            http=cast("type[asyncio.Protocol]", partial(protocol, slots, pace, reads, tls, service.metrics)),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            backlog=BACKLOG,
            timeout_graceful_shutdown=DRAIN_S,
        )
        self._uvicorn = _Uvicorn(config)

    def renew(self) -> None:
        """Reload the files of the certificate: new connections get the new one.

        Raises:
            ConfigurationError: the files are not a certificate and its key; the previous certificate stays in
                use.
        """
        if self._certificate is not None and self._tls is not None:
            # A certificate that does not match its key would replace half of the valid pair.
            _tls(*self._certificate)
            self._tls.load_cert_chain(*self._certificate)

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`."""
        self._ended.clear()
        self._service.draining = False
        try:
            # A loop of the process's policy, such as uvloop's, may neither count records of TLS nor refuse
            # connections before they cost any work.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve())
        finally:
            self._ended.set()

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._report_shortage)
        await self._uvicorn.serve(sockets=[self._socket])

    def _report_shortage(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report that descriptors are short, in a line now and then: every connection that was not accepted
        would be a traceback otherwise."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._complained >= COMPLAIN_S:
            self._complained = time.monotonic()
            self._service.tell(f"connections wait for file descriptors: {error.strerror}")

    def shutdown(self) -> None:
        """Stop `serve_forever` after the running requests, and wait for it. From now on the server reports
        that it is not ready. A forked process stops nothing."""
        if self._copied:
            return
        self._service.draining = True
        self._uvicorn.should_exit = True
        self._ended.wait()

    def server_close(self) -> None:
        """Release the address."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server_close()


def _tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS settings of a server with a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # OpenSSL 1.1 would negotiate again whenever a client asks for it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # an error of the TLS library is also an OSError
        raise ConfigurationError(
            f"{certificate} and {key} are not a certificate and its key: {error}", code="certificate"
        ) from error
    return context
