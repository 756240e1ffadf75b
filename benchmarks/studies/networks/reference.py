"""The speed of the machine: a rotation at level 26 with digits of 5 primes at N = 2^16, one thread.

    python -m studies.networks.reference

Targets are for a machine on which it takes 75 ms. Times elsewhere are scaled before they are compared. It
runs in a separate process, because the network's memory does not include its key.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median

import keywright as kw
import numpy as np
from harness.folders import HERE

LEVEL, ALPHA, SPECIAL, RUNS = 26, 5, 5, 9
TARGET_S = 0.075
"""On the machine that targets are for."""


def measure() -> float:
    """The median of several rotations, seconds."""
    kw.set_threads(1)
    parameters = kw.Parameters.from_bits(16, [60, *[45] * LEVEL], [60] * SPECIAL, 45)
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    keys = generator.evaluation_keys(
        relinearization=False, specs=[kw.KeySpec.rotation(parameters, 1, LEVEL, ALPHA)]
    )
    evaluator = kw.Evaluator(parameters, keys)
    values = np.linspace(-1, 1, parameters.max_slots)
    ciphertext = kw.Encryptor(generator.public_key()).encrypt(values, slots=len(values))
    evaluator.rotate(ciphertext, 1)
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        evaluator.rotate(ciphertext, 1)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def rotation_seconds() -> float:
    """The same, in another process.

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-m", "studies.networks.reference"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the reference rotation failed: {done.stderr}")
    return float(json.loads(done.stdout)["rotation_s"])


if __name__ == "__main__":
    print(json.dumps({"rotation_s": measure()}))
