"""Requests that wait for their answers: evaluations in memory, and on the disk when they take long."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client.remote import Session
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.evaluation import dispatch
from keywright.serve.http import app
from keywright.serve.jobs.job import Job
from keywright.serve.tenants.audit import NAME
from keywright.serve.workers.workers import Worker
from tests.serve.http.test_http import ask, wait
from tests.serve.network import WORKERS, GatedWorkers, listening, make_full

Sample = np.ndarray[Any, np.dtype[np.float64]]


class EagerThread(threading.Thread):
    """Runs a while before the thread that starts it goes on."""

    def start(self) -> None:
        super().start()
        time.sleep(0.3)


def asked(
    server: Server, session: Session, message: bytes, seconds: int = 30
) -> tuple[int, Any, Mapping[str, str]]:
    return ask(server, "POST", f"/v1/keys/{session._identifier}/jobs?wait={seconds}", message)


def message_of(session: Session, sample: Sample) -> bytes:
    return framing.join(session._encrypt(sample[None]))


def test_an_answer_comes_with_its_request_and_nothing_stays(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "HOLD_S", 20.0)
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        status, answer, headers = asked(server, session, message_of(session, sample))
        assert (status, headers["content-type"]) == (200, "application/octet-stream")
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
        assert service.jobs.all() == []
        assert service._storage.records.jobs() == []
        assert service._storage.objects.sizes("jobs/") == {}
        lines = [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]
        assert [line["action"] for line in lines] == ["begin", "complete", "use"]
        assert lines[-1]["request"] == "asked"
        seen = [entry["what"] for entry in session.seen()["objects"]]  # type: ignore[attr-defined]
        assert seen[0] == "a set of switching keys"
        assert len(seen) == 3
    service.close()


def test_a_request_that_does_not_wait_gets_the_state_of_its_job(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    ended, take = threading.Event(), service.evaluations.take

    def take_and_end(*arguments: Any, **named: Any) -> Job:
        job = take(*arguments, **named)
        with service.jobs.watched(job, ended.set):
            assert job.state == "done" or ended.wait()
        return job

    monkeypatch.setattr(service.evaluations, "take", take_and_end)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        status, job, headers = asked(server, session, message_of(session, sample), 0)
        assert (status, headers["content-type"]) == (202, "application/json")
        assert job["state"] == "done"
        answer = ask(server, "GET", f"/v1/jobs/{job['job']}/result")[1]
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
    service.close()


def test_a_long_held_job_is_written_to_the_disk_and_survives_a_restart(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "HOLD_S", 0.01)
    workers = GatedWorkers()
    service = Service(thin, tmp_path, workers=workers)
    with listening(service) as server:
        session = RemoteModel(server.url, insecure=True).session()
        session.upload_keys()
        status, job, _ = asked(server, session, message_of(session, sample), 1)
        assert (status, job["state"]) == (202, "running")
        (row,) = service._storage.records.jobs()
        assert row["job"] == job["job"]
        assert len(service._storage.objects.sizes("jobs/")) == 1
        second = asked(server, session, message_of(session, sample), 1)[1]
        assert second["state"] == "waiting"
        port = server.server_address[1]
    # The one that waits is left to the next process.
    workers.go.set()
    service.close()
    monkeypatch.setattr(dispatch, "threading", SimpleNamespace(Thread=EagerThread))
    after = Service(thin, tmp_path, workers=WORKERS)
    with listening(after, port) as server:
        for each in (job, second):
            path = f"/v1/jobs/{each['job']}"

            def done(path: str = path) -> bool:
                return bool(ask(server, "GET", path)[1]["state"] == "done")

            wait(done)
            answer = ask(server, "GET", f"{path}/result")[1]
            assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
        session.close()
    after.close()


def test_a_stored_job_is_answered_while_its_request_waits(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "HOLD_S", 0.01)
    workers = GatedWorkers()
    service = Service(thin, tmp_path, workers=workers)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        threading.Timer(0.3, workers.go.set).start()
        status, answer, _ = asked(server, session, message_of(session, sample))
        assert status == 200
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
        # It was put on the disk, so its answer is kept for a minute.
        assert [job.fetched for job in service.jobs.all()] == [True]
    service.close()


def test_a_full_disk_drops_a_held_job_with_an_error(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "HOLD_S", 0.01)
    workers = GatedWorkers()
    service = Service(thin, tmp_path, workers=workers)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()

        def full(name: str, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(service._storage.objects, "put", full)
            status, reply, _ = asked(server, session, message_of(session, sample))
        assert (status, reply["error"]["type"]) == (507, "disk")
        assert service.jobs.all() == []
        workers.go.set()
        assert np.isfinite(session.infer(sample)).all()
    service.close()


def test_malformed_ciphertexts_are_refused_in_the_same_way(
    thin: Model, tmp_path: Path, sample: Sample
) -> None:
    """Whether the request waits for its job or asks for the answer later, and whether its message tells
    before a worker reads it or not."""
    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        good = message_of(session, sample)
        for wrong in (framing.join([b"x" * 100]), framing.join([good[4:-40]]), good[:-1], b""):
            codes = set()
            for seconds in (0, 30):
                status, reply, _ = asked(server, session, wrong, seconds)
                if status == 202:
                    path = f"/v1/jobs/{reply['job']}"
                    ask(server, "GET", f"{path}?wait=30")
                    status, reply, _ = ask(server, "GET", f"{path}/result")
                assert 400 <= status < 500
                codes.add((status, reply["error"]["type"]))
            assert len(codes) == 1
        assert asked(server, session, good)[0] == 200
    service.close()


@pytest.mark.parametrize("hold", [0.0, 60.0])
@pytest.mark.parametrize("waits", [(30, 30, 30, 30), (0, 0, 0, 0), (30, 0, 30, 0), (0, 30, 0, 30)])
def test_each_message_and_each_answer_is_recorded_once(
    hold: float, waits: tuple[int, ...], tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether jobs are held, kept while they wait or run, or stored at once; the last three are joined."""
    monkeypatch.setattr(app, "HOLD_S", hold)
    workers = GatedWorkers()
    service = Service(make_full(batch=4), tmp_path, workers=workers)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        message, threads = message_of(session, sample), []
        for place, seconds in enumerate(waits):
            path = f"/v1/keys/{session._identifier}/jobs?wait={seconds}&first={place}&samples=1"
            threads.append(threading.Thread(target=ask, args=(server, "POST", path, message)))
            threads[-1].start()
            wait(lambda: bool(workers.groups) and sum(service.jobs.counts()) == len(threads))

        def stored() -> bool:
            return [job.held for job in service.jobs.all()] == [hold > 0 and bool(each) for each in waits]

        wait(stored)
        workers.go.set()
        for thread in threads:
            thread.join()
        wait(lambda: sum(service.jobs.counts()) == 0)
        assert workers.groups == [1, 3]
        directions = [entry["direction"] for entry in session.seen()["objects"][1:]]  # type: ignore[index]
        assert sorted(directions) == ["received"] * 4 + ["sent"] * 4
    service.close()


def test_a_killed_worker_does_not_answer_for_another(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a message or half an answer in a pipe does not spoil the next one."""
    order, deaths = Worker.order, [1, 2]

    def deadly(worker: Worker, *arguments: Any, **entry: Any) -> Any:
        if entry["do"] == "evaluate" and deaths and worker.pid is not None:
            deaths.pop()
            os.kill(worker.pid, signal.SIGKILL)
        return order(worker, *arguments, **entry)

    service = Service(thin, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        monkeypatch.setattr(Worker, "order", deadly)
        status, answer, _ = asked(server, session, message_of(session, sample))
        assert status == 200
        assert np.abs(session._decrypt(answer, 1)[0] - run_clear(thin.program, sample)).max() < 1e-3
    service.close()
