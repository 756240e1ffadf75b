"""The work of the event loop for a request is charged to its address: whatever grows in it, a request costs a
small multiple of a plain one for each unit of its pace.

Function calls are counted, not seconds. What one call does to a head is bounded by `connections.MAX_HEAD`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
import uvicorn
from keywright.serve import Server, Service
from keywright.serve.http import admin, connections
from keywright.serve.http.app import application
from keywright.serve.http.connection_slots import READS, ConnectionSlots, Pace
from keywright.serve.http.request_checks import SINGLE
from keywright.serve.tenants.oidc import MAX_TOKEN
from tests.matrices import cells
from tests.serve.http.test_http import ask, is_problem, raw
from tests.serve.http.test_lockout import connect
from tests.serve.http.test_wire import replies
from uvicorn.server import ServerState

TIMES = 6
"""How much more a request may cost than a plain one."""

SIZES = (2, 16, 96, 768, 1024, 4096, 12288, 65536)
"""Just below bounds, and above them."""

SHORT = 1024
"""The most pieces, and requests at once."""

Pieces = Sequence[bytes]


class Wire(asyncio.Transport):
    """A connection without a network, which notes the end of its answer."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5), "sockname": ("127.0.0.1", 80)})
        self.answer, self.ended = b"", asyncio.Event()

    def write(self, data: Any) -> None:
        self.answer += data

    def write_eof(self) -> None:
        self.ended.set()

    def close(self) -> None:
        self.ended.set()

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.ended.is_set()

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        """Everything arrives in any case."""

    resume_reading = pause_reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        return 0


class Counted(Pace):
    """A pace that counts, and lets nothing wait."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def delay(self, address: str) -> float:
        self.count += 1
        return 0.0

    def charge(self, address: str, requests: int) -> None:
        self.count += requests


def cost(service: Service, pieces: Pieces) -> tuple[float, bytes]:
    """Return the calls of the event loop's thread for each unit of the pace, and the answer."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def exchange() -> tuple[float, bytes]:
        config = uvicorn.Config(
            application(service, on_request=lambda *line: None), ws="none", lifespan="off", log_config=None
        )
        config.load()
        requests, reads, wire = Counted(), Counted(), Wire()
        connection = connections.protocol(
            ConnectionSlots(8),
            requests,
            reads,
            None,
            service.metrics,
            config=config,
            server_state=ServerState(),
            app_state={},
        )
        assert isinstance(connection, asyncio.Protocol)
        sys.setprofile(count)
        try:
            connection.connection_made(wire)
            for piece in pieces:
                connection.data_received(piece)
                await asyncio.sleep(0)
            await asyncio.wait_for(wire.ended.wait(), 20)
        finally:
            sys.setprofile(None)
        connection.connection_lost(None)
        # The connection itself is one, too.
        return calls / (1 + requests.count + reads.count / READS), wire.answer

    return asyncio.run(exchange())


def get(headers: bytes = b"", target: bytes = b"/health") -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + b"\r\n"


def post(body: bytes, path: bytes = b"/v1/keys", length: int | None = None) -> bytes:
    announced = b"%d" % (len(body) if length is None else length)
    head = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
    return head + announced + b"\r\n\r\n" + body


def bytewise(data: bytes) -> Pieces:
    return [data[place : place + 1] for place in range(len(data))]


def pipelined(size: int) -> Pieces:
    return [get().replace(b"Connection: close\r\n", b"") * (size - 1) + get()]


READ = sorted(
    {name.decode() for name in SINGLE}
    | {"accept", "connection", "cookie", "expect", "if-none-match", "te", "upgrade", "x-request-id"}
    | set(admin.FORWARDED)
)
"""Headers that the service and what it is made of read."""

FILLS = (b"x", b"x ", b",", b"a,", b";a=1", b'"', b"0", b"%41", b"=", b"[", b"\xe9", b"?1; a")

PARTS: dict[str, Callable[[int], Pieces]] = {
    "header lines": lambda size: [get(b"a:1\r\n" * size)],
    "names of headers": lambda size: [get(b"".join(b"a%d:1\r\n" % number for number in range(size)))],
    "bytes of a header's name": lambda size: [get(b"a" * size + b":1\r\n")],
    "segments of the path": lambda size: [get(target=b"/a" * size)],
    "empty segments of the path": lambda size: [get(target=b"/" * size)],
    "escapes of the path": lambda size: [get(target=b"/" + b"%c3" * size)],
    "names of the query": lambda size: [get(target=b"/health?" + b"&".join(b"%d" % n for n in range(size)))],
    "empty names of the query": lambda size: [get(target=b"/health?" + b"&" * size)],
    "escapes of the query": lambda size: [get(target=b"/health?" + b"%c3" * size)],
    "a head in pieces": lambda size: bytewise(get(b"a: " + b"x" * size + b"\r\n")),
    "lines in pieces": lambda size: bytewise(get(b"a:1\r\n" * size)),
    "no end of a head, in pieces": lambda size: bytewise(b"GET / HTTP/1.1\r\na: " + b"x" * max(size, 17000)),
    "arrays in JSON": lambda size: [post(b"[" * size)],
    "numbers in JSON": lambda size: [post(b"[" + b"1," * size + b"1]")],
    "members in JSON": lambda size: [post(json.dumps({str(number): 1 for number in range(size)}).encode())],
    "escapes in JSON": lambda size: [post(b'{"model": "' + b"\\u0041" * size + b'"}')],
    "digits in JSON": lambda size: [post(b'{"model": ' + b"9" * size + b"}")],
    "a body in pieces": lambda size: [post(b"", length=size), *bytewise(b" " * size)],
    "a refused body in pieces": lambda size: [post(b"", b"/nothing", size), *bytewise(b"x" * size)],
    "bytes after what is no request": lambda size: [b"nonsense\r\n\r\n", *bytewise(b"x" * size)],
    "requests at once": pipelined,
}
"""What grows in a request, by name: the pieces in which it arrives."""


