"""Requests that wait for the end of an evaluation."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from keywright.client import RemoteModel
from keywright.errors.service import BadRequestError
from keywright.serve import Server, Service
from keywright.serve.http import connection_slots
from keywright.serve.http.app import MAX_WAIT_S
from keywright.serve.http.connection_slots import JobWaiters
from keywright.serve.jobs.job import Job


def test_a_waiting_request_returns_at_the_end_or_the_timeout(
    server: Server, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, job = RemoteModel(server.url, insecure=True), Job("ab" * 16, "owner", "model", 0, 3)
    monkeypatch.setattr(service.evaluations, "job", lambda identifier, tenant: job)
    start = time.monotonic()
    assert remote.ask("GET", f"/v1/jobs/{job.identifier}?wait=1")["state"] == "waiting"
    assert time.monotonic() - start >= 1.0

    def end() -> None:
        job.state = "done"
        service.jobs._tell(job)

    timer = threading.Timer(0.3, end)
    timer.start()
    start = time.monotonic()
    assert remote.ask("GET", f"/v1/jobs/{job.identifier}?wait=30")["state"] == "done"
    assert time.monotonic() - start >= 0.2
    timer.join()


@pytest.mark.parametrize("wait", ["-1", "31", "x", "", "1.5", "³"])
def test_invalid_waits_are_refused(server: Server, wait: str) -> None:
    with pytest.raises(BadRequestError, match=f"0 to {MAX_WAIT_S}"):
        RemoteModel(server.url, insecure=True).ask(
            "GET", f"/v1/jobs/{'ab' * 16}?wait={wait.replace('³', '%C2%B3')}"
        )


def test_an_evaluation_that_ends_tells_who_waits(service: Service) -> None:
    told, job = threading.Event(), Job("cd" * 16, "owner", "model-that-nobody-has", 0, 3)
    with service.jobs.watched(job, told.set):
        service.jobs.add(job, b"message")
        told.wait()
    assert job.state == "failed"
    service.jobs.delete([job])


def test_the_number_of_waiting_requests_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_slots, "MAX_WAITING", 1)
    ends = JobWaiters()

    async def listen() -> tuple[bool, bool, bool]:
        with ends.waiter("holder") as first, ends.waiter("holder") as second:
            before = first.ended.is_set(), second.ended.is_set()
            first.tell()
            await asyncio.wait_for(first.ended.wait(), 5.0)
            return (*before, first.ended.is_set())

    assert asyncio.run(listen()) == (False, True, True)
    assert not ends._waiting
