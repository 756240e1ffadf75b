"""A service that listens: uvicorn on a socket that is bound before it runs."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from .app import application
from .connections import Connection
from .edge import OnRequest
from .errors import BadRequestError, CertificateError
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
        certificate: files of a certificate, with those that signed it, and of its key, in PEM: the server
            then speaks TLS (1.2 or later), and nothing else.
        proxies: addresses or networks whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed;
            nobody's are unless they are given.

    Attributes:
        url: under which it is reached.
        server_address: (host, port).

    Raises:
        CertificateError: the files are no certificate and its key.
        BadRequestError: an address is none.
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
                raise BadRequestError(f"{address!r} is no address or network of a proxy: {error}") from error
        self._certificate, tls = certificate, None if certificate is None else _tls(*certificate)
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # Connections inherit it. asyncio sets it only on sockets that name their protocol, and without it
        # every answer waits 40 ms for the client to acknowledge its head.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server_address: tuple[str, int] = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://{shown}:{self.server_address[1]}"
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
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            ssl_context_factory=None if tls is None else lambda config, default: tls,
            backlog=BACKLOG,
            timeout_graceful_shutdown=DRAIN_S,
        )
        self._uvicorn = _Uvicorn(config)

    def renew(self) -> None:
        """Read the files of the certificate again: connections from now on get the new one.

        Raises:
            CertificateError: they are no certificate and its key; the one that was read before stays.
        """
        if self._certificate is not None and self._tls is not None:
            # A pair that does not fit would take the place of half of the one that does.
            _tls(*self._certificate)
            self._tls.load_cert_chain(*self._certificate)

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


def _tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """What a server with a certificate speaks."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # that of the TLS library is one, too
        raise CertificateError(f"{certificate} and {key} are no certificate and its key: {error}") from error
    return context
