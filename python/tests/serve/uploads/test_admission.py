"""Bytes and places are reserved at once, before the first byte, whatever way clients come in."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, LimitError, ServeError
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Service
from keywright.serve.service import ServiceLimits
from keywright.serve.tenants.quotas import Quota, Quotas
from keywright.serve.uploads import buffers as buffers_module
from keywright.serve.uploads.buffers import Buffers
from keywright.serve.uploads.part_writer import PartWriter
from tests.serve.http.test_http import ask, wait
from tests.serve.http.test_lockout import RESUMABLE, connect, create, opened, stalled
from tests.serve.network import INPUTS, WORKERS, listening
from tests.serve.storage.storage_servers import Place

Opening = Callable[[Service, str, int], object]


def piece(service: Service, name: str, offset: int) -> object:
    return service.begin_part(name, 0, 1000)


def part(service: Service, name: str, offset: int) -> object:
    return service.begin_part(name, offset, 1000, anywhere=True)


def empty_then_part(service: Service, name: str, offset: int) -> object:
    """The attack: a part without bytes in flight opened the quota for the next."""
    service.begin_part(name, offset + 5000, 0, anywhere=True)
    return service.begin_part(name, offset, 1000, anywhere=True)


def direct(service: Service, name: str, offset: int) -> object:
    return service.grant_part(name, offset, 1000)


WAYS: dict[str, Opening] = {"piece": piece, "part": part, "empty": empty_then_part, "direct": direct}


@pytest.mark.parametrize("limit", ["places", "bytes"])
def test_parallel_uploads_of_all_kinds_stay_within_the_limit(thin: Model, place: Place, limit: str) -> None:
    """The attacks: `--clients 4` gave 20 sets, and a quota of 10 MB stored 46 MB."""
    room, size = 4, thin.manifest.keys.size
    quotas = Quotas(Quota(bytes=room * size + 10)) if limit == "bytes" else None
    service = Service(
        thin,
        place.folder,
        workers=WORKERS,
        limits=ServiceLimits(capacity=room if limit == "places" else 64),
        quotas=quotas,
        addresses=place.addresses,
    )
    ways = [way for name, way in WAYS.items() if name != "direct" or service.direct.offered]
    openings = [
        (way, str(service.create_keys({"model": thin.manifest.hash})["keys"]), 2000 * number)
        for number in range(6)
        for way in ways
    ]
    gate, taken, refused = threading.Barrier(len(openings)), list[str](), list[ServeError]()
    held: list[object] = []

    def opens(way: Opening, name: str, offset: int) -> None:
        gate.wait()
        try:
            held.append(way(service, name, offset))
            taken.append(name)
        except ServeError as error:
            refused.append(error)

    threads = [threading.Thread(target=opens, args=opening) for opening in openings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == room
    assert len(refused) == len(openings) - room
    assert {type(error) for error in refused} == {BusyError if limit == "places" else LimitError}
    # What was given up is free again.
    for each in held:
        if isinstance(each, PartWriter):
            each.close()
    for name in taken:
        service.direct.forget(name)
    again = str(service.create_keys({"model": thin.manifest.hash})["keys"])
    service.begin_part(again, 0, 1000).close()
    service.close()


def test_a_part_without_bytes_takes_no_place_and_opens_none(thin: Model, tmp_path: Path) -> None:
    size = thin.manifest.keys.size
    service = Service(
        thin, tmp_path, workers=WORKERS, limits=ServiceLimits(capacity=1), quotas=Quotas(Quota(bytes=size))
    )
    first, second = (str(service.create_keys({"model": thin.manifest.hash})["keys"]) for _ in range(2))
    for name in (first, second):
        service.begin_part(name, 2000, 0, anywhere=True)
    service.begin_part(first, 0, 1000, anywhere=True)
    with pytest.raises(ServeError) as caught:
        service.begin_part(second, 0, 1000, anywhere=True)
    assert caught.value.code in ("busy", "quota_bytes")
    service.close()


def test_messages_that_arrive_count_before_they_are_here(thin: Model, tmp_path: Path, key_file: Path) -> None:
    """The attack: 400 bodies of 3.1 MB that never ended took 1.3 GB."""
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        jobs = f"/v1/keys/{session._identifier}/jobs"
        length = service.request_bytes()
        start = stalled("POST", jobs, length) + b"x" * (length // 2)
        with opened(server, 40, start):
            wait(lambda: len(service.jobs._reserved) == 8)
            time.sleep(0.2)
            assert len(service.jobs._reserved) == 8
            assert service.jobs.stored("") == 8 * length
            assert service.buffers.used == 8 * length
            status, reply, headers = ask(server, "POST", jobs, b"x")
            assert (status, reply["error"]["type"]) == (503, "busy")
            assert int(headers["retry-after"]) >= 1
        wait(lambda: not service.jobs._reserved and service.buffers.used == 0)
        assert np.isfinite(session.infer(np.zeros(INPUTS))).all()
    service.close()


def test_bytes_of_messages_that_arrive_are_within_the_quota(thin: Model, tmp_path: Path) -> None:
    size = thin.manifest.keys.size
    service = Service(thin, tmp_path, workers=WORKERS, quotas=Quotas(Quota(bytes=size + 180_000)))
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        name = str(session._identifier)
        gate, said = threading.Barrier(6), list[object]()

        def expects() -> None:
            gate.wait()
            try:
                with service.evaluations.admit(name, 40_000):
                    said.append(True)
                    time.sleep(0.3)
            except LimitError as error:
                said.append(error)

        threads = [threading.Thread(target=expects) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said.count(True) == 2
    service.close()


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/v1/keys/0/jobs", "unknown_keys"),
        ("PUT", "/v1/keys/0/parts?offset=0", "unknown_keys"),
        ("PATCH", "/v1/keys/0", "unknown_keys"),
        ("POST", "{keys}/jobs", "keys_incomplete"),
        ("POST", "{keys}/jobs?model=other", "other_model"),
    ],
)
def test_inadmissible_requests_are_refused_before_their_bodies(
    thin: Model, tmp_path: Path, method: str, path: str, code: str
) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server:
        keys = create(server, service)
        headers = RESUMABLE if method == "PATCH" else {}
        start = stalled(method, path.format(keys=keys), 4000, headers)
        with opened(server, 1, start) as (connection,):
            connection.settimeout(1.0)
            reply = connection.recv(1 << 12)
            assert f'"{code}"'.encode() in reply or code.encode() in reply + connection.recv(1 << 12)
            assert b"connection: close" in reply
    service.close()


def test_memory_for_bodies_is_shared_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers, lost = Buffers(100), list[str]()

    def share(holder: str, size: int) -> contextlib.AbstractContextManager[object]:
        return buffers.share(holder, size, lambda: lost.append(holder))

    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(share("evil", 10))
        with pytest.raises(BusyError):
            stack.enter_context(share("evil", 1))
        assert lost == []
        mine = stack.enter_context(share("honest", 25))
        assert lost == ["evil"] * 3
        assert buffers.used == 95
        # What has arrived is not taken away, and nobody takes from one who has less.
        mine.complete = True  # type: ignore[attr-defined]
        with pytest.raises(BusyError):
            stack.enter_context(share("greedy", 90))
        stack.enter_context(share("other", 35))
        assert lost == ["evil"] * 6
    assert buffers.used == 0
    # Among equals everybody has a turn.
    with share("one", 50), share("two", 50):
        with pytest.raises(BusyError), share("three", 50):
            pass
        monkeypatch.setattr(buffers_module, "TURN_S", 0.0)
        with share("three", 50):
            assert lost[6:] == ["one"]


def test_a_body_that_loses_its_memory_is_refused(thin: Model, tmp_path: Path, key_file: Path) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    service.buffers.most = 1 << 18
    data = key_file.read_bytes()
    with listening(service) as server:
        theirs, mine = create(server, service), create(server, service)
        begin = stalled("PUT", f"{theirs}/parts?offset=0", 1 << 18) + data[:1000]
        with connect(server, "127.0.0.66") as connection:
            connection.sendall(begin)
            wait(lambda: service.store.get(theirs.rpartition("/")[2]).busy())
            status, said, _ = ask(server, "PUT", f"{mine}/parts?offset=0", data[: 1 << 16])
            assert (status, said["received"]) == (200, 1 << 16)
            assert connection.recv(1 << 12).startswith(b"HTTP/1.1 503")
        # The bytes that arrived are kept.
        assert ask(server, "GET", theirs)[1]["received"] == 1000
    service.close()


def test_the_address_with_the_most_sets_loses_one(thin: Model, tmp_path: Path, key_file: Path) -> None:
    """The attack: one client without an account took all 16 places, and emptied those of others."""
    service = Service(thin, tmp_path, workers=WORKERS, limits=ServiceLimits(capacity=4))
    data = key_file.read_bytes()[:1000]

    def begins(holder: str) -> str:
        name = str(service.create_keys({"model": thin.manifest.hash}, address=holder)["keys"])
        with contextlib.closing(service.begin_part(name, 0, 1000)) as taken:
            taken.append(data)
        return name

    evil = [begins("evil") for _ in range(4)]
    with pytest.raises(BusyError):
        begins("evil")
    honest = [begins("honest"), begins("other")]
    there = {uploaded.identifier for uploaded in service.store.all() if uploaded.placed}
    assert there == {*evil[2:], *honest}
    with pytest.raises(BusyError):
        begins("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keywright.serve.uploads.eviction.MAX_EMPTY", 8)
        mine = str(service.create_keys({"model": thin.manifest.hash}, address="honest")["keys"])
        for _ in range(50):
            service.create_keys({"model": thin.manifest.hash}, address="evil")
        assert service.keys(mine)["received"] == 0
    service.close()


def test_message_of_a_length_that_was_not_announced(thin: Model, tmp_path: Path) -> None:
    """A message is what was admitted: framing tells the rest."""
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        jobs = f"/v1/keys/{session._identifier}/jobs"
        status, reply, _ = ask(server, "POST", jobs, framing.join([b"x" * 77]))
        assert (status, reply["error"]["type"]) == (400, "invalid_object")
        assert not service.jobs._reserved
    service.close()
