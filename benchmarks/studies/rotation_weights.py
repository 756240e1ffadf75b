"""Table 3 of KDS, measured: rotations by the Hamming weight of their index: `python -m
studies.rotation_weights`.

N = 2^16, 31 primes of 50 bits, a seeded key of one prime to a digit for each power of two. The index of
weight w is 2^w - 1, and it is rotated by its powers of two, one after another. One thread. Weights take
turns. Before that, results are decrypted and compared with numpy's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement import machine

from studies.operation_levels import TOLERANCE
from studies.planning_figures.weights import WEIGHTS

LEVEL = 8
"""Of the ciphertext; the paper does not state its own."""


def chain(evaluator: kw.Evaluator, ciphertext: kw.Ciphertext, weight: int) -> kw.Ciphertext:
    """The rotation by 2^weight - 1 as so many rotations by powers of two."""
    for bit in range(weight):
        ciphertext = evaluator.rotate(ciphertext, 1 << bit)
    return ciphertext


def main() -> int:
    """Write the record.

    Raises:
        SystemExit: a result is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m studies.rotation_weights", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a ring without security")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each weight (default: 5)")
    parser.add_argument(
        "--out", type=Path, help="folder of the record (default: record/DATE-rotation-weights)"
    )
    options = parser.parse_args()
    kw.set_threads(1)
    log_n = 11 if options.quick else 16
    parameters = kw.Parameters.from_bits(log_n, [51, *[50] * 30], [51] * 3, 50, insecure=options.quick)
    secret = kw.SecretKey.generate(parameters)
    special = [parameters.max_level + 1]
    elements = [pow(5, 1 << bit, 2 << log_n) for bit in range(max(WEIGHTS))]
    specs = [kw.KeySpec.galois(parameters, one, LEVEL, 1, True, special) for one in elements]
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=specs, relinearization=False)
    evaluator, client = kw.Evaluator(parameters, keys), kw.Decryptor(secret)
    x = np.random.default_rng(1).uniform(-1, 1, parameters.max_slots)
    ciphertext = client.encrypt(x, parameters.max_slots, LEVEL).expand()
    errors = {}
    for weight in WEIGHTS:
        decrypted = np.asarray(client.decrypt(chain(evaluator, ciphertext, weight)))
        errors[weight] = float(np.abs(decrypted - np.roll(x, -((1 << weight) - 1))).max())
        if not errors[weight] < TOLERANCE:
            raise SystemExit(f"the rotation by {(1 << weight) - 1} is off by {errors[weight]:.3g}")
    seconds: dict[int, list[float]] = {weight: [] for weight in WEIGHTS}
    for _ in range(options.runs):
        for weight in WEIGHTS:
            before = time.process_time()
            chain(evaluator, ciphertext, weight)
            seconds[weight].append(time.process_time() - before)
    path = record_folder(options.out, "rotation-weights") / "rotations.jsonl"
    with path.open("w") as out:
        for weight in WEIGHTS:
            row = {"weight": weight, "level": LEVEL, "processor_seconds": seconds[weight]}
            print(json.dumps({**row, "error": errors[weight], "machine": machine.describe()}), file=out)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
