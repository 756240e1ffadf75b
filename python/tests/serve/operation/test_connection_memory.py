"""A connection takes no more memory than is planned for it, whatever its peer sends, or does not read."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.http import connections
from keywright.serve.http.request_checks import SENT_BYTES
from keywright.serve.uploads.buffers import (
    CONNECTION_BYTES,
    MAX_CONNECTIONS,
    MIN_CONNECTIONS,
    connections_within,
)
from starlette.types import Receive, Scope, Send
from tests.matrices import cells
from tests.serve.evaluation.test_slow_readers import resident
from tests.serve.http.test_http import wait as wait_until
from tests.serve.http.test_tls import make_certificate
from tests.serve.network import WORKERS, running

COUNT = 96
BODY = 8 << 20

PEERS = """
import socket, ssl, sys
port, count, secure = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "https"
start = sys.stdin.buffer.read(int(sys.argv[4]))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
opened = []
for _ in range(count):
    each = socket.socket()
    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    each.settimeout(20)
    each.connect(("127.0.0.1", port))
    if secure:
        each = context.wrap_socket(each)
    opened.append(each)
for each in opened:
    each.settimeout(0.05)
    try:
        each.sendall(start)
    except OSError:
        pass
print("sent", flush=True)
sys.stdin.read()
"""
"""Many connections that send the same bytes, as many as the server takes, and read nothing."""

STARTS = {
    "a body": b"PUT /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8388608\r\n\r\n" + bytes(BODY),
    "requests": b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20_000,
    "a head": b"GET /wait HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 15_000,
    "an answer": b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "answers": b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000,
}


@contextmanager
def peers(server: Server, start: bytes) -> Iterator[None]:
    """Run them in a process of their own, whose memory is not the server's."""
    arguments = [str(server.server_address[1]), str(COUNT), server.url.partition(":")[0], str(len(start))]
    with subprocess.Popen(
        [sys.executable, "-c", PEERS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(start)
        process.stdin.flush()
        assert process.stdout.readline() == b"sent\n"
        yield
        process.stdin.close()


def settle() -> None:
    """Wait until this process takes no more memory: the server reads on while peers send."""
    most, since = resident(), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.02)
        if (now := resident()) > most:
            most, since = now, time.monotonic()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not state resident memory in /proc")
@pytest.mark.parametrize(("start", "secure"), cells([*STARTS], [False, True]))
def test_a_connection_takes_what_is_planned(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, secure: bool
) -> None:
    """Over TLS it took up to 1.3 MB, of which asyncio kept a quarter before the first byte; each peer that
    did not read a page or a manifest had a copy of all of it."""
    for name in ("GRACE_S", "TIMEOUT_S", "HANDSHAKE_S"):
        monkeypatch.setattr(connections, name, 600.0)
    service = Service(thin, tmp_path / "state", workers=WORKERS)
    certificate = make_certificate(tmp_path, "own") if secure else None
    with running(
        Server(service, certificate=certificate, page={"/big": ("text/html", bytes(BODY))})
    ) as server:
        inner, over = server.app._app, threading.Event()

        async def hold(scope: Scope, receive: Receive, send: Send) -> None:
            while scope.get("path") == "/wait" and not over.is_set():
                await asyncio.sleep(0.05)
            await inner(scope, receive, send)

        server.app._app = hold
        gc.collect()
        before = resident()
        with peers(server, STARTS[start]):
            wait_until(lambda: len(server._slots) == COUNT)
            settle()
            gc.collect()
            grown, count = resident() - before, len(server._slots)
            over.set()
            assert count == COUNT
            assert grown <= COUNT * CONNECTION_BYTES
    service.close()


def test_a_read_has_no_more_bytes_than_is_planned(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio has no public setting for this, and reads four times as much by itself."""
    sizes, take = list[int](), connections.Connection.data_received

    def note(self: connections.Connection, data: bytes) -> None:
        sizes.append(len(data))
        time.sleep(0.01)  # More arrives.
        take(self, data)

    monkeypatch.setattr(connections.Connection, "data_received", note)
    with running(Server(service)) as server, socket.create_connection(server.server_address) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"nonsense\r\n\r\n" + bytes(2 << 20))
        wait_until(lambda: sum(sizes) >= 1 << 20)
    assert max(sizes) == connections.READ_BYTES


def test_there_are_fewer_connections_where_memory_is_small() -> None:
    assert connections_within(1 << 40) == MAX_CONNECTIONS
    assert connections_within(1 << 20) == MIN_CONNECTIONS
    for memory in (1 << 28, 1 << 29, 1 << 30):
        assert MIN_CONNECTIONS < connections_within(memory) < MAX_CONNECTIONS
        assert connections_within(memory) * CONNECTION_BYTES <= memory // 16
    assert 3 * SENT_BYTES <= CONNECTION_BYTES
