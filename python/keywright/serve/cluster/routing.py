"""Chooses the replica for a job: the one that would finish it first, including the time to load its keys.

A router sees every replica from outside. It knows which jobs it sent there and which have not ended. It
simulates the replica's key cache by the replica's own eviction rule (`KeyCache`), and the replica's periodic
report replaces the simulated state. A job goes to the replica with the smallest

    seconds of the queue + seconds to load the keys, if they are not resident

A replica that holds the keys gets the job unless its queue costs more than loading. As a result, popular keys
spread over several replicas, while the keys of one client stay on one. Ties go first to a replica that holds
the keys, then to a replica with room for them, then to the smallest hash of keys and replica (rendezvous
hashing, Thaler and Ravishankar 1998), so that independent routers agree.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keywright.serve.workers.key_cache import KeyCache

WEIGHT = 0.2
"""Weight of the newest measurement in the running mean."""


@dataclass(frozen=True)
class Task:
    """The properties of a job that a router uses.

    Attributes:
        keys: name of the key set.
        key_bytes: its size in bytes.
        model: name of the model.
    """

    keys: str
    key_bytes: int
    model: str


@dataclass
class Costs:
    """Measured durations in seconds.

    Attributes:
        load_s_per_byte: to load keys into memory.
        evaluation_s: of a model that has not been measured.
    """

    load_s_per_byte: float = 5e-9
    evaluation_s: float = 0.1
    _evaluations: dict[str, float] = field(default_factory=dict)
    _loads: int = 0

    def load(self, size: int) -> float:
        """Return the seconds for loading keys of a size."""
        return size * self.load_s_per_byte

    def evaluation(self, model: str) -> float:
        """Return the seconds of an evaluation."""
        return self._evaluations.get(model, self.evaluation_s)

    def to_json(self) -> dict[str, Any]:
        """Return the measurements, for another router's `learn`."""
        return {"evaluations": dict(self._evaluations), "load": self.load_s_per_byte if self._loads else None}

    def learn(self, measured: Mapping[str, Any]) -> None:
        """Take over measurements of another router."""
        for model, seconds in measured["evaluations"].items():
            self.evaluated(model, seconds)
        if measured["load"] is not None:
            self.loaded(1, measured["load"])

    def loaded(self, size: int, seconds: float) -> None:
        """Record the duration of a load."""
        weight = WEIGHT if self._loads else 1.0
        self._loads += 1
        self.load_s_per_byte += weight * (seconds / max(1, size) - self.load_s_per_byte)

    def evaluated(self, model: str, seconds: float) -> None:
        """Record the duration of an evaluation."""
        before = self._evaluations.get(model, seconds)
        self._evaluations[model] = before + WEIGHT * (seconds - before)


@dataclass
class _SentTask:
    task: Task
    seconds: float


class Replica:
    """A replica as a router sees it.

    Args:
        budget: maximum bytes of keys that it holds.
    """

    def __init__(self, budget: int) -> None:
        self._keys: KeyCache[int] = KeyCache(budget)
        self._sent: dict[str, _SentTask] = {}
        self._total, self._since = 0.0, 0.0

    def has(self, keys: str) -> bool:
        """Whether keys are resident or being loaded."""
        return keys in self._keys

    def crowding(self, task: Task) -> int:
        """Bytes that must be evicted before the keys of a job fit."""
        return 0 if self.has(task.keys) else max(0, self._keys.size + task.key_bytes - self._keys.budget)

    def queue(self, now: float) -> float:
        """Estimate the seconds until all jobs that were sent have ended: each begins when the one before
        ends."""
        if not self._sent:
            return 0.0
        first = next(iter(self._sent.values())).seconds
        return self._total - min(first, max(0.0, now - self._since))

    def send(self, ticket: str, task: Task, costs: Costs, now: float) -> None:
        """Note that a job was sent."""
        seconds, load = costs.evaluation(task.model), costs.load(task.key_bytes)
        if self._keys.get(task.keys) is None:
            seconds += load
            self._keys.make_room(task.key_bytes)
            self._keys.put(task.keys, task.key_bytes, task.key_bytes, load)
        if not self._sent:
            self._since = now
        self._sent[ticket] = _SentTask(task, seconds)
        self._total += seconds

    def end(self, ticket: str, now: float) -> None:
        """Note that a job ended, for whatever reason."""
        gone = self._sent.pop(ticket, None)
        if gone is not None:
            self._since = now
            self._total = self._total - gone.seconds if self._sent else 0.0

    def believe(self, resident: Mapping[str, int], costs: Costs) -> None:
        """Replace the simulated cache by a replica's report, plus the keys that are on their way.

        Args:
            resident: bytes by name.
            costs: durations of loading.
        """
        coming = {sent.task.keys: sent.task.key_bytes for sent in self._sent.values()}
        there = {**resident, **coming}
        for name in self._keys.sizes().keys() - there.keys():
            self._keys.forget(name)
        for name, size in there.items():
            if name not in self._keys:
                self._keys.put(name, size, size, costs.load(size))


class Router:
    """The replicas, and the choice among them.

    Args:
        costs: initial durations.
    """

    def __init__(self, costs: Costs | None = None) -> None:
        self.costs = costs or Costs()
        self.replicas: dict[str, Replica] = {}

    def add(self, name: str, budget: int) -> None:
        """Add a replica."""
        self.replicas.setdefault(name, Replica(budget))

    def remove(self, name: str) -> list[str]:
        """Remove a replica. Returns the tickets of its jobs."""
        gone = self.replicas.pop(name, None)
        return [] if gone is None else list(gone._sent)

    def order(self, task: Task, now: float) -> list[str]:
        """Return the replicas, the best one for a job first.

        Args:
            task: the job.
            now: seconds of a monotonic clock.
        """
        return sorted(
            self.replicas, key=lambda name: (self._seconds(name, task, now), *self._rank(name, task))
        )

    def choose(self, task: Task, now: float) -> str:
        """Return the best replica for a job. Raises `LookupError` if there is none."""
        if not self.replicas:
            raise LookupError("there is no replica")
        seconds = {name: self._seconds(name, task, now) for name in self.replicas}
        least = min(seconds.values())
        return min(
            (name for name in seconds if seconds[name] == least), key=lambda name: self._rank(name, task)
        )

    def send(self, name: str, ticket: str, task: Task, now: float) -> None:
        """Note that a job goes to a replica, under a unique ticket."""
        self.replicas[name].send(ticket, task, self.costs, now)

    def end(self, name: str, ticket: str, now: float) -> None:
        """Note that a job ended, for whatever reason; does nothing if the replica is gone."""
        if name in self.replicas:
            self.replicas[name].end(ticket, now)

    def believe(self, name: str, resident: Mapping[str, int]) -> None:
        """Take over a replica's report on its keys."""
        if name in self.replicas:
            self.replicas[name].believe(resident, self.costs)

    def _seconds(self, name: str, task: Task, now: float) -> float:
        """Return the seconds until a replica would begin to evaluate a job."""
        replica = self.replicas[name]
        return replica.queue(now) + (0.0 if replica.has(task.keys) else self.costs.load(task.key_bytes))

    def _rank(self, name: str, task: Task) -> tuple[bool, int, bytes]:
        """Return the rank of a replica among those that would begin at the same time."""
        replica = self.replicas[name]
        digest = hashlib.blake2b(f"{task.keys} {name}".encode(), digest_size=8).digest()
        return not replica.has(task.keys), replica.crowding(task), digest
