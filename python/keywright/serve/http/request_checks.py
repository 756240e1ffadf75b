"""Checks of every request before routing: lengths and host names; the form of answers and refusals."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from traceback import format_exception
from urllib.parse import parse_qsl, quote

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keywright.errors.service import BadRequestError, DiskError, ServeError
from keywright.model.served.framing import MODEL
from keywright.serve.logs import identify, on_behalf, request_identifier
from keywright.serve.metrics import Metrics
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.holders import holder_of

from .connections import CONNECTION, PROBLEM, Connection, problem
from .upload_headers import require_fields

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REQUEST_HEADER = b"x-request-id"
HOLDER = "keywright.holder"
"""Key of the holder in a request's scope."""

SINGLE = frozenset(
    b"authorization content-length content-type host origin transfer-encoding upload-complete upload-length "
    b"upload-offset".split()
)
"""Headers that a request has once: this server or a proxy would otherwise read one of two."""

MAX_NAMES = 16
"""Maximum names in a query."""

LINGER_S = 2.0
LINGER_BYTES = 8 << 20

HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

PIECE_BYTES = 128 << 10
"""Bytes of an answer that are read at a time."""

SENT_BYTES = 64 << 10
"""Bytes of an answer that are sent at a time: with TLS, the connection keeps two to three times as many."""

IN_MEMORY_BYTES = 2 * PIECE_BYTES
"""Most bytes of a stored answer in memory: a piece, and the rest of the piece before."""

ReadPiece = Callable[[int, int], Awaitable[bytes]]
"""Returns bytes of an answer from a start, of a length."""

OnRequest = Callable[[str, str, int, int, int, float], object]
"""Called for every request with method, path, status, bytes received and sent, and seconds."""


class Problem(JSONResponse):
    """A refusal."""

    media_type = PROBLEM

    def __init__(self, error: ServeError, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem(error), error.status, {**error.headers, **(headers or {})})


class Ciphertexts(Response):
    """An answer whose memory is reserved before its first byte. If the memory goes to others, or the answer
    cannot be read to its end, the client loses the connection.

    Args:
        model: hash of the one that gave the answer.
        size: bytes of the answer.
        read: reads it.
        room: reserves the memory.
    """

    media_type = "application/octet-stream"

    def __init__(
        self, model: str, size: int, read: ReadPiece, room: AbstractAsyncContextManager[object]
    ) -> None:
        super().__init__(headers={"content-length": str(size), MODEL: model})
        self._size, self._read, self._room = size, read, room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        begun = False
        try:
            async with self._room:
                for start in range(0, max(1, self._size), PIECE_BYTES):
                    length = min(PIECE_BYTES, self._size - start)
                    piece = await self._read(start, length)
                    if len(piece) < length:
                        raise OSError(f"an answer ends after {start + len(piece)} of {self._size} bytes")
                    if not begun:
                        begun = True
                        await send(
                            {
                                "type": "http.response.start",
                                "status": self.status_code,
                                "headers": self.raw_headers,
                            }
                        )
                    more = start + length < self._size
                    await send({"type": "http.response.body", "body": piece, "more_body": more})
        except (ServeError, OSError):
            if not begun or (connection := scope.get(CONNECTION)) is None:
                raise
            connection.give_up()


class RequestChecks:
    """An application behind checks that every request passes.

    Args:
        app: the application; its `ServeError` become refusals.
        names: host names that requests may use.
        on_request: called for every request, without identifiers and control characters.
        on_event: called with the traceback of every unexpected error.
        metrics: counts requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        names: Iterable[str] = (),
        on_request: OnRequest | None = None,
        on_event: Callable[[str], object] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._app = app
        self.names = LOOPBACK | frozenset(names)
        self.on_request = on_request
        self._event = on_event or (lambda line: None)
        self._metrics = metrics or Metrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == REQUEST_HEADER]
        # Of several identifiers none is the right one.
        with on_behalf(identify(sent[0].decode("latin-1") if len(sent) == 1 else None)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange, start = Exchange(scope, receive, send), time.perf_counter()
        try:
            try:
                headers = _headers(scope)
                length = _announced(headers)
            except BadRequestError:
                # Where this request ends is not known, so nothing after it is a request.
                exchange.distrust()
                raise
            exchange.announce(length)
            self._require_own_name(headers)
            _require_single(scope["query_string"])
            require_fields(Headers(scope=scope))
            await self._app(scope, exchange.receive, exchange.send)
        except ServeError as error:
            self._metrics.count("refusals_total", code=error.code)
            await Problem(error)(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass
        except Exception as error:  # noqa: BLE001 - the client has been answered; here it is reported
            self._event("".join(format_exception(error)).rstrip())
        finally:
            self._count(scope["method"], exchange, time.perf_counter() - start)
            if self.on_request is not None and exchange.status:
                parts = str(scope["path"]).split("/")
                shown = quote("/".join(part if len(part) < 32 else "*" for part in parts), safe="/*")
                seconds = time.perf_counter() - start
                self.on_request(
                    scope["method"], shown, exchange.status, exchange.received, exchange.sent, seconds
                )

    def _count(self, method: str, exchange: "Exchange", seconds: float) -> None:
        # Clients choose the method string freely.
        method = method if method in METHODS else "other"
        self._metrics.count("requests_total", method=method, status=str(exchange.status))
        self._metrics.count("request_seconds_total", seconds, method=method)
        self._metrics.count("received_bytes_total", exchange.received)
        self._metrics.count("sent_bytes_total", exchange.sent)

    def _require_own_name(self, headers: Mapping[bytes, str]) -> None:
        """Refuse requests from pages of other sites, and host names that were made to resolve here."""
        host = headers.get(b"host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() not in self.names:
            raise BadRequestError(
                f"this server is not called {name[:200]!r}; start it with --name to allow that",
                found=name[:200],
                code="wrong_host",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise BadRequestError(
                "pages of other sites may not use this server", found=origin[:200], code="wrong_host"
            )


def address_of(scope: Scope) -> str:
    """Return the network address of a client, as named by a trusted proxy."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def count_for(scope: Scope, tenant: str) -> str:
    """Count a request and its connection for a tenant, or without an account for its address. Returns the
    holder."""
    holder = scope[HOLDER] = holder_of(tenant, address_of(scope))
    connection: Connection | None = scope.get(CONNECTION)
    if connection is not None:
        connection.begin(holder)
    return holder


