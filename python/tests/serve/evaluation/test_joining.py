"""Waiting requests of one client are evaluated together, if samples share ciphertexts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client.remote import Session
from keywright.errors import WorkerEndedError
from keywright.errors.service import BadRequestError, EvaluationError
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.evaluation import dispatch
from keywright.serve.jobs.job import Job
from keywright.serve.metrics import PREFIX
from keywright.serve.storage.objects import tenant_digest
from tests.serve.http.test_http import ask, wait
from tests.serve.network import INPUTS, WORKERS, GatedWorkers, listening, make_full, make_thin
from tests.serve.operation.test_metrics import measured

BATCH = 4


def inferred(
    service: Service, workers: GatedWorkers, url: str, samples: np.ndarray[Any, Any], sizes: list[int]
) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Return results of a client that requests parts of the samples at once, while another evaluation
    runs."""
    with RemoteModel(url, insecure=True).session() as session:
        session.upload_keys()
        results: dict[int, np.ndarray[Any, np.dtype[np.float64]]] = {}
        threads, first = [], 0

        def infer(number: int, part: np.ndarray[Any, Any]) -> None:
            results[number] = session.infer(part)

        for number, size in enumerate(sizes):
            thread = threading.Thread(target=infer, args=(number, samples[first : first + size]))
            thread.start()
            threads.append(thread)
            first += size
            # In the order of their numbers.
            wait(lambda: bool(workers.groups) and sum(service.jobs.counts()) == len(threads))
        workers.go.set()
        for thread in threads:
            thread.join()
        return [results[number] for number in range(len(sizes))]


@pytest.mark.parametrize("make", [make_full, make_thin])
def test_requests_that_wait_are_one_evaluation(make: Callable[..., Model], tmp_path: Path) -> None:
    """Each gets its own samples' answers, with the same error as alone, in one evaluation for all that fit
    together."""
    model = make(batch=BATCH)
    samples = np.random.default_rng(0).uniform(-1, 1, (9, INPUTS))
    workers = GatedWorkers()
    service = Service(model, tmp_path, workers=workers)
    with listening(service) as server:
        assert ask(server, "GET", "/v1/models")[1]["models"][0]["joins"] is True
        # The first runs. Of the others 1, 2 and 1 fit together, as do 3 and 1.
        sizes = [1, 1, 2, 1, 3, 1]
        results = inferred(service, workers, server.url, samples, sizes)
        expected = run_clear(model.program, samples)
        assert np.abs(np.concatenate(results) - expected).max() < 1e-3
        # Places: 0 | 1, 2-3 | 0 | 1-3 | 0
        assert workers.groups[0] == 1
        assert sum(workers.groups) == len(sizes)
        assert len(workers.groups) < len(sizes)
        assert measured(server)["joined_total"] == len(sizes) - len(workers.groups)
        assert measured(server)['evaluations_total{outcome="done"}'] == len(workers.groups)
        assert PREFIX + "joined_total" in service.measure()
    service.close()


def test_joined_requests_fill_the_free_places(tmp_path: Path) -> None:
    model = make_full(batch=BATCH)
    samples = np.random.default_rng(1).uniform(-1, 1, (5, INPUTS))
    workers = GatedWorkers()
    service = Service(model, tmp_path, workers=workers)
    with listening(service) as server:
        results = inferred(service, workers, server.url, samples, [1] * 5)
        assert np.abs(np.concatenate(results) - run_clear(model.program, samples)).max() < 1e-3
        assert workers.groups == [1, 4]
    service.close()


def test_failed_groups_are_evaluated_one_by_one(tmp_path: Path) -> None:
    """A failing one does not affect the others; nor does a worker that ends."""
    model = make_full(batch=BATCH)
    samples = np.random.default_rng(2).uniform(-1, 1, (4, INPUTS))
    workers = GatedWorkers()
    service = Service(model, tmp_path, workers=workers)
    failures: list[Exception] = [EvaluationError("planted"), WorkerEndedError("planted")]

    def fail(requests: int) -> None:
        if requests > 1 and failures:
            raise failures.pop(0)

    workers.fail = fail
    with listening(service) as server:
        results = inferred(service, workers, server.url, samples, [1] * 4)
        assert np.abs(np.concatenate(results) - run_clear(model.program, samples)).max() < 1e-3
        assert workers.groups == [1, 3, 1, 1, 1]
        assert len(failures) == 1
    service.close()


def test_a_worker_that_ends_leaves_them_all_to_the_next(tmp_path: Path) -> None:
    model = make_full(batch=BATCH)
    samples = np.random.default_rng(3).uniform(-1, 1, (4, INPUTS))
    workers = GatedWorkers()
    service = Service(model, tmp_path, workers=workers)
    ended: list[int] = []

    def fail(requests: int) -> None:
        if requests > 1 and not ended:
            ended.append(1)
            raise WorkerEndedError("planted")

    workers.fail = fail
    with listening(service) as server:
        results = inferred(service, workers, server.url, samples, [1] * 4)
        assert np.abs(np.concatenate(results) - run_clear(model.program, samples)).max() < 1e-3
        assert workers.groups == [1, 3, 3]
    service.close()


