"""Sends jobs to workers, with one thread for each worker."""

import threading
import time
from collections.abc import Callable
from traceback import format_exception
from typing import Protocol

from keywright.errors.service import DiskError, EvaluationError, ServeError, UnknownJobError, WorkerEndedError
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import Jobs
from keywright.serve.logs import on_behalf
from keywright.serve.workers.workers import Worker, Workers

ATTEMPTS = 3
"""How often an evaluation is started before it fails, if its worker ends each time."""

KILL_EVERY_S = 0.1

DISK_S = 1.0
"""How long an evaluation waits after the disk failed."""


class Executor(Protocol):
    """What runs jobs."""

    def run(self, worker: Worker, job: Job) -> float:
        """Run a job on a worker; returns its seconds."""

    def end(self, job: Job) -> object:
        """Record a job that ended."""


class Dispatcher:
    """The threads that run jobs, from `start` on.

    Args:
        jobs: the queue.
        workers: the processes that evaluate.
        executor: runs each job on a worker.
        on_event: called with a message about every worker that ended and every unexpected error.
    """

    def __init__(
        self,
        jobs: Jobs,
        workers: Workers,
        executor: Executor,
        on_event: Callable[[str], object],
    ) -> None:
        self._jobs, self._workers, self._executor, self._event = jobs, workers, executor, on_event
        self._running: dict[str, Worker] = {}
        self._given_up = False
        self._threads = [
            threading.Thread(target=self._run, name="keywright-jobs", daemon=True)
            for _ in range(workers.count)
        ]

    def start(self) -> None:
        """Start to run jobs. Because jobs of an earlier process run at once, the executor must be ready."""
        for thread in self._threads:
            thread.start()

    def cancel(self, job: Job) -> None:
        """Cancel a job that runs."""
        worker = self._running.get(job.identifier)
        if worker is not None:
            worker.cancel(job.identifier)

    def close(self, limit: float | None = None) -> None:
        """Start no more jobs, and return after those that run.

        Args:
            limit: seconds after which running jobs are left to the next process.
        """
        self._jobs.close()
        deadline = None if limit is None else time.monotonic() + limit
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        self._given_up = True
        # A job may have started its worker's order meanwhile; the next round finds it.
        while any(thread.is_alive() for thread in self._threads):
            for worker in list(self._running.values()):
                worker.kill()
            for thread in self._threads:
                thread.join(KILL_EVERY_S)

    def _run(self) -> None:
        while (job := self._jobs.take()) is not None:
            try:
                with on_behalf(job.request):
                    self._do(job)
            except Exception as error:  # noqa: BLE001 - a full disk must not end the thread
                self._event(f"an evaluation could not be recorded: {error!r}")

    def _do(self, job: Job) -> None:
        """Run a job."""
        error: ServeError | None = None
        seconds = 0.0
        with self._workers.one() as worker:
            self._running[job.identifier], begun = worker, time.monotonic()
            try:
                seconds = self._executor.run(worker, job)
            except WorkerEndedError as ended:
                if self._given_up:
                    self._event("a running evaluation is left to the next process")
                    self._jobs.leave(job)
                    return
                if ended.code == "not_begun":
                    self._event(f"{ended}; the evaluation is queued again")
                    self._jobs.requeue(job, begun=False)
                    return
                self._event(f"{ended}, attempt {job.attempts} of {ATTEMPTS}")
                if job.attempts < ATTEMPTS:
                    self._jobs.requeue(job)
                    return
                error = EvaluationError(f"{ended}, {ATTEMPTS} times")
            except (DiskError, OSError, UnknownJobError) as failed:
                self._wait(job, failed)
                return
            except ServeError as refused:
                if refused.unforeseen:
                    self._event(refused.unforeseen)
                error = refused
            except Exception as other:  # noqa: BLE001 - the client gets an answer for every exception
                self._event("".join(format_exception(other)).rstrip())
                error = ServeError("the evaluation failed for an unexpected reason; see the server's log")
            finally:
                del self._running[job.identifier]
                self._jobs.charge(job, time.monotonic() - begun)
        if error is not None and job.others:
            # Run each alone to find which one is the cause.
            self._event(f"joined evaluations failed and are run one by one: {error.code}")
            self._jobs.requeue_each(job)
        elif self._jobs.end(job, seconds, error):
            self._executor.end(job)

    def _wait(self, job: Job, failed: ServeError | OSError) -> None:
        """Queue jobs again for which the disk failed: later, unless one of them was deleted meanwhile, and
        its message with it."""
        if all(map(self._jobs.has, (job, *job.others))):
            # The text of a system's error names a file.
            reason = failed.strerror if isinstance(failed, OSError) else failed
            self._event(f"{reason}; the evaluation is queued again")
            self._jobs.requeue(job, begun=False, after=DISK_S)
        else:
            self._jobs.requeue(job, begun=False)
