"""Nobody locks the others out: stalled requests, answers that nobody reads, TLS that is never negotiated."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.http import connections
from keywright.serve.http.connection_slots import (
    BODY_BYTES,
    BURST,
    OPENING,
    OTHERS_S,
    REQUESTS_A_SECOND,
    ConnectionSlots,
    Pace,
    Slot,
)
from keywright.serve.service import ServiceLimits
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.holders import MANY, neighbourhood
from tests.serve.http.test_http import ask, raw, wait
from tests.serve.http.test_tls import make_certificate, trusting
from tests.serve.network import WORKERS, listening, running

PLACES = 24
FEW = ServiceLimits(connections=PLACES)


@contextlib.contextmanager
def opened(server: Server, count: int, start: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that send this and nothing more."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(count):
            held.append(stack.enter_context(socket.create_connection(server.server_address)))
            with contextlib.suppress(OSError):
                held[-1].sendall(start)
        yield held


def stalled(method: str, path: str, length: int, headers: Mapping[str, str] | None = None) -> bytes:
    """A request whose body never comes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def served_at_once(server: Server, path: str, headers: Mapping[str, str] | None = None) -> None:
    """An honest client is answered, again and again."""
    begun = time.monotonic()
    for _ in range(10):
        assert ask(server, "GET", path, headers=headers)[0] == 200
    assert time.monotonic() - begun < 3


def create(server: Server, service: Service, headers: Mapping[str, str] | None = None) -> str:
    request = json.dumps({"model": service.model.hash}).encode()
    status, opening, _ = ask(server, "POST", "/v1/keys", request, headers)
    assert status == 201
    return f"/v1/keys/{opening['keys']}"


WAYS = {
    "a part": ("PUT", "{keys}/parts?offset=0"),
    "an evaluation": ("POST", "{keys}/jobs"),
    "a resumable upload": ("PATCH", "{keys}"),
    "a new key set": ("POST", "/v1/keys"),
    "keys that do not exist": ("POST", "/v1/keys/0/jobs"),
    "no such path": ("POST", "/nothing"),
}
RESUMABLE = {"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?0"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("known", [False, True], ids=["anonymous", "a tenant"])
def test_missing_bodies_cost_no_other_client_its_connection(
    thin: Model, tmp_path: Path, way: str, known: bool
) -> None:
    """The attack: 515 of them held all 512 places for minutes."""
    accounts = tmp_path / "accounts.json"
    keys = {name: add(accounts, name) for name in ("evil", "honest")} if known else {}
    bearer = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    evil, honest = bearer.get("evil", {}), bearer.get("honest", {})
    tenants = Accounts.load(accounts) if known else None
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=tenants, limits=FEW)
    with listening(service) as server:
        theirs, mine = create(server, service, evil), create(server, service, honest)
        method, path = WAYS[way]
        start = stalled(method, path.format(keys=theirs), 4000, {**evil, **RESUMABLE})
        if method != "PATCH":
            start = stalled(method, path.format(keys=theirs), 4000, evil)
        with opened(server, 2 * PLACES, start):
            served_at_once(server, mine, honest)
    service.close()


