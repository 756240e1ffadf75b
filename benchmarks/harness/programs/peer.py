"""What every Python peer program shares: options, parameter sets, timing, checking, one JSON object per line.

Runs on Python 3.10, because the OpenFHE wheel does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TOLERANCE = 2.0**-20
"""Largest slot error of a result that counts as right; README.md ("Checks") derives it."""

HOISTED_ROTATIONS = tuple(range(1, 9))
"""The rotations that share one decomposition in `rotate_hoisted`, and whose keys `keygen` times."""


@dataclass(frozen=True)
class ParameterSet:
    """One entry of `sets.json`: prime sizes in bits, levels to measure at, and the digit sizes `alphas`."""

    log_n: int
    log_q: tuple[int, ...]
    log_p: int
    log_scale: int
    levels: tuple[int, ...]

    @property
    def max_level(self) -> int:
        """Level of a fresh ciphertext."""
        return len(self.log_q) - 1

    @property
    def slots(self) -> int:
        """Slots of a full packing, `N/2`."""
        return 1 << (self.log_n - 1)


@dataclass(frozen=True)
class Options:
    """Command line of a peer program. An empty `works` means all that the program has."""

    parameters: ParameterSet
    alpha: int
    works: frozenset[str]
    runs: int
    threads: int


def parse_options(library: str, arguments: Sequence[str] | None = None) -> Options:
    """Read the options that all peer programs take; exits with usage on a bad one."""
    parser = argparse.ArgumentParser(description=f"Measure {library}; print one JSON object per line.")
    parser.add_argument("--sets", type=Path, default=Path("sets.json"), help="file of parameter sets")
    parser.add_argument("--set", dest="name", default="quick", help="name of the parameter set")
    parser.add_argument("--alpha", type=int, default=1, help="primes per key-switching digit")
    parser.add_argument("--work", default="", help="comma-separated list of works (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="timed runs per work")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    sets = json.loads(given.sets.read_text())
    if given.name not in sets:
        parser.error(f"unknown set {given.name!r}; {given.sets} has {', '.join(sets)}")
    if given.runs < 1 or given.threads < 1:
        parser.error("--runs and --threads are at least 1")
    entry = sets[given.name]
    parameters = ParameterSet(
        entry["log_n"], tuple(entry["log_q"]), entry["log_p"], entry["log_scale"], tuple(entry["levels"])
    )
    works = frozenset(filter(None, given.work.split(",")))
    return Options(parameters, given.alpha, works, given.runs, given.threads)


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far. `ru_maxrss` would include the parent's before `exec`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM line; the peer programs run on Linux")


@dataclass(frozen=True)
class Bench:
    """Times calls of one library and prints the records.

    `alpha` is None where the library chooses its own digits.
    """

    peer: str
    version: str
    backend: str
    alpha: int | None
    options: Options

    def wants(self, work: str) -> bool:
        """Whether the command line asks for `work`."""
        return not self.options.works or work in self.options.works

    def measure(
        self,
        work: str,
        level: int,
        call: Callable[[], T],
        error: Callable[[T], float],
        *,
        size: int | None = None,
        operations: int = 1,
    ) -> None:
        """Time `call` after one untimed call, `operations` operations each, and check its last result.

        `error` maps the result to its largest slot error; `size` is the key or ciphertext in bytes.
        """
        if not self.wants(work):
            return
        result = call()
        seconds = []
        for _ in range(self.options.runs):
            start = time.perf_counter()
            result = call()
            seconds.append((time.perf_counter() - start) / operations)
        self.emit(work, level, seconds, error(result), size)

    def emit(self, work: str, level: int, seconds: Sequence[float], error: float, size: int | None) -> None:
        """Print the record of one work from its timed runs."""
        record = {
            "library": self.peer,
            "version": self.version,
            "work": work,
            "log_n": self.options.parameters.log_n,
            "level": level,
            "alpha": self.alpha,
            "threads": self.options.threads,
            "backend": self.backend,
            "median_s": statistics.median(seconds),
            "min_s": min(seconds),
            "max_s": max(seconds),
            "runs": len(seconds),
            "bytes": size,
            "checked": bool(error <= TOLERANCE),
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(record), flush=True)


def leave() -> None:
    """End the process at once: freeing gigabytes of keys one by one takes seconds and measures nothing."""
    os._exit(0)
