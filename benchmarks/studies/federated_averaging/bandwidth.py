"""The speed of the server's addition of parsed updates, compared with numpy's speed in memory of the same
size."""

from __future__ import annotations

import statistics
from typing import Any

import keywright as kw
import numpy as np
from harness.measurement.clock import timed
from keywright.federated import EncryptedSum

from studies.federated_averaging.ways import SESSION, Shared

VALUES = 1 << 22
"""Of an update: 25 MB with the default precision, far more than a cache holds."""
INPUTS = 15


def bandwidth(runs: int) -> dict[str, Any]:
    """Bytes read and written per second, by the addition, a copy, and a sum of two arrays into a third:
    median, smallest and largest of `runs` turns."""
    way = Shared(INPUTS)
    parameters = way.encoding.parameters
    integers = np.zeros(VALUES, np.int64)
    updates = [
        way.key.encrypt(integers, session=SESSION, round=1, client=number, weight=1)
        for number in range(INPUTS)
    ]
    total = EncryptedSum.of(updates, parameters)
    if way.key.decrypt(total).any():
        raise SystemExit("the sum of zeros is not zero")
    size = VALUES * parameters.value_bytes
    words = size * 5 // 8
    a, b, c = (np.full(words, value) for value in (1.0, 2.0, 3.0))
    moved = {"addition": size * (INPUTS + 1), "copy": 16 * words, "triad": 24 * words}
    works = {
        "addition": lambda: EncryptedSum.of(updates, parameters),
        "copy": lambda: np.copyto(c, a),
        "triad": lambda: np.add(a, b, out=c),
    }
    speeds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(runs + 1):
        for name, work in works.items():
            _, seconds = timed(work)
            if turn:
                speeds[name].append(moved[name] / seconds.wall / 1e9)
    rows = {name: [statistics.median(s), min(s), max(s)] for name, s in speeds.items()}
    shares = [a / max(c, t) for a, c, t in zip(*speeds.values(), strict=True)]
    return {
        "inputs": INPUTS,
        "values": VALUES,
        "bytes": size,
        "threads": kw.threads(),
        "GB_s": rows,
        "share_of_faster": [statistics.median(shares), min(shares), max(shares)],
    }
