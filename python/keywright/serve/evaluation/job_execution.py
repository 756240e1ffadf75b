"""Runs a job on a worker, with the keys of its client, and records what it took."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from keywright.errors import WorkerEndedError
from keywright.errors.service import EvaluationError, ServeError, UnknownKeysError
from keywright.model.served import framing
from keywright.serve.configurations import Catalog
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import Jobs
from keywright.serve.metrics import Metrics
from keywright.serve.tenants.audit import Audit, alias
from keywright.serve.tenants.quotas import Usage
from keywright.serve.uploads.upload_store import UploadStore
from keywright.serve.uploads.uploaded import UploadedKeys
from keywright.serve.workers.workers import Worker, Workers

from .durations import Durations


@dataclass(frozen=True)
class Reports:
    """Where a service records its evaluations.

    Attributes:
        usage: processor seconds of tenants.
        audit: the audit file.
        metrics: counters.
        on_event: called with each message for the operator.
    """

    usage: Usage
    audit: Audit
    metrics: Metrics
    on_event: Callable[[str], object]


class JobExecution:
    """The execution of jobs.

    Args:
        catalog: the served models.
        store: the key sets.
        jobs: the accepted evaluations.
        workers: the processes that evaluate.
        reports: where evaluations are recorded.
        state: folder for models that were given without a folder.
        budget: maximum bytes of a worker for each model.

    Attributes:
        catalog, store, jobs, workers, reports: as given.
        durations: times of the evaluations that ended.
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
        self.catalog, self.store, self.jobs, self.workers, self.reports = (
            catalog,
            store,
            jobs,
            workers,
            reports,
        )
        self._folders = {name: model.folder_in(state) for name, model in catalog.models.items()}
        self._budget, self.durations = budget, Durations()

    def description(self, model: str) -> dict[str, Any]:
        """Return the description of a model for a worker."""
        return {"model": model, "folder": str(self._folders[model]), "budget": self._budget}

    def note(self, job: Job) -> None:
        """Record the use of keys in the audit file, once for each job."""
        if not job.noted:
            self.reports.audit.note(
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
            self.note(job)

    def run(self, worker: Worker, job: Job) -> float:
        """Run a job; raises the errors of `Worker.order`. Damaged keys are fetched again once."""
        uploaded, begun = self.store.get(job.owner, job.tenant), time.monotonic()
        try:
            try:
                end = self._order(worker, job, uploaded)
            except (UnknownKeysError, FileNotFoundError):
                if not self.store.fetch_again(uploaded):
                    raise
                end = self._order(worker, job, uploaded)
        except (UnknownKeysError, FileNotFoundError) as error:
            if self.store.intact(uploaded):
                raise EvaluationError(
                    "a worker cannot read keys that are here; is the folder of state shared with its machine?"
                ) from error
            self.store.delete(uploaded, "damaged")
            raise UnknownKeysError(
                "the stored keys are damaged or cannot be read; upload them again"
            ) from error
        except WorkerEndedError:
            self.reports.metrics.count("worker_deaths_total")
            raise
        for each in (job, *job.others):
            self.reports.metrics.observe("stage_seconds", begun - each.arrived, stage="wait")
        for stage, seconds in (("keys", end["loading"]), ("evaluate", end["seconds"])):
            self.reports.metrics.observe("stage_seconds", seconds, stage=stage)
        if job.others:
            self.reports.metrics.count("joined_total", len(job.others))
        self.reports.metrics.count("key_loads_total", place="memory" if end["hit"] else "disk")
        if end["evicted"]:
            self.reports.metrics.count("key_evictions_total", len(end["evicted"]))
        answer = self.jobs.answered(job, end.get("answer"))
        objects = framing.split(answer, self.catalog.model(job.model).message.outputs)
        # Record this before the jobs count as done, so that a later `seen` includes it.
        for each in (job, *job.others):
            if self.jobs.has(each):
                uploaded.note("sent", objects)
        return float(end["seconds"])

    def _order(self, worker: Worker, job: Job, uploaded: UploadedKeys) -> dict[str, Any]:
        """Let a worker evaluate a job; raises the errors of `Worker.order`."""
        together = (job, *job.others)
        model = self.catalog.model(job.model)
        with ExitStack() as stack:
            passed: dict[str, Any] = {}
            if self.workers.inline:
                keys = stack.enter_context(self.store.incoming(uploaded, model.key_places))
                path = keys if isinstance(keys, Path) else keys.path
                if not isinstance(keys, Path):
                    passed["incoming"] = keys.to_json()
            else:
                path = stack.enter_context(self.store.file(uploaded))
            if any(each.held for each in together):
                passed["bodies"] = [self.jobs.content(each) for each in together]
            else:
                messages = [stack.enter_context(self.jobs.message(each)) for each in together]
                passed["messages"] = [str(message) for message in messages]
                passed["answer"] = str(self.jobs.answer(job))
            try:
                end = worker.order(
                    job.advance,
                    partial(self._note_all, together),
                    do="evaluate",
                    job=job.identifier,
                    **self.description(model.hash),
                    keys=job.owner,
                    holder=job.holder,
                    bytes=model.keys.resident_bytes,
                    path=str(path),
                    digest=uploaded.digest,
                    **passed,
                )
            except ServeError as error:
                self._use(job, error.processor)
                raise
        self._use(job, end["processor"])
        return end

    def _use(self, job: Job, seconds: float) -> None:
        """Record the processor seconds of an evaluation."""
        try:
            self.reports.usage.use(job.tenant, seconds, job.holder)
        except OSError as error:
            self.reports.on_event(f"{seconds:.1f} processor seconds could not be recorded: {error}")

    def end(self, job: Job) -> None:
        """Record a job that ended."""
        self.durations.add(job)
        self.reports.metrics.count(
            "evaluations_total", outcome="done" if job.error is None else job.error.code
        )
        if job.error is not None:
            # The text may quote bytes of the client's message, and is for the client alone.
            self.reports.on_event(f"an evaluation failed: {job.error.code}")
            return
        self.reports.metrics.count("evaluation_seconds_total", job.seconds)
        self.reports.on_event(f"evaluated in {job.seconds:.2f} s")
