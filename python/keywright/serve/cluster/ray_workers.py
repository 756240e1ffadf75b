"""Replicas on Ray as the workers of a service: its dispatcher sends them jobs, while jobs stay on disk.

Clients talk only to the service. Ray carries orders and answers of a few hundred bytes, which name files in
the state folder; every machine must mount that folder at the same path. Ray restarts a replica that dies. The
job that it ran starts again elsewhere, and the jobs that waited there lose nothing.
"""

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayActorError, RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import ApplicationStatus

from keywright.errors.service import ServeError, WorkerEndedError
from keywright.serve.workers.resident_keys import ResidentKeys
from keywright.serve.workers.workers import Meanwhile, OnStep, Worker, Workers, end_of

from .deployment import QUEUE, Replicas, deployment, fingerprint
from .replica import ENDED

BACK_OFF_S = 0.5
"""How long a job waits if its replica ended before the job began."""

BROADCAST_S = 10.0
"""How long replicas have to acknowledge a message to all of them."""


class RayWorkers(Workers):
    """The replicas of a service.

    Args:
        address: of a Ray cluster, as `ray.init` takes it; ``"local"`` starts one on this machine.
        state: folder of the service's state. The application is named after it: if the service is killed and
            restarted, the replicas and their keys are still there.
        replicas: number and size.

    Raises:
        ServeError: the cluster cannot be reached, or does not start.
    """

    inline = False

    def __init__(self, address: str, state: Path, replicas: Replicas) -> None:
        super().__init__(0)
        self.count = replicas.most * QUEUE
        self._replicas = replicas
        self._handle: DeploymentHandle | None = None
        self._started = threading.Event()
        self._prefix = f"keywright-{hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:12]}-"
        local = {"num_cpus": replicas.most * replicas.cpus, "include_dashboard": False}
        options = local if address == "local" else {}
        try:
            ray.init(address, log_to_driver=False, configure_logging=False, **options)
        except Exception as error:  # Ray raises plain ones, too
            raise ServeError(f"Ray does not start, or cannot be reached: {error}") from error

    @property
    def handle(self) -> DeploymentHandle:
        """The handle of the deployment.

        Raises:
            ServeError: `prepare` has not been called.
        """
        if self._handle is None:
            raise ServeError("the replicas have not started; call prepare first")
        return self._handle

    @contextmanager
    def one(self) -> Iterator[Worker]:
        """Return the replica that the router chooses. Jobs of an earlier process wait for `prepare`."""
        self._started.wait()
        yield RemoteWorker(self.handle, self.keys)

    def prepare(self, models: Sequence[Mapping[str, Any]]) -> None:
        """Start the replicas, each of which loads all models, or find those of an earlier process.

        Raises:
            ServeError: they do not start.
        """
        name = self._prefix + fingerprint(models, self._replicas)
        serve.start(proxy_location="Disabled")
        try:
            there = self._applications()
            if there.pop(name, None) == ApplicationStatus.RUNNING:
                self._handle = serve.get_app_handle(name)
            else:
                app = deployment(models, self._replicas)
                self._handle = serve.run(app, name=name, route_prefix=None)
            self._started.set()
            for other in there:
                serve.delete(other)
        except (RayError, RuntimeError) as error:
            raise ServeError(f"the replicas did not start: {error}") from error

    def require_memory(self, keys: str, size: int, model: str, patience: Callable[[], int]) -> None:
        """Do nothing: replicas have their own memory, on any machine."""

    def require_any_memory(self) -> None:
        """Do nothing, for the same reason."""

    def _applications(self) -> dict[str, str]:
        """Return the replicas of this service and their state."""
        applications = serve.status().applications.items()
        return {name: each.status for name, each in applications if name.startswith(self._prefix)}

    def machines(self) -> list[tuple[str, int]]:
        """Return the machines of the cluster."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        return [(str(node["NodeManagerHostname"]), int(node["Resources"].get("CPU", 0))) for node in alive]

    def forget(self, keys: str) -> None:
        """Drop keys from the memory of every replica. A replica that misses the message keeps keys that
        nobody can use."""
        _tell_all(self._handle, "forget", keys)

    def close(self) -> None:
        """Stop the replicas, and a cluster that was started here; nothing in a forked process."""
        if self._copied:
            return
        self._started.set()
        super().close()
        with contextlib.suppress(RayError, RayServeException):
            for name in self._applications():
                serve.delete(name)
        ray.shutdown()


class RemoteWorker(Worker):
    """A replica that the router chooses when there is an order."""

    def __init__(self, handle: DeploymentHandle, keys: ResidentKeys) -> None:
        super().__init__(keys)
        self._handle = handle
        self._answers: Any = None

    def order(
        self, on_step: OnStep | None = None, meanwhile: Meanwhile | None = None, **order: object
    ) -> dict[str, Any]:
        """Send an order and wait for its end; raises the errors of `Worker.order`.

        Raises:
            WorkerEndedError: the replica ended before the order began.
        """
        begun = False
        try:
            if meanwhile is not None:
                meanwhile()
            self._answers = self._handle.options(stream=True).evaluate.remote(order)
            for answer in self._answers:
                begun = True
                if ENDED in answer:
                    break
                end = end_of(answer, on_step)
                if end is not None:
                    return end
        except (RayActorError, RayServeException) as error:
            if not begun:
                time.sleep(BACK_OFF_S)
                raise WorkerEndedError("a replica ended before it began", code="not_begun") from error
        except RayError as error:
            raise WorkerEndedError(f"a replica could not evaluate it: {type(error).__name__}") from error
        raise WorkerEndedError("the replica that evaluated it has ended")

    def cancel(self, job: str) -> None:
        """Cancel an evaluation if it runs."""
        _tell_all(self._handle, "cancel", job)

    def kill(self) -> None:
        """Stop waiting for it."""
        if self._answers is not None:
            self._answers.cancel()


def _tell_all(handle: DeploymentHandle | None, method: str, what: str) -> None:
    if handle is not None:
        with contextlib.suppress(RayError, RayServeException, TimeoutError):
            handle.broadcast(method, what).results(timeout_s=BROADCAST_S, return_exceptions=True)
