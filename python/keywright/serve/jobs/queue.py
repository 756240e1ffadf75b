"""The queue of evaluations, fair between holders. Jobs are on the disk until their answers are fetched."""

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from keywright.errors.service import REFUSALS, BusyError, EvaluationError, ServeError, UnknownJobError
from keywright.serve.storage import Row, Storage
from keywright.serve.storage.objects import tenant_digest
from keywright.serve.tenants.fair_queue import FairQueue
from keywright.serve.tenants.holders import items_of_largest, totals_of

from .job import Job, Reservation

FETCHED_S = 60.0
"""How long an answer is kept after it was fetched: the connection may have broken."""

WAITING = 256
"""Number of waiting evaluations. A holder has no more of them than it leaves to others, but always one."""

EACH = 8
"""Maximum number of waiting evaluations per key set."""

OTHERS_S, LOOK_EVERY_S = 30.0, 1.0
"""How long a holder counts as served after its last evaluation arrived, and how often that is checked."""

BLOCK_S, REST_S = 1.0, 2.0
"""An only worker rests from a holder that had it for more than half of the time, each `BLOCK_S` of use, if
another holder sent an evaluation in the last `REST_S`, and for no longer. A client that asks again when it
has its answer would otherwise find the worker busy each time (deceptive idleness: Iyer and Druschel,
Anticipatory scheduling, SOSP 2001)."""

MAX_ENDED = 4096
"""Maximum number of answers that are kept. The holder with the most loses its oldest for the next."""


def _message(job: Job) -> str:
    """Return the name of the object with the ciphertexts of a job."""
    return f"jobs/{tenant_digest(job.tenant)}/{job.identifier}.message"


def _answer(job: Job) -> str:
    """Return the name of the object with its answer."""
    return f"jobs/{tenant_digest(job.tenant)}/{job.identifier}.answer"


