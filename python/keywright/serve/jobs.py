"""Evaluations that were asked for: on the disk until they are fetched, and whose turn it is."""

import contextlib
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .errors import REFUSALS, BusyError, NotDoneError, ServeError, UnknownJobError
from .storage import Row, Storage
from .storage.objects import drawer

State = Literal["waiting", "running", "done", "failed"]

FETCHED_S = 60.0
"""How long an answer is kept that was fetched: the connection may have broken."""

EACH = 8
"""Evaluations of one client that wait."""

MAX_PRIORITY = 9


@dataclass
class Job:
    """An evaluation for one client.

    Attributes:
        identifier: 32 hexadecimal digits.
        owner: identifier of the keys.
        model: hash of the model.
        priority: 0 to `MAX_PRIORITY`: of one client's, larger ones first.
        total: steps that it takes.
        state: where it is.
        attempts: how often it was begun.
        done: steps that are done.
        seconds: what the evaluation took.
        error: why it failed.
        touched: when it ended or was fetched, in seconds of a clock that nobody sets.
        fetched: whether its answer was.
        tenant: whose it is.
        request: identifier of the request that asked for it, for logs; empty after a restart.
        message_bytes, answer_bytes: what is kept of it.
        asked: when this process had it first, by the clock of `touched`.
        places: of samples, those that it has; None if it leaves none to others.
        others: evaluated with it, their samples at other places.
    """

    identifier: str
    owner: str
    model: str
    priority: int
    total: int
    state: State = "waiting"
    attempts: int = 0
    done: int = 0
    seconds: float = 0.0
    error: ServeError | None = None
    touched: float = 0.0
    fetched: bool = False
    tenant: str = ""
    request: str = ""
    message_bytes: int = 0
    answer_bytes: int = 0
    asked: float = field(default_factory=time.monotonic)
    places: range | None = None
    others: list["Job"] = field(default_factory=list)

    @property
    def client(self) -> str:
        """Whose turn is its: the tenant's, or of whoever has the keys where there are no accounts."""
        return self.tenant or self.owner

    def joins(self, other: "Job") -> bool:
        """Whether another one can be evaluated with it and those that are."""
        if other.places is None or (other.owner, other.model) != (self.owner, self.model):
            return False
        return all(
            job.places is not None and _apart(job.places, other.places) for job in (self, *self.others)
        )

    def advance(self, done: int) -> None:
        """Note how many steps are done."""
        for job in (self, *self.others):
            job.done = done

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


def _apart(one: range, other: range) -> bool:
    return one.stop <= other.start or other.stop <= one.start


def _message(job: Job) -> str:
    """The object with the ciphertexts of a job."""
    return f"jobs/{drawer(job.tenant)}/{job.identifier}.message"


def _answer(job: Job) -> str:
    """The object with its answer."""
    return f"jobs/{drawer(job.tenant)}/{job.identifier}.answer"


