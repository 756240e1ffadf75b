"""Evaluations, one after the other: each uses all threads of the engine."""

import contextlib
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Literal

from keywright.errors import KeywrightError

from .errors import BusyError, NotDoneError, ServeError, UnknownJobError

KEPT = 64
"""Jobs that are remembered after they are done."""


@dataclass
class Job:
    """An evaluation for one client.

    Attributes:
        identifier: 32 hexadecimal digits.
        owner: identifier of the keys.
        total: steps that it takes.
        state: where it is.
        done: steps that are done.
        seconds: what the evaluation took.
        result: bytes of the ciphertexts of the answer.
        error: why it failed.
        unforeseen: the traceback of what was raised that nobody expected.
        work: what is done, with its inputs; None once it has begun.
    """

    identifier: str
    owner: str
    total: int
    work: Callable[["Job"], list[bytes]] | None = field(repr=False)
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    done: int = 0
    seconds: float = 0.0
    result: Sequence[bytes] = field(default=(), repr=False)
    error: ServeError | None = None
    unforeseen: str | None = None

    def step(self) -> None:
        """Count a step."""
        self.done += 1

    def to_json(self) -> dict[str, object]:
        """What a client is told."""
        entry: dict[str, object] = {
            "job": self.identifier,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "seconds": round(self.seconds, 3),
        }
        return entry | ({} if self.error is None else self.error.reason())


class Worker:
    """The thread that evaluates.

    Args:
        waiting: how many jobs may wait.
        on_end: called with every job that ended.
    """

    def __init__(self, waiting: int = 8, on_end: Callable[[Job], object] | None = None) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue(waiting)
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._on_end = on_end
        self._thread = threading.Thread(target=self._run, name="keywright-worker", daemon=True)
        self._thread.start()

    def submit(self, owner: str, total: int, work: Callable[[Job], list[bytes]]) -> Job:
        """Queue an evaluation.

        Raises:
            BusyError: as many wait as may.
        """
        job = Job(secrets.token_hex(16), owner, total, work)
        with self._lock:
            try:
                self._queue.put_nowait(job)
            except queue.Full:
                raise BusyError(f"{self._queue.maxsize} evaluations wait; ask again later") from None
            self._jobs[job.identifier] = job
            ended = [key for key, kept in self._jobs.items() if kept.state in ("done", "failed")]
            for key in ended[: max(0, len(ended) - KEPT)]:
                del self._jobs[key]
        return job

    def get(self, identifier: str) -> Job:
        """The job of an identifier.

        Raises:
            UnknownJobError: there is none.
        """
        with self._lock:
            job = self._jobs.get(identifier)
        if job is None:
            raise UnknownJobError("no evaluation of that identifier is here (any more)")
        return job

    def result(self, identifier: str) -> Sequence[bytes]:
        """The answer of a job.

        Raises:
            UnknownJobError: there is none.
            NotDoneError: it is not finished.
            ServeError: why it failed.
        """
        job = self.get(identifier)
        if job.error is not None:
            raise job.error
        if job.state != "done":
            raise NotDoneError(f"{job.done} of {job.total} steps are done; ask again later")
        return job.result

    def forget(self, owner: str) -> None:
        """Drop the jobs of a client; one that runs ends, and its answer is dropped."""
        with self._lock:
            for key in [key for key, job in self._jobs.items() if job.owner == owner]:
                del self._jobs[key]

    def close(self) -> None:
        """End after the job that runs; those that wait are dropped."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.identifier not in self._jobs:
                    continue
            self._do(job)
            if self._on_end is not None:
                # Who watches ends no thread.
                with contextlib.suppress(Exception):
                    self._on_end(job)

    def _do(self, job: Job) -> None:
        """Run one job. Nothing that it raises ends the thread, and nothing of its inputs is kept."""
        work, job.work = job.work, None
        if work is None:
            return
        job.state = "running"
        start = time.perf_counter()
        try:
            job.result = work(job)
            job.seconds = time.perf_counter() - start
            job.state = "done"
        except ServeError as error:
            # Without its traceback, which keeps what was computed with.
            job.error, job.state = type(error)(str(error), **error.details), "failed"
        except (KeywrightError, OSError, MemoryError) as error:
            job.error, job.state = ServeError(f"the evaluation failed: {error}"), "failed"
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread goes on
            job.unforeseen = "".join(format_exception(error)).rstrip()
            reason = "the evaluation failed for a reason that nobody foresaw; the server has it"
            job.error, job.state = ServeError(reason), "failed"