def joined(service: Service, session: Session, count: int) -> list[Job]:
    """Jobs of one client that fit together, while another evaluation runs."""
    jobs = []
    for number in range(count):
        places = range(number, number + 1)
        message = framing.join(session._encrypt(np.zeros((1, INPUTS)), places))
        with service.evaluations.admit(str(session._identifier), len(message), places=places) as admitted:
            jobs.append(service.evaluations.take(admitted, message))
    return jobs


@pytest.mark.parametrize("held", [False, True], ids=["files", "bytes"])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_deleted_request_costs_those_joined_with_it_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool, gone: int
) -> None:
    """The attack: the message of one was missing when the worker read it, which was taken for a failing disk,
    and nobody's evaluation began for a second."""
    monkeypatch.setattr(dispatch, "DISK_S", 3600.0)
    workers, lines = GatedWorkers(), list[str]()
    service = Service(make_full(batch=BATCH), tmp_path, workers=workers, on_event=lines.append)
    intact = 0

    def check(uploaded: Any) -> bool:
        nonlocal intact
        intact += 1
        return True

    monkeypatch.setattr(service.store, "intact", check)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        taken = service.jobs.take
        jobs: list[Job] = []

        def take() -> Job | None:
            """The group is taken, and then one of it is deleted."""
            job = taken()
            if job is not None and job.others and len(jobs) == 3:
                if held:
                    # Those whose messages are bytes read the others in this process.
                    monkeypatch.setattr(service.evaluations.execution.workers, "inline", True)
                    jobs[(gone + 1) % 3].held = True
                    jobs[(gone + 1) % 3].message = service.jobs._objects.read(
                        f"jobs/{tenant_digest('')}/{jobs[(gone + 1) % 3].identifier}.message"
                    )
                service.evaluations.cancel(jobs[gone].identifier)
                jobs.append(job)
            return job

        service.jobs.take = take  # type: ignore[method-assign]
        (first,) = joined(service, session, 1)
        wait(workers.begun.is_set)
        jobs.extend(joined(service, session, 3))
        workers.go.set()
        rest = [job for number, job in enumerate(jobs[:3]) if number != gone]
        wait(lambda: all(job.state == "done" for job in (first, *rest)))
        assert not service.jobs.has(jobs[gone])
        assert service.jobs.counts() == (0, 0)
        assert intact == 0
        assert not [line for line in lines if "disk" in line or "joined" in line], lines
    service.close()


def test_only_disjoint_places_join() -> None:
    def job(first: int, count: int, owner: str = "a", model: str = "m") -> Job:
        return Job("j", owner, model, 0, 1, places=range(first, first + count))

    leader = job(0, 1)
    assert leader.joins(job(1, 3))
    for other in (job(0, 1), job(0, 4), job(1, 1, owner="b"), job(1, 1, model="n"), Job("j", "a", "m", 0, 1)):
        assert not leader.joins(other)
    assert not Job("j", "a", "m", 0, 1).joins(job(1, 1))
    leader.others.append(job(2, 2))
    assert leader.joins(job(1, 1))
    assert not leader.joins(job(1, 2))
    leader.advance(7)
    assert [leader.done, leader.others[0].done] == [7, 7]


def test_places_that_a_model_does_not_have_are_refused(thin: Model, tmp_path: Path) -> None:
    batched = make_full(batch=BATCH)
    service = Service([batched, thin], tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        assert session.remote.joins
        assert [entry["joins"] for entry in ask(server, "GET", "/v1/models")[1]["models"]] == [True, False]
        session.upload_keys()
        path = f"/v1/keys/{session._identifier}/jobs?model={batched.manifest.hash}"
        for query in (
            "first=0",
            "samples=1",
            "first=-1&samples=1",
            "first=x&samples=1",
            "first=9999999&samples=1",
        ):
            with pytest.raises(BadRequestError, match="first"):
                session.remote.send("POST", f"{path}&{query}", b"")
        for query in ("first=0&samples=0", "first=4&samples=1", "first=0&samples=5"):
            with pytest.raises(BadRequestError, match="places for 4"):
                session.remote.send("POST", f"{path}&{query}", b"")
        with RemoteModel(server.url, pinned=thin.manifest.hash, insecure=True).session() as alone:
            assert not alone.remote.joins
            alone.upload_keys()
            path = f"/v1/keys/{alone._identifier}/jobs?model={thin.manifest.hash}"
            with pytest.raises(BadRequestError, match="leaves none"):
                alone.remote.send("POST", f"{path}&first=0&samples=1", b"")
    service.close()
