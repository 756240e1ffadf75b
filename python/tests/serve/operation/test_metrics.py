"""The service's metrics, read as Prometheus reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, UnknownKeysError
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.metrics import FAMILIES, PREFIX, STAGES_S, Metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.http.test_http import ask
from tests.serve.network import WORKERS, listening


def read(text: str) -> dict[str, float]:
    """Return values by name and labels, without creation times."""
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.name.startswith(PREFIX)
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            name = sample.name.removeprefix(PREFIX)
            if not name.endswith("_created"):
                samples[f"{name}{{{labels}}}" if labels else name] = sample.value
    return samples


def measured(server: Server) -> dict[str, float]:
    """Return the server's metrics."""
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
    for seconds in (0.002, 0.003, 500):
        metrics.observe("stage_seconds", seconds, stage="wait")
    samples = {name: value for name, value in read(metrics.render()).items() if value}
    buckets = {f'stage_seconds_bucket{{le="{end}",stage="wait"}}': 2 for end in STAGES_S[1:]}
    assert samples == {
        'requests_total{method="GET",status="200"}': 3,
        "received_bytes_total": 2**53 - 1,
        "waiting": 1,
        'stage_seconds_bucket{le="+Inf",stage="wait"}': 3,
        'stage_seconds_count{stage="wait"}': 3,
        'stage_seconds_sum{stage="wait"}': 500.005,
        **buckets,
    }
    for name, family in FAMILIES.items():
        assert f"# HELP {PREFIX}{name} {family.text}" in metrics.render()
    with pytest.raises(ValueError, match="label"):
        metrics.count("requests_total", user="alice")


def test_events_are_counted(
    thin: Model, tmp_path: Path, sample: np.ndarray[Any, np.dtype[np.float64]]
) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        empty = measured(server)
        assert empty['key_sets{ready="true"}'] == empty["waiting"] == 0
        for _ in range(2):
            session.infer(sample)
        ask(server, "GET", "/v1/keys/0")
        ask(server, "GET", "/v1/model", headers={"Host": "evil.example"})
        ask(server, "POST", "/v1/keys", json.dumps({"model": thin.manifest.hash}).encode())
        measurement = measured(server)
        size = thin.manifest.keys.size
        assert measurement['key_sets{ready="true"}'] == measurement['key_sets{ready="false"}'] == 1
        assert measurement['key_bytes{ready="true"}'] == size
        assert measurement['evaluations_total{outcome="done"}'] == 2
        assert 0 < measurement["evaluation_seconds_total"] < 60
        loads = [measurement[f'key_loads_total{{place="{place}"}}'] for place in ("disk", "memory")]
        assert loads == [1, 1]
        for stage in ("wait", "keys", "evaluate"):
            assert measurement[f'stage_seconds_count{{stage="{stage}"}}'] == 2
            assert 0 < measurement[f'stage_seconds_sum{{stage="{stage}"}}'] < 60
        assert measurement['refusals_total{code="unknown_keys"}'] == 1
        assert measurement['refusals_total{code="wrong_host"}'] == 1
        assert measurement['requests_total{method="GET",status="403"}'] == 1
        assert measurement["received_bytes_total"] > size
        assert str(session._identifier) not in ask(server, "GET", "/metrics")[1].decode()
    service.close()


def test_readiness_reports_a_full_queue(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.readiness() == {"ready": True}
    with monkeypatch.context() as patched:
        patched.setattr(service.jobs, "waiting", 0)
        with pytest.raises(BusyError, match="wait"):
            service.readiness()
    service.draining = True
    with pytest.raises(BusyError, match="shutting down"):
        service.readiness()
    assert service.health() == {"alive": True}
    service.draining = False
    with pytest.raises(UnknownKeysError):
        service.keys("0" * 32)
