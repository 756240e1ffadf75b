"""An evaluation for one client, and the reservation of its place in the queue."""

import time
from dataclasses import dataclass, field
from typing import Literal

from keywright.errors.service import ServeError

State = Literal["waiting", "running", "done", "failed"]

MAX_PRIORITY = 9


@dataclass(eq=False)
class Reservation:
    """A reservation in the queue for an evaluation whose message is arriving.

    Attributes:
        owner: identifier of the keys.
        tenant, holder: tenant and holder of the evaluation.
        size: bytes of the message.
    """

    owner: str
    tenant: str
    holder: str
    size: int


@dataclass
class Job:
    """An evaluation for one client.

    Attributes:
        identifier: 32 hexadecimal digits.
        owner: identifier of the keys.
        model: hash of the model.
        priority: 0 to `MAX_PRIORITY`: among the jobs of one key set, larger ones run first.
        total: number of steps.
        tenant: tenant of the client; empty without accounts.
        holder: holder of its keys, see `holders`.
        places: places of its samples in the batch; None if it uses all of them. They are not stored: after a
            restart it is evaluated alone.
        held: whether its request waits for the answer, and the job is in memory alone until `Jobs.release` or
            `Jobs.keep`.
        state: state of the job.
        attempts: number of starts.
        done: steps that are done.
        seconds: duration of the evaluation.
        error: the reason of its failure.
        touched: time of its end or of the last fetch, in seconds of a monotonic clock.
        fetched: whether the answer was fetched.
        request: identifier of its request, for logs; empty after a restart.
        message_bytes, answer_bytes: stored bytes of message and answer.
        arrived: time of its arrival in this process, by the clock of `touched`.
        due: when it may run again after the disk failed, by the clock of `touched`.
        others: jobs that are evaluated with it, whose samples have other places.
        message, answer: ciphertexts of a held job and of its answer.
        noted: whether the audit file has an entry for it.
    """

    identifier: str
    owner: str
    model: str
    priority: int
    total: int
    tenant: str = ""
    holder: str = ""
    places: range | None = None
    held: bool = field(default=False, init=False)
    state: State = field(default="waiting", init=False)
    attempts: int = field(default=0, init=False)
    done: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    error: ServeError | None = field(default=None, init=False)
    touched: float = field(default=0.0, init=False)
    fetched: bool = field(default=False, init=False)
    request: str = field(default="", init=False)
    message_bytes: int = field(default=0, init=False)
    answer_bytes: int = field(default=0, init=False)
    arrived: float = field(default_factory=time.monotonic, init=False)
    due: float = field(default=0.0, init=False)
    others: list["Job"] = field(default_factory=list, init=False)
    message: bytes = field(default=b"", init=False, repr=False)
    answer: bytes = field(default=b"", init=False, repr=False)
    noted: bool = field(default=False, init=False)

    @property
    def size(self) -> int:
        """Stored bytes."""
        return self.message_bytes + self.answer_bytes

    def joins(self, other: "Job") -> bool:
        """Whether another job can be evaluated with this one and those already joined."""
        if other.places is None or (other.owner, other.model) != (self.owner, self.model):
            return False
        return all(
            job.places is not None and _disjoint(job.places, other.places) for job in (self, *self.others)
        )

    def advance(self, done: int) -> None:
        """Note how many steps are done."""
        for job in (self, *self.others):
            job.done = done

    def to_json(self) -> dict[str, object]:
        """Return the job for JSON replies."""
        entry: dict[str, object] = {
            "job": self.identifier,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "seconds": round(self.seconds, 3),
        }
        return entry | ({} if self.error is None else self.error.reason())


def _disjoint(one: range, other: range) -> bool:
    return one.stop <= other.start or other.stop <= one.start
