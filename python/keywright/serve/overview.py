"""What an operator sees of a service: models, tenants, the queue, machines. No identifier that entitles."""

import os
import shutil
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keywright.plan.memory.machine import available_bytes, resident_bytes

from .jobs import Job
from .workers import Workers


@dataclass(frozen=True)
class ModelLine:
    """A model that is served, its hash, the bytes of a key set, and how many sets of its configuration there
    are."""

    name: str
    model: str
    key_bytes: int
    key_sets: int


@dataclass(frozen=True)
class TenantLine:
    """A tenant; key sets that are complete, and others; bytes of both; evaluations by state."""

    name: str
    complete: int
    incomplete: int
    stored_bytes: int
    waiting: int
    running: int


@dataclass(frozen=True)
class MachineLine:
    """A machine and its processors. What is known of the one that answers alone: how many processors are busy
    on the average of a minute, memory that is free and the disk of the state, processes that evaluate, and
    memory of all of the service's processes."""

    name: str
    processors: int
    load: float | None = None
    free_memory: int | None = None
    free_disk: int | None = None
    workers: int | None = None
    resident_bytes: int | None = None


@dataclass(frozen=True)
class Overview:
    """All of it, at a time.

    Attributes:
        uptime: seconds since the service began.
        draining: whether it is about to end.
        waiting, limit, running: evaluations, and how many may wait.
        oldest: seconds that the one has waited that has waited longest.
    """

    uptime: float
    draining: bool
    waiting: int
    limit: int
    running: int
    oldest: float
    models: Sequence[ModelLine]
    tenants: Sequence[TenantLine]
    machines: Sequence[MachineLine]


def tenant_lines(sets: Sequence[tuple[str, bool, int]], jobs: Sequence[Job]) -> list[TenantLine]:
    """Tenants of key sets, (tenant, whether it is complete, bytes) each, and of jobs, the largest first."""
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
    """The machine that answers, with the processes of its workers."""
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
    """Seconds that the oldest job has waited; those of an earlier process have since this one began."""
    now = time.monotonic()
    return max((now - job.asked for job in jobs if job.state == "waiting"), default=0.0)


def _resident(pid: int) -> int:
    """Bytes of another process; 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
