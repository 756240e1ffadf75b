"""Servers that answer a byte at a time, or never, do not keep a client beyond its deadline."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel, connection, exchange, key_owner, key_upload
from keywright.client.connection import CLOSE_S, DEADLINE_S, SHORT_S, TIMEOUT_S, Deadline, within
from keywright.client.exchange import STALLED_S, Steps
from keywright.client.remote import Session
from keywright.errors import ParameterError
from keywright.errors.service import (
    BusyError,
    DiskError,
    ServeError,
    StorageError,
    UnknownJobError,
    UnreachableError,
)
from keywright.serve import serve
from tests.serve.hostile import IDENTIFIER, Honest, answer, hostile
from tests.serve.http.test_tls import make_certificate
from tests.serve.network import make_thin

PAUSE_S = 0.05
ALLOWED_S, MOST_S = 0.3, 5.0
FASTER = SHORT_S / ALLOWED_S
"""How many times faster the clients' clock runs in these tests."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
SENDS = {
    "nothing": (b"", b""),
    "a head": (b"", HEAD + b"X: " + b"y" * 60000),
    "a body": (HEAD + b"\r\n", b"{" * 100000),
    "a body and an end": (HEAD + b"Connection: close\r\n\r\n", b"{" * 100000),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    "a handshake": (b"\x16\x03\x03\x20\x00", b"\x02" * 8192),
}


Peer = Callable[[socket.socket], socket.socket]
"""What a server does with a connection first: nothing, or TLS."""


