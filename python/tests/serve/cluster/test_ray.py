"""Replicas on a real Ray cluster, started here: routing, and losses when a replica is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import ServeError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.service import ServiceLimits
from tests.serve.cluster.asking import asking
from tests.serve.cluster.conftest import LATE, start
from tests.serve.network import INPUTS, listening

if TYPE_CHECKING:
    from keywright.serve.cluster import RayWorkers

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'keywright[cluster]'"),
    pytest.mark.filterwarnings("ignore"),  # warnings of Ray itself, also during its import
]

Sample = np.ndarray[Any, np.dtype[np.float64]]
REPLICAS, CLIENTS = 2, 4


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayWorkers]:
    from keywright.serve.cluster import Replicas

    workers = start(tmp_path_factory.mktemp("name"), Replicas(REPLICAS, REPLICAS, 1))
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def service(full: Model, workers: RayWorkers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(
        full, tmp_path_factory.mktemp("state"), workers=workers, limits=ServiceLimits(capacity=16)
    )
    service.prepare()
    yield service
    service.close()


@pytest.fixture(scope="module")
def server(service: Service) -> Iterator[Server]:
    with listening(service) as server:
        yield server


def loads(service: Service) -> dict[str, float]:
    """Return the evaluations by where their keys were."""
    lines = [line for line in service.measure().splitlines() if line.startswith("keywright_key_loads_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


def said(workers: RayWorkers, method: str) -> list[dict[str, Any]]:
    """Return the answers of all replicas."""
    answers: list[dict[str, Any]] = workers.handle.broadcast(method).results()
    return answers


def sample(seed: int) -> Sample:
    return np.random.default_rng(seed).uniform(-1, 1, INPUTS)


def test_keys_stay_where_they_are(server: Server, service: Service, full: Model) -> None:
    before = loads(service)
    sessions = [RemoteModel(server.url, insecure=True).session() for _ in range(CLIENTS)]
    for number in range(3 * CLIENTS):
        values = sessions[number % CLIENTS].infer(sample(number))
        assert np.abs(values - run_clear(full.program, sample(number))).max() < 1e-3
    after = loads(service)
    # A client with successive evaluations stays with the replica that has its keys.
    assert after["disk"] - before.get("disk", 0) == CLIENTS
    assert after["memory"] - before.get("memory", 0) == 2 * CLIENTS
    for session in sessions:
        session.close()


def test_a_replica_that_is_killed_loses_no_job(server: Server, full: Model, workers: RayWorkers) -> None:
    with asking(server.url, full, CLIENTS) as clients:
        clients.wait_for_answers()
        for _ in range(2):
            os.kill(a_process(workers), signal.SIGKILL)
            clients.wait_for_answers()


def test_jobs_of_an_earlier_process_wait_until_the_replicas_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keywright.serve.cluster import RayWorkers, Replicas, ray_workers

    cluster = SimpleNamespace(
        start=lambda **options: None,
        status=lambda: SimpleNamespace(applications={}),
        run=lambda replica, **options: "handle",
    )
    monkeypatch.setattr(ray_workers, "ray", SimpleNamespace(init=lambda *address, **options: None))
    monkeypatch.setattr(ray_workers, "serve", cluster)
    workers = RayWorkers("local", tmp_path, Replicas(1, 1, 1))
    lent: list[object] = []

    def borrow() -> None:
        with workers.one() as worker:
            lent.append(worker)

    borrower = threading.Thread(target=borrow, daemon=True)
    borrower.start()
    borrower.join(0.3)
    assert borrower.is_alive()
    workers.prepare([])
    borrower.join()
    assert len(lent) == 1


def test_a_cluster_that_does_not_start_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises a plain exception, where its processes take more than 30 s."""
    from keywright.serve.cluster import RayWorkers, Replicas, ray_workers

    def late(*address: str, **options: object) -> None:
        raise Exception(f"The current node {LATE}.")

    monkeypatch.setattr(ray_workers, "ray", SimpleNamespace(init=late))
    with pytest.raises(ServeError, match=f"cannot be reached: The current node {LATE}"):
        RayWorkers("local", tmp_path, Replicas(1, 1, 1))


def a_process(workers: RayWorkers) -> int:
    """Return the process of a replica that answers. Ray may still list the one that was killed before."""
    while True:
        asked = workers.handle.broadcast("record_replica_metadata")
        for answer in asked.results(return_exceptions=True):
            if isinstance(answer, dict):
                return int(answer["pid"])
        time.sleep(0.1)


def test_keys_that_are_deleted_are_let_go_everywhere(
    server: Server, service: Service, workers: RayWorkers
) -> None:
    with RemoteModel(server.url, insecure=True).session() as session:
        session.infer(sample(1))
        identifier = max(service.store.complete(), key=lambda keys: keys.used).identifier
        assert any(identifier in stats["resident"] for stats in said(workers, "record_routing_stats"))
        service.delete_keys(identifier)
    for stats in said(workers, "record_routing_stats"):
        assert identifier not in stats["resident"]


def test_the_operator_sees_the_machines_of_the_cluster(service: Service) -> None:
    own, node = service.overview().machines
    assert own.workers == 0
    assert node.processors >= 1
    assert node.workers is None
