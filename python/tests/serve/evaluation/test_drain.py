"""The shutdown of a server: it says so, accepts nothing new, and loses no accepted evaluation."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors import WorkerEndedError
from keywright.errors.service import BusyError, ServeError
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Server, Service, Workers
from keywright.serve.workers import worker, workers
from keywright.serve.workers.worker import Engine
from tests.serve.http.test_http import ask, wait
from tests.serve.network import WORKERS, GatedWorkers, listening

Sample = np.ndarray[Any, np.dtype[np.float64]]


def test_running_evaluations_end_and_new_ones_are_refused(
    thin: Model, tmp_path: Path, sample: Sample
) -> None:
    workers = GatedWorkers()
    service = Service(thin, tmp_path, workers=workers)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        keys = f"/v1/keys/{session._identifier}"
        message = framing.join(session._encrypt(sample[None]))
        first, second = (session.remote.send("POST", f"{keys}/jobs", message) for _ in range(2))
        workers.begun.wait()
        draining = threading.Thread(target=service.drain, args=(60.0,))
        draining.start()
        wait(lambda: service.draining)
        assert ask(server, "GET", "/ready")[0] == 503
        assert ask(server, "GET", "/health")[0] == 200
        for path, body in (
            (f"{keys}/jobs", message),
            ("/v1/keys", json.dumps({"model": thin.manifest.hash}).encode()),
        ):
            with pytest.raises(BusyError, match="shutting down"):
                session.remote.send("POST", path, body)
        workers.go.set()
        draining.join()
        # The answer of the job that ran is available; the other job waits for the next process.
        states = [session.remote.ask("GET", f"/v1/jobs/{job['job']}")["state"] for job in (first, second)]
        assert states == ["done", "waiting"]
        answer = session.remote.request("GET", f"/v1/jobs/{first['job']}/result", limit=1 << 20)
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
    service.close()


def test_a_slow_evaluation_is_left_to_the_next_process(thin: Model, tmp_path: Path, sample: Sample) -> None:
    events: list[str] = []
    workers = GatedWorkers()
    service = Service(thin, tmp_path, workers=workers, on_event=events.append)
    with listening(service) as server:
        session = RemoteModel(server.url, insecure=True).session()
        session.upload_keys()
        message = framing.join(session._encrypt(sample[None]))
        job = str(session.remote.send("POST", f"/v1/keys/{session._identifier}/jobs", message)["job"])
        workers.begun.wait()
        start = time.monotonic()
        service.drain(0.2)
        assert time.monotonic() - start >= 0.2
        assert any("left to the next" in event for event in events)
        assert session.remote.ask("GET", f"/v1/jobs/{job}")["state"] == "waiting"
    service.close()
    # Giving up is not an attempt: it may happen at every shutdown.
    after = Service(thin, tmp_path, workers=WORKERS)
    restored = after.jobs.get(job)
    with listening(after) as server:
        session.remote = RemoteModel(server.url, insecure=True)
        wait(lambda: restored.state == "done")
        assert restored.attempts == 1
        answer = session.remote.request("GET", f"/v1/jobs/{job}/result", limit=1 << 20)
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
        session.close()
    after.close()


@pytest.mark.skipif(sys.platform == "win32", reason="processes end there without signals")
@pytest.mark.parametrize("again", [False, True])
def test_a_process_ends_at_sigterm_and_at_once_at_the_second(
    thin: Model, tmp_path: Path, again: bool
) -> None:
    """It logs in JSON lines, and exits with 0."""
    folder = tmp_path / "model"
    folder.mkdir()
    thin.write(folder)
    arguments = ["serve", str(folder), "--port", "0", "--log-format", "json", "--json", "--drain", "60"]
    with subprocess.Popen(
        [sys.executable, "-m", "keywright", *arguments, "--state", str(tmp_path / "state")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        entry: Mapping[str, Any] = json.loads(process.stdout.readline())
        RemoteModel(entry["url"], insecure=True)
        process.send_signal(signal.SIGTERM)
        if again:
            process.send_signal(signal.SIGTERM)
        told = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait() == 0
    assert any("shutting down" in line["message"] for line in told)
    assert any(line.get("path") == "/v1/model" and line["status"] == 200 for line in told)


def test_a_worker_is_ended_from_another_thread() -> None:
    workers = Workers()
    worker = workers.all[0]
    worker.kill()
    worker.start()
    pid = worker.pid
    assert pid is not None
    worker.kill()
    wait(lambda: worker.pid is None)
    # The next order has another process.
    worker.start()
    assert worker.pid not in (None, pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    workers.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal there")
def test_a_stopped_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It kept all evaluations behind it, and one that checks keys all uploads."""
    serving = Workers()
    order: dict[str, Any] = {"do": "load", "model": "", "folder": str(tmp_path), "budget": None}
    for each in (serving.all[0], serving._checker):
        process, _ = each.start()
        process.send_signal(signal.SIGSTOP)
        with monkeypatch.context() as patched, ThreadPoolExecutor(1) as threads:
            asked = threads.submit(each.order, **order)
            wait(lambda at=each: at._heard < math.inf)  # type: ignore[misc]
            serving.kill_silent()
            assert process.poll() is None
            patched.setattr(workers, "SILENCE_S", -1.0)
            serving.kill_silent()
            with pytest.raises(WorkerEndedError):
                asked.result()
        with pytest.raises(ServeError, match="lacks"):
            each.order(**order)
        # Without an order it says nothing, and is left alone.
        serving.kill_silent()
        assert each.pid is not None
    serving.close()


def test_a_worker_that_was_stopped_with_the_server_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is paused: what it says is read afterwards."""
    serving, now = Workers(), [0.0]
    killed = list[float]()
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(serving.all[0], "kill", lambda: killed.append(now[0]))
    serving.all[0]._heard = 0.0
    seconds = [*range(90), *range(1000, 1200)]
    for second in seconds:
        now[0] = float(second)
        serving.kill_silent()
    assert killed[0] == 1000 + workers.SILENCE_S + 1
    serving.close()


def test_what_is_done_meanwhile_takes_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker says is read afterwards."""
    serving = Workers()

    def meanwhile() -> None:
        monkeypatch.setattr(workers, "SILENCE_S", -1.0)
        serving.kill_silent()
        monkeypatch.undo()

    order: dict[str, Any] = {"do": "load", "model": "", "folder": str(tmp_path), "budget": None}
    with pytest.raises(ServeError, match="lacks"):
        serving.all[0].order(None, meanwhile, **order)
    serving.close()


def test_a_worker_with_an_order_says_that_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, pauses = io.BytesIO(), iter([False, True, False])
    engine = Engine(answers, None)
    sleep = SimpleNamespace(sleep=lambda _: setattr(engine, "_executes", next(pauses)))
    monkeypatch.setattr(worker, "time", sleep)
    with pytest.raises(StopIteration):
        engine.show_life()
    assert answers.getvalue() == b'{"alive": true}\n'


def test_a_server_that_is_shut_down_says_so(service: Service) -> None:
    with listening(service) as server:
        assert isinstance(server, Server)
        assert service.readiness() == {"ready": True}
    assert service.draining
    service.draining = False