class Jobs:
    """The jobs of a service. Holders with waiting jobs share the time of the workers, and the key sets of a
    holder take turns. The event loop takes the lock, too, so no disk is waited for while it is held.

    Args:
        storage: where messages, answers and records are. Unfinished jobs of an earlier process are queued
            again.
        waiting: see `WAITING`.
        workers: evaluations at a time. While several holders are served, none runs more than half of them.
    """

    def __init__(self, storage: Storage, waiting: int = WAITING, workers: int = 1) -> None:
        self._objects, self._records, self.waiting = storage.objects, storage.records, waiting
        self._turn = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._queue, self._later = FairQueue[Job](), list[Job]()
        self._reserved: set[Reservation] = set()
        self._workers, self._seen = workers, dict[str, float]()
        """When each holder sent its last evaluation, for `OTHERS_S`."""
        self._used, self._rests = dict[str, tuple[float, float]](), dict[str, float]()
        """Begin and use of a block of each holder, and until when an only worker rests from it."""
        self._ended = False
        self._watchers: dict[str, list[Callable[[], object]]] = {}
        # Duration of evaluations: a running mean in which the last one has weight one quarter.
        self._seconds = 0.0
        there = self._objects.sizes("jobs/")
        rows = self._records.jobs()
        self._numbers = itertools.count(max((int(str(row["number"])) + 1 for row in rows), default=0))
        """Order in which jobs are recovered."""
        for row in rows:
            self._recover(row, there)
        known = {name for job in self._jobs.values() for name in (_message(job), _answer(job))}
        self._objects.delete(name for name in there if name not in known)

    def _recover(self, row: Row, there: Mapping[str, int]) -> None:
        identifier = str(row["job"])
        priority, total, attempts = (int(str(row[name])) for name in ("priority", "total", "attempts"))
        owner, model, tenant, holder = (str(row[name]) for name in ("owner", "model", "tenant", "holder"))
        job = Job(identifier, owner, model, priority, total, tenant, holder)
        job.attempts, job.seconds = attempts, float(str(row["seconds"]))
        job.touched = time.monotonic()
        job.message_bytes, job.answer_bytes = there.get(_message(job), 0), there.get(_answer(job), 0)
        if row["state"] == "failed":
            code, _, text = str(row["error"]).partition(" ")
            job.state, job.error = (
                "failed",
                REFUSALS[code][1](text, code=code) if code in REFUSALS else ServeError(text),
            )
        elif _answer(job) in there:
            job.state, job.done = "done", job.total
        elif _message(job) in there:
            self._put(job)
        else:
            self._records.delete_job(identifier)
            return
        self._jobs[identifier] = job

    @contextlib.contextmanager
    def message(self, job: Job) -> Iterator[Path]:
        """Return the ciphertexts of a job as a file, which exists within the context, unless the job is
        deleted; errors as for `content`."""
        with contextlib.ExitStack() as stack:
            with self._missing_as_deleted(job):
                path = stack.enter_context(self._objects.file([_message(job)]))
            yield path

    def answer(self, job: Job) -> Path:
        """Return the path where a worker writes its answer; `answered` adopts it."""
        return self._objects.output_path(_answer(job))

    def content(self, job: Job) -> bytes:
        """Return the ciphertexts of a job.

        Raises:
            UnknownJobError: it was deleted meanwhile.
        """
        with self._turn:
            if job.held:
                return job.message
        with self._missing_as_deleted(job):
            return self._objects.read(_message(job))

    @contextlib.contextmanager
    def _missing_as_deleted(self, job: Job) -> Iterator[None]:
        """Say of a file that is missing that its job was deleted, if it was."""
        try:
            yield
        except FileNotFoundError as error:
            if self.has(job):
                raise
            raise UnknownJobError("the evaluation was deleted meanwhile") from error

    def answered(self, job: Job, answer: bytes | None = None) -> bytes:
        """Take over the answer of a job and of the jobs evaluated with it. The answer is ``answer``, or the
        file that a worker has written."""
        data = answer
        if data is None:
            self._objects.adopt(_answer(job))
            data = self._objects.read(_answer(job))
        for each in (job, *job.others):
            each.answer_bytes = len(data)
            with self._turn:
                if each.held:
                    each.answer = data
                    continue
            if each is not job or answer is not None:
                self._objects.put(_answer(each), data)
        return data

    def patience(self) -> int:
        """Estimate the seconds, at least 1, until the waiting jobs are done, from the duration of recent
        ones."""
        with self._turn:
            return self._patience()

    def _patience(self) -> int:
        running = sum(job.state == "running" for job in self._jobs.values())
        return max(1, math.ceil(self._seconds * (1 + len(self) / max(1, running))))

    def counts(self) -> tuple[int, int]:
        """Return how many jobs wait, and how many run."""
        with self._turn:
            return len(self), sum(job.state == "running" for job in self._jobs.values())

    def __len__(self) -> int:
        return len(self._queue) + len(self._later)

    def add(
        self,
        job: Job,
        message: bytes,
        place: Reservation | None = None,
    ) -> Job:
        """Accept a job and write it to the disk, unless it is held; returns it.

        Args:
            message: its ciphertexts.
            place: its reservation, which is used up; by default the job is admitted now.

        Raises:
            BusyError: `EACH` jobs of these keys wait, or too many of the holder.
        """
        with contextlib.ExitStack() as stack:
            if place is None:
                place = stack.enter_context(self.reserve(job.owner, job.tenant, job.holder, len(message)))
            job.message_bytes = len(message)
            if job.held:
                job.message = message
            else:
                self._store(job, message)
            with self._turn:
                self._reserved.discard(place)
                self._jobs[job.identifier] = job
                self._seen[job.holder] = time.monotonic()
                self._put(job)
                self._turn.notify()
        return job

    def _require_place(self, holder: str, owner: str) -> None:
        others: list[Job | Reservation] = [*self._reserved, *self._later]
        own = len(self._queue.line(holder, owner)) + sum(place.owner == owner for place in others)
        held = self._queue.count(holder) + sum(place.holder == holder for place in others)
        left = self.waiting - len(self) - len(self._reserved)
        for count, most in ((own, EACH), (held, max(1, left))):
            if count >= most:
                raise BusyError(f"{count} evaluations wait; ask again later", retry_after=self._patience())

    @contextlib.contextmanager
    def reserve(self, owner: str, tenant: str, holder: str, size: int) -> Iterator[Reservation]:
        """Reserve a place in the queue, and the bytes of a message, before the message arrives; `add` uses it
        up.

        Raises:
            BusyError: see `add`.
        """
        place = Reservation(owner, tenant, holder, size)
        with self._turn:
            self._require_place(holder, owner)
            self._reserved.add(place)
        try:
            yield place
        finally:
            with self._turn:
                self._reserved.discard(place)

    def _store(self, job: Job, message: bytes) -> None:
        """Write a job to the disk."""
        self._objects.put(_message(job), message)
        row: Row = {"job": job.identifier, "owner": job.owner, "model": job.model, "priority": job.priority}
        row |= {"tenant": job.tenant, "state": job.state, "attempts": job.attempts, "total": job.total}
        row |= {"holder": job.holder, "seconds": 0.0, "number": next(self._numbers)}
        try:
            self._records.add_job(row)
        except OSError:
            self._drop([_message(job)])
            raise

    def keep(self, job: Job) -> None:
        """Write a held job that has not ended to the disk.

        Raises:
            OSError: the disk fails.
        """
        with self._turn:
            if not self._is_still_held(job):
                return
            message, state = job.message, job.state
        self._store(job, message)
        with self._turn:
            kept = self._is_still_held(job)
            if kept:
                job.held, job.message = False, b""
        if not kept:
            self._drop([_message(job)])
            self._records.delete_job(job.identifier)
        elif job.state != state:
            self._note(job, state=job.state, attempts=job.attempts)

    def _is_still_held(self, job: Job) -> bool:
        """Whether a job is held, was not deleted and has not ended."""
        ended = job.answer or job.state not in ("waiting", "running")
        return job.held and not ended and job.identifier in self._jobs

    def release(self, job: Job) -> bytes:
        """Return the answer of a held job that has ended, and drop the job.

        Raises:
            ServeError: the reason of its failure.
        """
        self.delete([job])
        if job.error is not None:
            raise job.error
        return job.answer

    def _put(self, job: Job) -> None:
        """Queue a job behind the jobs of its keys of at least the same priority."""
        waiting = self._queue.line(job.holder, job.owner)
        place = next((i for i, other in enumerate(waiting) if other.priority < job.priority), len(waiting))
        self._queue.put(job, job.holder, job.owner, place)

    def take(self) -> Job | None:
        """Take the next job, with the jobs of its keys that can be evaluated with it, and mark them as
        running. Waits for a job. Returns None after `close`."""
        with self._turn:
            self._queue_due()
            while self._queue.following(busy := self._busy()) is None and not self._ended:
                self._turn.wait(self._pause() if len(self) else None)
                self._queue_due()
            if self._ended:
                return None
            job = self._queue.take(busy)
            for other in self._queue.line(job.holder, job.owner):
                if job.joins(other):
                    self._queue.discard(other, job.holder, job.owner)
                    job.others.append(other)
            for each in (job, *job.others):
                each.state, each.attempts, each.done = "running", each.attempts + 1, 0
        for each in (job, *job.others):
            # On a full disk, a process that is killed now forgets that the job began.
            with contextlib.suppress(OSError):
                self._note(each, state="running", attempts=each.attempts)
        return job

    def _busy(self) -> set[str]:
        """Return the holders that have half of the workers while others are served, or half of the time of
        the only one."""
        now = time.monotonic()
        self._seen = {name: then for name, then in self._seen.items() if then > now - OTHERS_S}
        self._rests = {name: until for name, until in self._rests.items() if until > now}
        self._used = {name: block for name, block in self._used.items() if block[0] > now - OTHERS_S}
        if self._workers == 1:
            recent = [name for name, then in self._seen.items() if then > now - REST_S]
            return {name for name in self._rests if set(recent) - {name}}
        running = [job for job in self._jobs.values() if job.state == "running"]
        joined = {id(other) for job in running for other in job.others}
        counts = totals_of(job for job in running if id(job) not in joined)
        half = math.ceil(self._workers / 2)
        return {name for name, count in counts.items() if count >= half and self._seen.keys() - {name}}

    def charge(self, job: Job, seconds: float) -> None:
        """Count the time of a worker that a job took, whatever its outcome."""
        with self._turn:
            self._queue.charge(job.holder, seconds)
            now = time.monotonic()
            begin, used = self._used.pop(job.holder, (0.0, 0.0))
            if begin + 2 * used < now - seconds:
                begin, used = now - seconds, 0.0
            used += seconds
            if used < BLOCK_S:
                self._used[job.holder] = begin, used
            else:
                self._rests[job.holder] = min(begin + 2 * used, now + REST_S)

    def _pause(self) -> float:
        """Return the seconds after which `take` looks again."""
        ends = (*self._rests.values(), *(job.due for job in self._later))
        return max(0.0, min([LOOK_EVERY_S, *(until - time.monotonic() for until in ends)]))

    def requeue(self, job: Job, *, begun: bool = True, after: float = 0.0) -> None:
        """Queue a job again after its worker ended, with those joined with it; deleted ones are left out.

        Args:
            begun: whether this counts as an attempt.
            after: seconds in which others have their turns.
        """
        with self._turn:
            for each in self._split(job):
                each.state, each.attempts = "waiting", each.attempts - (not begun)
                each.due = time.monotonic() + after
                self._later.append(each)
            self._queue_due()
            self._turn.notify()

    def _queue_due(self) -> None:
        """Queue the jobs that have waited for as long as they should."""
        now = time.monotonic()
        due, self._later = (
            [job for job in self._later if job.due <= now],
            [job for job in self._later if job.due > now],
        )
        for job in due:
            self._queue.put(job, job.holder, job.owner, 0)

    def _split(self, job: Job) -> list[Job]:
        """Split a job from those joined with it, the last first; cancelled ones are left out."""
        group, job.others = [job, *job.others], []
        return [each for each in reversed(group) if each.identifier in self._jobs]

    def requeue_each(self, job: Job) -> None:
        """Queue jobs again that cannot be evaluated together: each is then evaluated alone."""
        with self._turn:
            for each in (job, *job.others):
                each.places = None
        self.requeue(job, begun=False)

    def leave(self, job: Job) -> None:
        """Leave a running job to the next process, as if it had not begun."""
        with self._turn:
            waiting = self._split(job)
            for each in waiting:
                each.state, each.attempts = "waiting", each.attempts - 1
                self._queue.put(each, each.holder, each.owner, 0)
        for each in waiting:
            self._note(each, state="waiting", attempts=each.attempts)

    def _note(self, job: Job, **row: object) -> None:
        """Update the stored record of a job, if there is one."""
        if not job.held:
            self._records.set_job(job.identifier, **row)

    def end(self, job: Job, seconds: float = 0.0, error: ServeError | None = None) -> bool:
        """Record the end of a job and of those evaluated with it, and delete their messages. Returns False if
        all of them were cancelled."""
        others, job.others = job.others, []
        ended = [self._end(each, seconds, error) for each in (job, *others)]
        for each in (job, *others):
            self._tell(each)
        return any(ended)

    @contextlib.contextmanager
    def watched(self, job: Job, tell: Callable[[], object]) -> Iterator[None]:
        """Have a function called when a job ends or is deleted within the context, by any thread."""
        with self._turn:
            self._watchers.setdefault(job.identifier, []).append(tell)
        try:
            yield
        finally:
            with self._turn:
                self._watchers[job.identifier].remove(tell)
                if not self._watchers[job.identifier]:
                    del self._watchers[job.identifier]

    def _tell(self, job: Job) -> None:
        for tell in tuple(self._watchers.get(job.identifier, ())):
            tell()

    def _end(self, job: Job, seconds: float, error: ServeError | None) -> bool:
        surplus: list[Job] = []
        with self._turn:
            known = job.identifier in self._jobs
            if known:
                job.seconds, job.error, job.touched = seconds, error, time.monotonic()
                job.state = "done" if error is None else "failed"
                if error is None:
                    job.done = job.total
                    self._seconds += (seconds - self._seconds) / (4 if self._seconds else 1)
                job.message_bytes, job.message = 0, b""
                if len(self._jobs) > MAX_ENDED and len(kept := self._kept()) > MAX_ENDED:
                    surplus.append(min(items_of_largest(kept), key=lambda each: each.touched))
        if not known:
            if not job.held:
                self._drop([_message(job), _answer(job)])
            return False
        text = None if error is None else f"{error.code} {error}"
        # On a full disk the record may be missing: the answer says that the job is done, the message that
        # it is not.
        with contextlib.suppress(OSError):
            self._note(job, state=job.state, seconds=seconds, error=text)
            if not job.held:
                self._drop([_message(job)])
        with contextlib.suppress(OSError):
            self.delete(surplus)
        return True

    def _kept(self) -> list[Job]:
        """Return the jobs that have ended and are kept for their clients."""
        return [job for job in self._jobs.values() if job.state in ("done", "failed") and not job.held]

    def has(self, job: Job) -> bool:
        """Return whether a job exists: its request waits, or a client may fetch its answer."""
        return job.identifier in self._jobs

    def get(self, identifier: str) -> Job:
        """Return the job of an identifier.

        Raises:
            UnknownJobError: no evaluation has this identifier.
        """
        job = self._jobs.get(identifier)
        if job is None:
            raise UnknownJobError("there is no evaluation with that identifier here (any more)")
        return job

    def fetch(self, identifier: str, start: int = 0, length: int | None = None) -> bytes:
        """Return bytes of the answer of a job, all by default. Each call begins the time anew for which a
        fetched answer is kept: a client may read slowly.

        Raises:
            UnknownJobError: no evaluation has this identifier.
            EvaluationError: it has not finished.
            ServeError: the reason of its failure.
        """
        job = self.get(identifier)
        if job.error is not None:
            raise job.error
        if job.state != "done":
            raise EvaluationError(
                f"{job.done} of {job.total} steps are done; ask again later", code="not_done"
            )
        answer = self._objects.read(_answer(job), start, length)
        job.fetched, job.touched = True, time.monotonic()
        return answer

    def delete(self, jobs: Sequence[Job]) -> None:
        """Delete jobs with their messages and answers, and tell who waits for them. The answer of a running
        job is deleted when it ends."""
        with self._turn:
            known = [job for job in jobs if self._jobs.pop(job.identifier, None) is not None]
            for job in known:
                self._queue.discard(job, job.holder, job.owner)
                self._later = [each for each in self._later if each is not job]
                self._tell(job)
        for job in known:
            if not job.held:
                self._drop([_message(job), _answer(job)])
                self._records.delete_job(job.identifier)

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._objects.forget([name])
        self._objects.delete(names)

    def all(self) -> list[Job]:
        """Return the jobs of all clients."""
        with self._turn:
            return list(self._jobs.values())

    def stored(self, tenant: str, holder: str | None = None) -> int:
        """Return the bytes of a tenant's jobs, or of a holder's among them: stored ones and arriving
        messages."""
        with self._turn:
            everything: list[Job | Reservation] = [*self._jobs.values(), *self._reserved]
            return sum(
                each.size for each in everything if each.tenant == tenant and holder in (None, each.holder)
            )

    def of(self, owner: str) -> list[Job]:
        """Return the jobs of a client."""
        with self._turn:
            return [job for job in self._jobs.values() if job.owner == owner]

    def expire(self, after: float) -> None:
        """Delete jobs that ended long ago, or whose answers were fetched a minute ago."""
        now = time.monotonic()
        with self._turn:
            ended = [job for job in self._jobs.values() if job.state in ("done", "failed")]
            old = [job for job in ended if now - job.touched > (FETCHED_S if job.fetched else after)]
        self.delete(old)

    def close(self) -> None:
        """Have `take` return None; waiting jobs stay on the disk."""
        with self._turn, contextlib.suppress(RuntimeError):
            self._ended = True
            self._turn.notify_all()
