"""Table 2 of KDS: operations at levels 4 to 28 with one prime to a digit: `python -m
studies.operation_levels`.

N = 2^16, 31 primes of 50 bits; seeded keys for the level of use, with one special prime. One thread. A run
is the mean of as many calls as take about 0.2 s. Before that, results are decrypted and compared with
numpy's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement import machine
from numpy.typing import NDArray

LEVELS = range(4, 29, 4)
BATCH_S = 0.2
TOLERANCE = 2.0**-20
Slots = NDArray[np.float64]


def works(
    parameters: kw.Parameters, secret: kw.SecretKey, level: int, rng: np.random.Generator
) -> Iterator[tuple[str, Callable[[], kw.Ciphertext], Slots]]:
    """Each operation at a level, and what its result decrypts to."""
    special = [parameters.max_level + 1]
    specs = [
        kw.KeySpec.relinearization(parameters, level, 1, True, special),
        kw.KeySpec.galois(parameters, 5, level, 1, True, special),
    ]
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=specs, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)
    client = kw.Decryptor(secret)
    slots = parameters.max_slots

    def values() -> Slots:
        return rng.uniform(-1, 1, slots)

    x, y = values(), values()
    a, b = (client.encrypt(v, slots, level).expand() for v in (x, y))
    product = evaluator.multiply_lazy(a, y)
    yield "add_plain", lambda: evaluator.add(a, y), x + y
    yield "add", lambda: evaluator.add(a, b), x + y
    yield "multiply_plain", lambda: evaluator.multiply_lazy(a, y), x * y
    yield "multiply", lambda: evaluator.relinearize(evaluator.multiply_lazy(a, b)), x * y
    yield "rescale", lambda: evaluator.rescale(product), x * y
    yield "rotate", lambda: evaluator.rotate(a, 1), np.roll(x, -1)


def timed(work: Callable[[], object], runs: int) -> tuple[list[float], list[float]]:
    """Wall and processor seconds of a call in each run."""
    begin = time.perf_counter()
    work()
    count = max(1, round(BATCH_S / (time.perf_counter() - begin)))
    wall, processor = [], []
    for _ in range(runs):
        start, before = time.perf_counter(), time.process_time()
        for _ in range(count):
            work()
        wall.append((time.perf_counter() - start) / count)
        processor.append((time.process_time() - before) / count)
    return wall, processor


def main() -> int:
    """Write the record.

    Raises:
        SystemExit: a result is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m studies.operation_levels", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a ring without security, two levels")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each (default: 5)")
    parser.add_argument(
        "--out", type=Path, help="folder of the record (default: record/DATE-operation-levels)"
    )
    options = parser.parse_args()
    kw.set_threads(1)
    log_n = 11 if options.quick else 16
    parameters = kw.Parameters.from_bits(log_n, [51, *[50] * 30], [51] * 3, 50, insecure=options.quick)
    secret, rng = kw.SecretKey.generate(parameters), np.random.default_rng(1)
    client = kw.Decryptor(secret)
    path = record_folder(options.out, "operation-levels") / "operations.jsonl"
    with path.open("w") as out:
        for level in list(LEVELS)[:2] if options.quick else LEVELS:
            for name, work, expected in works(parameters, secret, level, rng):
                error = float(np.abs(np.asarray(client.decrypt(work())) - expected).max())
                if not error < TOLERANCE:
                    raise SystemExit(f"{name} at level {level} is off by {error:.3g}")
                wall, processor = timed(work, options.runs)
                row = {"level": level, "work": name, "seconds": wall, "processor_seconds": processor}
                print(
                    json.dumps({**row, "error": error, "machine": machine.describe()}), file=out, flush=True
                )
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
