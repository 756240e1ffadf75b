"""Measure what operations cost at each level, and write the table that the placement of bootstraps uses.

    python scripts/measure_costs.py [--preset N16_QP1732_L9_S45_real] [--output FILE]

Seconds are of the processor, on one thread, the least of several runs: other work on the machine changes them
less than those of a clock. Writes python/keywright/data/level_costs.json unless told otherwise. At N = 2^16
it takes 4 GB and some minutes.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import keywright as kw
import numpy as np

OUTPUT = Path(__file__).parents[1] / "python" / "keywright" / "data" / "level_costs.json"
REPEATS = 3
BABIES = 9
N1 = 16


def least(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Processor seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def line(first: int, costs: list[float]) -> list[float]:
    """Costs of levels from 0 on, along the line through the measured ones: key switches and products cost in
    proportion to the number of primes, nearly. Slope and height are medians (Theil and Sen), so that single
    measurements that were disturbed do not count; the slope is at least 0."""
    levels = np.arange(first, first + len(costs))
    values = np.asarray(costs)
    i, j = np.triu_indices(len(costs), 1)
    slope = max(float(np.median((values[j] - values[i]) / (levels[j] - levels[i]))), 0.0)
    height = float(np.median(values - slope * levels))
    lowest = float(values.min()) / 2
    return [round(max(height + slope * level, lowest), 6) for level in range(first + len(costs))]


def measure_level(
    parameters: kw.Parameters, generator: kw.KeyGenerator, secret: kw.SecretKey, level: int
) -> dict[str, float]:
    """Seconds of a giant step, a baby step, a product with a diagonal, and a product of ciphertexts."""
    special = list(range(parameters.max_level + 1, parameters.max_level + 1 + len(parameters.p)))
    alpha = max(level + 1, len(special))
    steps = [*range(1, BABIES), N1]
    specs = [kw.KeySpec.rotation(parameters, step, level, alpha, True, special) for step in steps]
    specs.append(kw.KeySpec.relinearization(parameters, level, alpha, True, special))
    keys = generator.evaluation_keys(specs=specs, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)
    rng = np.random.default_rng(1)
    slots = parameters.max_slots
    ct = kw.Decryptor(secret).encrypt(rng.uniform(-1, 1, slots), level=level).expand()

    def transform(indices: list[int]) -> float:
        diagonals = {index: rng.uniform(-1, 1, slots) for index in indices}
        encoded = kw.LinearTransform(parameters, diagonals, slots, level, N1, special)
        return least(lambda: evaluator.linear_transform(ct, encoded))

    babies = list(range(BABIES))
    one = transform(babies)
    two = transform(babies + [N1 + baby for baby in babies])
    corner = transform([*babies, N1])
    diagonal = max((two - corner) / (BABIES - 1), one / 1000)
    return {
        "rotation": max(corner - one - diagonal, diagonal),
        "hoisted": max((one - BABIES * diagonal) / (BABIES - 1), diagonal),
        "diagonal": diagonal,
        "multiplication": least(lambda: evaluator.square(ct)),
    }


def measure_bootstrap(plan: kw.BootstrapperPlan, generator: kw.KeyGenerator, secret: kw.SecretKey) -> float:
    """Seconds of a bootstrap."""
    keys = generator.evaluation_keys(specs=plan.required_keys(), relinearization=False)
    bootstrapper, evaluator = kw.Bootstrapper(plan), kw.Evaluator(plan.parameters, keys)
    values = np.random.default_rng(1).uniform(-1, 1, plan.slots)
    ct = kw.Decryptor(secret).encrypt(values, level=plan.input_level).expand()
    return least(lambda: bootstrapper.bootstrap(evaluator, ct), 2)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="N16_QP1732_L9_S45_real")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    kw.set_threads(1)
    plan = kw.BootstrapperPlan.preset(arguments.preset)
    secret = kw.SecretKey.generate(plan.parameters)
    generator = kw.KeyGenerator(secret)
    rows = []
    for level in range(plan.input_level, plan.output_level + 1):
        rows.append(measure_level(plan.parameters, generator, secret, level))
        print(level, {name: round(seconds, 5) for name, seconds in rows[-1].items()}, flush=True)
    columns = {name: line(plan.input_level, [row[name] for row in rows]) for name in rows[0]}
    bootstrap = round(measure_bootstrap(plan, generator, secret), 6)
    print("bootstrap", bootstrap)
    table = {"preset": arguments.preset, "seconds": columns | {"bootstrap": [bootstrap, bootstrap]}}
    arguments.output.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
