"""A hostile server: a manifest that is wrong in one place, and answers that no honest server gives."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IDENTIFIER = "ab" * 16

Entry = dict[str, Any]
Place = tuple[str | int, ...]
"""Place of a value in the JSON of a manifest."""

WRONG: dict[type, list[object]] = {
    str: [None, True, 3, 1.5, [], {}, "x" * 300, "\x1b[2J", "\x9b2J"],
    bool: [None, 0, 1, "yes", [], {}],
    int: [None, True, 1.5, "1", [], {}, -1, 1 << 70],
    float: [None, True, "1.0", [], {}, 0.0, -1e9, 1e300, math.inf, math.nan],
    list: [None, 3, "x", {}, [None], [[]], ["x" * 300], [1e300] * 50_000],
    dict: [None, 3, "x", [], {}],
}
"""What a hostile server writes instead of a value, by the type of the right one."""

LEGAL: dict[Place, list[object]] = {
    ("factor",): [1e300],
    ("input_range", 0): [0.0],
    ("input_range", 1): [0.0],
}
"""Wrong values for their type that the field of a thin client's manifest may have."""


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """The places of all values in JSON: objects, lists and the first and last of a list."""
    if place:
        yield place
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*place, name))
    elif isinstance(value, list) and value:
        for index in sorted({0, len(value) - 1}):
            yield from places(value[index], (*place, index))


def at(entry: Entry, place: Place) -> Any:
    """The value at a place."""
    value: Any = entry
    for step in place:
        value = value[step]
    return value


def changes(entry: Entry, place: Place) -> Iterator[tuple[object, bytes]]:
    """The wrong values of a place, by the type of its right one, each with the manifest that has it; for a
    field, the manifest without it too."""
    right = at(entry, place)
    for value in WRONG[type(right)]:
        if (type(value) is type(right) and value == right) or value in LEGAL.get(place, []):
            continue
        changed = copy.deepcopy(entry)
        at(changed, place[:-1])[place[-1]] = value
        yield value, encoded(changed)
    if isinstance(place[-1], str):
        changed = copy.deepcopy(entry)
        del at(changed, place[:-1])[place[-1]]
        yield "nothing", encoded(changed)


def called_secure(data: bytes) -> bytes:
    """An object whose parameters are said to be checked, with correct checksums and fingerprint."""
    end = 44 + int.from_bytes(data[32:36], "little")
    head, body = bytearray(data[:end]), data[end + 4 : -4]
    head[15] = 0
    if data[10:12] == b"\x01\x01":
        # CKKS parameters: their encoding, then the scale.
        head[45] &= ~1
        head[16:32] = hashlib.sha256(b"keywright parameters" + head[44 : end - 8]).digest()[:16]
    checksums = [zlib.crc32(part).to_bytes(4, "little") for part in (head, head + body)]
    return bytes(head) + checksums[0] + body + checksums[1]


def encoded(entry: object) -> bytes:
    """JSON, as a server writes it."""
    return json.dumps(entry).encode()


@dataclass
class Seen:
    """What reached a hostile server.

    Attributes:
        url: its address.
        requests: method, path and body of each request.
    """

    url: str = ""
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """Bytes of keys and ciphertexts that clients have sent."""
        named = ("POST", "/v1/keys")
        return sum(len(body) for method, path, body in self.requests if (method, path) != named)


Answer = Callable[[str, str, int], bytes]
"""The bytes of an answer to a method, a path and a body of some bytes."""


def answer(status: int, body: bytes, headers: str = "") -> bytes:
    """An answer with its length."""
    return f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def refused(kind: str, status: int = 404) -> bytes:
    """A refusal."""
    return answer(status, encoded({"error": {"type": kind, "message": "no", "details": {}}}))


class Honest:
    """Answers of a server that takes keys, and evaluates nothing.

    Args:
        manifests: sent one after the other, the last again and again.
        total: bytes of the keys.
    """

    def __init__(self, *manifests: bytes, total: int = 0) -> None:
        self._manifests, self._total, self._received = list(manifests), total, 0

    def __call__(self, method: str, path: str, length: int) -> bytes:
        """Answer a request."""
        if path == "/v1/models":
            return answer(200, encoded({"models": [{"model": "0" * 64}]}))
        if path.startswith("/v1/model"):
            several = len(self._manifests) > 1
            return answer(200, self._manifests.pop(0) if several else self._manifests[0])
        if "/direct" in path:
            return refused("no_direct_uploads")
        if "/jobs" in path:
            return refused("failed", 500)
        if method in ("PATCH", "PUT"):
            self._received += length
        missing = [] if self._received >= self._total else [[0, self._total]]
        state = {"keys": IDENTIFIER, "configuration": "0" * 64, "received": self._received}
        return answer(200, encoded(state | {"missing": missing, "ready": not missing}))


@contextmanager
def hostile(reply: Answer, endless: bytes = b"") -> Iterator[Seen]:
    """A server in a thread.

    Args:
        reply: makes the bytes of an answer, from its first line on.
        endless: what follows every answer, again and again until the client closes the connection.
    """
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.requests.append((self.command, self.path, body))
            self.close_connection = True
            try:
                self.wfile.write(reply(self.command, self.path, len(body)))
                while endless:
                    self.wfile.write(endless)
            except OSError:
                pass

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = respond

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Listener(("127.0.0.1", 0), Handler) as server:
        server.socket.settimeout(1.0)  # so that no wait in accept keeps `shutdown` waiting
        seen.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()
