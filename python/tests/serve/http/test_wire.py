"""Bytes on the wire, and how the server answers them: what RFC 9112 lets a server read in several ways is
refused, because a proxy in front of it may have read it in another."""

from __future__ import annotations

import contextlib
import logging
import socket
import string

import h11
import pytest
from keywright.serve import Server
from keywright.serve.http.connections import StrictRequests
from tests.serve.http.test_http import is_problem

HOST = b"Host: localhost\r\n"
NEXT = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""A request after the one of a row: it is answered, or the connection has ended before it."""


def get(*lines: bytes, version: bytes = b"HTTP/1.1", target: bytes = b"/health") -> bytes:
    """A request with lines in its head."""
    return b"GET " + target + b" " + version + b"\r\n" + HOST + b"".join(lines) + b"\r\n"


def post(*lines: bytes, body: bytes = b"", path: bytes = b"/v1/keys/0/delete") -> bytes:
    """A request with lines in its head, and a body whose length they state."""
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"".join(lines) + b"\r\n" + body


TWO = b"Content-Length: 2\r\n"

ACCEPTED = {
    "plain": (get(), 200),
    "version 1.0": (get(version=b"HTTP/1.0"), 200),
    "name in capitals": (b"GET /health HTTP/1.1\r\nHOST: localhost\r\n\r\n", 200),
    "host with a port": (b"GET /health HTTP/1.1\r\nHost: localhost:8700\r\n\r\n", 200),
    "host in capitals": (b"GET /health HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 200),
    "no space after the colon": (b"GET /health HTTP/1.1\r\nHost:localhost\r\n\r\n", 200),
    "spaces and tabs around a value": (get(b"X-Other: \t a \t b \t\r\n"), 200),
    "empty value": (get(b"X-Other:\r\n"), 200),
    "colons in a value": (get(b"X-Other: a: b :c\r\n"), 200),
    "bytes above 127 in a value": (get(b"X-Other: \xc3\xa9\xff\r\n"), 200),
    "every character of a name": (
        get(b"!#$%&'*+-.^_`|~" + (string.digits + string.ascii_letters).encode() + b": x\r\n"),
        200,
    ),
    "another header twice": (get(b"X-Other: a\r\n", b"X-Other: b\r\n"), 200),
    "a list twice": (get(b"Accept: a/b\r\n", b"Accept: c/d\r\n"), 200),
    "two request identifiers": (get(b"X-Request-Id: a\r\n", b"X-Request-Id: b\r\n"), 200),
    "a strange request identifier": (get(b"X-Request-Id: \xff<>\r\n"), 200),
    "a length of zero": (get(b"Content-Length: 0\r\n"), 200),
    "a length with zeros": (post(b"Content-Length: 000\r\n"), 404),
    "no length of a POST": (post(), 404),
    "a body": (post(b"Content-Length: 4096\r\n", body=bytes(4096), path=b"/v1/keys"), 400),
    "a parameter of a field": (get(b"Upload-Complete: ?0;a=1\r\n"), 200),
    "a query": (get(target=b"/health?a=1&b=2"), 200),
    "an empty query": (get(target=b"/health?"), 200),
    "a quoted path": (get(target=b"/%68ealth"), 200),
    "many headers": (get(*(b"X-%d: x\r\n" % number for number in range(90))), 200),
    "an upgrade that is not taken": (get(b"Connection: Upgrade\r\n", b"Upgrade: h2c\r\n"), 200),
    "a WebSocket": (get(b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n"), 200),
    "HEAD": (b"HEAD /health HTTP/1.1\r\n" + HOST + b"\r\n", 200),
    "an unknown method": (b"BREW /health HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "an unknown path": (get(target=b"/nothing"), 404),
    "a name of another server": (b"GET /health HTTP/1.1\r\nHost: elsewhere\r\n\r\n", 403),
    "no name with version 1.0": (b"GET /health HTTP/1.0\r\nX-Other: x\r\n\r\n", 403),
    "a query twice": (get(target=b"/health?a=1&a=1"), 400),
    "an address of another server": (get(target=b"http://elsewhere/health"), 404),
    "no path": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "a proxy": (b"CONNECT localhost:1 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
}
"""Requests of HTTP/1.1 by what is special, and the status of their answer."""

REFUSED = {
    "version 9.9": get(version=b"HTTP/9.9"),
    "version 2.0": get(version=b"HTTP/2.0"),
    "version 1.2": get(version=b"HTTP/1.2"),
    "version 1.1x": get(version=b"HTTP/1.1x"),
    "version 01.1": get(version=b"HTTP/01.1"),
    "version 0.9": get(version=b"HTTP/0.9"),
    "version in small letters": get(version=b"http/1.1"),
    "no version": b"GET /health\r\n\r\n",
    "another protocol": get(version=b"ICAP/1.0"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bytes of TLS": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "LF after the request line": b"GET /health HTTP/1.1\nHost: localhost\r\n\r\n",
    "LF after a header": b"GET /health HTTP/1.1\r\nHost: localhost\nX-Other: x\r\n\r\n",
    "LF at the end": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\n",
    "LF LF at the end": b"GET /health HTTP/1.1\r\nHost: localhost\n\n",
    "LF everywhere": get().replace(b"\r\n", b"\n"),
    "CR alone": get(b"X-Other: a\rX-Second: b\r\n"),
    "CR CR LF": get(b"X-Other: a\r\r\n"),
    "a folded line": get(b"X-Other: a\r\n b\r\n"),
    "a line folded by a tab": get(b"X-Other: a\r\n\tb\r\n"),
    "a folded line of a length": post(b"Content-Length:\r\n 2\r\n", body=b"{}"),
    "an empty folded line": get(b"X-Other: a\r\n \r\n"),
    "a folded line first": b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "an empty line first": b"\r\n" + get(),
    "a space first": b" " + get(),
    "two spaces": b"GET  /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "two spaces before the version": b"GET /health  HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tab for a space": b"GET\t/health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space after the version": b"GET /health HTTP/1.1 \r\n" + HOST + b"\r\n",
    "a space in the path": get(target=b"/he alth"),
    "NUL in the path": get(target=b"/\0"),
    "a byte above 127 in the path": get(target=b"/\xff"),
    "a byte above 127 in the method": b"G\xc9T /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a separator in the method": b"G(T /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space before the colon": get(b"X-Other : x\r\n"),
    "a line without a colon": get(b"X-Other\r\n"),
    "an empty name": get(b": x\r\n"),
    "a byte above 127 in a name": get(b"\xff: x\r\n"),
    "a separator in a name": get(b"X(Other: x\r\n"),
    "NUL in a value": get(b"X-Other: a\0b\r\n"),
    "a control character in a value": get(b"X-Other: a\x01b\r\n"),
    "DEL in a value": get(b"X-Other: a\x7fb\r\n"),
    "a vertical tab in a value": get(b"X-Other: a\x0bb\r\n"),
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": get(HOST),
    "two other hosts": get(b"Host: elsewhere\r\n"),
    "two lengths": post(TWO, b"Content-Length: 3\r\n", body=b"{}"),
    "two equal lengths": post(TWO, TWO, body=b"{}"),
    "two equal lengths, spelt in two ways": post(TWO, b"content-LENGTH: 02\r\n", body=b"{}"),
    "a list of lengths": post(b"Content-Length: 2, 2\r\n", body=b"{}"),
    "a length with a sign": post(b"Content-Length: +2\r\n", body=b"{}"),
    "a negative length": post(b"Content-Length: -2\r\n", body=b"{}"),
    "a hexadecimal length": post(b"Content-Length: 0x2\r\n", body=b"{}"),
    "an empty length": post(b"Content-Length:\r\n", body=b"{}"),
    "a length with a space": post(b"Content-Length: 2 2\r\n", body=b"{}"),
    "a length of 30 digits": post(b"Content-Length: " + b"9" * 30 + b"\r\n", body=b"{}"),
    "a length in other digits": post("Content-Length: ٢\r\n".encode(), body=b"{}"),
    "chunks": post(b"Transfer-Encoding: chunked\r\n", body=b"2\r\n{}\r\n0\r\n\r\n"),
    "bad chunks": post(b"Transfer-Encoding: chunked\r\n", body=b"zz\r\n"),
    "chunks and a length": post(b"Transfer-Encoding: chunked\r\n", TWO, body=b"0\r\n\r\n"),
    "a length and chunks": post(TWO, b"Transfer-Encoding: chunked\r\n", body=b"0\r\n\r\n"),
    "chunks of version 1.0": get(b"Transfer-Encoding: chunked\r\n", version=b"HTTP/1.0") + b"0\r\n\r\n",
    "gzip": post(b"Transfer-Encoding: gzip\r\n", body=b"x"),
    "two encodings": post(b"Transfer-Encoding: gzip, chunked\r\n", body=b"0\r\n\r\n"),
    "an identity": post(b"Transfer-Encoding: identity\r\n", TWO, body=b"{}"),
    "an encoding behind a vertical tab": post(b"Transfer-Encoding:\x0bchunked\r\n", body=b"0\r\n\r\n"),
    "two authorizations": get(b"Authorization: Bearer a\r\n", b"Authorization: Bearer b\r\n"),
    "two equal authorizations": get(b"Authorization: Bearer a\r\n" * 2),
    "a HEAD that is folded": b"HEAD /health HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a head that is too long": get(b"X-Other: " + b"x" * 70_000 + b"\r\n"),
}
"""Bytes that are no request of HTTP/1.1, or one that can be read in two ways, by what is wrong."""


def replies(server: Server, sent: bytes) -> bytes:
    """All that the server answers until it ends the connection."""
    reply = b""
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(1 << 16):
                reply += more
    return reply


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> object:
    """No bytes of a client are an error of the server."""
    yield
    assert [line for line in caplog.records if line.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_request_is_answered_and_so_is_the_next_one(server: Server, case: str) -> None:
    sent, status = ACCEPTED[case]
    reply = replies(server, sent + NEXT)
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    if status >= 400:
        assert is_problem(reply[: reply.rindex(b"HTTP/1.1 ")] if reply.count(b"HTTP/1.1 ") == 2 else reply)
    assert reply.count(b"HTTP/1.1 ") == (1 if b" HTTP/1.0\r\n" in sent else 2)


@pytest.mark.parametrize("case", REFUSED)
def test_bytes_that_are_no_request_are_refused_and_nothing_after_them_is_answered(
    server: Server, case: str
) -> None:
    reply = replies(server, REFUSED[case] + NEXT)
    assert reply.startswith(b"HTTP/1.1 431 " if "too long" in case else b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in reply.lower()
    assert is_problem(reply)


@pytest.mark.parametrize(
    "case", ["plain", "a folded line", "LF LF at the end", "LF at the end", "two equal lengths"]
)
def test_a_head_that_arrives_byte_by_byte_is_read_as_a_whole(case: str) -> None:
    """Also the second one of a connection."""
    head = ACCEPTED[case][0] if case in ACCEPTED else REFUSED[case]
    requests = StrictRequests()
    requests.receive_data(NEXT)
    assert isinstance(requests.next_event(), h11.Request)
    assert isinstance(requests.next_event(), h11.EndOfMessage)
    for event in (h11.Response(status_code=204, headers=[]), h11.EndOfMessage()):
        requests.send(event)
    requests.start_next_cycle()
    for number in range(len(head)):
        assert requests.next_event() is h11.NEED_DATA
        requests.receive_data(head[number : number + 1])
        if requests.trailing_data[0].endswith((b"\n\n", b"\n\r\n")):
            break
    if case in ACCEPTED:
        assert isinstance(requests.next_event(), h11.Request)
        return
    with pytest.raises(h11.RemoteProtocolError):
        requests.next_event()
    assert requests.fault
