"""A full disk, or a failing database: accepted work is done when there is room again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors.service import DiskError, ServeError
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.evaluation import dispatch
from keywright.serve.http import app
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import Jobs
from keywright.serve.storage import open_storage
from keywright.serve.workers.workers import end_of
from tests.serve.http.test_http import wait
from tests.serve.network import WORKERS, listening, submit

FULL = OSError(28, "No space left on device")


class Disk:
    """Refuses writes while it is full."""

    def __init__(self) -> None:
        self.full = False

    def guard(self, method: Any) -> Any:
        """Wrap a method that writes."""

        def guarded(*arguments: Any, **named: Any) -> Any:
            if self.full:
                raise FULL
            return method(*arguments, **named)

        return guarded


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def service(thin: Model, tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service(thin, tmp_path, workers=WORKERS)
    for owner, names in (
        (service.jobs._records, ("add_job", "set_job", "set_digest")),
        (service.jobs._objects, ("put", "keep")),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, disk.guard(getattr(owner, name)))
    yield service
    disk.full = False
    service.close()


def upload(service: Service, key_file: Path) -> str:
    """Upload a key set except for its last byte."""
    identifier = str(service.create_keys({"model": service.model.hash})["keys"])
    data = key_file.read_bytes()[:-1]
    piece = service.begin_part(identifier, 0, len(data))
    piece.append(data)
    service.end_part(piece)
    piece.close()
    return identifier


def finish(service: Service, identifier: str, key_file: Path) -> dict[str, Any]:
    """Send the last byte."""
    data = key_file.read_bytes()
    piece = service.begin_part(identifier, len(data) - 1, 1)
    try:
        piece.append(data[-1:])
        return dict(service.end_part(piece))
    finally:
        piece.close()


def test_a_set_that_could_not_be_finished_is_finished_with_its_last_byte(
    service: Service, key_file: Path, disk: Disk
) -> None:
    identifier = upload(service, key_file)
    disk.full = True
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            finish(service, identifier, key_file)
        assert service.keys(identifier)["received"] == len(key_file.read_bytes()) - 1
    disk.full = False
    assert finish(service, identifier, key_file)["ready"] is True


def test_jobs_are_refused_or_done(
    service: Service, thin: Model, key_file: Path, disk: Disk, sample: np.ndarray[Any, np.dtype[np.float64]]
) -> None:
    identifier = upload(service, key_file)
    finish(service, identifier, key_file)
    secret = kw.SecretKey.generate(thin.parameters, bytes(range(32)))
    client = kw.thin.Client.from_secret_bytes(
        secret.to_bytes(), kw.thin.Parameters.from_bytes(thin.manifest.format.client, insecure=True)
    )
    one = 2.0**client.parameters.fraction_bits
    rows = thin.manifest.input.places.pack(sample[np.newaxis]) / thin.manifest.input.scale
    message = framing.join([client.encrypt(np.rint(row * one).astype(np.int64), dropped=0) for row in rows])

    disk.full = True
    with pytest.raises(OSError, match="No space left"):
        submit(service, identifier, message)
    assert service.jobs.counts() == (0, 0)
    disk.full = False

    # The worker says twice that it cannot write; the database has no change of the job all the while.
    execution: Any = service.evaluations.execution
    real = execution.run
    refusals: list[Any] = []

    def work(worker: Any, job: Any) -> float:
        if len(refusals) < 2:
            refusals.append(job)
            raise DiskError("full")
        return float(real(worker, job))

    execution.run = work
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("keywright.serve.evaluation.dispatch.DISK_S", 0.05)
        job = str(submit(service, identifier, message).identifier)
        disk.full = True
        while service.evaluations.job(job).state != "done":
            time.sleep(0.02)
    assert len(refusals) == 2
    assert refusals[0].attempts == 1
    objects = framing.split(service.evaluations.result(job), thin.manifest.output.places.ciphertexts)
    values = thin.manifest.output.places.unpack(
        np.asarray([client.decrypt(data) for data in objects]) / one, 1
    )
    difference = values[0] * thin.manifest.output.scale - run_clear(thin.program, sample)
    assert np.abs(difference).max() < 1e-3


def test_an_evaluation_without_a_disk_leaves_the_worker_to_others(
    service: Service, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits itself, and can be deleted meanwhile."""
    monkeypatch.setattr(dispatch, "DISK_S", 3600.0)
    identifier = upload(service, key_file)
    finish(service, identifier, key_file)
    failing, done = list[str](), list[str]()

    def work(worker: Any, job: Job) -> float:
        if job.identifier in failing:
            failing.remove(job.identifier)
            raise FULL
        done.append(job.identifier)
        raise ServeError("done")

    service.evaluations.execution.run = work  # type: ignore[method-assign]
    jobs = [
        Job(f"{number:032x}", identifier, service.model.hash, 0, 1, "", str(number)) for number in range(3)
    ]
    failing.append(jobs[0].identifier)
    for job in jobs:
        service.jobs.add(job, b"message")
    wait(lambda: done == [job.identifier for job in jobs[1:]])
    assert (jobs[0].state, jobs[0].attempts, service.jobs.counts()) == ("waiting", 0, (1, 0))
    service.jobs.delete(jobs[:1])
    assert service.jobs.counts() == (0, 0)


def test_one_that_waited_for_the_disk_gets_its_turn_beside_others(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    jobs = Jobs(storage)
    first = jobs.add(Job("1" * 32, "keys", "model", 0, 1, "", "one"), b"message")
    assert jobs.take() is first
    jobs.requeue(first, begun=False, after=0.02)
    for number in range(100):
        jobs.add(Job(f"{number:032x}", f"keys {number}", "model", 0, 1, "", "other"), b"message")
        if (job := jobs.take()) is first:
            break
        assert job is not None
        jobs.end(job)
        time.sleep(0.001)
    assert first.state == "running"


def test_a_workers_disk_error_is_a_disk_error() -> None:
    with pytest.raises(DiskError, match="No space left"):
        end_of({"refused": DiskError(str(FULL)).reason()["error"]})


def test_expiry_on_a_full_disk_does_not_end_the_server(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    again = threading.Event()

    def expire() -> None:
        if told:
            again.set()
        raise FULL

    monkeypatch.setattr(app, "EXPIRE_EVERY_S", 0.01)
    monkeypatch.setattr(service, "expire", expire)
    monkeypatch.setattr(service, "tell", told.append)
    with listening(service):
        again.wait()
    assert "No space left" in told[0]