@contextlib.contextmanager
def dripping(first: bytes, rest: bytes, *, peer: Peer = lambda client: client) -> Iterator[int]:
    """Run a server that sends some bytes at once and others one by one; give its port."""
    over = threading.Event()

    def serve(plain: socket.socket) -> None:
        with contextlib.suppress(OSError), peer(plain) as client:
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


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of clients and the timeouts of sockets run faster."""

    class Clock:
        sleep = staticmethod(time.sleep)

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() * FASTER

    wait = socket.socket.settimeout

    def settimeout(sock: socket.socket, seconds: float | None) -> None:
        wait(sock, None if seconds is None else seconds / FASTER)

    monkeypatch.setattr(connection, "time", Clock)
    monkeypatch.setattr(socket.socket, "settimeout", settimeout)


@pytest.fixture(scope="module")
def model() -> RemoteModel:
    with hostile(Honest(make_thin().manifest.encoded)) as seen:
        return RemoteModel(seen.url, insecure=True)


@pytest.fixture
def session(model: RemoteModel) -> Iterator[Session]:
    with model.session() as session:
        session._identifier = IDENTIFIER
        yield session
        session._identifier = None


@pytest.fixture(params=["http", "https"])
def peer(
    request: pytest.FixtureRequest, model: RemoteModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Peer:
    """Let the model ask over HTTP, then over TLS."""
    monkeypatch.setattr(model, "_address", model._address._replace(scheme=request.param))
    if request.param == "http":
        return lambda client: client
    certificate, tls = make_certificate(tmp_path, "own"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    return partial(tls.wrap_socket, server_side=True)


CALLS: dict[str, Callable[[Session], object]] = {
    "a new model": lambda session: RemoteModel(
        f"{session.remote._address.scheme}://127.0.0.1:{session.remote._port}"
    ),
    "refresh": lambda session: session.remote.refresh(),
    "seen": lambda session: session.seen(),
}
"""Calls that wait for small answers."""


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", [name for name in SENDS if name != "a handshake"])
def test_a_slow_server_does_not_keep_a_client(call: str, what: str, session: Session, peer: Peer) -> None:
    """Without a thread that watches it."""
    threads, begun = threading.active_count(), time.monotonic()
    with dripping(*SENDS[what], peer=peer) as session.remote._port:
        with pytest.raises(UnreachableError, match=r"within 30 s") as refusal:
            CALLS[call](session)
        # The server has two: one accepts, one answers.
        assert threading.active_count() <= threads + 2
    assert refusal.value.code == "deadline"
    # Only calls with this parameter name it.
    assert ("deadline=" in str(refusal.value)) == (call != "a new model")
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
def test_a_handshake_ends_with_the_deadline() -> None:
    begun = time.monotonic()
    with dripping(*SENDS["a handshake"]) as port, pytest.raises(UnreachableError, match="within 30 s"):
        RemoteModel(f"https://127.0.0.1:{port}")
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("what", [name for name in SENDS if name != "a handshake"])
def test_the_end_of_a_session_waits_five_seconds(
    what: str, session: Session, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, allowed = time.monotonic(), []

    def recording(seconds: float) -> contextlib.AbstractContextManager[Deadline]:
        allowed.append(seconds)
        return within(seconds)

    monkeypatch.setattr(key_owner, "within", recording)
    with dripping(*SENDS[what], peer=peer) as session.remote._port:
        session.close()
    assert allowed == [CLOSE_S] == [5.0]
    assert CLOSE_S / FASTER * 0.9 < time.monotonic() - begun < MOST_S
    assert session._identifier is None


def test_callers_choose_the_deadline(model: RemoteModel, peer: Peer) -> None:
    begun = time.monotonic()
    with (
        dripping(b"", b"", peer=peer) as model._port,
        pytest.raises(UnreachableError, match=r"within 0\.3 s"),
    ):
        model.refresh(deadline=ALLOWED_S)
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


END = b"the end"


class Reader:
    """A server that takes so many bytes of a request every `PAUSE_S`, and answers at its end."""

    def __init__(self, many: int, peer: Peer) -> None:
        self._many, self._peer, self._over = many, peer, threading.Event()

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        threading.Thread(target=self._read, daemon=True).start()
        return int(self._listener.getsockname()[1])

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._listener, self._peer(self._listener.accept()[0]) as client:
            while not self._over.wait(PAUSE_S):
                arrived = b""
                while len(arrived) < self._many and not arrived.endswith(END):
                    arrived += client.recv(self._many - len(arrived)) or END
                if arrived.endswith(END):
                    client.sendall(ANSWER)

    def __exit__(self, *reason: object) -> None:
        self._over.set()


@pytest.mark.usefixtures("fast")
def test_a_server_that_reads_slowly_does_not_keep_a_client(model: RemoteModel, peer: Peer) -> None:
    begun = time.monotonic()
    with (
        Reader(4096, peer) as model._port,
        within(SHORT_S),
        pytest.raises(UnreachableError, match="within 30 s"),
    ):
        model.send("PUT", "/v1/keys", bytes(16 << 20))
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("what", [name for name in SENDS if name != "a handshake"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_server_that_trickles_does_not_keep_a_client_to_its_deadline(
    method: str, what: str, model: RemoteModel, peer: Peer
) -> None:
    """A head, an acknowledgement or an answer that came at a byte a minute kept `infer` for six hours."""
    begun = time.monotonic()
    with (
        dripping(*SENDS[what], peer=peer) as model._port,
        within(DEADLINE_S),
        pytest.raises(UnreachableError) as error,
    ):
        model.exchange(method, "/v1/keys", b"x", limit=1 << 20)
    assert error.value.code in ("slow", "unreachable")
    assert time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
def test_a_server_that_takes_an_upload_slowly_does_not_keep_a_client_to_its_deadline(
    model: RemoteModel, peer: Peer
) -> None:
    begun = time.monotonic()
    with Reader(4096, peer) as model._port, within(DEADLINE_S):
        with pytest.raises(UnreachableError, match=r"fewer than 16384 bytes per second.*slowest") as error:
            model.send("PUT", "/v1/keys", bytes(16 << 20))
        assert error.value.code == "slow"
    assert time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
def test_a_server_that_takes_an_upload_fast_enough_gets_all_of_it(model: RemoteModel, peer: Peer) -> None:
    """Over TLS, all of a part was one wait, and each of them at most a minute."""
    with Reader(256 << 10, peer) as model._port, within(DEADLINE_S):
        assert model.send("PUT", "/v1/keys", bytes(8 << 20) + END) == {}


class Jumping:
    """A clock that jumps, as for a process that is stopped meanwhile."""

    sleep, ahead = staticmethod(time.sleep), 0.0

    def monotonic(self) -> float:
        return self.ahead + time.monotonic()

    def jump(self) -> None:
        self.ahead += 2 * TIMEOUT_S


def test_connecting_takes_nothing_from_the_credit(
    model: RemoteModel, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, connect = Jumping(), connection.Connection.connect

    def slow(self: connection.Connection) -> None:
        clock.jump()
        connect(self)

    monkeypatch.setattr(connection, "time", clock)
    monkeypatch.setattr(connection.Connection, "connect", slow)
    with dripping(ANSWER, b"", peer=peer) as model._port, within(DEADLINE_S):
        assert model.ask("GET", "/v1/model") == {}


def test_pauses_of_the_client_take_nothing_from_the_credit(
    model: RemoteModel, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither between its waits for the server nor within one, after which the data is there."""
    clock, wait, within_wait = Jumping(), connection.Credit.wait, [True]

    def pausing(self: connection.Credit, sock: socket.socket, move: Callable[[], int | None]) -> int | None:
        def stopped() -> int | None:
            if within_wait:
                within_wait.pop()
                clock.jump()
            return move()

        clock.jump()
        return wait(self, sock, stopped)

    monkeypatch.setattr(connection, "time", clock)
    monkeypatch.setattr(connection.Credit, "wait", pausing)
    with dripping(ANSWER, b"", peer=peer) as model._port, within(DEADLINE_S):
        assert model.ask("GET", "/v1/model") == {}


