"""The share of the load test's requests that can find their keys in memory, by computation.

    cd benchmarks && python -m studies.service.resident [--requests 60000] [--noise 0.5] [--out FOLDER]

The key sets, the budget and the sequence of requests are those of `studies.service.load`: every set is used
once in random order, and then tenants ask by Zipf's law. The cache is the service's own (`KeyCache`), with
seconds of loading that are proportional to a set's bytes, times a lognormal factor with the standard
deviation ``--noise`` of its logarithm.

* *ideal*: the sets that are asked for most, of their bytes, for ever. No rule can do better in the long run.
* *uses count*: the service's rule, GreedyDual-Size with frequency.
* *last use*: the same with one use for every set: GreedyDual-Size.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from harness.folders import record_folder
from keywright.serve.workers.key_cache import KeyCache

from studies.service.load import EXPONENT, KEY_MEMORY, MODELS, sequence_of

BYTES = (3_060_064, 2_797_920, 2_527_520)
"""Bytes of a set of each model in memory."""

WINDOW = 5_000
"""Requests of a window."""


def ideal(tenants: int, budget: int) -> float:
    """Return the share of requests for the best fixed choice of sets."""
    weights = np.arange(1, tenants + 1, dtype=np.float64) ** -EXPONENT
    share = np.repeat(weights / weights.sum() / MODELS, MODELS)
    sizes = np.tile(np.array(BYTES, dtype=np.float64), tenants)
    best = np.argsort(-share / sizes)
    return float(share[best][np.cumsum(sizes[best]) <= budget].sum())


def hits(sequence: list[tuple[int, int]], budget: int, noise: float, *, counts: bool) -> list[bool]:
    """Return for each request whether it finds its keys."""
    random, cache, hits = np.random.default_rng(0), KeyCache[None](budget), list[bool]()
    took: dict[str, float] = {}
    for tenant, model in sequence:
        name, size = f"{tenant}/{model}", BYTES[model]
        hits.append(name in cache)
        if not hits[-1]:
            took[name] = size * float(random.lognormal(0.0, noise))
            cache.make_room(size)
        if hits[-1] and counts:
            cache.get(name)
        else:
            cache.put(name, None, size, took[name])
    return hits


def main() -> None:
    """Compute, and write a record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.7])
    parser.add_argument("--seed", type=int, default=1, help="of the sequence of requests")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    order = np.random.default_rng(0).permutation(options.tenants * MODELS)
    every = [(int(number) // MODELS, int(number) % MODELS) for number in order]
    sequence = sequence_of(options.tenants, options.seed)[: options.requests]
    common = {"tenants": options.tenants, "exponent": EXPONENT, "bytes": BYTES, "key_memory": KEY_MEMORY}
    lines: list[dict[str, object]] = [{"rule": "ideal", "resident": ideal(options.tenants, KEY_MEMORY)}]
    for noise in options.noise:
        for rule, counts in (("last use", False), ("uses count", True)):
            loads = hits([*every, *sequence], KEY_MEMORY, noise, counts=counts)[len(every) :]
            windows = [loads[at : at + WINDOW] for at in range(0, len(loads), WINDOW)]
            shares = [round(sum(window) / len(window), 4) for window in windows]
            lines.append({"rule": rule, "noise": noise, "window": WINDOW, "resident": shares})
    with (record_folder(options.out, "service") / "resident.jsonl").open("w", encoding="utf-8") as file:
        for line in lines:
            print(json.dumps(line), flush=True)
            file.write(json.dumps(line | common) + "\n")


if __name__ == "__main__":
    main()
