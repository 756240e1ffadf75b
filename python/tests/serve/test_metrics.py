"""What the service counts, read as Prometheus reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.serve import Model, RemoteModel, Server, Service
from keywright.serve.errors import BusyError, UnknownKeysError
from keywright.serve.metrics import HELP, PREFIX, Metrics
from tests.serve.network import WORKERS, listening
from tests.serve.test_http import ask

SAMPLE = re.compile(r"([a-z_]+)(?:\{((?:[a-z_]+=\"[A-Za-z0-9_]*\",?)*)\})? ([0-9.e+-]+)")


def read(text: str) -> dict[str, float]:
    """Values by name and labels; every line is one, or says what a name is."""
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] in typed, line
            found[line.rpartition(" ")[0].removeprefix(PREFIX)] = float(sample[3])
    return found


def measured(server: Server) -> dict[str, float]:
    """What the server says."""
    status, text, _ = ask(server, "GET", "/metrics")
    assert status == 200
    return read(text.decode())


def test_numbers_are_written_as_they_are() -> None:
    metrics = Metrics()
    metrics.count("requests_total", status="200", method="GET")
    metrics.count("requests_total", 2, method="GET", status="200")
    metrics.count("received_bytes_total", (1 << 53) - 1)
    metrics.set("waiting", 3)
    metrics.set("waiting", 1)
    found = read(metrics.render())
    assert found == {
        'requests_total{method="GET",status="200"}': 3,
        "received_bytes_total": 2**53 - 1,
        "waiting": 1,
    }
    assert metrics.render().count("# HELP") == len(HELP)


def test_what_happens_is_counted(
    thin: Model, tmp_path: Path, sample: np.ndarray[Any, np.dtype[np.float64]]
) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url).session() as session:
        empty = measured(server)
        assert empty['key_sets{ready="true"}'] == empty["waiting"] == 0
        for _ in range(2):
            session.infer(sample)
        ask(server, "GET", "/v1/keys/0")
        ask(server, "GET", "/v1/model", headers={"Host": "evil.example"})
        ask(server, "POST", "/v1/keys", json.dumps({"model": thin.manifest.hash}).encode())
        found = measured(server)
        size = thin.manifest.key_bytes
        assert found['key_sets{ready="true"}'] == found['key_sets{ready="false"}'] == 1
        assert found['key_bytes{ready="true"}'] == size
        assert found['evaluations_total{outcome="done"}'] == 2
        assert 0 < found["evaluation_seconds_total"] < 60
        loads = [found[f'key_loads_total{{place="{place}"}}'] for place in ("disk", "memory")]
        assert loads == [1, 1]
        # The first question was asked before there were keys.
        assert found['refusals_total{code="unknown_keys"}'] == 2
        assert found['refusals_total{code="wrong_host"}'] == 1
        assert found['requests_total{method="GET",status="403"}'] == 1
        assert found["received_bytes_total"] > size
        assert str(session._identifier) not in ask(server, "GET", "/metrics")[1].decode()
    service.close()


def test_a_server_says_when_it_takes_no_more(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.readiness() == {"ready": True}
    with monkeypatch.context() as patched:
        patched.setattr(service.jobs, "waiting", 0)
        with pytest.raises(BusyError, match="wait"):
            service.readiness()
    service.draining = True
    with pytest.raises(BusyError, match="end"):
        service.readiness()
    assert service.health() == {"alive": True}
    service.draining = False
    with pytest.raises(UnknownKeysError):
        service.keys("0" * 32)
