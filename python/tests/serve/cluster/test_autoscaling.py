"""The number of replicas on a real Ray cluster follows what there is to do."""

from __future__ import annotations

import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.service import ServiceLimits
from tests.serve.network import INPUTS, listening

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'keywright[cluster]'"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself, when it is imported, too
]

CLIENTS = 6


def test_replicas_come_under_load_and_go_without(
    full: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, then two while six clients ask without a pause, then one again; every answer is right."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    from keywright.serve.cluster import RayWorkers, Replicas
    from ray import is_initialized, serve

    # The package has a function of that name, too.
    module = sys.modules["keywright.serve.cluster.deployment"]
    monkeypatch.setattr(module, "UPSCALE_S", 1.0)
    monkeypatch.setattr(module, "DOWNSCALE_S", 3.0)

    def running() -> int:
        (application,) = serve.status().applications.values()
        return int(application.deployments["replicas"].replica_states.get("RUNNING", 0))

    def wait_for(count: int) -> None:
        deadline = time.monotonic() + 180
        while running() != count:
            assert time.monotonic() < deadline, (count, running(), errors)
            time.sleep(0.2)

    workers = RayWorkers("local", tmp_path, Replicas(1, 2, 1))
    service = Service(full, tmp_path / "state", workers=workers, limits=ServiceLimits(capacity=CLIENTS))
    errors: list[BaseException] = []
    stop, right = threading.Event(), [0] * CLIENTS

    def ask(client: int) -> None:
        try:
            with RemoteModel(server.url, insecure=True).session() as session:
                while not stop.is_set():
                    sample = np.random.default_rng(client * 1000 + right[client]).uniform(-1, 1, INPUTS)
                    assert np.abs(session.infer(sample) - run_clear(full.program, sample)).max() < 1e-3
                    right[client] += 1
        except BaseException as error:  # noqa: BLE001 - threads swallow them
            errors.append(error)

    try:
        service.prepare()
        assert running() == 1
        with listening(service) as server:
            threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
            for thread in threads:
                thread.start()
            try:
                wait_for(2)
                before = list(right)
                deadline = time.monotonic() + 60
                while not all(now > then for now, then in zip(right, before, strict=True)):
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            finally:
                stop.set()
                for thread in threads:
                    thread.join(60)
            assert errors == []
            wait_for(1)
    finally:
        service.close()
        workers.close()
    # Threads of Ray Serve report for a while. None of them may start another cluster.
    time.sleep(10)
    assert not is_initialized()
