"""The service over HTTP/1.1, from the standard library.

| request | answer |
|---|---|
| ``GET /v1/model`` | the manifest |
| ``POST /v1/keys`` ``{"model": hash}`` | an identifier for the upload |
| ``GET /v1/keys/ID`` | how many bytes have come |
| ``PUT /v1/keys/ID?offset=N`` bytes | a piece, at most `MAX_PIECE` bytes |
| ``DELETE /v1/keys/ID``, or ``POST /v1/keys/ID/delete`` as a page sends that closes | |
| ``GET /v1/keys/ID/seen`` | what the server saw of this client |
| ``POST /v1/keys/ID/jobs`` ciphertexts | a job |
| ``GET /v1/jobs/JOB`` | how far it is |
| ``GET /v1/jobs/JOB/result`` | ciphertexts |

Everything else is a file of the page that is served with it, from memory. Every length is compared with what
it may be before anything is read or allocated; a request without a length is refused.
"""

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from .errors import BadRequestError, NoSuchPathError, ServeError, TooLargeError, WrongHostError
from .service import Service

MAX_JSON = 4096
MAX_PIECE = 8 << 20
"""Bytes of the longest piece of an upload."""

MAX_CONNECTIONS = 64
EXPIRE_EVERY_S = 1.0
TIMEOUT_S = 30.0
"""Of silence, and of a request without its body."""

SLOWEST = 16 << 10
"""Bytes per second that a connection moves at least, on the average of a body; a slower one makes room."""

LINGER_S = 2.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
MAX_PAGE_BYTES = 16 << 20

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}

Reply = tuple[HTTPStatus, str, bytes]


def load_page(folder: Path) -> dict[str, tuple[str, bytes]]:
    """The files of a page in memory, by path: (type, bytes). ``index.html`` is also ``/``.

    Raises:
        BadRequestError: the folder holds no ``index.html``, or more than `MAX_PAGE_BYTES`.
    """
    page: dict[str, tuple[str, bytes]] = {}
    left = MAX_PAGE_BYTES
    for path in sorted(folder.rglob("*")):
        kind = TYPES.get(path.suffix)
        hidden = any(
            part.startswith(".") or part == "node_modules" for part in path.relative_to(folder).parts
        )
        if kind is None or hidden or path.is_symlink() or not path.is_file():
            continue
        left -= path.stat().st_size
        if left < 0:
            raise BadRequestError(f"{folder} holds more than {MAX_PAGE_BYTES} bytes of pages")
        page["/" + path.relative_to(folder).as_posix()] = (kind, path.read_bytes())
    if "/index.html" not in page:
        raise BadRequestError(f"{folder} holds no index.html")
    page["/"] = page["/index.html"]
    return page


