"""Many simulated machines: jobs arrive, a policy chooses a machine for each, machines load keys and evaluate.

A machine does one job at a time, in the order of arrival, and caches keys as a worker does (`KeyCache`).
Seconds are drawn from lists of measured ones. The key-aware policy is the router of the package. It knows
what it knows in a service: sent jobs, ended jobs, and the occasional reports of machines.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from keywright.serve.cluster.routing import Costs, Router, Task
from keywright.serve.workers.key_cache import KeyCache

REPORT_S = 1.0
"""How often a machine says which keys it has."""


@dataclass(frozen=True)
class Times:
    """What was measured.

    Attributes:
        evaluation_s: seconds of evaluations, by model.
        load_s: seconds of loading a key set.
        key_bytes: bytes of a key set, by model.
    """

    evaluation_s: Mapping[str, Sequence[float]]
    load_s: Sequence[float]
    key_bytes: Mapping[str, int]


@dataclass(frozen=True)
class Job:
    """A request: its time of arrival, and what it needs."""

    number: int
    at: float
    task: Task


@dataclass(frozen=True)
class Death:
    """A machine dies, and one without keys replaces it ``down`` seconds later."""

    at: float
    machine: int
    down: float


class Policy(Protocol):
    """Chooses the machine for a job."""

    def choose(self, job: Job, queues: Mapping[int, int], now: float) -> int:
        """Choose a running machine; the jobs of each are known."""

    def end(self, job: Job, machine: int, now: float) -> None:
        """A job returned, completed or not."""

    def report(self, machine: int, resident: Mapping[str, int] | None) -> None:
        """Take the report of a machine; None when it died."""


class Random:
    """Any machine."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose(self, job: Job, queues: Mapping[int, int], now: float) -> int:
        """One of the machines."""
        return list(queues)[int(self._random.integers(len(queues)))]

    def end(self, job: Job, machine: int, now: float) -> None:
        """Nothing is remembered."""

    def report(self, machine: int, resident: Mapping[str, int] | None) -> None:
        """Nothing is remembered."""


class TwoChoices(Random):
    """The machine with fewer jobs of two, as Ray Serve chooses by default."""

    def choose(self, job: Job, queues: Mapping[int, int], now: float) -> int:
        """One of the machines."""
        names = list(queues)
        picked = self._random.choice(len(names), min(2, len(names)), replace=False)
        return min((names[int(i)] for i in picked), key=lambda machine: queues[machine])


class KeyAware:
    """The router of the package."""

    def __init__(self, budget: int, times: Times) -> None:
        size = float(np.mean(list(times.key_bytes.values())))
        costs = Costs(load_s_per_byte=float(np.mean(times.load_s)) / size)
        for model, seconds in times.evaluation_s.items():
            costs.evaluated(model, float(np.mean(seconds)))
        self._router, self._budget = Router(costs), budget

    def choose(self, job: Job, queues: Mapping[int, int], now: float) -> int:
        """One of the machines."""
        for machine in queues:
            self._router.add(str(machine), self._budget)
        name = self._router.choose(job.task, now)
        self._router.send(name, str(job.number), job.task, now)
        return int(name)

    def end(self, job: Job, machine: int, now: float) -> None:
        """A job that was sent returned."""
        self._router.end(str(machine), str(job.number), now)

    def report(self, machine: int, resident: Mapping[str, int] | None) -> None:
        """What a machine has."""
        if resident is None:
            self._router.remove(str(machine))
        else:
            self._router.believe(str(machine), resident)


@dataclass
class Outcome:
    """What became of the jobs.

    Attributes:
        latency_s: from arrival to end, by the number of the job.
        hits, misses: evaluations with and without keys in memory; more than there are jobs if machines died.
        moved_bytes: bytes of loaded keys.
        ended: how often each job ended.
        busy_s: seconds that machines loaded or evaluated.
        end_s: when the last job ended.
    """

    latency_s: dict[int, float] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0
    moved_bytes: int = 0
    ended: dict[int, int] = field(default_factory=dict)
    busy_s: float = 0.0
    end_s: float = 0.0

    def percentile(self, percent: float) -> float:
        """Seconds within which this percentage of the jobs ended."""
        return float(np.percentile(list(self.latency_s.values()), percent))


@dataclass
class _Machine:
    keys: KeyCache[int]
    queue: deque[Job] = field(default_factory=deque)
    life: int = 0
    up: bool = True
    running: bool = False