class Jobs:
    """The jobs of a service. Each client with waiting jobs has a turn after every other one.

    Args:
        storage: where messages, answers and the rest are. Jobs of an earlier process that had not ended wait
            again.
        waiting: how many may wait, of all clients.
    """

    def __init__(self, storage: Storage, waiting: int = 256) -> None:
        self._objects, self._records, self.waiting = storage.objects, storage.records, waiting
        self._turn = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._queues: OrderedDict[str, list[Job]] = OrderedDict()
        self._number, self._ended = 0, False
        self.on_end: Callable[[str], object] = lambda identifier: None
        # Of evaluations: a mean in which the last one counts for a quarter.
        self._seconds = 0.0
        there = self._objects.sizes("jobs/")
        for row in self._records.jobs():
            self._recover(row, there)
        known = {name for job in self._jobs.values() for name in (_message(job), _answer(job))}
        self._objects.delete(name for name in there if name not in known)

    def _recover(self, row: Row, there: Mapping[str, int]) -> None:
        identifier, self._number = str(row["job"]), int(str(row["number"])) + 1
        priority, total, attempts = (int(str(row[name])) for name in ("priority", "total", "attempts"))
        job = Job(identifier, str(row["owner"]), str(row["model"]), priority, total, attempts=attempts)
        job.seconds, job.touched = float(str(row["seconds"])), time.monotonic()
        job.tenant = str(row["tenant"])
        job.message_bytes, job.answer_bytes = there.get(_message(job), 0), there.get(_answer(job), 0)
        if row["state"] == "failed":
            code, _, text = str(row["error"]).partition(" ")
            job.state, job.error = "failed", REFUSALS.get(code, ServeError)(text)
        elif _answer(job) in there:
            job.state, job.done = "done", job.total
        elif _message(job) in there:
            self._put(job)
        else:
            self._records.delete_job(identifier)
            return
        self._jobs[identifier] = job

    def message(self, job: Job) -> AbstractContextManager[Path]:
        """The ciphertexts of a job as a file, which stays within the context."""
        return self._objects.file([_message(job)])

    def answer(self, job: Job) -> Path:
        """Where a worker writes its answer; `answered` takes it then."""
        return self._objects.made(_answer(job))

    def answered(self, job: Job) -> bytes:
        """Take over the answer that a worker has written, also for those that were evaluated with it, and
        read it."""
        self._objects.adopt(_answer(job))
        data = self._objects.read(_answer(job))
        job.answer_bytes = len(data)
        for other in job.others:
            self._objects.put(_answer(other), data)
            other.answer_bytes = len(data)
        return data

    def patience(self) -> int:
        """Seconds, at least 1, after which those that wait now are about done, as long as the last took."""
        with self._turn:
            return self._patience()

    def _patience(self) -> int:
        running = sum(job.state == "running" for job in self._jobs.values())
        return max(1, math.ceil(self._seconds * (1 + len(self) / max(1, running))))

    def counts(self) -> tuple[int, int]:
        """How many jobs wait, and how many run."""
        with self._turn:
            return len(self), sum(job.state == "running" for job in self._jobs.values())

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(
        self,
        owner: str,
        model: str,
        total: int,
        message: bytes,
        priority: int = 0,
        tenant: str = "",
        places: range | None = None,
        admit: Callable[[str], object] | None = None,
    ) -> Job:
        """Accept a job: it is on the disk when this returns. Its places are not: after a restart it is
        evaluated alone.

        Args:
            admit: called with its identifier before it is; what it raises refuses the job.

        Raises:
            BusyError: as many wait as may, of all clients or of this one.
        """
        with self._turn:
            for most, count in (
                (EACH, len(self._queues.get(tenant or owner, ()))),
                (self.waiting, len(self)),
            ):
                if count >= most:
                    raise BusyError(f"{most} evaluations wait; ask again later", retry_after=self._patience())
            job = Job(secrets.token_hex(16), owner, model, priority, total, tenant=tenant, places=places)
            job.message_bytes = len(message)
            if admit is not None:
                admit(job.identifier)
            self._objects.put(_message(job), message)
            row: Row = {"job": job.identifier, "owner": owner, "model": model, "priority": priority}
            row["tenant"] = tenant
            row |= {"state": "waiting", "attempts": 0, "total": total, "seconds": 0.0, "number": self._number}
            try:
                self._records.add_job(row)
            except OSError:
                self._drop([_message(job)])
                raise
            self._number += 1
            self._jobs[job.identifier] = job
            self._put(job)
            self._turn.notify()
        return job

    def _put(self, job: Job) -> None:
        """Have a job wait, behind those of its client that are as urgent."""
        waiting = self._queues.setdefault(job.client, [])
        place = next((i for i, other in enumerate(waiting) if other.priority < job.priority), len(waiting))
        waiting.insert(place, job)

    def take(self) -> Job | None:
        """The job whose turn it is, which then runs, with those of its client that can be evaluated with it;
        waits for one. None after `close`."""
        with self._turn:
            while not self._queues and not self._ended:
                self._turn.wait()
            if self._ended:
                return None
            owner, waiting = next(iter(self._queues.items()))
            job = waiting.pop(0)
            for other in list(waiting):
                if job.joins(other):
                    waiting.remove(other)
                    job.others.append(other)
            # Its client comes after all the others.
            del self._queues[owner]
            if waiting:
                self._queues[owner] = waiting
            for each in (job, *job.others):
                each.state, each.attempts, each.done = "running", each.attempts + 1, 0
                # Where the disk is full, a process that is killed now forgets that it began.
                with contextlib.suppress(OSError):
                    self._records.set_job(each.identifier, state="running", attempts=each.attempts)
            return job

    def again(self, job: Job, *, begun: bool = True) -> None:
        """Have a job wait again whose worker ended. That is no attempt if it had not ``begun``."""
        with self._turn:
            for each in self._parted(job):
                each.state, each.attempts = "waiting", each.attempts - (not begun)
                self._queues.setdefault(each.client, []).insert(0, each)
                self._turn.notify()

    def _parted(self, job: Job) -> list[Job]:
        """A job and those that were evaluated with it, the last first, as far as anybody waits for them."""
        group, job.others = [job, *job.others], []
        return [each for each in reversed(group) if each.identifier in self._jobs]

    def alone(self, job: Job) -> None:
        """Have jobs wait again that cannot be evaluated together: each is then evaluated alone."""
        with self._turn:
            for each in (job, *job.others):
                each.places = None
        self.again(job, begun=False)

    def give_up(self, job: Job) -> None:
        """Leave a job that runs to the next process, as if it had not begun."""
        with self._turn:
            for each in self._parted(job):
                each.state, each.attempts = "waiting", each.attempts - 1
                self._queues.setdefault(each.client, []).insert(0, each)
                self._records.set_job(each.identifier, state="waiting", attempts=each.attempts)

    def end(self, job: Job, seconds: float = 0.0, error: ServeError | None = None) -> bool:
        """Note how a job ended, and those that were evaluated with it; their messages go. Returns False if
        nobody waits for any of them any more."""
        others, job.others = job.others, []
        ended = [self._end(each, seconds, error) for each in (job, *others)]
        for each in (job, *others):
            self.on_end(each.identifier)
        return any(ended)

    def _end(self, job: Job, seconds: float, error: ServeError | None) -> bool:
        with self._turn:
            if job.identifier not in self._jobs:
                self._drop([_message(job), _answer(job)])
                return False
            job.seconds, job.error, job.touched = seconds, error, time.monotonic()
            job.state = "done" if error is None else "failed"
            if error is None:
                self._seconds += (seconds - self._seconds) / (4 if self._seconds else 1)
            text = None if error is None else f"{error.code} {error}"
            # Where the disk is full, the answer says that it is done, and the message that it is to be done.
            with contextlib.suppress(OSError):
                self._records.set_job(job.identifier, state=job.state, seconds=seconds, error=text)
                self._drop([_message(job)])
            job.message_bytes = 0
            return True

    def get(self, identifier: str) -> Job:
        """The job of an identifier.

        Raises:
            UnknownJobError: there is none.
        """
        job = self._jobs.get(identifier)
        if job is None:
            raise UnknownJobError("no evaluation of that identifier is here (any more)")
        return job

    def fetch(self, identifier: str) -> bytes:
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
        answer = self._objects.read(_answer(job))
        job.fetched, job.touched = True, time.monotonic()
        return answer

    def delete(self, jobs: Sequence[Job]) -> None:
        """Drop jobs with their messages and answers. What is computed of one that runs goes when it ends."""
        with self._turn:
            for job in jobs:
                if self._jobs.pop(job.identifier, None) is None:
                    continue
                if job in self._queues.get(job.client, ()):
                    self._queues[job.client].remove(job)
                    if not self._queues[job.client]:
                        del self._queues[job.client]
                self._drop([_message(job), _answer(job)])
                self._records.delete_job(job.identifier)

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._objects.forget([name])
        self._objects.delete(names)

    def all(self) -> list[Job]:
        """The jobs of all clients."""
        with self._turn:
            return list(self._jobs.values())

    def stored(self, tenant: str) -> int:
        """Bytes that are kept of a tenant's jobs."""
        with self._turn:
            own = [job for job in self._jobs.values() if job.tenant == tenant]
            return sum(job.message_bytes + job.answer_bytes for job in own)

    def of(self, owner: str) -> list[Job]:
        """The jobs of a client."""
        with self._turn:
            return [job for job in self._jobs.values() if job.owner == owner]

    def expire(self, after: float) -> None:
        """Drop what ended long ago, or was fetched a minute ago."""
        now = time.monotonic()
        with self._turn:
            ended = [job for job in self._jobs.values() if job.state in ("done", "failed")]
            old = [job for job in ended if now - job.touched > (FETCHED_S if job.fetched else after)]
        self.delete(old)

    def close(self) -> None:
        """Have `take` return None; those that wait stay on the disk."""
        with self._turn, contextlib.suppress(RuntimeError):
            self._ended = True
            self._turn.notify_all()
