"""Draws cases for a time and writes what became of them.

    PYTHONPATH=python/tests python -m testbed.record --minutes 60 --out benchmarks/record/DATE-testbed.json

Seeds begin behind those of the tests. A case that fails is named by its kind and seed, with which the
function of `CHECKS` repeats it.
"""

import argparse
import json
import time
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .checking import Outcome, check_graph
from .drawn import pipelines, registry
from .test_pipelines import check_pipeline
from .test_two_ways import check_ways, check_writings


def one_operator(seed: int) -> Outcome:
    """Draw one operator; every operator has its turn."""
    names = sorted(registry.GENERATORS)
    return check_graph(registry.single(names[seed % len(names)], seed), seed)


CHECKS: dict[str, Callable[[int], Outcome]] = {
    "operator": one_operator,
    "graph": lambda seed: check_graph(registry.graph(seed), seed),
    "deep graph": lambda seed: check_graph(registry.graph(seed, most=10), seed),
    "pipeline": lambda seed: check_pipeline(pipelines.drawn(seed)),
    "written otherwise": check_writings,
    "run otherwise": check_ways,
}
"""By kind: draws a case by its seed and checks it."""

SHARES = {
    "operator": 6,
    "graph": 4,
    "deep graph": 2,
    "pipeline": 4,
    "written otherwise": 2,
    "run otherwise": 1,
}
"""Cases of a kind in each round."""


def drawn_for(seconds: float, first: int) -> dict[str, Any]:
    """Check cases of all kinds for a time; return the record."""
    answered, refusals, failures = Counter[str](), Counter[str](), []
    largest, begin, processor = 0.0, time.monotonic(), time.process_time()
    for turn in count():
        for kind, check in CHECKS.items():
            for place in range(SHARES[kind]):
                seed = first + turn * SHARES[kind] + place
                try:
                    outcome = check(seed)
                except Exception as error:  # noqa: BLE001 (whatever is wrong is recorded)
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    failures.append(
                        {
                            "kind": kind,
                            "seed": seed,
                            "error": type(error).__name__,
                            "text": str(error)[:400],
                            "function": where.name,
                        }
                    )
                    continue
                answered[kind] += outcome.answered
                refusals.update(f"{kind}: {reason}" for reason in set(outcome.refusals))
                largest = max(largest, *outcome.figures.values(), 0.0)
            if time.monotonic() - begin > seconds:
                return {
                    "seconds": round(time.monotonic() - begin),
                    "processor_seconds": round(time.process_time() - processor),
                    "first_seed": first,
                    "answered": dict(answered),
                    "refused": dict(sorted(refusals.items())),
                    "largest_share_of_a_bound": float(np.round(largest, 4)),
                    "failures": failures,
                }
    raise AssertionError


def main() -> None:
    """Draw cases and write the record."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=10_000, help="the first seed")
    parser.add_argument("--out", type=Path, required=True, help="file of the record, in JSON")
    chosen = parser.parse_args()
    report = {"date": time.strftime("%Y-%m-%d")} | drawn_for(60 * chosen.minutes, chosen.first)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    summary = f"{len(report['failures'])} failures, {sum(report['answered'].values())} answered: {chosen.out}"
    print(summary)  # noqa: T201


if __name__ == "__main__":
    main()