class Simulation:
    """Machines with a policy.

    Args:
        machines: how many.
        budget: bytes of keys that each machine holds.
        times: measured ones.
        policy: chooses the machine for each job.
        seed: of the random draws.
        counted_from: number of the first job that counts; those before it fill the machines.
    """

    def __init__(
        self,
        machines: int,
        budget: int,
        times: Times,
        policy: Policy,
        *,
        seed: int = 0,
        counted_from: int = 0,
    ) -> None:
        self._machines = [_Machine(KeyCache(budget)) for _ in range(machines)]
        self._budget, self._times, self._policy = budget, times, policy
        self._random, self._from = np.random.default_rng(seed), counted_from
        self._events: list[tuple[float, int, str, tuple[int, ...]]] = []
        self._count = 0
        self._waiting: deque[Job] = deque()
        self.outcome = Outcome()

    def run(self, jobs: Sequence[Job], deaths: Sequence[Death] = ()) -> Outcome:
        """Run all jobs."""
        self._jobs = {job.number: job for job in jobs}
        for job in jobs:
            self._at(job.at, "come", job.number)
        for death in deaths:
            self._at(death.at, "die", death.machine)
            self._at(death.at + death.down, "rise", death.machine)
        self._at(REPORT_S, "report")
        while self._events:
            now, _, kind, what = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(now, *what)
        return self.outcome

    def _at(self, when: float, kind: str, *what: int) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, kind, what))

    def _come(self, now: float, number: int) -> None:
        queues = {i: len(machine.queue) for i, machine in enumerate(self._machines) if machine.up}
        if not queues:
            self._waiting.append(self._jobs[number])
            return
        chosen = self._policy.choose(self._jobs[number], queues, now)
        self._machines[chosen].queue.append(self._jobs[number])
        self._begin(now, chosen)

    def _begin(self, now: float, index: int) -> None:
        machine = self._machines[index]
        if machine.running or not machine.queue:
            return
        task, machine.running = machine.queue[0].task, True
        seconds = self._draw(self._times.evaluation_s[task.model])
        counts = machine.queue[0].number >= self._from
        if machine.keys.get(task.keys) is not None:
            self.outcome.hits += counts
        else:
            load = self._draw(self._times.load_s)
            machine.keys.make_room(task.key_bytes)
            machine.keys.put(task.keys, task.key_bytes, task.key_bytes, load)
            self.outcome.misses += counts
            self.outcome.moved_bytes += task.key_bytes * counts
            seconds += load
        self.outcome.busy_s += seconds
        self._at(now + seconds, "end", index, machine.life)

    def _draw(self, values: Sequence[float]) -> float:
        return float(values[int(self._random.integers(len(values)))])

    def _end(self, now: float, index: int, life: int) -> None:
        machine = self._machines[index]
        if machine.life != life:
            return
        job, machine.running = machine.queue.popleft(), False
        self._policy.end(job, index, now)
        outcome = self.outcome
        outcome.ended[job.number] = outcome.ended.get(job.number, 0) + 1
        outcome.end_s = now
        if job.number >= self._from:
            outcome.latency_s[job.number] = now - job.at
        self._begin(now, index)

    def _die(self, now: float, index: int) -> None:
        machine = self._machines[index]
        lost = list(machine.queue)
        self._machines[index] = replace(
            machine,
            keys=KeyCache(self._budget),
            queue=deque(),
            life=machine.life + 1,
            up=False,
            running=False,
        )
        self._policy.report(index, None)
        for job in lost:
            self._policy.end(job, index, now)
            self._come(now, job.number)

    def _rise(self, now: float, index: int) -> None:
        self._machines[index].up = True
        waiting, self._waiting = self._waiting, deque()
        for job in waiting:
            self._come(now, job.number)

    def _report(self, now: float) -> None:
        for index, machine in enumerate(self._machines):
            if machine.up:
                self._policy.report(index, machine.keys.sizes())
        if self._events:
            self._at(now + REPORT_S, "report")


def requests(
    count: int,
    rate: float,
    *,
    tenants: int,
    models: Mapping[str, int],
    exponent: float = 1.1,
    seed: int = 0,
) -> list[Job]:
    """Requests of tenants by a Zipf law, for any model, with the arrival times of a Poisson process.

    Args:
        count: how many.
        rate: requests a second.
        tenants: how many there are.
        models: bytes of their key sets, by name.
        exponent: of the law.
        seed: of what is drawn.
    """
    random = np.random.default_rng(seed)
    weights = np.arange(1, tenants + 1, dtype=np.float64) ** -exponent
    who = random.choice(tenants, count, p=weights / weights.sum())
    which = random.integers(len(models), size=count)
    at = np.cumsum(random.exponential(1.0 / rate, count))
    names = list(models)
    return [
        Job(i, float(at[i]), Task(f"{who[i]}/{names[which[i]]}", models[names[which[i]]], names[which[i]]))
        for i in range(count)
    ]
