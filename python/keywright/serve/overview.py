"""The operator's view of a service: models, tenants, queue, machines. It shows no identifier that grants
access."""

import os
import shutil
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keywright.plan.memory.machine import available_bytes, resident_bytes
from keywright.serve.evaluation.durations import Record
from keywright.serve.jobs.job import Job
from keywright.serve.workers.workers import Workers


@dataclass(frozen=True)
class ModelLine:
    """A served model: its hash, the bytes of a key set, and the number of sets of its configuration."""

    name: str
    model: str
    key_bytes: int
    key_sets: int


@dataclass(frozen=True)
class TenantLine:
    """A tenant: its complete and incomplete key sets, the bytes of both, and its evaluations by state."""

    name: str
    complete: int
    incomplete: int
    stored_bytes: int
    waiting: int
    running: int


@dataclass(frozen=True)
class MachineLine:
    """A machine and its processors. The machine of the service also has its load (busy processors, mean of
    one minute), free memory and free disk of the state, the number of evaluating processes, and the memory of
    all processes."""

    name: str
    processors: int
    load: float | None = None
    free_memory: int | None = None
    free_disk: int | None = None
    workers: int | None = None
    resident_bytes: int | None = None


@dataclass(frozen=True)
class QueueLine:
    """The queue: numbers of waiting and running evaluations, the largest number that may wait, and the
    waiting time of the oldest in seconds."""

    waiting: int
    limit: int
    running: int
    oldest: float


@dataclass(frozen=True)
class ResidentKeys:
    """Key sets in memory, and their bytes."""

    count: int = 0
    size: int = 0


@dataclass(frozen=True)
class Overview:
    """A snapshot of the service.

    Attributes:
        uptime: seconds since the service started.
        draining: whether it is shutting down.
        queue: evaluations that have not ended.
        ended: evaluations that have.
        keys: key sets in memory.
    """

    uptime: float
    draining: bool
    queue: QueueLine
    models: Sequence[ModelLine]
    tenants: Sequence[TenantLine]
    machines: Sequence[MachineLine]
    ended: Record = field(default_factory=Record)
    keys: ResidentKeys = field(default_factory=ResidentKeys)


def tenant_lines(sets: Sequence[tuple[str, bool, int]], jobs: Sequence[Job]) -> list[TenantLine]:
    """Summarise the tenants of key sets, given as (tenant, whether it is complete, bytes), and of jobs; the
    largest first."""
    bytes_of: Counter[str] = Counter()
    for tenant, _, size in sets:
        bytes_of[tenant] += size
    complete = Counter(tenant for tenant, ready, _ in sets if ready)
    incomplete = Counter(tenant for tenant, ready, _ in sets if not ready)
    waiting = Counter(job.tenant for job in jobs if job.state == "waiting")
    running = Counter(job.tenant for job in jobs if job.state == "running")
    names = sorted(bytes_of | waiting | running | complete | incomplete, key=lambda n: (-bytes_of[n], n))
    return [
        TenantLine(name, complete[name], incomplete[name], bytes_of[name], waiting[name], running[name])
        for name in names
    ]


def this_machine(state: Path, workers: Workers) -> MachineLine:
    """Return the machine of this process, with the processes of its workers."""
    pids = [worker.pid for worker in workers.all]
    resident = resident_bytes() + sum(_resident(pid) for pid in pids if pid is not None)
    load = 0.0 if sys.platform == "win32" else os.getloadavg()[0]
    return MachineLine(
        socket.gethostname(),
        os.cpu_count() or 1,
        load,
        available_bytes(),
        shutil.disk_usage(state).free,
        sum(pid is not None for pid in pids),
        resident,
    )


def oldest_wait(jobs: Sequence[Job]) -> float:
    """Return the seconds that the oldest job has waited. Jobs of an earlier process count from the
    restart."""
    now = time.monotonic()
    return max((now - job.arrived for job in jobs if job.state == "waiting"), default=0.0)


def _resident(pid: int) -> int:
    """Return the resident bytes of another process; 0 if the system does not report them."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