def test_an_answer_has_time_for_what_is_still_being_sent(
    model: RemoteModel, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sent message may still be in the buffer of the socket, which takes minutes at the least speed."""
    waits, limit, size = list[float](), Deadline.limit, 100_000

    def note(self: Deadline, sock: socket.socket, seconds: float) -> socket.socket:
        waits.append(seconds)
        return limit(self, sock, seconds)

    monkeypatch.setattr(Deadline, "limit", note)
    with dripping(ANSWER, b"", peer=peer) as model._port, within(DEADLINE_S):
        model.exchange("PUT", "/v1/keys", bytes(size), limit=10)
    assert TIMEOUT_S + size / connection.SLOWEST < max(waits) < TIMEOUT_S + 2 * size / connection.SLOWEST


@pytest.mark.parametrize("code", ["stalled", "deadline"])
def test_an_evaluation_that_a_client_gives_up_is_cancelled(
    code: str, model: RemoteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's next one waited for it."""
    body = json.dumps({"job": IDENTIFIER, "state": "running", "done": 0, "total": 10}).encode()
    monkeypatch.setattr(model, "stalled", 0.3 if code == "stalled" else 60.0)
    with hostile(lambda *_: answer(202, body)) as seen, within(60.0 if code == "stalled" else 0.5):
        monkeypatch.setattr(model, "_port", int(seen.url.rpartition(":")[2]))
        with pytest.raises(UnreachableError) as error:
            model.evaluate("/v1/keys/x/jobs?", b"", 1000, lambda done, total: None, model="m")
    assert error.value.code == code
    assert seen.requests[-1] == ("DELETE", f"/v1/jobs/{IDENTIFIER}", b"")


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_an_evaluation_that_is_interrupted_is_cancelled(
    end: type[BaseException], model: RemoteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went on, whether Ctrl-C or the caller's own progress bar ended the call."""
    body = json.dumps({"job": IDENTIFIER, "state": "running", "done": 1, "total": 10}).encode()

    def interrupt(*_: int) -> None:
        raise end

    with hostile(lambda *_: answer(202, body)) as seen:
        monkeypatch.setattr(model, "_port", int(seen.url.rpartition(":")[2]))
        with pytest.raises(end):
            model.evaluate("/v1/keys/x/jobs?", b"", 1000, interrupt, model="m")
    assert seen.requests[-1] == ("DELETE", f"/v1/jobs/{IDENTIFIER}", b"")


def test_evaluations_that_are_lost_one_after_the_other_do_not_keep_a_client(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each had an hour of its own."""
    waited, jobs, begun = 0.0, 0, 0.0

    class Clock:
        monotonic = staticmethod(lambda: waited)

        @staticmethod
        def sleep(seconds: float) -> None:
            nonlocal waited
            waited += seconds

    def request(method: str, path: str, *_: Any, **__: Any) -> tuple[int, bytes]:
        nonlocal waited, jobs, begun
        waited += 1.0
        if method == "POST":
            jobs, begun = jobs + 1, waited
        elif waited > begun + STALLED_S / 3:
            raise UnknownJobError("lost")
        entry = {"job": IDENTIFIER, "state": "running", "done": 1, "total": 10}
        return 202, json.dumps(entry).encode()

    monkeypatch.setattr(exchange, "time", Clock)
    monkeypatch.setattr(session.remote, "exchange", request)
    monkeypatch.setattr(Session, "_uploaded", True)
    with within(DEADLINE_S), pytest.raises(UnreachableError) as error:
        session._evaluate_batch(np.zeros((1, *session.manifest.sample_shape)), lambda done, total: None)
    assert error.value.code == "stalled"
    assert jobs > 1
    assert waited < 1.1 * STALLED_S


def test_a_long_evaluation_that_was_lost_is_repeated(
    model: RemoteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its steps were none, because the lost one had come as far."""
    waited, jobs, done, steps = 0.0, 0, 0, Steps()
    job = {"job": IDENTIFIER, "total": 10}

    class Clock:
        monotonic = staticmethod(lambda: waited)
        sleep = staticmethod(lambda _: None)

    def request(method: str, path: str, *_: Any, **__: Any) -> tuple[int, bytes]:
        nonlocal waited, jobs, done
        if method == "POST":
            jobs, done = jobs + 1, 0
        elif path.endswith("/result"):
            return 200, b"answer"
        else:
            waited, done = waited + STALLED_S / 2, done + 1
        if done == 9 and jobs == 1:
            raise UnknownJobError("lost")
        return 202, json.dumps(job | {"state": "running" if done < 10 else "done", "done": done}).encode()

    monkeypatch.setattr(exchange, "time", Clock)
    monkeypatch.setattr(model, "exchange", request)

    def evaluate() -> bytes:
        return model.evaluate("/v1/keys/x/jobs?", b"", 1000, lambda done, total: None, steps, model="m")

    with pytest.raises(UnknownJobError):
        evaluate()
    assert evaluate() == b"answer"
    assert jobs == 2


@pytest.mark.usefixtures("fast")
def test_callers_choose_the_least_speed(
    model: RemoteModel, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "slowest", 0)
    with dripping(b"", ANSWER, peer=peer) as model._port, within(DEADLINE_S):
        assert model.ask("GET", "/v1/model") == {}


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_an_evaluation_without_a_step_does_not_keep_a_client_to_its_deadline(
    state: str, model: RemoteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one whose steps go back and forth."""
    done = iter([0, 2, 1, *[2, 1] * 10_000])

    def exchange(*_: Any, **__: Any) -> tuple[int, bytes]:
        entry = {"job": IDENTIFIER, "state": state, "done": next(done), "total": 10}
        return 202, json.dumps(entry).encode()

    monkeypatch.setattr(model, "exchange", exchange)
    monkeypatch.setattr(model, "stalled", 0.5)
    begun = time.monotonic()
    with within(DEADLINE_S), pytest.raises(UnreachableError, match=rf"{state}, .* 0\.5 s.*stalled") as error:
        model.evaluate("/v1/keys/x/jobs?", b"", 1, lambda done, total: None, model="m")
    assert error.value.code == "stalled"
    assert time.monotonic() - begun < MOST_S


@pytest.mark.usefixtures("fast")
def test_a_host_of_many_silent_addresses_does_not_keep_a_client(
    model: RemoteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No address answers: the queues of these listeners are full."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        place = (socket.AF_INET, socket.SOCK_STREAM, 0, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [place] * 100)
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="within 30 s"):
            model.refresh()
    assert ALLOWED_S * 0.9 < time.monotonic() - begun < MOST_S


def test_retries_end_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is away, and the client would come back eight times."""
    monkeypatch.setattr(exchange, "POLL_S", 10.0)

    def away() -> None:
        raise UnreachableError("it is away")

    begun = time.monotonic()
    with within(ALLOWED_S), pytest.raises(UnreachableError, match="deadline="):
        exchange.persist(away)
    assert time.monotonic() - begun < MOST_S


@pytest.mark.parametrize(
    "refusal", [DiskError("the disk is full"), BusyError("no room"), UnreachableError("it is away")]
)
def test_a_deadline_names_the_last_refusal(monkeypatch: pytest.MonkeyPatch, refusal: ServeError) -> None:
    """Not one after which the server answered."""
    monkeypatch.setattr(exchange, "POLL_S", 10.0)

    def refuse() -> None:
        connection.current().require()
        raise refusal

    with within(ALLOWED_S) as until:
        with pytest.raises(UnreachableError, match=f"the last request failed: {refusal}") as raised:
            exchange.persist(refuse)
        assert (raised.value.code, raised.value.__cause__) == ("deadline", refusal)
        assert exchange.persist(lambda: 7) == 7
        with pytest.raises(UnreachableError, match=r"deadline=\)$"):
            until.require()


def test_an_evaluation_on_a_full_disk_names_the_disk() -> None:
    model = make_thin()

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with serve(model) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        with pytest.MonkeyPatch.context() as patch:
            # A held evaluation needs no disk.
            patch.setattr("keywright.serve.evaluation.evaluations.HELD_BYTES", 0)
            patch.setattr(server._service.jobs._objects, "put", full)
            with pytest.raises((UnreachableError, DiskError), match="disk of the server"):
                session.infer(np.zeros(session.manifest.sample_shape), deadline=3)


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


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupted_upload_waits_for_no_part(
    scheme: str, stop: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interrupt, or an error of the caller's own, parts in flight kept a client for a minute."""
    monkeypatch.setattr(key_upload, "PART_BYTES", 1000)
    path, hanging = tmp_path / "keys", threading.Semaphore(0)
    path.write_bytes(bytes(100_000))
    limit, waits = Deadline.limit, Counter[int]()

    def note(self: Deadline, sock: socket.socket, seconds: float) -> socket.socket:
        waits[threading.get_ident()] += 1
        if waits[threading.get_ident()] == 2:  # it is connected
            hanging.release()
        return limit(self, sock, seconds)

    monkeypatch.setattr(Deadline, "limit", note)
    with dripping(*SENDS["a handshake" if scheme == "https" else "nothing"]) as port:

        class Remote(exchange.Exchange):
            def ask(self, method: str, path: str, entry: object = None) -> dict[str, Any]:
                if "/direct" in path:
                    raise StorageError("there is none", code="no_direct_uploads")
                return {"missing": [[0, 100_000]]}

            def send(self, method: str, path: str, body: bytes) -> Mapping[str, object]:
                if path.endswith("offset=0"):
                    for _ in range(key_upload.IN_FLIGHT - 1):
                        hanging.acquire()
                    return {}
                return super().send(method, path, body)

        def interrupt(done: int, total: int) -> None:
            raise stop

        server, begun = Remote(f"{scheme}://127.0.0.1:{port}", None, direct=False), time.monotonic()
        with within(DEADLINE_S), pytest.raises(stop):
            key_upload.send_file(server, "/v1/keys/x", path, interrupt)
    assert time.monotonic() - begun < TIMEOUT_S / 2