class Exchange:
    """A request and its answer: counts their bytes and sets the deadline of each."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        # Other ASGI servers have deadlines of their own.
        self._connection: Connection | None = scope.get(CONNECTION)
        count_for(scope, NOBODY)
        self.status = self.received = self.sent = 0
        self._unread = False

    def announce(self, length: int) -> None:
        """Give the sender time for a body."""
        self._unread = length > 0
        if self._connection is not None:
            self._connection.receive() if length else self._connection.work()

    def distrust(self) -> None:
        """Close the connection after the answer, because the next bytes may be a body or someone else's
        request."""
        self._unread = True

    async def receive(self) -> Message:
        """Return the next message."""
        message = await self._receive()
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            if not message.get("more_body", False):
                self._unread = False
                if self._connection is not None and self.status == 0:
                    self._connection.work()
        return message

    async def send(self, message: Message) -> None:
        """Send an answer. If a body was refused, some of it is read first, because a client that is still
        sending would otherwise miss the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = list(message.get("headers", ()))
            # A page with its own policy keeps that stricter one.
            named = {name.lower() for name, _ in own}
            message["headers"] = [*own, *(header for header in ENCODED if header[0] not in named)]
            message["headers"].append((REQUEST_HEADER, request_identifier().encode()))
            if self._unread:
                message["headers"].append((b"connection", b"close"))
            if self._connection is not None:
                self._connection.send()
        else:
            body, more = message.get("body", b""), message.get("more_body", False)
            # What is sent at once is copied for each peer, until that has read it.
            for start in range(0, len(body), SENT_BYTES):
                await self._send_piece(body[start : start + SENT_BYTES])
            if self._unread and not more:
                await self._linger()
            message = {**message, "body": b""}
        await self._send(message)

    async def _send_piece(self, piece: bytes) -> None:
        self.sent += len(piece)
        if self._connection is not None:
            self._connection.wrote(len(piece))
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _linger(self) -> None:
        most = self.received + LINGER_BYTES
        with anyio.move_on_after(LINGER_S):
            while self._unread and self.received < most:
                if (await self.receive())["type"] != "http.request":
                    return


def refused(error: Exception) -> ServeError:
    """Return the error that a client gets for an exception."""
    if isinstance(error, ServeError):
        return error
    if isinstance(error, HTTPException):
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            return BadRequestError(
                "this path does not support the method; the header Allow lists those that it does",
                code="no_such_method",
            )
        if error.status_code == HTTPStatus.NOT_FOUND:
            return BadRequestError("there is nothing here; the service is under /v1/", code="no_such_path")
        return BadRequestError("the request is not understood")
    if isinstance(error, ClientDisconnect):
        # Nobody reads this answer; it is counted.
        return BadRequestError("the connection ended before the request did")
    if isinstance(error, OSError):
        # Report the disk's error; bytes that have arrived are kept.
        return DiskError("the disk of the server failed, or is full; try again later")
    return ServeError("the request failed for an unexpected reason; see the server's log")


def answer(entry: Mapping[str, object], status: HTTPStatus = HTTPStatus.OK) -> Response:
    """An answer in JSON."""
    return JSONResponse(dict(entry), status)


def _headers(scope: Scope) -> dict[bytes, str]:
    """Return the headers by name.

    Raises:
        BadRequestError: a header that must stand once is repeated.
    """
    fields: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in fields and name in SINGLE:
            raise BadRequestError(f"the header {name.decode('latin-1')} is sent twice; send it once")
        fields[name] = value.decode("latin-1")
    return fields


def _require_single(query: bytes) -> None:
    """Refuse a query with many names, or with one that occurs twice, of which one would be read."""
    seen = set[str]()
    if query.count(b"&") >= MAX_NAMES:
        raise BadRequestError(f"the query has more than {MAX_NAMES} names; send fewer")
    for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name in seen:
            raise BadRequestError(f"?{name[:40]}= is sent twice; send it once", found=name[:40])
        seen.add(name)


def _announced(headers: Mapping[bytes, str]) -> int:
    """Return the length of the body from the header."""
    if b"transfer-encoding" in headers:
        raise BadRequestError("Content-Length is missing; send it, bodies of unknown length are not read")
    text = headers.get(b"content-length", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadRequestError(f"Content-Length is {text[:40]!r}, which is not a length")
    return int(text)
