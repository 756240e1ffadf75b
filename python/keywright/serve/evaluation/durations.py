"""How long the last evaluations took, and how many ended well."""

import threading
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from statistics import median

from keywright.serve.jobs.job import Job

KEPT = 512
"""Number of the last evaluations of a model whose times are kept."""

SLOW = 0.99
"""Share of the evaluations that take at most `Record.slow` seconds."""


@dataclass(frozen=True)
class Record:
    """Evaluations that ended since the service started.

    Attributes:
        done, failed: their numbers.
        median, slow: seconds in which half and `SLOW` of the last `KEPT` evaluations of each model were
            computed; None if none has ended.
    """

    done: int = 0
    failed: int = 0
    median: float | None = None
    slow: float | None = None


class Durations:
    """The times of the last evaluations of every model."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._ended: Counter[bool] = Counter()
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """Record an evaluation that ended."""
        with self._lock:
            self._ended[job.error is None] += 1
            if job.error is None:
                self._seconds[job.model].append(job.seconds)

    def typical(self, model: str) -> float | None:
        """Return the median of a model's seconds, by its hash; None if no evaluation has ended."""
        with self._lock:
            seconds = list(self._seconds.get(model, ()))
        return median(seconds) if seconds else None

    def record(self) -> Record:
        """Return the numbers of all models."""
        with self._lock:
            seconds = sorted(each for model in self._seconds.values() for each in model)
            done, failed = self._ended[True], self._ended[False]
        if not seconds:
            return Record(done, failed)
        return Record(done, failed, median(seconds), seconds[min(int(SLOW * len(seconds)), len(seconds) - 1)])