class Server(ThreadingHTTPServer):
    """A service that listens.

    Args:
        service: what is served.
        host: address to listen on; the loopback unless given.
        port: 0 for any that is free; see `url`.
        page: of `load_page`.
        names: under which it may be asked, besides its address.
        on_request: called with method, path, status, bytes received and sent, and seconds.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        service: Service,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        page: Mapping[str, tuple[str, bytes]] | None = None,
        names: frozenset[str] = frozenset(),
        on_request: Callable[[str, str, int, int, int, float], object] | None = None,
    ) -> None:
        self.service, self.page = service, page or {}
        self.on_request = on_request
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        shown = f"[{host}]" if ":" in host else host
        self.names = LOOPBACK | names | {shown.lower()}
        self._expired = time.monotonic()
        self._open: set[Handler] = set()
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((host, port), Handler)
        self.url = f"http://{shown}:{self.server_address[1]}"

    def process_request(self, request: object, client_address: object) -> None:
        """Answer in a thread of its own, or hang up if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)  # type: ignore[arg-type]
        else:
            self.shutdown_request(request)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._free.release()

    def opened(self, handler: "Handler") -> None:
        """Watch a connection until `closed`."""
        self._open.add(handler)

    def closed(self, handler: "Handler") -> None:
        """Do not watch a connection any more."""
        self._open.discard(handler)

    def service_actions(self) -> None:
        """Called by the loop between requests: hang up on whoever takes too long, delete keys that nobody
        uses."""
        now = time.monotonic()
        for handler in self._open.copy():
            handler.hang_up_after(now)
        if now - self._expired >= EXPIRE_EVERY_S:
            self._expired = now
            self.service.expire()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is no error of the server's; anything else is told where it runs."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "keywright"
    sys_version = ""
    timeout = TIMEOUT_S
    _unread = 0
    _deadline = float("inf")

    def setup(self) -> None:
        """Begin with a connection."""
        super().setup()
        self.server.opened(self)

    def finish(self) -> None:
        """End with a connection."""
        self.server.closed(self)
        super().finish()

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self._expect(0)
        super().handle_one_request()

    def hang_up_after(self, now: float) -> None:
        """Break the connection if it has had its time; what has come of an upload is kept."""
        if now > self._deadline:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _expect(self, length: int) -> None:
        """Give the other side time for so many bytes."""
        self._deadline = time.monotonic() + TIMEOUT_S + length / SLOWEST

    def _work(self) -> None:
        """What follows is the server's own time."""
        self._deadline = float("inf")

    def do_GET(self) -> None:
        """Answer GET."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Answer POST."""
        self._answer(self._post)

    def do_PUT(self) -> None:
        """Answer PUT."""
        self._answer(self._put)

    def do_DELETE(self) -> None:
        """Answer DELETE."""
        self._answer(self._delete)

    def _get(self, parts: list[str], query: Mapping[str, list[str]]) -> Reply:
        service = self.server.service
        match parts:
            case ["v1", "model"]:
                return HTTPStatus.OK, "application/json", service.manifest()
            case ["v1", "keys", identifier]:
                return _json(service.keys(identifier))
            case ["v1", "keys", identifier, "seen"]:
                return _json(service.seen(identifier))
            case ["v1", "jobs", identifier]:
                return _json(service.job(identifier))
            case ["v1", "jobs", identifier, "result"]:
                return HTTPStatus.OK, "application/octet-stream", service.result(identifier)
        file = self.server.page.get("/" + "/".join(parts))
        if file is None:
            raise NoSuchPathError("there is no such page here; the service is under /v1/")
        return HTTPStatus.OK, *file

    def _post(self, parts: list[str], query: Mapping[str, list[str]]) -> Reply:
        service = self.server.service
        match parts:
            case ["v1", "keys"]:
                return _json(service.create_keys(_parse(self._body(MAX_JSON))), HTTPStatus.CREATED)
            case ["v1", "keys", identifier, "delete"]:
                self._length(0)
                return _json(service.delete_keys(identifier))
            case ["v1", "keys", identifier, "jobs"]:
                body = self._body(service.model.request_bytes)
                return _json(service.submit(identifier, body), HTTPStatus.ACCEPTED)
        raise NoSuchPathError("nothing can be posted there")

    def _put(self, parts: list[str], query: Mapping[str, list[str]]) -> Reply:
        match parts:
            case ["v1", "keys", identifier]:
                offset = query.get("offset", [""])[0]
                if not (offset.isascii() and offset.isdigit() and len(offset) < 16):
                    raise BadRequestError("?offset= says at which byte the piece begins")
                length = self._length(MAX_PIECE)
                return _json(self.server.service.receive_keys(identifier, int(offset), length, self._read))
        raise NoSuchPathError("nothing can be put there")

    def _delete(self, parts: list[str], query: Mapping[str, list[str]]) -> Reply:
        match parts:
            case ["v1", "keys", identifier]:
                return _json(self.server.service.delete_keys(identifier))
        raise NoSuchPathError("nothing can be deleted there")

    def _answer(self, make: Callable[[list[str], Mapping[str, list[str]]], Reply]) -> None:
        start = time.perf_counter()
        self._received = self._unread = 0
        try:
            self._unread = self._announced()
            if self._unread == 0:
                self._work()
            else:
                self._expect(min(self._unread, MAX_PIECE))
            self._require_own_name()
            path = urlsplit(self.path)
            status, kind, body = make(path.path.strip("/").split("/"), parse_qs(path.query, max_num_fields=4))
        except ServeError as error:
            status, kind, body = _refuse(error)
        except ValueError:
            status, kind, body = _refuse(BadRequestError("the request is not understood"))
        except OSError:
            # What the connection or the disk says; what has come is kept.
            status, kind, body = _refuse(
                ServeError("the connection or the disk of the server failed; try again")
            )
        self._reply(status, kind, body)
        if self.server.on_request is not None:
            # Without identifiers, and without what a terminal would obey.
            parts = self.path.partition("?")[0].split("/")
            shown = "/".join(quote(part) if len(part) < 32 else "*" for part in parts)
            seconds = time.perf_counter() - start
            self.server.on_request(self.command, shown, status, self._received, len(body), seconds)

    def _reply(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.close_connection = self.close_connection or self._unread > 0
        self._expect(len(body))
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            for name, value in HEADERS.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self._linger()

    def _linger(self) -> None:
        """Read some of a body that was refused: a client that still sends would miss the answer otherwise."""
        if self._unread == 0:
            return
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(LINGER_S)
        left = min(self._unread, MAX_PIECE)
        while left > 0 and (data := self.rfile.read1(min(left, 1 << 16))):
            left -= len(data)

    def _require_own_name(self) -> None:
        """Refuse pages of other sites, and names that were made to lead here."""
        host = self.headers.get("Host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() not in self.server.names:
            raise WrongHostError(
                f"this server is not called {name[:200]!r}; start it with --name to allow that",
                found=name[:200],
            )
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise WrongHostError("pages of other sites may not use this server", found=origin[:200])

    def _announced(self) -> int:
        """Bytes of the body, as the header says."""
        if self.headers.get("Transfer-Encoding") is not None:
            self.close_connection = True
            raise BadRequestError("send a Content-Length; bodies of unknown length are not read")
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            self.close_connection = True
            raise BadRequestError(f"Content-Length is {text[:40]!r}, which is no length")
        return int(text)

    def _length(self, maximum: int) -> int:
        """Bytes of the body, if they are not too many."""
        if self._unread > maximum:
            raise TooLargeError(
                f"{self._unread} bytes were announced; at most {maximum} are taken here",
                value=self._unread,
                maximum=maximum,
            )
        return self._unread

    def _read(self, count: int) -> bytes:
        try:
            data = self.rfile.read1(min(count, self._unread))
        except OSError:
            data = b""
        if not data:
            self.close_connection = True
        self._unread -= len(data)
        if self._unread == 0:
            self._work()
        self._received += len(data)
        return data

    def _body(self, maximum: int) -> bytes:
        length = self._length(maximum)
        data = bytearray()
        while len(data) < length and (piece := self._read(length - len(data))):
            data += piece
        if len(data) < length:
            raise BadRequestError(f"{length} bytes were announced, and {len(data)} came")
        return bytes(data)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the name of the base class)
        """Requests are told to `Server.on_request` instead."""


def _json(entry: Mapping[str, object], status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return status, "application/json", json.dumps(entry).encode()


def _refuse(error: ServeError) -> Reply:
    return _json(error.to_json(), error.status)


def _parse(body: bytes) -> Mapping[str, object]:
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise BadRequestError("the body is not a JSON object")
    return entry
