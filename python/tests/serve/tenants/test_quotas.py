"""Quotas of tenants, and the answers beyond them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client import exchange as exchange_module
from keywright.client.exchange import RETRIES
from keywright.errors.service import BusyError, ConfigurationError, LimitError, ServeError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.service import ServiceLimits
from keywright.serve.tenants import quotas as quotas_module
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.quotas import FORMAT, Quota, Quotas, Usage
from keywright.serve.uploads.part_writer import PartWriter
from tests.serve.http.test_http import ask
from tests.serve.network import WORKERS, listening
from tests.serve.storage.storage_servers import Place

Sample = np.ndarray[Any, np.dtype[np.float64]]


def written(path: Path, **entry: object) -> Path:
    path.write_text(json.dumps({"format": FORMAT, **entry}))
    return path


def test_a_file_sets_the_quotas_of_tenants(tmp_path: Path) -> None:
    tenants = {"a": {"bytes": 5}, "b": {"seconds": None}, "c": {"bytes": 0, "seconds": 0.5}}
    quotas = Quotas.load(written(tmp_path / "q", default={"bytes": 9, "seconds": 60}, tenants=tenants))
    assert quotas.of("a") == Quota(5, 60.0)
    assert quotas.of("b") == Quota(9, None)
    assert quotas.of("c") == Quota(0, 0.5)
    assert quotas.of("d") == Quota(9, 60.0)
    assert Quotas.load(written(tmp_path / "q")).of("a") == Quota(None, None)


ENTRIES: tuple[dict[str, object], ...] = (
    {"default": []},
    {"default": {"byte": 1}},
    {"default": {"bytes": -1}},
    {"default": {"bytes": 1.5}},
    {"default": {"bytes": True}},
    {"default": {"seconds": "1"}},
    {"default": {"seconds": -0.1}},
    {"default": {"seconds": float("nan")}},
    {"default": {"seconds": float("inf")}},
    {"tenants": []},
    {"tenants": {"a": 1}},
    {"tenant": {}},
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 9000,
        *(json.dumps({"format": FORMAT, **entry}) for entry in ENTRIES),
    ],
)
def test_malformed_quota_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "q").write_text(text)
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "quotas_file"):
        Quotas.load(tmp_path / "q")
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "quotas_file"):
        Quotas.load(tmp_path / "none")


def test_seconds_count_per_day_and_survive_the_process(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    day = 20_000 * quotas_module.DAY_S
    now = day + 3600.0
    monkeypatch.setattr(time, "time", lambda: now)
    quotas = Quotas(Quota(seconds=10.0), {"free": Quota()})
    usage = Usage(quotas, place.open().records)
    usage.use("a", 9.0)
    usage.require_seconds("a")
    usage.use("a", 2.5)
    usage.flush()
    for counted in (usage, Usage(quotas, place.open().records)):
        with pytest.raises(LimitError, check=lambda error: error.code == "quota_seconds") as refused:
            counted.require_seconds("a")
        assert refused.value.details == {"used": 11.5, "maximum": 10.0, "retry_after": 23 * 3600}
        assert refused.value.headers == {"Retry-After": str(23 * 3600)}
        counted.require_seconds("b")
    last = Usage(quotas, place.open().records)
    last.use("free", 1e6)
    last.require_seconds("free")
    now = day + 24 * 3600.0
    last.require_seconds("a")


@contextmanager
def served(model: Model, folder: Path, quotas: Quotas) -> Iterator[tuple[Server, Service, Mapping[str, str]]]:
    """Run a server with tenants; yields their API keys."""
    path = folder / "accounts"
    keys = {name: add(path, name) for name in ("a", "b")}
    service = Service(
        model,
        folder / "state",
        workers=WORKERS,
        accounts=Accounts.load(path),
        limits=ServiceLimits(capacity=64),
        quotas=quotas,
    )
    with listening(service) as server:
        yield server, service, keys
    service.close()


def test_bytes_of_a_tenant_are_bounded(thin: Model, key_file: Path, tmp_path: Path, sample: Sample) -> None:
    """One and a half key sets: there is room for one set and a message."""
    size = thin.manifest.keys.size
    with served(thin, tmp_path, Quotas(Quota(bytes=size * 3 // 2))) as (server, service, keys):
        headers = {"Authorization": f"Bearer {keys['a']}"}
        body = json.dumps({"model": thin.manifest.hash}).encode()
        opening = [ask(server, "POST", "/v1/keys", body, headers)[1]["keys"] for _ in range(3)]
        data = key_file.read_bytes()
        # Sets without a byte do not count; the first byte counts as the whole set.
        assert ask(server, "PUT", f"/v1/keys/{opening[0]}/parts?offset=0", data[:1], headers)[0] == 200
        for method, path in (("PUT", f"/v1/keys/{opening[1]}/parts?offset=0"), ("POST", "/v1/keys")):
            status, reply, answered = ask(
                server, method, path, data[:1] if method == "PUT" else body, headers
            )
            assert (status, reply["error"]["type"]) == (413, "quota_bytes")
            details = reply["error"]["details"]
            assert (details["value"], details["maximum"]) == (2 * size, size * 3 // 2)
            assert 3590 <= details["retry_after"] <= 3601
            assert answered["retry-after"] == str(details["retry_after"])
        # A started upload continues, and other tenants have their own quota.
        assert ask(server, "PUT", f"/v1/keys/{opening[0]}/parts?offset=1", data[1:100], headers)[0] == 200
        other = {"Authorization": f"Bearer {keys['b']}"}
        assert ask(server, "POST", "/v1/keys", body, other)[0] == 201
        # After it is gone there is room.
        assert ask(server, "DELETE", f"/v1/keys/{opening[0]}", None, headers)[0] == 200
        with RemoteModel(server.url, key=keys["a"], insecure=True).session() as session:
            expected = run_clear(thin.program, sample)
            assert np.abs(session.infer(sample) - expected).max() < 1e-3
        assert not any(each.placed for each in service.store.of("a"))


def test_bytes_of_evaluations_count(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A request that waits for its answer leaves nothing.
    monkeypatch.setattr(exchange_module, "WAIT_S", 0)
    size = thin.manifest.keys.size
    with served(thin, tmp_path, Quotas(Quota(bytes=size + 100))) as (server, service, keys):
        session = RemoteModel(server.url, key=keys["a"], insecure=True).session()
        session.upload_keys()
        with pytest.raises(LimitError, check=lambda error: error.code == "quota_bytes") as refused:
            session.infer(sample)
        assert refused.value.maximum == size + 100
        assert service.jobs.stored("a") == 0
        service._usage.quotas = Quotas(Quota(bytes=2 * size))
        session.infer(sample)
        # The answer is kept a minute after it was fetched.
        assert 0 < service.jobs.stored("a") < size
        session.close()
        assert service.jobs.stored("a") == 0


def test_parallel_starts_of_sets_all_count(thin: Model, key_file: Path, tmp_path: Path) -> None:
    size, data = thin.manifest.keys.size, key_file.read_bytes()
    service = Service(
        thin,
        tmp_path,
        workers=WORKERS,
        limits=ServiceLimits(capacity=64),
        quotas=Quotas(Quota(bytes=3 * size + 10)),
    )
    upload = [service.store.create(thin.manifest.hash) for _ in range(24)]
    gate, taken = threading.Barrier(len(upload)), list[PartWriter | ServeError]()

    def begin(number: int) -> None:
        gate.wait()
        try:
            taken.append(service.begin_part(upload[number].identifier, 0, 100))
        except ServeError as error:
            taken.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(len(upload))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pieces = [piece for piece in taken if isinstance(piece, PartWriter)]
    assert len(pieces) == 3
    assert all(
        isinstance(error, LimitError) and error.code == "quota_bytes"
        for error in taken
        if error not in pieces
    )
    for piece in pieces:
        piece.append(data[:100])
        piece.close()
    service.close()


def test_a_set_above_the_quota_has_no_retry(thin: Model, tmp_path: Path) -> None:
    with served(thin, tmp_path, Quotas(Quota(bytes=1000))) as (server, _, keys):
        body = json.dumps({"model": thin.manifest.hash}).encode()
        headers = {"Authorization": f"Bearer {keys['a']}"}
        status, reply, answered = ask(server, "POST", "/v1/keys", body, headers)
        assert (status, reply["error"]["details"]["retry_after"]) == (413, 0)
        assert "retry-after" not in answered
        assert "larger quota" in reply["detail"]


def test_processor_seconds_of_a_tenant_are_bounded(thin: Model, tmp_path: Path, sample: Sample) -> None:
    """Seconds of all threads of the worker, including cancelled and failed evaluations."""
    with served(thin, tmp_path, Quotas(Quota(seconds=0.001))) as (server, service, keys):
        session = RemoteModel(server.url, key=keys["a"], insecure=True).session()
        began = time.monotonic()
        session.infer(sample)
        used = service._usage.seconds("a")
        assert 0.001 < used < 64 * (time.monotonic() - began)
        with pytest.raises(LimitError, check=lambda error: error.code == "quota_seconds") as refused:
            session.infer(sample)
        assert refused.value.maximum == 0.001
        assert 0 < refused.value.retry_after <= 86_400
        # Other requests are answered, and other tenants have their own day.
        assert session.seen()["objects"]
        with RemoteModel(server.url, key=keys["b"], insecure=True).session() as other:
            other.infer(sample)
        assert service._usage.seconds("a") == used
        service._usage.flush()
        assert service._storage.records.used(service._usage._day)["a"] == pytest.approx(used)
        session.close()


def test_failed_evaluations_count_their_seconds(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = BusyError("no")
    refused.processor = 2.5
    with served(thin, tmp_path, Quotas()) as (server, service, keys):
        session = RemoteModel(server.url, key=keys["a"], insecure=True).session()
        session.upload_keys()

        def refuse(*arguments: object, **named: object) -> object:
            raise refused

        with monkeypatch.context() as patched:
            patched.setattr("keywright.client.exchange.LONGEST_PAUSE_S", 0.1)
            for worker in WORKERS.all:
                patched.setattr(worker, "order", refuse)
            with pytest.raises(ServeError):
                session.infer(sample)
        # As often as it was asked again.
        assert service._usage.seconds("a") == 2.5 * (RETRIES + 1)
        session.close()


def test_a_worker_reports_its_processor_seconds(thin: Model, tmp_path: Path) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    with WORKERS.one() as worker:
        end = worker.order(do="load", **service.evaluations.execution.description(thin.manifest.hash))
        assert end["processor"] >= 0.0
        with pytest.raises(ServeError) as refused:
            worker.order(do="check", job="a", path=str(tmp_path / "none"), parameters="")
        assert refused.value.processor >= 0.0
    service.close()
