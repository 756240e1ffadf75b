"""Uploads of keys in parts."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from keywright.client import RemoteModel, key_upload
from keywright.client.key_upload import IN_FLIGHT, send_file
from keywright.errors.service import InvalidReplyError, StorageError, UnreachableError
from keywright.serve import Server, Service


@pytest.fixture
def remote(server: Server, monkeypatch: pytest.MonkeyPatch) -> RemoteModel:
    monkeypatch.setattr(key_upload, "PART_BYTES", 100_000)
    monkeypatch.setattr(key_upload, "PAUSE_S", 0.001)
    return RemoteModel(server.url, insecure=True)


def begin(remote: RemoteModel) -> str:
    return f"/v1/keys/{remote.ask('POST', '/v1/keys', {'model': remote.manifest.hash})['keys']}"


def test_several_parts_are_in_flight(
    remote: RemoteModel, service: Service, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(IN_FLIGHT)
    sent, send = [], remote.send

    def first_wait(method: str, path: str, body: bytes) -> object:
        sent.append(len(body))
        if len(sent) <= IN_FLIGHT:
            together.wait()
        return send(method, path, body)

    monkeypatch.setattr(remote, "send", first_wait)
    told: list[int] = []
    keys = begin(remote)
    send_file(remote, keys, key_file, lambda done, total: told.append(done))
    assert told == sorted(told)
    assert told[-1] == sum(sent) == key_file.stat().st_size
    assert remote.ask("GET", keys)["ready"] is True
    remote.ask("DELETE", keys)


def test_interrupted_parts_are_sent_again(
    remote: RemoteModel, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random.seed(1)
    lost, send = 0, remote.send

    def breaking(method: str, path: str, body: bytes) -> object:
        nonlocal lost
        # Parts that never arrived, and parts whose answer was lost.
        fate = random.random()
        if fate < 0.2:
            lost += 1
            raise UnreachableError("it broke")
        answer = send(method, path, body)
        if fate > 0.8:
            lost += 1
            raise UnreachableError("it broke")
        return answer

    monkeypatch.setattr(remote, "send", breaking)
    keys = begin(remote)
    send_file(remote, keys, key_file, None)
    assert lost > 3
    assert remote.ask("GET", keys)["ready"] is True
    remote.ask("DELETE", keys)


def test_a_server_that_stays_away_or_lies_is_an_error(
    remote: RemoteModel, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(method: str, path: str, body: bytes) -> object:
        raise UnreachableError("nobody is there")

    keys = begin(remote)
    with monkeypatch.context() as patched:
        patched.setattr(remote, "send", away)
        with pytest.raises(UnreachableError):
            send_file(remote, keys, key_file, None)
    size = key_file.stat().st_size
    monkeypatch.setattr(remote, "send", lambda *_: {})
    for missing in (None, [[0]], [[5, 5]], [[0, size + 1]], [[9, 12], [3, 5]], [["0", "9"]], [[0, 1]] * 2000):
        monkeypatch.setattr(remote, "ask", lambda *_, missing=missing: {"missing": missing})
        with pytest.raises(InvalidReplyError, match="which bytes"):
            send_file(remote, keys, key_file, None)
    monkeypatch.setattr(remote, "ask", lambda *_: {"missing": [[0, size]]})
    with pytest.raises(InvalidReplyError, match="no address to write a part"):
        send_file(remote, keys, key_file, None)

    def no_direct_uploads(method: str, path: str, *_: object) -> dict[str, object]:
        if "/direct" in path:
            raise StorageError("there is no object storage", code="no_direct_uploads")
        return {"missing": [[0, size]]}

    monkeypatch.setattr(remote, "ask", no_direct_uploads)
    with pytest.raises(InvalidReplyError, match="accepts no more than 0"):
        send_file(remote, keys, key_file, None)
