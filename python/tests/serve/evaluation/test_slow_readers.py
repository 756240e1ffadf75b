"""Clients that read answers slowly, or wait for many: memory, deadlines, and the others' share."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.http import connection_slots, connections
from keywright.serve.http.connection_slots import JobWaiters
from keywright.serve.http.request_checks import IN_MEMORY_BYTES
from keywright.serve.http.server import UNSENT_BYTES
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import _answer
from tests.serve.http.test_http import wait
from tests.serve.network import WORKERS, listening

MANY, SIZE = 30, 8 << 20
ANSWER = bytes(range(256)) * (SIZE // 256)


def stored(service: Service) -> str:
    """The path of a stored answer of `SIZE` bytes."""
    job = Job("cd" * 16, "owner", "model", 0, 1)
    service.jobs._objects.put(_answer(job), ANSWER)
    job.state, job.answer_bytes, job.touched = "done", SIZE, time.monotonic()
    service.jobs._jobs[job.identifier] = job
    return f"/v1/jobs/{job.identifier}/result"


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def unsent(server: Server) -> int:
    """The largest number of bytes that the kernel keeps for a connection of a server."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{server.server_address[1]:04X}"
    return max(int(row[4].partition(":")[0], 16) for row in rows if row[1].endswith(port))


@contextlib.contextmanager
def readers(server: Server, path: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that have asked for an answer, and do not read it."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            each = stack.enter_context(socket.socket())
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect(server.server_address)
            each.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            opened.append(each)
        yield opened


def got(server: Server, path: str) -> tuple[int, bytes]:
    """Status and body of an answer."""
    with contextlib.closing(http.client.HTTPConnection(*server.server_address)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()


def read_to_end(connection: socket.socket) -> int:
    """The number of bytes that still come, until the server ends the connection."""
    received = 0
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(1 << 16):
            received += len(data)
    return received


def test_slow_readers_hold_pieces_and_not_answers(thin: Model, tmp_path: Path) -> None:
    """The attack: 400 connections that read slowly took 1.4 GB for one result of 6 MB."""
    service = Service(thin, tmp_path, workers=WORKERS)
    path = stored(service)
    with listening(service) as server:
        assert got(server, path) == (200, ANSWER)
        before = resident()
        with readers(server, path, MANY):
            wait(lambda: service.buffers.used == MANY * IN_MEMORY_BYTES)
            assert got(server, path) == (200, ANSWER)
            assert resident() - before < MANY * SIZE // 4
            assert unsent(server) < 3 * UNSENT_BYTES
        wait(lambda: service.buffers.used == 0)
    service.close()


def test_answers_share_the_memory_of_bodies(thin: Model, tmp_path: Path) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    path = stored(service)
    service.buffers.most = 2 * IN_MEMORY_BYTES
    with listening(service) as server, readers(server, path, 2) as slow:
        wait(lambda: service.buffers.used == 2 * IN_MEMORY_BYTES)
        assert got(server, path)[0] == 503
        # Another holder takes what the address has more than it.
        with service.buffers.share("tenant", IN_MEMORY_BYTES, lambda: None):
            wait(lambda: service.buffers.used == 2 * IN_MEMORY_BYTES)
            assert read_to_end(slow[0]) < SIZE
    service.close()


def test_a_slow_reader_is_ended(thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_S", 0.5)
    monkeypatch.setattr(connections, "TIMEOUT_S", 1.0)
    service = Service(thin, tmp_path, workers=WORKERS)
    path = stored(service)
    with listening(service) as server, readers(server, path, 3) as slow:
        wait(lambda: service.buffers.used == 3 * IN_MEMORY_BYTES)
        wait(lambda: service.buffers.used == 0)
        assert read_to_end(slow[0]) < SIZE
        assert got(server, path) == (200, ANSWER)
    service.close()


def test_waiting_requests_are_shared_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client took all 128, so that the others had to ask again and again."""
    monkeypatch.setattr(connection_slots, "MAX_WAITING", 4)
    waiters = JobWaiters()

    async def listen() -> list[list[bool]]:
        states = []
        with contextlib.ExitStack() as stack:
            greedy = [stack.enter_context(waiters.waiter("greedy")) for _ in range(5)]
            states.append([each.ended.is_set() for each in greedy])
            honest = [stack.enter_context(waiters.waiter("honest")) for _ in range(2)]
            await asyncio.sleep(0)
            states.append([each.ended.is_set() for each in (*greedy, *honest)])
            more = [stack.enter_context(waiters.waiter("honest"))]
            states.append([more[0].ended.is_set()])
        return states

    assert asyncio.run(listen()) == [
        [False, False, False, False, True],
        [True, True, False, False, True, False, False],
        [True],
    ]
    assert not waiters._waiting
