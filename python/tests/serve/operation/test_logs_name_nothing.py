"""No line of a log has the identifier of a key set or an evaluation, whatever fails: it grants access."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.model.served import framing
from keywright.serve import Service
from keywright.serve.evaluation import dispatch
from keywright.serve.http import app
from keywright.serve.http.request_checks import RequestChecks
from keywright.serve.jobs.job import Job
from keywright.serve.logs import redacted
from tests.serve.http.test_http import ask, wait
from tests.serve.network import INPUTS, GatedWorkers, listening, make_full

Fail = Callable[[Service, Job, pytest.MonkeyPatch], object]


def named(job: Job) -> OSError:
    """An error of the system, which names the files of an evaluation and of its keys."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"jobs/{job.identifier}.message", None, job.owner)


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*arguments: Any, **named: Any) -> Any:
        raise error

    return fail


def planted(
    place: Callable[[Service], object], name: str, kind: Callable[[Job], BaseException] = named
) -> Fail:
    """A method of a service that fails with a text which names the job and its keys."""

    def fail(service: Service, job: Job, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(place(service), name, raising(kind(job)))

    return fail


def _bug(job: Job) -> RuntimeError:
    return RuntimeError(f"{job.identifier} of {job.owner}")


def _lose_message(service: Service, job: Job, patch: pytest.MonkeyPatch) -> None:
    """As a disk that loses files."""
    for path in Path(str(service.jobs._objects._folder)).rglob(f"{job.identifier}.message"):  # type: ignore[attr-defined]
        path.unlink()


FAILURES: dict[str, Fail] = {
    "a message that is missing": _lose_message,
    "a disk that reads nothing": planted(lambda service: service.jobs._objects, "file"),
    "a disk that takes no answer": planted(lambda service: service.jobs._objects, "read"),
    "a database that takes no end": planted(lambda service: service.jobs._records, "set_job"),
    "a bug of the execution": planted(lambda service: service.evaluations.execution, "run", _bug),
    "a bug at its end": planted(lambda service: service.evaluations.execution, "end", _bug),
    "a record of processor seconds": planted(lambda service: service._usage, "use"),
    "an audit file": planted(lambda service: service._audit, "note"),
    "an expiry": planted(lambda service: service, "expire"),
    "keys that cannot be read": planted(lambda service: service.store, "file"),
    "a bug of a request": planted(lambda service: service.evaluations, "job", _bug),
    "a disk of a request": planted(lambda service: service.evaluations, "job"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_line_names_an_evaluation_or_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failure: str
) -> None:
    monkeypatch.setattr(dispatch, "DISK_S", 0.05)
    monkeypatch.setattr(app, "EXPIRE_EVERY_S", 0.05)
    workers, lines = GatedWorkers(), list[str]()
    service = Service(make_full(), tmp_path, workers=workers, on_event=lines.append)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        assert isinstance(server.app, RequestChecks)
        server.app.on_request = lambda *entry: lines.append(" ".join(map(str, entry)))
        session.upload_keys()
        message = framing.join(session._encrypt(np.zeros((1, INPUTS))))
        keys = str(session._identifier)
        with service.evaluations.admit(keys, len(message)) as admitted:
            job = service.evaluations.take(admitted, message)
        wait(workers.begun.is_set)
        known, ran = [keys, job.identifier], list[Job]()
        monkeypatch.setattr(service.jobs, "charge", lambda job, seconds: ran.append(job))
        with pytest.MonkeyPatch.context() as patch:
            # The first evaluation is at the gate; the second waits.
            with service.evaluations.admit(keys, len(message)) as admitted:
                second = service.evaluations.take(admitted, message)
            known.append(second.identifier)
            FAILURES[failure](service, second, patch)
            workers.go.set()
            for path in (f"/v1/jobs/{second.identifier}", f"/v1/keys/{keys}", f"/v1/keys/{keys}/seen"):
                ask(server, "GET", path)
            wait(lambda: second in ran)
        ask(server, "DELETE", f"/v1/jobs/{second.identifier}")
        ask(server, "DELETE", f"/v1/keys/{keys}")
    service.close()
    output = capfd.readouterr()
    for line in (*lines, output.out, output.err):
        assert not any(name in line for name in known), line


def test_hashes_of_models_and_identifiers_of_requests_stay_in_a_line() -> None:
    key, model, request = "0a" * 16, "0b" * 32, "0c" * 8
    line = f"[Errno 2] keys/x/{key}/000: '{key}.message' of {model} in {request}"
    assert redacted(line) == f"[Errno 2] keys/x/*/000: '*.message' of {model} in {request}"
    assert not re.search(key, redacted(f"{key} {key},{key}"))


@pytest.mark.parametrize(
    "before",
    [
        "",
        "/",
        "%2F",
        "%2f",
        "%3D",
        "\\n",
        "\\x00",
        "\\xff",
        "\\u200b",
        "\\U000e0001",
        "x",
        "Z",
        "_",
        "é",
        "-",
    ],
)
@pytest.mark.parametrize("behind", ["", "/", "%2F", "\\n", "\\xff", "x", "Z", "_", ".message"])
def test_no_escape_beside_an_identifier_hides_it(before: str, behind: str) -> None:
    """An error of the object storage, when it listed the objects of a set, logged `keys%2F` and its
    identifier."""
    key, model = "0a" * 16, "0b" * 32
    assert redacted(f"{before}{key}{behind}") == f"{before}*{behind}"
    assert redacted(f"{before}{model}{behind}") == f"{before}{model}{behind}"
