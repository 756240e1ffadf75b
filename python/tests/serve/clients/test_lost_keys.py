"""Servers that lose keys: an honest client is served again, and a hostile server gets a bounded number of
bytes and no other keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright._units import format_bytes
from keywright.client import RemoteModel, key_upload
from keywright.client.connection import within
from keywright.client.exchange import Exchange
from keywright.client.key_owner import KEY_SETS, UPLOADS
from keywright.errors import MissingKeyError
from keywright.errors.service import BusyError, LimitError, UnknownKeysError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from tests.serve.hostile import IDENTIFIER, answer, encoded, hostile, refused
from tests.serve.network import INPUTS, WORKERS

Sample = np.ndarray[Any, np.dtype[np.float64]]
EVICTIONS = 5
"""Losses between the requests of one session."""


@pytest.mark.parametrize("cause", ["deleted before the request", "damaged while it waits"])
def test_lost_keys_are_sent_again(
    server: Server, service: Service, thin: Model, sample: Sample, cause: str
) -> None:
    """The attack: a session whose keys were evicted twice got no more answers."""
    expected, digests = run_clear(thin.program, sample), set[str]()
    with RemoteModel(server.url, insecure=True).session() as session:
        for _ in range(EVICTIONS):
            assert np.abs(session.infer(sample) - expected).max() < 1e-3
            assert session._identifier is not None
            uploaded = service.store.get(session._identifier)
            digests.add(str(session.remote.ask("GET", f"/v1/keys/{session._identifier}")["digest"]))
            if cause.startswith("deleted"):
                service.delete_keys(session._identifier)
                with pytest.raises(UnknownKeysError):
                    session.seen()
                continue
            # On the disk; the worker's copy is dropped with it.
            with service.store.file(uploaded) as path:
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
            WORKERS.forget(uploaded.identifier)
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        folder = session._folder
        assert [file.name for file in folder.iterdir()] == ["keys.kw"]
    # Each other set of one secret would tell the server more of it.
    assert len(digests) == 1
    assert not folder.exists()


def test_keys_that_are_there_are_not_sent_again(server: Server, service: Service, sample: Sample) -> None:
    sent: list[int] = []
    with RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        keys = session._identifier
        session.upload_keys(lambda done, total: sent.append(done))
        assert (session._identifier, sent) == (keys, [])
        service.delete_keys(str(keys))
        session.upload_keys()
        assert session._identifier != keys


def test_a_closed_session_sends_no_keys(server: Server, sample: Sample) -> None:
    session = RemoteModel(server.url, insecure=True).session()
    session.upload_keys()
    session.close()
    sent: list[int] = []
    calls: tuple[Callable[[], object], ...] = (
        lambda: session.upload_keys(lambda done, total: sent.append(done)),
        lambda: session.infer(sample),
    )
    for call in calls:
        with pytest.raises(MissingKeyError, match=r"closed.*open a new session") as refused:
            call()
        assert refused.value.code == "closed"
    assert (sent, session._key_sets, session._identifier) == ([], 1, None)
    session.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_the_end_of_a_forked_process_keeps_the_keys(server: Server, sample: Sample) -> None:
    session = RemoteModel(server.url, insecure=True).session()
    session.upload_keys()
    file = session._key_file
    child = os.fork()
    if child == 0:
        del session
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert file.exists()
    del session
    assert not file.parent.exists()


def test_threads_replace_lost_keys_once(
    server: Server, service: Service, thin: Model, sample: Sample
) -> None:
    """A thread that hears late of a loss must not drop the keys that another has sent since."""
    expected = run_clear(thin.program, sample)
    with RemoteModel(server.url, insecure=True).session() as session, ThreadPoolExecutor(4) as threads:
        session.upload_keys()
        for _ in range(3):
            service.delete_keys(str(session._identifier))
            before = len(service.store)
            for values in threads.map(session.infer, [sample] * 8):
                assert np.abs(values - expected).max() < 1e-3
            assert len(service.store) == before + 1


class Loser:
    """Takes keys, and says at a point that it has lost them.

    Args:
        model: that it serves.
        lost: where it says so.
    """

    def __init__(self, model: Model, lost: str) -> None:
        self._model, self._lost, self.begun, self._received = model, lost, 0, 0

    def __call__(self, method: str, path: str, length: int) -> bytes:
        """Answer a request."""
        total = self._model.manifest.keys.size
        if path == "/v1/models":
            return answer(200, encoded({"models": []}))
        if path.startswith("/v1/model"):
            return answer(200, self._model.manifest.encoded)
        if "/direct" in path:
            return refused("no_direct_uploads")
        if (method, path) == ("POST", "/v1/keys"):
            self.begun, self._received = self.begun + 1, 0
            return answer(201, encoded({"keys": f"{self.begun:032x}"}))
        self._received += length * (method == "PUT")
        where = {"PUT": "a piece", "GET": "a question", "POST": "an evaluation"}.get(method, "an end")
        if where == self._lost or (self._lost == "the last question" and self._received >= total):
            return refused("unknown_keys")
        missing = [] if self._received >= total else [[0, total]]
        return answer(200, encoded({"keys": IDENTIFIER, "missing": missing, "ready": not missing}))


@pytest.mark.parametrize("lost", ["a piece", "a question", "the last question", "an evaluation"])
def test_a_server_that_loses_all_keys_gets_a_bounded_number_of_bytes(thin: Model, lost: str) -> None:
    """The attack: up to nine sets of one secret key in a request."""
    total, loser = thin.manifest.keys.size, Loser(thin, lost)
    said = f"{UPLOADS} times, {format_bytes(total)} each"
    with hostile(loser) as seen, RemoteModel(seen.url, insecure=True).session() as session:
        for call in range(1, 4):
            with pytest.raises(UnknownKeysError, match=said):
                session.infer(np.zeros(INPUTS))
            assert loser.begun == UPLOADS * call
        if lost != "an evaluation":
            with pytest.raises(UnknownKeysError, match=said):
                session.upload_keys()
            assert loser.begun == UPLOADS * 4
    pieces = [body for method, path, body in seen.requests if method == "PUT"]
    assert sum(map(len, pieces)) <= loser.begun * total
    firsts = {body for method, path, body in seen.requests if method == "PUT" and path.endswith("offset=0")}
    assert len(firsts) == (lost != "a question")


def test_models_that_need_other_keys_get_two_sets_of_a_secret(server: Server, sample: Sample) -> None:
    with RemoteModel(server.url, insecure=True).session() as session:
        for _ in range(KEY_SETS):
            assert np.isfinite(session.infer(sample)).all()
            session._drop_keys()
        with pytest.raises(
            LimitError, match="open a new session", check=lambda error: error.code == "demand"
        ) as over:
            session.infer(sample)
    assert (over.value.what, over.value.value, over.value.maximum) == ("key_sets", KEY_SETS + 1, KEY_SETS)


@pytest.mark.parametrize("stated", [0, 3, 100, 121, 10_000])
def test_an_upload_pauses_as_long_as_the_server_asks(
    stated: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pauses = tmp_path / "keys", list[float]()
    path.write_bytes(bytes(10))
    monkeypatch.setattr("keywright.client.key_upload.time.sleep", pauses.append)

    class Full(Exchange):
        tries = 0

        def __init__(self) -> None:
            pass

        def ask(
            self, method: str, path: str, entry: Mapping[str, object] | None = None
        ) -> Mapping[str, object]:
            if method == "POST":
                self.tries += 1
                raise BusyError("full", retry_after=stated)
            return {"missing": [[0, 10]] if self.tries < 4 else []}

    server = Full()
    if stated > key_upload.PATIENCE_S:
        with pytest.raises(BusyError):
            key_upload.send_file(server, "/v1/keys/x", path, None)
        assert (server.tries, pauses) == (1, [])
        return
    key_upload.send_file(server, "/v1/keys/x", path, None)
    assert len(pauses) == server.tries == 4
    assert min(pauses) >= stated
    pauses.clear()
    server.tries = 0
    with within(1.0):
        key_upload.send_file(server, "/v1/keys/x", path, None)
    # The end of the call is earlier.
    assert max(pauses) <= 1.0