@pytest.fixture(scope="module")
def plain(service: Service) -> float:
    """What a request costs in which nothing grows, and that is not the first."""
    _, answer = cost(service, [get()])
    assert answer.startswith(b"HTTP/1.1 200 ")
    return cost(service, [get()])[0]


def require_charged(service: Service, plain: float, part: Callable[[int], Pieces], most: int) -> None:
    worst = {0: plain}
    for size in SIZES:
        if size <= most:
            worst[size], answer = cost(service, part(size))
            assert answer.startswith(b"HTTP/1.1 ")
    size = max(worst, key=worst.__getitem__)
    assert worst[size] <= TIMES * plain, (size, worst[size], plain)


@pytest.mark.parametrize("part", PARTS)
def test_what_grows_in_a_request_is_charged(service: Service, plain: float, part: str) -> None:
    short = part.endswith(("in pieces", "at once", "no request"))
    require_charged(service, plain, PARTS[part], SHORT if short else max(SIZES))


@pytest.mark.parametrize(("name", "fill"), cells(READ, FILLS))
def test_what_grows_in_a_header_is_charged(service: Service, plain: float, name: str, fill: bytes) -> None:
    require_charged(
        service, plain, lambda size: [get(name.encode() + b": " + fill * size + b"\r\n")], max(SIZES)
    )


EXCESS = {
    "lines": get(b"a:1\r\n" * 98),
    "the attack": get(b"a:1\r\n" * 12000),
    "a path": get(target=b"/" + b"a" * 1024),
    "a query": get(target=b"/health?" + b"a" * 1024),
    "bytes": get(b"a: " + b"x" * (16 << 10) + b"\r\n"),
    "bytes without an end": b"GET /health HTTP/1.1\r\na: " + b"x" * (16 << 10),
    "a list": get(b"Connection: " + b"," * 1025 + b"\r\n"),
    "lists": get(b"X-Forwarded-For: 192.0.2.1, 192.0.2.2, 192.0.2.3\r\n" * 40),
}


@pytest.mark.parametrize("case", EXCESS)
def test_a_head_of_too_much_is_refused_before_it_is_parsed(server: Server, case: str) -> None:
    reply = replies(server, EXCESS[case])
    assert reply.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert is_problem(reply)
    assert b'"head_too_large"' in reply


def test_heads_up_to_the_bounds_are_answered(server: Server) -> None:
    """An issuer's longest token, sent as a password, among many headers and cookies."""
    token = base64.b64encode(b"x:" + b"t" * MAX_TOKEN)
    headers = b"Authorization: Basic " + token + b"\r\nCookie: " + b"c" * 3000 + b"\r\n" + b"a:1\r\n" * 90
    assert raw(server, get(headers, b"/health?" + b"a" * 900)).startswith(b"HTTP/1.1 200 ")


def test_a_query_of_many_names_is_refused(server: Server) -> None:
    reply = replies(server, get(target=b"/health?" + b"&".join(b"%d" % number for number in range(17))))
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"16 names" in reply


def test_reads_of_an_address_wait_while_others_are_served(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that is sent byte by byte cost a turn of the event loop for each of them; all of it still
    arrives."""
    monkeypatch.setattr("keywright.serve.http.connection_slots.REQUESTS_A_SECOND", 8)
    monkeypatch.setattr("keywright.serve.http.connection_slots.BURST", 8)
    reads: list[int] = []
    taken = connections.Connection.data_received

    def take(self: connections.Connection, data: bytes) -> None:
        reads.append(len(data))
        taken(self, data)

    monkeypatch.setattr(connections.Connection, "data_received", take)
    assert ask(server, "GET", "/health")[0] == 200
    body = b"{" + b" " * 2000 + b"}"
    with connect(server, "127.0.0.99") as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in bytewise(post(body)):
            connection.sendall(piece)
            time.sleep(0.0005)
        reply = connection.recv(1 << 16)
    assert reply.startswith(b"HTTP/1.1 4")
    assert sum(reads) > len(body)
    assert len(reads) < 1000
    assert ask(server, "GET", "/health")[0] == 200
