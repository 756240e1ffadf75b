"""Evaluations of a service: their admission, their execution by workers, and their answers.

A request may wait for its answer (`submit` with ``held``): the evaluation then exists only in memory, and
message and answer pass through the worker's pipe. An evaluation that does not end soon is written to disk
(`keep`), as is every evaluation whose request does not wait.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keywright.errors import WorkerEndedError
from keywright.errors.service import (
    BadRequestError,
    EvaluationFailedError,
    OtherModelError,
    ServeError,
    UnknownKeysError,
)
from keywright.model.model import Model
from keywright.model.served import framing
from keywright.serve.configurations import Catalog
from keywright.serve.metrics import Metrics
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.audit import Audit, alias
from keywright.serve.tenants.quotas import Usage
from keywright.serve.uploads.secret_scanner import SecretScanner
from keywright.serve.uploads.upload_store import UploadStore
from keywright.serve.uploads.uploaded import UploadedKeys
from keywright.serve.workers.workers import Worker, Workers

from .dispatch import Dispatcher
from .exchanged import ExchangedObject
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
        priority, tenant, places: arguments of `Evaluations.submit`.
        place: its reservation in the queue.
    """

    identifier: str
    model: str
    priority: int
    tenant: str
    places: range | None
    place: Reservation


@dataclass(frozen=True)
class Reports:
    """Where a service records its evaluations.

    Attributes:
        usage: processor seconds of tenants.
        audit: the audit file.
        metrics: counters.
        on_object: called with a client's key set and every object that the client and the server exchange.
        on_event: called with each message for the operator.
    """

    usage: Usage
    audit: Audit
    metrics: Metrics
    on_object: Callable[[str, ExchangedObject], object]
    on_event: Callable[[str], object]


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
        self._usage, self._audit, self._metrics = reports.usage, reports.audit, reports.metrics
        self._saw, self._event, self._budget = reports.on_object, reports.on_event, budget
        self.joins = {name: model.joins for name, model in catalog.models.items()}
        self._folders = {name: _folder(state, model) for name, model in catalog.models.items()}
        self.dispatcher = Dispatcher(jobs, workers, self._work, self._ended, self._event)

    def load(self, model: str) -> dict[str, Any]:
        """Return the description of a model for a worker."""
        return {"model": model, "folder": str(self._folders[model]), "budget": self._budget}

    def holds(self, size: int) -> bool:
        """Return whether a request with a message of ``size`` bytes may wait for its answer."""
        return self._workers.inline and size <= HELD_BYTES

    def submit(
        self,
        identifier: str,
        message: bytes,
        model: str | None = None,
        priority: int = 0,
        tenant: str = NOBODY,
        places: range | None = None,
        *,
        held: bool = False,
    ) -> Job:
        """Accept the evaluation of one batch of samples.

        Args:
            identifier: of the client's keys.
            message: its ciphertexts, see `framing`.
            model: hash of a model of the keys' configuration; by default the one that the client named first.
            priority: 0 to 9; among one client's evaluations larger ones run first.
            tenant: tenant of the request.
            places: the samples' places that the message uses, with zeros at the others (`Places.pack`). It
                may be evaluated together with waiting messages of the same client at other places. Its answer
                is at its places. None if it uses all places.
            held: whether its request waits for the answer (`release`, `keep`). The worker then
                checks what the message contains.

        Raises:
            UnknownKeysError, NotReadyError: the keys are unknown or incomplete.
            RetiredError, OtherModelError: the model is no longer served, or needs other keys.
            SecretRefusedError: the message contains a secret key.
            BadRequestError, InvalidObjectError: the message does not hold the ciphertexts that the model
                takes.
            BusyError: the queue or memory is full.
            TooLargeError: memory can never hold the keys.
            QuotaError: the tenant has no room for the message, or has used its day.
        """
        with self.expect(identifier, len(message), model, priority, tenant, places) as expected:
            return self.take(expected, message, held=held)

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
        """Admit an evaluation before the first byte of its message: its place in the queue and its bytes are
        reserved within the context. Other arguments, and errors before the message, are as in `submit`.

        Args:
            size: bytes of the message.
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
        self._usage.require_seconds(tenant)
        with ExitStack() as stack:
            with self._store.admission():
                if self._usage.limits_bytes(tenant):
                    keys, soon = self._store.room(tenant)
                    self._usage.require_bytes(tenant, keys + self._jobs.stored(tenant), size, soon)
                place = stack.enter_context(self._jobs.reserve(identifier, tenant, size))
            yield Expected(identifier, name, priority, tenant, places, place)

    def take(self, expected: Expected, message: bytes, *, held: bool = False) -> Job:
        """Accept an evaluation whose message has arrived; raises the errors of `submit`."""
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
            expected.tenant,
            expected.places,
            held,
        )
        self._jobs.add(job, message, None if held else self._note, expected.place)
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
            self._jobs.keep(job, self._note)
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

    def _note(self, job: Job) -> None:
        """Record the use of keys in the audit file, once for each job."""
        if not job.noted:
            self._audit.note(
                "use",
                job.tenant,
                job.owner,
                model=job.model,
                job=alias(job.identifier),
                bytes=job.message_bytes,
            )
            job.noted = True

    def _note_all(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._note(job)

    def _work(self, worker: Worker, job: Job) -> float:
        """Run a job; raises the errors of `Worker.order`. Damaged keys are fetched again once."""
        uploaded, begun = self._store.get(job.owner, job.tenant), time.monotonic()
        try:
            try:
                end = self._order(worker, job, uploaded)
            except (UnknownKeysError, FileNotFoundError):
                if not self._store.fetch_again(uploaded):
                    raise
                end = self._order(worker, job, uploaded)
        except (UnknownKeysError, FileNotFoundError) as error:
            if self._store.intact(uploaded):
                raise EvaluationFailedError(
                    "a worker cannot read keys that are here; is the folder of state shared with its machine?"
                ) from error
            self._store.delete(uploaded, "damaged")
            raise UnknownKeysError(
                "the stored keys are damaged or cannot be read; upload them again"
            ) from error
        except WorkerEndedError:
            self._metrics.count("worker_deaths_total")
            raise
        for each in (job, *job.others):
            self._metrics.observe("stage_seconds", begun - each.arrived, stage="wait")
        for stage, seconds in (("keys", end["loading"]), ("evaluate", end["seconds"])):
            self._metrics.observe("stage_seconds", seconds, stage=stage)
        if job.others:
            self._metrics.count("joined_total", len(job.others))
        self._metrics.count("key_loads_total", place="memory" if end["hit"] else "disk")
        if end["evicted"]:
            self._metrics.count("key_evictions_total", len(end["evicted"]))
        # Record this before the job counts as done, so that a later `seen` includes it.
        answer = self._jobs.answered(job, end.get("answer"))
        output = self._catalog.model(job.model).manifest.output.places.ciphertexts
        self._saw_all(job, "sent", framing.split(answer, output))
        return float(end["seconds"])

    def _order(self, worker: Worker, job: Job, uploaded: UploadedKeys) -> dict[str, Any]:
        """Let a worker evaluate a job; raises the errors of `Worker.order`."""
        together = (job, *job.others)
        model = self._catalog.model(job.model)
        with ExitStack() as stack:
            passed: dict[str, Any] = {}
            if self._workers.inline:
                keys = stack.enter_context(self._store.arriving(uploaded, model.key_places))
                path = keys if isinstance(keys, Path) else keys.path
                if not isinstance(keys, Path):
                    passed["arriving"] = keys.to_json()
            else:
                path = stack.enter_context(self._store.file(uploaded))
            if any(each.held for each in together):
                passed["bodies"] = [self._jobs.content(each) for each in together]
            else:
                messages = [stack.enter_context(self._jobs.message(each)) for each in together]
                passed["messages"] = [str(message) for message in messages]
                passed["answer"] = str(self._jobs.answer(job))
            try:
                end = worker.order(
                    job.advance,
                    partial(self._note_all, together),
                    do="evaluate",
                    job=job.identifier,
                    **self.load(model.manifest.hash),
                    keys=job.owner,
                    bytes=model.resident_key_bytes,
                    path=str(path),
                    digest=uploaded.digest,
                    **passed,
                )
            except ServeError as error:
                self._use(job, error.processor)
                raise
        self._use(job, end["processor"])
        for content in passed.get("bodies", ()):
            self._saw_all(job, "received", framing.split(content, model.manifest.input.places.ciphertexts))
        return end

    def _use(self, job: Job, seconds: float) -> None:
        """Record the processor seconds of an evaluation."""
        try:
            self._usage.use(job.tenant, seconds)
        except OSError as error:
            self._event(f"{seconds:.1f} processor seconds could not be recorded: {error}")

    def _saw_all(self, job: Job, direction: str, objects: list[bytes]) -> None:
        """Record exchanged objects, unless the client is gone."""
        if self._jobs.has(job):
            for data in objects:
                self._saw(job.owner, ExchangedObject.of(direction, data))

    def _ended(self, job: Job) -> None:
        self._metrics.count("evaluations_total", outcome="done" if job.error is None else job.error.code)
        if job.error is not None:
            self._event(f"an evaluation failed: {job.error}")
            return
        self._metrics.count("evaluation_seconds_total", job.seconds)
        self._event(f"evaluated in {job.seconds:.2f} s")


def _folder(state: Path, model: Model) -> Path:
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
