"""Brings jobs to workers: one thread a worker."""

import threading
import time
from collections.abc import Callable
from traceback import format_exception

from .errors import DiskError, EvaluationFailedError, ServeError, UnforeseenError
from .jobs import Job, Jobs
from .logs import on_behalf
from .workers import NotBegunError, Worker, WorkerEndedError, Workers

ATTEMPTS = 3
"""How often an evaluation is begun whose worker ended."""

KILL_EVERY_S = 0.1

DISK_S = 1.0
"""How long nothing is begun after the disk failed."""

Work = Callable[[Worker, Job], float]
"""Have a job done; the seconds that it took."""


class Dispatcher:
    """The threads that take jobs.

    Args:
        jobs: whose turn is whose.
        workers: who does them.
        work: how.
        on_end: called with every job that ended.
        on_event: told what happened to workers, and what nobody foresaw.
    """

    def __init__(
        self,
        jobs: Jobs,
        workers: Workers,
        work: Work,
        on_end: Callable[[Job], object],
        on_event: Callable[[str], object],
    ) -> None:
        self._jobs, self._workers, self._work = jobs, workers, work
        self._end, self._event = on_end, on_event
        self._running: dict[str, Worker] = {}
        self._given_up = False
        self._threads = [
            threading.Thread(target=self._run, name="keywright-jobs", daemon=True)
            for _ in range(workers.count)
        ]
        for thread in self._threads:
            thread.start()

    def cancel(self, job: Job) -> None:
        """Have a job end soon that runs."""
        worker = self._running.get(job.identifier)
        if worker is not None:
            worker.cancel(job.identifier)

    def close(self, limit: float | None = None) -> None:
        """Begin no more jobs, and end after those that run.

        Args:
            limit: seconds after which those that still run are given up, for the next process.
        """
        self._jobs.close()
        deadline = None if limit is None else time.monotonic() + limit
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        self._given_up = True
        # A job that began its worker's order meanwhile would be found by the next round.
        while any(thread.is_alive() for thread in self._threads):
            for worker in list(self._running.values()):
                worker.kill()
            for thread in self._threads:
                thread.join(KILL_EVERY_S)

    def _run(self) -> None:
        while (job := self._jobs.take()) is not None:
            try:
                with on_behalf(job.request):
                    if not self._do(job):
                        time.sleep(DISK_S)
            except Exception as error:  # noqa: BLE001 - a disk that is full ends no thread
                self._event(f"an evaluation could not be noted: {error!r}")

    def _do(self, job: Job) -> bool:
        """Have a job done. Returns False if the disk failed: the job waits again."""
        error: ServeError | None = None
        seconds = 0.0
        with self._workers.one() as worker:
            self._running[job.identifier] = worker
            try:
                seconds = self._work(worker, job)
            except WorkerEndedError as ended:
                if self._given_up:
                    self._event("an evaluation that ran is left to the next process")
                    self._jobs.give_up(job)
                    return True
                if isinstance(ended, NotBegunError):
                    self._event(f"{ended}; the evaluation waits again")
                    self._jobs.again(job, begun=False)
                    return True
                self._event(f"{ended}, attempt {job.attempts} of {ATTEMPTS}")
                if job.attempts < ATTEMPTS:
                    self._jobs.again(job)
                    return True
                error = EvaluationFailedError(f"{ended}, {ATTEMPTS} times")
            except UnforeseenError as unforeseen:
                self._event(unforeseen.unforeseen)
                error = ServeError(str(unforeseen))
            except (DiskError, OSError) as failed:
                self._event(f"{failed}; the evaluation waits again")
                self._jobs.again(job, begun=False)
                return False
            except ServeError as refused:
                error = refused
            except Exception as other:  # noqa: BLE001 - whatever it is, the client gets an answer
                self._event("".join(format_exception(other)).rstrip())
                error = ServeError(
                    "the evaluation failed for a reason that nobody foresaw; the server has it"
                )
            finally:
                del self._running[job.identifier]
        if error is not None and job.others:
            # Which of them is the cause is found by each for itself.
            self._event(f"evaluations that were joined failed, and are done one by one: {error}")
            self._jobs.alone(job)
        elif self._jobs.end(job, seconds, error):
            self._end(job)
        return True
