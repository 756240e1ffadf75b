"""Wall and processor time of a piece of work."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Seconds:
    """The time of one run. On a machine that others use, only `cpu` is comparable."""

    wall: float
    cpu: float


def processor_seconds() -> float:
    """User and system time of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, Seconds]:
    """Call once."""
    wall, cpu = time.perf_counter(), processor_seconds()
    result = work(*args, **kwargs)
    return result, Seconds(time.perf_counter() - wall, processor_seconds() - cpu)
