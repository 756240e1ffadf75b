"""Evaluations of a service: their admission, their execution by workers, and their answers.

A request may wait for its answer (`take` with ``held``): the evaluation then exists only in memory, and
message and answer pass through the worker's pipe. An evaluation that does not end soon is written to disk
(`keep`), as is every evaluation whose request does not wait.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from keywright._units import format_bytes
from keywright.errors.service import BadRequestError, OtherModelError
from keywright.model.served import framing
from keywright.serve.jobs.job import MAX_PRIORITY, Job, Reservation
from keywright.serve.logs import request_identifier
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.audit import alias
from keywright.serve.uploads.secret_scanner import SecretScanner
from keywright.serve.uploads.uploaded import UploadedKeys

from .dispatch import Dispatcher
from .job_execution import JobExecution

UNKNOWN = ""
"""An identifier that no job has."""

HELD_BYTES = 4 << 20
"""Maximum bytes of the message of a held evaluation; a longer one is written to the disk at once."""


@dataclass(frozen=True)
class AdmittedEvaluation:
    """An admitted evaluation whose message has not arrived.

    Attributes:
        keys: the client's keys.
        model: hash of the model.
        priority, places: arguments of `Evaluations.admit`.
        place: its reservation in the queue.
    """

    keys: UploadedKeys
    model: str
    priority: int
    places: range | None
    place: Reservation


class Evaluations:
    """The evaluations of a service.

    Args:
        execution: runs jobs on workers.

    Attributes:
        dispatcher: sends jobs to workers.
        execution: as given.
    """

    def __init__(self, execution: JobExecution) -> None:
        self.execution = execution
        self._catalog, self._store, self._jobs = execution.catalog, execution.store, execution.jobs
        self._workers, self._reports = execution.workers, execution.reports
        self.dispatcher = Dispatcher(self._jobs, self._workers, execution, self._reports.on_event)

    def seconds(self, model: str) -> float:
        """Return the seconds of one evaluation: the median of the last, or a prediction before the first."""
        measured = self.execution.durations.typical(model)
        return self._catalog.model(model).predicted_seconds if measured is None else measured

    def holds(self, size: int) -> bool:
        """Return whether a request with a message of ``size`` bytes may wait for its answer."""
        return self._workers.inline and size <= HELD_BYTES

    @contextmanager
    def admit(
        self,
        identifier: str,
        size: int,
        model: str | None = None,
        priority: int = 0,
        tenant: str = NOBODY,
        places: range | None = None,
    ) -> Iterator[AdmittedEvaluation]:
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
        self._workers.require_memory(identifier, served.keys.resident_bytes, served.hash, self._jobs.patience)
        self._store.require_ready(uploaded)
        self._reports.usage.require_seconds(tenant, uploaded.holder)
        with ExitStack() as stack:
            admission = self._store.admission
            with admission.lock:
                admission.require_bytes(self._store.of(tenant), tenant, size, uploaded.holder)
                place = stack.enter_context(self._jobs.reserve(identifier, tenant, uploaded.holder, size))
            yield AdmittedEvaluation(uploaded, name, priority, places, place)

    def take(self, admitted: AdmittedEvaluation, message: bytes, *, held: bool = False) -> Job:
        """Accept an evaluation whose message has arrived.

        Args:
            message: its ciphertexts, see `framing`.
            held: whether its request waits for the answer (`release`, `keep`).

        Raises:
            SecretRefusedError: the message contains a secret key.
            BadRequestError, InvalidObjectError: the message does not consist of as many objects as the model
                takes ciphertexts. Whether they are such ciphertexts shows when a worker reads them.
        """
        model = self._catalog.model(admitted.model)
        SecretScanner().scan(message)
        admitted.keys.note("received", framing.split(message, model.message.inputs))
        job = Job(
            secrets.token_hex(16),
            admitted.keys.identifier,
            admitted.model,
            admitted.priority,
            model.steps,
            admitted.place.tenant,
            admitted.place.holder,
            admitted.places,
        )
        job.held, job.message_bytes, job.request = held, len(message), request_identifier()
        if not held:
            self.execution.note(job)
        self._jobs.add(job, message, admitted.place)
        self._reports.on_event(f"evaluation queued, {format_bytes(len(message))}")
        return job

    def _require_places(self, model: str, priority: int, places: range | None) -> None:
        """Check that a priority and the places of samples exist."""
        if not 0 <= priority <= MAX_PRIORITY:
            raise BadRequestError(f"?priority= must be 0 to {MAX_PRIORITY}, got {priority}")
        form = self._catalog.model(model).message
        if places is not None and not (form.joins and 0 <= places.start < places.stop <= form.batch):
            raise BadRequestError(
                f"?first={places.start}&samples={len(places)}: the model has places for {form.batch} samples"
                + ("" if form.joins else ", and leaves none of them to others")
            )

    def keep(self, job: Job) -> None:
        """Write a held job that has not ended to the disk.

        Raises:
            OSError: the disk fails; the job is dropped.
        """
        if not self._jobs.has(job):
            return
        try:
            self.execution.note(job)
            self._jobs.keep(job)
        except OSError:
            self._drop(job)
            raise

    def release(self, job: Job) -> bytes:
        """Return the answer of a held job that has ended; raises the errors of `Jobs.release`."""
        return self._jobs.release(job)

    def abandon(self, job: Job) -> None:
        """Drop a held job whose request has ended."""
        if job.held:
            self._drop(job)

    def watched(self, job: Job, tell: Callable[[], object]) -> AbstractContextManager[None]:
        """Have a function called when a job ends or is deleted within the context, by any thread."""
        return self._jobs.watched(job, tell)

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
        self._reports.audit.note("cancel", tenant, job.owner, job=alias(identifier))
        self._drop(job)
        return {"deleted": True}

    def forget(self, identifier: str) -> None:
        """Drop the evaluations of a client, by its keys."""
        for job in self._jobs.of(identifier):
            self._drop(job)

    def _drop(self, job: Job) -> None:
        self._jobs.delete([job])
        self.dispatcher.cancel(job)

    def _job(self, identifier: str, tenant: str) -> Job:
        """Return a job of a tenant; a job of another tenant is reported as unknown."""
        job = self._jobs.get(identifier)
        return job if job.tenant == tenant else self._jobs.get(UNKNOWN)
