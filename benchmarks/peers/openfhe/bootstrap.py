"""One bootstrap of OpenFHE from its PyPI wheel, without HEXL, at N = 2^16 with all 2^15 slots, real values.

Scaling primes of 54 bits after a first one of 60, four levels for each of the two transforms, sparse
(weight 192) or uniform ternary secret.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import time
from importlib.metadata import version
from typing import Any

from harness.programs.peer import leave, peak_rss_bytes

LOG_N = 16
LOG_SCALE = 54
LOG_FIRST = 60
LEVEL_BUDGET = [4, 4]
DEPTH = 25
DIGITS = 6
"""With `DEPTH`, the fewest that OpenFHE's own check of 128 bits lets pass."""
SECRETS = {"sparse": "SPARSE_TERNARY", "uniform": "UNIFORM_TERNARY"}
TOLERANCE = 2.0**-3
"""Largest error that counts as right: a bootstrap here has 4 to 12 bits."""


def main() -> None:
    """Make the keys, bootstrap once untimed and some times timed, print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secret", choices=SECRETS, default="sparse", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=2, help="timed runs (default: 2)")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.runs < 1 or options.threads < 1:
        parser.error("--runs and --threads are at least 1")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when the library loads
    print(json.dumps(measure(options.secret, options.runs, options.threads)), flush=True)
    leave()


def measure(secret: str, runs: int, threads: int) -> dict[str, Any]:
    """The record."""
    import openfhe as fhe  # here, because loading it fixes the number of threads

    literal = fhe.CCParamsCKKSRNS()
    literal.SetSecurityLevel(fhe.SecurityLevel.HEStd_128_classic)
    literal.SetRingDim(1 << LOG_N)
    literal.SetSecretKeyDist(getattr(fhe.SecretKeyDist, SECRETS[secret]))
    literal.SetScalingModSize(LOG_SCALE)
    literal.SetFirstModSize(LOG_FIRST)
    literal.SetScalingTechnique(fhe.ScalingTechnique.FLEXIBLEAUTO)
    literal.SetKeySwitchTechnique(fhe.KeySwitchTechnique.HYBRID)
    literal.SetNumLargeDigits(DIGITS)
    literal.SetMultiplicativeDepth(DEPTH)
    context = fhe.GenCryptoContext(literal)
    for feature in ("PKE", "KEYSWITCH", "LEVELEDSHE", "ADVANCEDSHE", "FHE"):
        context.Enable(getattr(fhe.PKESchemeFeature, feature))
    slots = 1 << (LOG_N - 1)
    start = time.perf_counter()
    context.EvalBootstrapSetup(LEVEL_BUDGET, [0, 0], slots)
    precompute = time.perf_counter() - start
    start = time.perf_counter()
    pair = context.KeyGen()
    context.EvalMultKeyGen(pair.secretKey)
    context.EvalBootstrapKeyGen(pair.secretKey, slots)
    keygen = time.perf_counter() - start

    generator = random.Random(1)
    values = [generator.uniform(-1, 1) for _ in range(slots)]
    exhausted = context.Encrypt(pair.publicKey, context.MakeCKKSPackedPlaintext(values, 1, DEPTH - 1))
    fresh = context.EvalBootstrap(exhausted)
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        fresh = context.EvalBootstrap(exhausted)
        seconds.append(time.perf_counter() - start)
    plain = context.Decrypt(fresh, pair.secretKey)
    plain.SetLength(slots)
    errors = [abs(f - v) for f, v in zip(plain.GetRealPackedValue(), values, strict=True)]
    worst, mean = max(errors), statistics.fmean(errors)
    return {
        "library": "openfhe",
        "version": version("openfhe"),
        "work": "bootstrap",
        "preset": f"{secret}_{LOG_SCALE}_{LOG_FIRST}",
        "log_n": LOG_N,
        "log_scale": LOG_SCALE,
        "threads": threads,
        "median_s": statistics.median(seconds),
        "min_s": min(seconds),
        "max_s": max(seconds),
        "runs": runs,
        "levels_left": DEPTH - fresh.GetLevel() - (fresh.GetNoiseScaleDeg() - 1),
        "worst_bits": -math.log2(worst),
        "mean_bits": -math.log2(mean),
        "key_bytes": None,
        "keygen_s": keygen,
        "precompute_s": precompute,
        "peak_rss_bytes": peak_rss_bytes(),
        "checked": worst <= TOLERANCE,
    }


if __name__ == "__main__":
    main()
