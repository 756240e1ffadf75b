"""The event loop waits for no disk: neither for a lock that a thread holds meanwhile, nor for a thread
without a turn."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import UnknownKeysError
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Service
from keywright.serve.http import app
from keywright.serve.http.app import application
from keywright.serve.service import ServiceLimits
from starlette.applications import Starlette
from starlette.routing import Route
from tests.serve.http.test_http import ask
from tests.serve.network import INPUTS, WORKERS, listening

WAITS: Mapping[str, tuple[str, ...]] = {
    "objects": ("put", "append", "read", "sizes", "delete", "copy", "keep", "file", "adopt"),
    "records": (
        "add_key_set",
        "set_digest",
        "delete_key_set",
        "add_job",
        "set_job",
        "delete_job",
        "use",
        "used",
        "forget_used",
    ),
    "audit": ("note",),
}
"""Methods that wait for a disk, or for another machine."""


class Owned:
    """A lock that knows the thread that holds it, and that none takes twice."""

    def __init__(self) -> None:
        self._lock, self._owner = threading.Lock(), 0

    def __enter__(self) -> None:
        assert not self._is_owned()
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *reason: object) -> None:
        self._owner = 0
        self._lock.release()

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()


class Disk:
    """Notes which locks of a service the threads that wait for its disk hold."""

    def __init__(self, service: Service, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(service._usage, "_lock", Owned())
        self.locks: dict[str, Any] = {
            "admission": service.store.admission.lock,
            "jobs": service.jobs._turn,
            "usage": service._usage._lock,
        }
        self.waits, self.held = set[str](), set[str]()
        parts = {
            "objects": service.store.objects,
            "records": service._storage.records,
            "audit": service._audit,
        }
        for name, part in parts.items():
            for method in WAITS[name]:
                patch.setattr(part, method, self._watched(f"{name}.{method}", getattr(part, method)))

    def _watched(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.waits.add(name)
            owned = [lock for lock, each in self.locks.items() if each._is_owned()]
            self.held.update(f"{name} with the lock of {lock}" for lock in owned)
            return method(*arguments, **options)

        return call


@pytest.mark.parametrize("hold", [0.0, 20.0])
def test_no_lock_of_the_event_loop_is_held_while_a_disk_is_waited_for(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold: float
) -> None:
    """The attack: jobs that were begun and cancelled made an honest client wait four times as long."""
    monkeypatch.setattr(app, "HOLD_S", hold)
    service = Service(thin, tmp_path, workers=WORKERS, limits=ServiceLimits(capacity=1))
    disk = Disk(service, monkeypatch)
    with listening(service) as server:
        for _ in range(2):  # The second set takes the place of the first.
            with RemoteModel(server.url, insecure=True).session() as session:
                session.upload_keys()
                assert np.isfinite(session.infer(np.zeros(INPUTS))).all()
                jobs = f"/v1/keys/{session._identifier}/jobs"
                message = session._encrypt(np.zeros((1, INPUTS)))
                status, reply, _ = ask(server, "POST", jobs, framing.join(message))
                assert status == 202
                ask(server, "DELETE", f"/v1/jobs/{reply['job']}")
        with pytest.raises(UnknownKeysError):
            service.begin_part("0" * 32, 0, 1)
        service.store.expire()
        service.expire()
    service.close()
    assert {"objects.put", "objects.append", "objects.delete", "records.add_job", "audit.note"} <= disk.waits
    assert {"records.use", "records.forget_used"} <= disk.waits
    assert disk.held == set()


def test_requests_and_refusals_run_in_no_threads_but_those_of_holders(thin: Model, tmp_path: Path) -> None:
    """The attack: a flood of refusals took all threads of the process, and an honest message waited 30 s."""
    service = Service(thin, tmp_path, workers=WORKERS)
    served = application(service)._app
    assert isinstance(served, Starlette)
    calls = [route.endpoint for route in served.routes if isinstance(route, Route)]
    calls += [*served.exception_handlers.values()]
    assert len(calls) > 10
    assert all(inspect.iscoroutinefunction(call) for call in calls)
    service.close()
