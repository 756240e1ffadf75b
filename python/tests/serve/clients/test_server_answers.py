"""Answers that no honest server gives: what a client sends, and what it raises."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel, exchange, key_owner, key_upload, remote
from keywright.client.key_owner import KEY_SETS
from keywright.errors import KeywrightError
from keywright.errors.engine import FormatError
from keywright.errors.replies import MAX_MESSAGE, refusal
from keywright.errors.service import (
    REFUSALS,
    BusyError,
    InvalidReplyError,
    OtherModelError,
    SecretRefusedError,
    ServeError,
    StorageError,
    UnreachableError,
    UploadError,
)
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Service
from tests.matrices import cells
from tests.serve.hostile import IDENTIFIER, answer, encoded, hostile, refused
from tests.serve.network import INPUTS, WORKERS, listening, make_full, make_thin

THIN = make_thin(batch=2).manifest
ENTRY: dict[str, Any] = json.loads(THIN.encoded)
Sample = np.ndarray[Any, np.dtype[np.float64]]

ODD: list[object] = [None, True, -1, 0, 1.5, -0.5, 10**400, -(10**400), 1 << 63, float("nan"), float("inf")]
ODD += [
    "",
    "x" * 300,
    "\u00e4\u00b2",
    "\ud800",
    "\x1b[2J\x07",
    "a\nb",
    "\u202egnp",
    "../..",
    [],
    [[]],
    {},
    {"x": 1},
]
"""Values that a server may write in place of any."""


class Lists:
    """A server that takes keys and answers requests for evaluations by turns.

    Args:
        answers: bytes of its answers, again and again from the first.
        pinned: whether it has one manifest; by default each has another name.
    """

    def __init__(self, answers: list[bytes], *, pinned: bool = False) -> None:
        self._answers, self._pinned = itertools.cycle(answers), pinned
        self._names, self._received = itertools.count(), 0

    def __call__(self, method: str, path: str, length: int) -> bytes:
        if path == "/v1/models":
            return answer(200, encoded({"models": []}))
        if path.startswith("/v1/model"):
            named = ENTRY | {"name": f"model {next(self._names)}"}
            return answer(200, THIN.encoded if self._pinned else encoded(named))
        if "/direct" in path:
            return refused("no_direct_uploads")
        if "/v1/jobs" in path:
            return answer(200, encoded({"state": "done", "done": 1, "total": 1}))
        if "/jobs" in path:
            return next(self._answers)
        if (method, path) == ("POST", "/v1/keys"):
            self._received = 0
            return answer(200, encoded({"keys": IDENTIFIER}))
        self._received += length
        missing = [] if self._received >= THIN.keys.size else [[0, THIN.keys.size]]
        return answer(200, encoded({"keys": IDENTIFIER, "missing": missing, "ready": not missing}))


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_list_of_refusals_gets_more_key_sets_of_a_secret(seed: int, *, pinned: bool) -> None:
    kinds = [refused("unknown_keys"), refused("retired", 410), refused("unknown_job")]
    listed = kinds[:2] if seed == 0 else random.Random(seed).choices(kinds, k=7)
    with hostile(Lists(listed, pinned=pinned)) as seen:
        remote = RemoteModel(seen.url, pinned=THIN.hash if pinned else None, insecure=True)
        with remote.session() as session:
            secret = session._secret
            for _ in range(3):
                with pytest.raises(KeywrightError):
                    session.infer(np.zeros(INPUTS))
            assert session._secret is secret
    firsts = [body for method, path, body in seen.requests if method == "PUT" and path.endswith("offset=0")]
    sets = {hashlib.sha256(body).digest() for body in firsts}
    assert 1 <= len(sets) <= KEY_SETS


def assert_shown(error: BaseException) -> None:
    """An error of the package whose text a terminal can show, and whose numbers are finite."""
    assert isinstance(error, KeywrightError), repr(error)
    assert str(error).isprintable()
    assert len(str(error)) <= 2 * MAX_MESSAGE
    for value in getattr(error, "details", {}).values():
        assert value.isprintable() if isinstance(value, str) else abs(value) < 1 << 64


@pytest.mark.parametrize("value", ODD, ids=lambda value: ascii(value)[:24])
def test_no_value_of_a_refusal_leaves_its_type_and_range(value: Any) -> None:
    for code, (status, kind) in REFUSALS.items():
        fields = [name for name in vars(kind) if not name.startswith("_")]
        reply: dict[str, Any] = {"type": code, "message": "no", "details": dict.fromkeys(fields, value)}
        assert_shown(error := refusal(status, {"error": reply}))
        assert type(error) is kind
        assert 0 <= getattr(error, "retry_after", 0) < 1 << 32
        assert json.dumps(error.to_json())
        assert all(map(str.isprintable, error.headers.values()))
        for name in ("type", "message", "details"):
            assert_shown(refusal(status, {"error": reply | {name: value}}))
    assert_shown(refusal(500, {"error": value}))
    assert_shown(refusal(500, value))
    if isinstance(value, str):
        assert_shown(refusal(500, {"error": {"type": ServeError.code, "message": value}}))


ANSWERS: dict[str, dict[str, Any]] = {
    "POST /v1/keys": {"keys": IDENTIFIER},
    "GET /v1/keys": {"missing": [], "ready": True},
    "POST /direct": {"url": "http://127.0.0.1:1/"},
    "POST /jobs": {"job": IDENTIFIER, "state": "waiting", "done": 0, "total": 1},
    "GET /v1/jobs": {"state": "done", "done": 0, "total": 1},
    "GET /v1/models": {"models": [{"model": THIN.hash, "joins": True}]},
}
"""The answers that a client reads, by method and part of the path."""


class QuickKeys:
    """Makes keys that no server of this module reads."""

    def __init__(self, secret: object) -> None:
        pass

    def save_evaluation_keys(self, path: Path, specs: object) -> None:
        path.write_bytes(bytes(THIN.keys.size))


def asked_for(method: str, path: str) -> str:
    """The place in `ANSWERS` of a request."""
    parts = ("/result", "/direct", "/v1/jobs", "/jobs", "/v1/keys", "/v1/models")
    return f"{method} {next((part for part in parts if part in path), path)}"


@pytest.mark.parametrize(
    ("place", "group"), cells([(which, name) for which, entry in ANSWERS.items() for name in entry], range(3))
)
def test_no_value_of_an_answer_makes_a_client_fail_untyped(
    place: tuple[str, str], group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "RETRIES", 1)
    monkeypatch.setattr(exchange, "RETRIES", 1)
    monkeypatch.setattr(key_owner, "KeyGenerator", QuickKeys)
    which, name = place
    for value in ODD[group::3]:
        honest, asked = Lists([answer(202, encoded(ANSWERS["POST /jobs"]))]), itertools.count()

        def reply(
            method: str,
            path: str,
            length: int,
            honest: Lists = honest,
            value: object = value,
            asked: Any = asked,
        ) -> bytes:
            if asked_for(method, path) == which:
                wrong = {name: value} if next(asked) < 3 else {}
                return answer(202, encoded(ANSWERS[which] | wrong))
            if "/result" in path:
                return refused("evaluation_failed", 422)
            return honest(method, path, length)

        with hostile(reply) as seen:
            try:
                with RemoteModel(seen.url, insecure=True).session() as session:
                    session.upload_keys()
                    session.infer(np.zeros(INPUTS))
            except Exception as error:  # noqa: BLE001 (its type is what is tested)
                assert_shown(error)
        assert next(asked) > 0


@pytest.mark.parametrize("delay", ODD, ids=lambda value: ascii(value)[:24])
def test_no_stated_delay_makes_a_client_fail_untyped(delay: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RETRIES", 0)
    monkeypatch.setattr(exchange, "RETRIES", 0)
    monkeypatch.setattr(exchange, "PATIENCE_S", 0.0)
    monkeypatch.setattr(key_owner, "KeyGenerator", QuickKeys)
    busy = answer(
        503, encoded({"error": {"type": "busy", "message": "no", "details": {"retry_after": delay}}})
    )
    with hostile(Lists([busy])) as seen, RemoteModel(seen.url, insecure=True).session() as session:
        session.upload_keys()
        with pytest.raises(KeywrightError) as refused_:
            session.infer(np.zeros(INPUTS))
        assert_shown(refused_.value)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize(
    ("stated", "seconds"),
    [("7", 7), ("", 0), ("-1", 0), ("1e3", 0), ("x" * 5000, 0), ("9" * 9, 7 * 86_400), ("9" * 5000, 0)],
    ids=lambda value: str(value)[:9],
)
def test_a_proxy_without_its_server_is_asked_again(status: int, stated: str, seconds: int) -> None:
    """nginx answers for a server that restarts, in HTML."""
    reply = answer(status, b"<html>away</html>", f"Retry-After: {stated}\r\n")
    with hostile(lambda *_: reply) as seen, pytest.raises(BusyError) as busy:
        exchange.Exchange(seen.url, None, direct=False).request("GET", "/v1/model")
    assert busy.value.retry_after == seconds
    assert_shown(busy.value)


@pytest.mark.parametrize("seed", range(4))
def test_an_upload_ends_whatever_the_server_calls_missing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server alternates two lists, or draws them: each time less may be missing than before."""
    monkeypatch.setattr(key_upload, "PAUSE_S", 0.0)
    total, drawn = 100_000, random.Random(seed)
    path = tmp_path / "keys"
    path.write_bytes(bytes(total))

    class Remote(exchange.Exchange):
        sent = asked = 0

        def ask(self, method: str, path: str, entry: object = None) -> dict[str, Any]:
            if "/direct" in path:
                raise StorageError("there is none", code="no_direct_uploads")
            self.asked += 1
            if seed == 0:
                return {"missing": [[0, total - self.asked % 2]]}
            if seed == 1:
                return {"missing": [[0, max(1, total - self.asked)]]}
            begin = drawn.randrange(total - 1)
            return {"missing": [[begin, drawn.randrange(begin + 1, total + 1)]]}

        def send(self, method: str, path: str, body: bytes) -> dict[str, Any]:
            self.sent += len(body)
            return {}

        def write(self, url: str, body: bytes) -> None:
            raise AssertionError

    server = Remote("http://localhost", None, direct=False)
    with pytest.raises(InvalidReplyError, match="accepts no more"):
        key_upload.send_file(server, "/v1/keys/x", path, None)
    assert server.sent <= (key_upload.SENDINGS + key_upload.RETRIES + 1) * total