def test_the_minimum_speed_holds_from_the_first_byte(
    server: Server, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it says that it will be."""
    monkeypatch.setattr(connections, "GRACE_S", 0.3)
    path = create(server, service)
    with opened(server, 1, stalled("PUT", f"{path}/parts?offset=0", 1 << 20)) as (connection,):
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            assert connection.recv(1) == b""
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize("piece", [1, 4096])
@pytest.mark.parametrize("held", [0.1, 0.99, 1.0])
def test_bytes_one_by_one_keep_no_connection(
    piece: int, held: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their reads waited for their turn, plain or as records of TLS, and whose reads waited was never slow.
    Pieces of a fair size are excused: the server is slow then.

    A read comes each second, of which it waits for its turn for a part.
    """
    monkeypatch.setattr("keywright.serve.http.connections.H11Protocol.data_received", lambda *_: None)
    now, timers = 0.0, list[tuple[float, Callable[[], None]]]()

    def schedule(at: float, call: Callable[[], None]) -> MagicMock:
        timers.append((at, call))
        return MagicMock()

    connection: Any = object.__new__(connections.Connection)
    connection.loop = MagicMock(time=lambda: now)
    connection.loop.call_at.side_effect = schedule
    connection.transport, connection.cycle = MagicMock(), MagicMock(more_body=True)
    connection.flow = MagicMock(read_paused=False)
    connection._reads = connection._unread = connection._timer = connection._held_since = None
    connection._held, connection._slot = 0.0, Slot(connection._abort)
    connection.receive()
    for second in range(100):
        for on, moment in (
            (True, second),
            (False, second + held),
            (None, second + 0.5 + held / 2),
            (None, second + 1),
        ):
            now = moment
            for timer in [timer for timer in timers if timer[0] <= now]:
                timers.remove(timer)
                timer[1]()
            if on is not None:
                connection.hold(on=on)
        connection.data_received(bytes(piece))
    kept = piece > 1 and held > 0.5
    assert connection.transport.abort.called != kept
    assert (connection._slot.until > now) == kept


def test_a_refused_connection_is_replaced_like_others(server: Server) -> None:
    """While its bytes were read, none was replaced later."""
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert connection.recv(1 << 12).startswith(b"HTTP/1.1 400 ")
        assert all(slot.until < math.inf for slot in server._slots._held)


def test_a_body_that_keeps_its_speed_stays(
    server: Server, service: Service, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "GRACE_S", 0.3)
    path, data = create(server, service), key_file.read_bytes()
    length = 48 << 10
    with opened(server, 1, stalled("PUT", f"{path}/parts?offset=0", length)) as (connection,):
        for begin in range(0, length, 4 << 10):
            connection.sendall(data[begin : begin + (4 << 10)])
            time.sleep(0.1)
        assert connection.recv(1 << 12).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_an_unread_answer_is_aborted(thin: Model, tmp_path: Path, secure: bool, more: str) -> None:
    """Its bytes are in the server's memory meanwhile."""
    certificate = make_certificate(tmp_path, "own") if secure else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "TIMEOUT_S", 0.3)
        service = Service(thin, tmp_path / "state", workers=WORKERS)
        page = {"/big": ("text/html", bytes(8 << 20))}
        with running(Server(service, page=page, certificate=certificate)) as server:
            request = f"GET /big HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()

            def got(pause: float) -> int:
                with contextlib.ExitStack() as stack:
                    connection = stack.enter_context(socket.socket())
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
                    connection.connect(server.server_address)
                    if secure:
                        connection = stack.enter_context(trusting().wrap_socket(connection))
                    connection.sendall(request)
                    time.sleep(pause)
                    wait(lambda: pause == 0 or len(server._slots) == 0)
                    length = 0
                    with contextlib.suppress(OSError):
                        while length < 8 << 20 and (data := connection.recv(1 << 20)):
                            length += len(data)
                    return length

            assert got(1.0) < 8 << 20
            # A client that reads gets all of it.
            assert got(0.0) >= 8 << 20
        service.close()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_a_refusal_that_nobody_reads_is_aborted(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    """Where bytes were still to be read when the server closed, the connection stayed for ever."""
    certificate = make_certificate(tmp_path, "own") if secure else None
    for name in ("GRACE_S", "REFUSED_S"):
        monkeypatch.setattr(connections, name, 0.2)
    service = Service(thin, tmp_path / "state", workers=WORKERS)
    # Less than makes the server wait before it reads on, and more than the sockets take.
    page = {"/page": ("text/html", bytes(60_000))}
    with (
        running(Server(service, page=page, certificate=certificate)) as server,
        contextlib.ExitStack() as stack,
    ):
        server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        connection.connect(server.server_address)
        if secure:
            connection = stack.enter_context(trusting().wrap_socket(connection))
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
        wait(lambda: "refusals_total{" in service.metrics.render())
        wait(lambda: len(server._slots) == 0)
    service.close()


def test_tls_is_negotiated_within_a_slot(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The attack: 2,300 connections that never said a word were an outage of a minute."""
    certificate = make_certificate(tmp_path, "own")
    service = Service(thin, tmp_path / "state", workers=WORKERS, limits=FEW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate[0])

    def secure() -> None:
        with (
            socket.create_connection(server.server_address) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
        ):
            encrypted.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert encrypted.recv(1 << 12).startswith(b"HTTP/1.1 200")

    with (
        caplog.at_level(logging.WARNING),
        running(Server(service, certificate=certificate)) as server,
        opened(server, 4 * PLACES, b"") as held,
    ):
        begun = time.monotonic()
        for _ in range(5):
            secure()
        assert time.monotonic() - begun < 5
        # Those above the number were ended.
        ended = 0
        for connection in held:
            connection.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                try:
                    ended += connection.recv(1) == b""
                except ConnectionError:
                    ended += 1
        assert ended >= 3 * PLACES
        monkeypatch.setattr(connections, "HANDSHAKE_S", 0.2)
        with opened(server, 1, b"\x16\x03") as (late,), contextlib.suppress(ConnectionError):
            assert late.recv(1) == b""
        secure()
    assert "Traceback" not in caplog.text
    service.close()


def test_connections_that_cannot_be_accepted_are_a_line_and_no_tracebacks(
    thin: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The attack: 311 MB of them."""
    events: list[str] = []
    service = Service(thin, tmp_path, workers=WORKERS, on_event=events.append)
    with listening(service) as server, caplog.at_level(logging.WARNING):
        context = {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")}
        loop = asyncio.new_event_loop()
        for _ in range(1000):
            server._report_shortage(loop, context)
        assert caplog.text == ""
        server._report_shortage(loop, {"message": "another", "exception": ValueError("x")})
        assert "another" in caplog.text
        loop.close()
    assert sum("descriptors" in event for event in events) == 1
    service.close()


def test_the_server_asks_for_its_own_reports(thin: Model, tmp_path: Path) -> None:
    """asyncio really calls it: a descriptor cannot be had."""
    events: list[str] = []
    service = Service(thin, tmp_path, workers=WORKERS, on_event=events.append)
    with listening(service) as server:
        callbacks: list[Callable[..., object] | None] = []
        inner = server.app._app

        async def look(*arguments: object) -> None:
            callbacks.append(asyncio.get_running_loop().get_exception_handler())
            await inner(*arguments)  # type: ignore[arg-type]

        server.app._app = look
        assert ask(server, "GET", "/health")[0] == 200
        # Other requests, such as those of the fixture, come with the same handler.
        assert callbacks
        assert set(callbacks) == {server._report_shortage}
    service.close()


def test_the_holder_with_the_most_slots_loses_one() -> None:
    """For any newcomer; and of its own, the one with the least credit."""
    gone: list[tuple[str, float]] = []

    def place(holder: str, until: float) -> Slot:
        slot = Slot(lambda: gone.append((holder, until)), holder, until)
        places.enter(slot)
        return slot

    places = ConnectionSlots(8)
    for number in range(8):
        place("evil", 10.0 + number)
    for number in range(4):
        place(f"honest {number}", 1.0)
    assert gone == [("evil", 10.0 + number) for number in range(4)]
    place("evil", 20.0)
    assert gone[-1] == ("evil", 14.0)
    assert len(places) == 8


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("127.0.0.1", "127.0.0.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8:0:ffff::1", "2001:db8::2", True),
        ("2001:db8:1::1", "2001:db8::2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("testclient", "testclient", True),
    ],
)
def test_addresses_of_one_customer_count_as_one(one: str, other: str, same: bool) -> None:
    assert (neighbourhood(one) == neighbourhood(other)) is same


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def admitted(pace: Pace, address: str, count: int) -> int:
    """How many of this number of connections at once are served."""
    return sum(pace.admits(address) for _ in range(count))


def test_an_address_has_a_pace_while_others_are_served() -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    assert admitted(pace, "127.0.0.1", 10 * BURST) == 10 * BURST
    clock.now += OTHERS_S
    assert admitted(pace, "127.0.0.2", BURST) == BURST
    # The first one did much while it was alone, which is forgotten.
    clock.now += BURST / REQUESTS_A_SECOND
    assert admitted(pace, "127.0.0.1", 2 * BURST) == BURST
    for _ in range(20):
        clock.now += 1
        assert admitted(pace, "127.0.0.2", 20) == 20
        assert admitted(pace, "127.0.0.1", 1000) in range(REQUESTS_A_SECOND - 1, REQUESTS_A_SECOND + 2)
    clock.now += OTHERS_S
    assert admitted(pace, "127.0.0.1", 10 * BURST) == 10 * BURST


def test_an_address_that_fills_the_places_is_not_alone() -> None:
    """Thousands of its connections waited to be accepted, each of them replaced another one of its own, and a
    newcomer waited behind all of them."""
    pace, slots = Pace(clock=Clock()), ConnectionSlots(PLACES)
    admission = 0
    for _ in range(10 * PLACES + 10 * BURST):
        if pace.admits("127.0.0.1", full=slots.full):
            admission += 1
            slots.enter(Slot(lambda: None, "waiting 127.0.0.1"))
    assert len(slots) == PLACES
    assert admission in range(PLACES, PLACES + BURST + 1)
    assert pace.admits("127.0.0.2", full=slots.full)


def test_the_requests_of_open_connections_wait_one_after_the_other() -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    assert pace.delay("127.0.0.2") == 0
    delays = [pace.delay("127.0.0.1") for _ in range(BURST + 128)]
    assert delays[:BURST] == [0.0] * BURST
    assert delays[BURST:] == pytest.approx([k / REQUESTS_A_SECOND for k in range(1, 129)])
    assert pace.delay("127.0.0.2") == 0
    # New connections count too, and are refused meanwhile.
    assert not pace.admits("127.0.0.1")
    assert pace.admits("127.0.0.2")


def test_the_bytes_of_keys_have_a_pace_that_refuses_no_connections() -> None:
    """The case: key sets that were uploaded again and again took the event loop from others."""
    clock = Clock()
    pace = Pace(clock=clock)
    assert [pace.body("127.0.0.1", 100 * BURST * BODY_BYTES) for _ in range(3)] == [0.0] * 3
    assert pace.body("127.0.0.2", BODY_BYTES) == 0
    clock.now += 2 * BURST / REQUESTS_A_SECOND
    for _ in range(BURST // 32):
        assert pace.body("127.0.0.1", 32 * BODY_BYTES) == 0
    delays = [pace.body("127.0.0.1", 32 * BODY_BYTES) for _ in range(3)]
    assert delays == pytest.approx([(1 + 32 * k) / REQUESTS_A_SECOND for k in range(3)])
    assert pace.body("127.0.0.1", 0) == pace.body("127.0.0.2", BODY_BYTES) == 0
    assert pace.admits("127.0.0.1")
    assert pace.delay("127.0.0.1") == 0


def test_a_pace_is_of_a_neighbourhood_and_not_of_a_proxy() -> None:
    pace = Pace(["10.0.0.0/8", "2001:db8:1::/48"], Clock())
    assert pace.admits("192.0.2.1")
    assert admitted(pace, "10.1.2.3", 9 * BURST) == admitted(pace, "2001:db8:1::5", 9 * BURST) == 9 * BURST
    assert admitted(pace, "::ffff:10.1.2.3", 9 * BURST) == 9 * BURST
    assert sum(admitted(pace, f"2001:db8:2::{number:x}", 8) for number in range(BURST)) == BURST


def test_a_pace_remembers_few_addresses() -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    for number in range(2 * MANY):
        assert pace.admits(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        clock.now += 0.01
    assert len(pace._next) <= MANY


def connect(server: Server, source: str) -> socket.socket:
    """A connection from another address of the loopback."""
    try:
        return socket.create_connection(server.server_address, source_address=(source, 0))
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        pytest.skip("the loopback has one address")


def test_a_flood_of_connections_is_reset_and_another_address_is_served(server: Server) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert ask(server, "GET", "/health")[0] == 200
    begun, answered, reset = time.monotonic(), 0, 0
    for _ in range(3 * BURST):
        try:
            with connect(server, "127.0.0.66") as connection:
                connection.sendall(request)
                answered += connection.recv(1 << 12).startswith(b"HTTP/1.1 200")
        except ConnectionError:
            reset += 1
    assert answered + reset == 3 * BURST
    assert answered <= BURST + REQUESTS_A_SECOND * (time.monotonic() - begun) + 2
    assert answered >= BURST, (answered, reset)
    served_at_once(server, "/health")


def test_a_new_key_set_counts_as_several_requests(server: Server, service: Service) -> None:
    """A flood of empty sets is at an eighth of the pace."""
    assert ask(server, "GET", "/health")[0] == 200
    body = json.dumps({"model": service.model.hash}).encode()
    request = stalled("POST", "/v1/keys", len(body)) + body
    with connect(server, "127.0.0.88") as connection:
        begun, replies, count, took = time.monotonic(), b"", 3 * BURST // OPENING, 0.0
        connection.sendall(request * count)
        while (opened := replies.count(b"HTTP/1.1 201")) < count:
            replies += connection.recv(1 << 16)
            took = time.monotonic() - begun
            assert opened <= (BURST + took * REQUESTS_A_SECOND) / OPENING + 2
    assert took > 1


def test_a_flood_of_requests_on_one_connection_waits(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright.serve.http.connection_slots.BURST", 10)
    monkeypatch.setattr("keywright.serve.http.connection_slots.REQUESTS_A_SECOND", 20)
    assert ask(server, "GET", "/health")[0] == 200
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(server, "127.0.0.77") as connection:
        connection.sendall(request * 40)
        begun, replies, served = time.monotonic(), b"", 0
        while replies.count(b"HTTP/1.1 200") < 40:
            replies += connection.recv(1 << 16)
            if time.monotonic() - begun < 0.5:
                served = replies.count(b"HTTP/1.1 200")
        # 30 beyond the burst, at 20 a second.
        assert 1.0 < time.monotonic() - begun < 10
        assert 10 <= served <= 25


def test_stalled_and_honest_clients_of_one_address_beside_each_other(
    server: Server, service: Service, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that moves keeps its place among those that do not."""
    monkeypatch.setattr(server._slots, "most", PLACES)
    mine, theirs, data = create(server, service), create(server, service), key_file.read_bytes()
    said: list[int] = []

    def upload() -> None:
        pieces = [(offset, data[offset : offset + (1 << 16)]) for offset in range(0, 1 << 18, 1 << 16)]
        said.extend(ask(server, "PUT", f"{mine}/parts?offset={at}", piece)[0] for at, piece in pieces)

    with opened(server, 3 * PLACES, stalled("PUT", f"{theirs}/parts?offset=0", 1 << 20)):
        thread = threading.Thread(target=upload)
        thread.start()
        thread.join()
    assert said == [200] * 4
    wait(lambda: not service.store.get(theirs.rpartition("/")[2]).receiving)


def test_what_peers_send_fills_no_log(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """uvicorn logged a line for each malformed request and each upgrade. They are counted."""

    def refusals() -> float:
        lines = [line for line in service.measure().splitlines() if "refusals_total{" in line]
        return sum(float(line.rpartition(" ")[2]) for line in lines if "bad_request" in line)

    before, upgrade = refusals(), "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    # The address may be above its pace on the server of the other tests.
    with caplog.at_level(logging.WARNING), listening(service) as server:
        for _ in range(20):
            assert raw(server, b"GET\r\n\r\n").startswith(b"HTTP/1.1 400 ")
            with opened(server, 1, f"GET /health HTTP/1.1\r\nHost: localhost\r\n{upgrade}".encode()) as (
                peer,
            ):
                assert peer.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
    assert refusals() - before >= 20
    assert not caplog.records
