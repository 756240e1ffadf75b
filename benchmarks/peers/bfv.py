"""Shared code of the BFV programs: parameters, values, works, timing, one JSON object per line.

N = 8192, primes of 43, 43, 43, 42 bits and a special prime of 43 bits, plaintext modulus 1032193, which is 1
modulo 2N: `N13_QP214_T20` of Keywright. Every ciphertext holds N integers in slots.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.programs.peer import peak_rss_bytes

LOG_N = 13
WIDTHS = (43, 43, 43, 42, 43)
T = 1032193

VALUES = np.random.default_rng(1).integers(0, T, 1 << LOG_N)
ROTATED = np.roll(VALUES.reshape(2, -1), -1, axis=1).ravel()

EXPECTED = {
    "encrypt": VALUES,
    "encrypt_secret": VALUES,
    "encrypt_scalar": np.full(1 << LOG_N, 3),
    "decrypt": VALUES,
    "add": 2 * VALUES % T,
    "add_plain": 2 * VALUES % T,
    "multiply_plain": VALUES * VALUES % T,
    "multiply_relin": VALUES * VALUES % T,
    "rotate": ROTATED,
}
"""Residues of the result of every work."""


def cpu_s() -> float:
    """Processor time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(
    library: str, version: str, works: dict[str, Callable[[], Any]], reveal: Callable[[Any], Any]
) -> None:
    """Time every work after two untimed calls; what `reveal` makes of its last result is checked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_known_args()[0].runs
    for work, call in works.items():
        call()
        result = call()
        walls, cpus = [], []
        for _ in range(runs):
            start, start_cpu = time.perf_counter(), cpu_s()
            result = call()
            walls.append(time.perf_counter() - start)
            cpus.append(cpu_s() - start_cpu)
        record = {
            "library": library,
            "version": version,
            "work": work,
            "median_s": statistics.median(walls),
            "min_s": min(walls),
            "max_s": max(walls),
            "cpu_s": statistics.mean(cpus),
            "runs": runs,
            "checked": bool((np.asarray(reveal(result)) % T == EXPECTED[work]).all()),
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(record), flush=True)
