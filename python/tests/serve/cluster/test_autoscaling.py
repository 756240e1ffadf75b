"""The number of replicas on a real Ray cluster follows what there is to do."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from keywright.model import Model
from keywright.serve import Service
from keywright.serve.service import ServiceLimits
from tests.serve.cluster.asking import asking
from tests.serve.cluster.conftest import start
from tests.serve.network import listening

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'keywright[cluster]'"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself, when it is imported, too
]

CLIENTS = 6


def test_replicas_come_under_load_and_go_without(
    full: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, then two while six clients ask without a pause, then one again; every answer is right."""
    from keywright.serve.cluster import Replicas
    from ray import is_initialized, serve

    # The package has a function of that name, too.
    module = sys.modules["keywright.serve.cluster.deployment"]
    monkeypatch.setattr(module, "UPSCALE_S", 1.0)
    monkeypatch.setattr(module, "DOWNSCALE_S", 3.0)

    def running() -> int:
        (application,) = serve.status().applications.values()
        return int(application.deployments["replicas"].replica_states.get("RUNNING", 0))

    workers = start(tmp_path, Replicas(1, 2, 1))
    service = Service(full, tmp_path / "state", workers=workers, limits=ServiceLimits(capacity=CLIENTS))
    try:
        service.prepare()
        assert running() == 1
        with listening(service) as server:
            with asking(server.url, full, CLIENTS) as clients:
                clients.wait_for(lambda: running() == 2)
                clients.wait_for_answers()
            while running() != 1:
                time.sleep(0.2)
    finally:
        service.close()
        workers.close()
    # Threads of Ray Serve report for a while. None of them may start another cluster.
    time.sleep(10)
    assert not is_initialized()