def test_a_server_that_never_checks_keys_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_upload, "CHECK_S", 0.0)
    monkeypatch.setattr(key_upload, "send_file", lambda *arguments: None)
    waits = answer(200, encoded({"keys": IDENTIFIER, "ready": False, "missing": []}))
    with hostile(lambda *request: waits) as seen, pytest.raises(InvalidReplyError, match="not checked them"):
        key_upload.send_keys(exchange.Exchange(seen.url, None, direct=False), IDENTIFIER, tmp_path, None)


Answer = Callable[[str, str], tuple[int, bytes, int | None]]


@contextmanager
def answering(answer: Answer, model: str = "") -> Iterator[str]:
    """Run a server with arbitrary answers of a model: status, body, and an announced length."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self.rfile.read(length)
            status, body, announced = answer(self.command, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if announced is None else announced))
            self.send_header(framing.MODEL, model)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = reply

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, b"<html>", None), FormatError),
        ((200, b"{}", None), FormatError),
        ((200, b"x" * 100, 1000), UnreachableError),
        ((200, b"", 1 << 40), InvalidReplyError),
        ((404, b"<html>not found</html>", None), InvalidReplyError),
        (
            (500, b'{"error": {"type": "no_such_type", "message": "x", "details": {}}}', None),
            InvalidReplyError,
        ),
        ((500, b'{"error": 3}', None), InvalidReplyError),
        ((503, b'{"error": {"type": "busy", "message": "later", "details": {}}}', None), ServeError),
    ],
)
def test_servers_that_answer_garbage_are_named(
    reply: tuple[int, bytes, int | None], error: type[KeywrightError]
) -> None:
    with answering(lambda method, path: reply) as url, pytest.raises(error) as caught:
        RemoteModel(url, insecure=True)
    assert not isinstance(caught.value, FormatError) or caught.value.code == "manifest"


def test_a_peer_without_http_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"220 mail ready\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises((InvalidReplyError, UnreachableError)):
            RemoteModel(f"http://127.0.0.1:{listener.getsockname()[1]}", insecure=True)
        thread.join()


def test_malformed_ciphertexts_in_answers_are_refused(thin: Model, sample: Sample) -> None:
    identifier = "0" * 32
    foreign = kw.Decryptor(kw.SecretKey.generate(make_full().parameters)).encrypt([1.0]).expand().to_bytes()
    framed = len(foreign).to_bytes(4, "little") + foreign
    for result in (b"", b"\1\0\0\0x", framed[:1000], framed):

        def answer(method: str, path: str, result: bytes = result) -> tuple[int, bytes, int | None]:
            if path == "/v1/model":
                return 200, thin.manifest.encoded, None
            if path.endswith("/result"):
                return 200, result, None
            if "/jobs?" in path:
                return (
                    202,
                    json.dumps({"job": identifier, "state": "done", "done": 1, "total": 1}).encode(),
                    None,
                )
            return 200, json.dumps({"keys": identifier, "missing": [], "ready": True}).encode(), None

        with (
            answering(answer, thin.manifest.hash) as url,
            RemoteModel(url, insecure=True).session() as session,
            pytest.raises(InvalidReplyError, match=r"cannot be read|at most"),
        ):
            session.infer(sample)


def with_scale(data: bytes, old: float, scale: float) -> bytes:
    """Return a ciphertext that states another scale, with correct checksums."""
    end = 44 + int.from_bytes(data[32:36], "little")
    header = data[:end].replace(struct.pack("<d", old), struct.pack("<d", scale), 1)
    body = data[end + 4 : -4]
    crc = [struct.pack("<I", zlib.crc32(part)) for part in (header, header + body)]
    return header + crc[0] + body + crc[1]


def test_answers_of_a_scale_without_a_meaning_are_refused(
    tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(make_full(), tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        result = service.evaluations.result

        def forged(identifier: str, tenant: str = "", start: int = 0, length: int | None = None) -> bytes:
            (answer,) = framing.split(result(identifier), 1)
            ciphertext = kw.Ciphertext.from_bytes(answer, session.parameters)
            return framing.join([with_scale(answer, ciphertext.scale, 5e-324)])[start:][:length]

        assert np.isfinite(session.infer(sample)).all()
        service.evaluations.result = forged  # type: ignore[method-assign]
        monkeypatch.setattr(exchange, "WAIT_S", 0)
        with pytest.raises(InvalidReplyError, match="cannot be read: a coefficient"):
            session.infer(sample)
    service.close()


def test_a_refusal_is_raised_as_what_the_server_raised() -> None:
    for error in (
        UploadError("here", found=3, received=4),
        SecretRefusedError("no"),
        OtherModelError("no", found="a", expected="b"),
    ):
        raised = refusal(error.status, error.to_json())
        assert (type(raised), str(raised), raised.details) == (type(error), str(error), error.details)
    hostile = {"error": {"type": "wrong_offset", "message": "x", "details": {"received": "y", "message": 3}}}
    raised = refusal(409, hostile)
    assert isinstance(raised, UploadError)
    assert raised.code == "wrong_offset"
    assert raised.received == 0
