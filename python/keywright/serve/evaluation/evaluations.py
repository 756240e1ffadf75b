"""Evaluations of a service: their admission, their execution by workers, and their answers.

A request may wait for its answer (`take` with ``held``): the evaluation then exists only in memory, and
message and answer pass through the worker's pipe. An evaluation that does not end soon is written to disk
(`keep`), as is every evaluation whose request does not wait.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from keywright.errors.service import (
    BadRequestError,
    OtherModelError,
)
from keywright.model.served import framing
from keywright.serve.configurations import Catalog
from keywright.serve.served_index import Served
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.audit import alias
from keywright.serve.uploads.secret_scanner import SecretScanner
from keywright.serve.uploads.upload_store import UploadStore
from keywright.serve.workers.workers import Workers

from .dispatch import Dispatcher
from .exchanged import ExchangedObject
from .execution import Execution, Reports
from .jobs import MAX_PRIORITY, Job, Jobs, Reservation

UNKNOWN = ""
"""An identifier that no job has."""

HELD_BYTES = 4 << 20
"""Maximum bytes of the message of a held evaluation; a longer one is written to the disk at once."""


@dataclass(frozen=True)
class Expected:
    """An admitted evaluation whose message has not arrived.

    Attributes:
        identifier: identifier of the client's keys.
        model: hash of the model.
        priority, places: arguments of `Evaluations.expect`.
        place: its reservation in the queue.
    """

    identifier: str
    model: str
    priority: int
    places: range | None
    place: Reservation


class Evaluations:
    """The evaluations of a service.

    Args:
        catalog: the served models.
        store: the key sets.
        jobs: the accepted evaluations.
        workers: the processes that evaluate.
        reports: where evaluations are recorded.
        state: folder for models that were given without a folder.
        budget: maximum bytes of a worker for each model.

    Attributes:
        joins: whether requests of a model are evaluated together, by its hash.
        dispatcher: sends jobs to workers.
        execution: runs a job on a worker.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: UploadStore,
        jobs: Jobs,
        workers: Workers,
        reports: Reports,
        state: Path,
        budget: int | None,
    ) -> None:
        self._catalog, self._store, self._jobs, self._workers = catalog, store, jobs, workers
        self._usage, self._audit = reports.usage, reports.audit
        self._saw, self._event = reports.on_object, reports.on_event
        self.joins = {name: model.joins for name, model in catalog.models.items()}
        folders = {name: _folder(state, model) for name, model in catalog.models.items()}
        self.execution = Execution(catalog, store, jobs, workers, reports, folders, budget)
        self.dispatcher = Dispatcher(jobs, workers, self.execution, self._event)

    def seconds(self, model: str) -> float:
        """Return the seconds of one evaluation: the median of the last, or a prediction before the first."""
        measured = self.execution.durations.typical(model)
        return self._catalog.model(model).predicted_seconds if measured is None else measured

    def holds(self, size: int) -> bool:
        """Return whether a request with a message of ``size`` bytes may wait for its answer."""
        return self._workers.inline and size <= HELD_BYTES

    @contextmanager
    def expect(
        self,
        identifier: str,
        size: int,
        model: str | None = None,
        priority: int = 0,
        tenant: str = NOBODY,
        places: range | None = None,
    ) -> Iterator[Expected]:
        """Admit an evaluation of one batch of samples before the first byte of its message: its place in the
        queue and its bytes are reserved within the context.

        Args:
            identifier: of the client's keys.
            size: bytes of the message.
            model: hash of a model of the keys' configuration; by default the one that the client named first.
            priority: 0 to 9; among the evaluations of the keys larger ones run first.
            tenant: tenant of the request.
            places: the samples' places that the message uses, with zeros at the others (`Places.pack`). It
                may be evaluated together with waiting messages of the same client at other places. Its answer
                is at its places. None if it uses all places.

        Raises:
            UnknownKeysError, UploadError: the keys are unknown or incomplete.
            RetiredError, OtherModelError: the model is no longer served, or needs other keys.
            BadRequestError: there is no such priority, or no such places.
            BusyError: the queue or memory is full.
            LimitError: memory can never hold the keys, or the tenant has no room for the message, or has used
                its day.
        """
        uploaded = self._store.get(identifier, tenant)
        name = uploaded.model if model is None else model
        served, configuration = self._catalog.model(name), self._catalog.of(name).identifier
        if configuration != uploaded.configuration.identifier:
            raise OtherModelError(
                f"the keys have configuration {uploaded.configuration.identifier}, but model {name} needs "
                f"{configuration}",
                found=uploaded.configuration.identifier,
                expected=configuration,
            )
        self._require_places(name, priority, places)
        self._workers.require_memory(
            identifier, served.resident_key_bytes, served.manifest.hash, self._jobs.patience
        )
        self._store.require_ready(uploaded)
        self._usage.require_seconds(tenant, uploaded.holder)
        with ExitStack() as stack:
            admission = self._store.admission
            with admission.lock:
                admission.require_bytes(self._store.of(tenant), tenant, size, uploaded.holder)
                place = stack.enter_context(self._jobs.reserve(identifier, tenant, uploaded.holder, size))
            yield Expected(identifier, name, priority, places, place)

    def take(self, expected: Expected, message: bytes, *, held: bool = False) -> Job:
        """Accept an evaluation whose message has arrived.

        Args:
            message: its ciphertexts, see `framing`.
            held: whether its request waits for the answer (`release`, `keep`). The worker then checks what
                the message contains.

        Raises:
            SecretRefusedError: the message contains a secret key.
            BadRequestError, InvalidObjectError: the message does not hold the ciphertexts that the model
                takes.
        """
        model = self._catalog.model(expected.model)
        SecretScanner().scan(message)
        objects = framing.split(message, model.manifest.input.places.ciphertexts)
        if not held:
            for data in objects:
                model.requests.read(data)
                self._saw(expected.identifier, ExchangedObject.of("received", data))
        job = Job(
            secrets.token_hex(16),
            expected.identifier,
            expected.model,
            expected.priority,
            model.steps,
            expected.place.tenant,
            expected.place.holder,
            expected.places,
        )
        job.held = held
        self._jobs.add(job, message, None if held else self.execution.note, expected.place)
        self._event(f"{len(message)} bytes to evaluate")
        return job

    def _require_places(self, model: str, priority: int, places: range | None) -> None:
        """Check that a priority and the places of samples exist."""
        if not 0 <= priority <= MAX_PRIORITY:
            raise BadRequestError(f"?priority= must be 0 to {MAX_PRIORITY}, got {priority}")
        batch = self._catalog.model(model).manifest.input.places.batch
        if places is not None and not (self.joins[model] and 0 <= places.start < places.stop <= batch):
            raise BadRequestError(
                f"?first={places.start}&samples={len(places)}: the model has places for {batch} samples"
                + ("" if self.joins[model] else ", and leaves none of them to others")
            )

    def keep(self, job: Job) -> None:
        """Write a held job that has not ended to the disk.

        Raises:
            OSError: the disk fails; the job is dropped.
        """
        try:
            self._jobs.keep(job, self.execution.note)
        except OSError:
            self.dispatcher.cancel(job)
            raise

    def release(self, job: Job) -> bytes:
        """Return the answer of a held job that has ended; raises the errors of `Jobs.release`."""
        return self._jobs.release(job)

    def abandon(self, job: Job) -> None:
        """Drop a held job whose request has ended."""
        if job.held:
            self._jobs.delete([job])
            self.dispatcher.cancel(job)

    def job(self, identifier: str, tenant: str = NOBODY) -> Job:
        """Return an evaluation, and record the use of its keys.

        Raises:
            UnknownJobError: no evaluation has this identifier.
        """
        job = self._job(identifier, tenant)
        self._store.touch(job.owner)
        return job

    def result(
        self, identifier: str, tenant: str = NOBODY, start: int = 0, length: int | None = None
    ) -> bytes:
        """Return bytes of the ciphertexts of an answer, see `framing`; raises the errors of `Jobs.fetch`."""
        return self._jobs.fetch(self._job(identifier, tenant).identifier, start, length)

    def cancel(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Drop an evaluation and its answer, whether it waits, runs or is done.

        Raises:
            UnknownJobError: no evaluation has this identifier.
        """
        job = self._job(identifier, tenant)
        self._audit.note("cancel", tenant, job.owner, job=alias(identifier))
        self._jobs.delete([job])
        self.dispatcher.cancel(job)
        return {"deleted": True}

    def forget(self, identifier: str) -> None:
        """Drop the evaluations of a client, by its keys."""
        for job in self._jobs.of(identifier):
            self._jobs.delete([job])
            self.dispatcher.cancel(job)

    def _job(self, identifier: str, tenant: str) -> Job:
        """Return a job of a tenant; a job of another tenant is reported as unknown."""
        job = self._jobs.get(identifier)
        return job if job.tenant == tenant else self._jobs.get(UNKNOWN)


def _folder(state: Path, model: Served) -> Path:
    """Return the folder from which workers load a model."""
    if model.folder is not None:
        return model.folder
    folder = state / "models" / model.manifest.hash
    if not folder.is_dir():
        making = state / "models" / f".{model.manifest.hash}"
        folder.parent.mkdir(exist_ok=True, mode=0o700)
        making.mkdir(exist_ok=True, mode=0o700)
        model.write(making)
        making.replace(folder)
    return folder
