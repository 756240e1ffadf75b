"""Servers that answer a byte at a time, or never, do not keep a client beyond its deadline."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from keywright.client import RemoteModel, connection, remote
from keywright.client.connection import Deadline, within
from keywright.errors import ParameterError
from keywright.errors.service import UnreachableError

PAUSE_S = 0.1
ALLOWED_S, MOST_S = 0.6, 5.0

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n"
SENDS = {
    "nothing": (b"", b""),
    "a head": (b"", HEAD + b"X: " + b"y" * 60000),
    "a body": (HEAD + b"\r\n", b"{" * 100000),
    "a body and an end": (HEAD + b"Connection: close\r\n\r\n", b"{" * 100000),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    "a handshake": (b"\x16\x03\x03\x20\x00", b"\x02" * 8192),
}


@contextlib.contextmanager
def dripping(first: bytes, rest: bytes) -> Iterator[int]:
    """Run a server that sends some bytes at once and others one by one; give its port."""
    over = threading.Event()

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.sendall(first)
            for place in range(len(rest)):
                if over.wait(PAUSE_S):
                    return
                client.sendall(rest[place : place + 1])
            over.wait()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()


@pytest.mark.parametrize("what", SENDS)
def test_a_slow_server_does_not_keep_a_client(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SHORT_S", ALLOWED_S)
    scheme = "https" if what == "a handshake" else "http"
    begun = time.monotonic()
    with dripping(*SENDS[what]) as port, pytest.raises(UnreachableError, match=r"within 0\.6 s") as refusal:
        RemoteModel(f"{scheme}://127.0.0.1:{port}")
    assert refusal.value.code == "deadline"
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


def test_retries_end_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is away, and the client would come back eight times."""
    monkeypatch.setattr(remote, "POLL_S", 10.0)

    def away() -> None:
        raise UnreachableError("it is away")

    begun = time.monotonic()
    with within(ALLOWED_S), pytest.raises(UnreachableError, match="deadline="):
        remote._persist(away)
    assert time.monotonic() - begun < MOST_S


def test_a_call_within_another_has_no_longer() -> None:
    with within(1.0) as outer:
        with within(100.0) as inner:
            assert inner is outer
        with within(0.5) as inner:
            assert inner.end < outer.end
        assert connection.current() is outer
    assert connection.current() is not outer


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_deadline_is_a_time(seconds: float) -> None:
    with pytest.raises(ParameterError, match="deadline must be"):
        Deadline(seconds)
