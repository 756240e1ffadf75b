"""A hundred machines, simulated with measured times: which machine should get a request?

    cd benchmarks && python -m studies.service.simulated [--machines 100] [--out FOLDER]

First a model is evaluated and its key set is loaded many times, on one thread of this machine. Then machines
with one worker and 4 GiB for keys serve the requests of tenants. Requests follow Zipf's law with exponent
1.1. Each is for one of three models with separate key sets. The load is 70 % of the capacity with all keys in
memory. The first half of the requests fills the machines; the others count. Routing by keys is the package's
router (`Router`); two choices is what Ray Serve does by default.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from harness.folders import record_folder
from harness.measurement import machine
from keywright._files import digest_of
from keywright.model.served import framing

from studies.service.models import served_model, weights
from studies.service.simulator import KeyAware, Policy, Random, Simulation, Times, TwoChoices, requests
from studies.service.tenants import Tenant

OUTPUTS, MODELS, EXPONENT = 64, 3, 1.1
KEY_MEMORY = 4 << 30
LOAD = 0.7
RUNS = 40


def measured(folder: Path) -> Times:
    """Seconds of evaluations and of loading keys, and the bytes of a set."""
    model = served_model("measured", OUTPUTS, 0)
    runner, tenant = model.runner(), Tenant(0, model.manifest)
    path = folder / "keys.kw"
    tenant.save_keys(path)
    message = tenant.question(weights(OUTPUTS, 0)).message
    evaluations, loads = [], []
    for _ in range(RUNS):
        start = time.perf_counter()
        digest_of(path)
        keys = model.execution.load_keys(path)
        loads.append(time.perf_counter() - start)
        start = time.perf_counter()
        framing.join(model.requests.answer(runner, keys, model.requests.read_all([message])).objects)
        evaluations.append(time.perf_counter() - start)
    path.unlink()
    names = [f"model-{number}" for number in range(MODELS)]
    size = model.manifest.keys.size
    return Times(dict.fromkeys(names, evaluations), loads, dict.fromkeys(names, size))


def simulate(times: Times, machines: int, tenants: int, count: int) -> list[dict[str, object]]:
    """One line for each policy, with the same requests."""
    mean = float(np.mean([np.mean(seconds) for seconds in times.evaluation_s.values()]))
    rate = LOAD * machines / mean
    jobs = requests(count, rate, tenants=tenants, models=times.key_bytes, exponent=EXPONENT, seed=1)
    policies: dict[str, Callable[[], Policy]] = {
        "keys": lambda: KeyAware(KEY_MEMORY, times),
        "two choices": lambda: TwoChoices(2),
        "random": lambda: Random(2),
    }
    lines: list[dict[str, object]] = []
    for name, make in policies.items():
        start = time.perf_counter()
        outcome = Simulation(machines, KEY_MEMORY, times, make(), counted_from=count // 2).run(jobs)
        counted = outcome.hits + outcome.misses
        assert outcome.ended == dict.fromkeys(range(count), 1)
        lines.append(
            {
                "routing": name,
                "machines": machines,
                "tenants": tenants,
                "requests": counted,
                "requests_per_s": rate,
                "resident": outcome.hits / counted,
                "moved_bytes_per_s": outcome.moved_bytes / (jobs[-1].at - jobs[count // 2].at),
                "p50_s": outcome.percentile(50),
                "p99_s": outcome.percentile(99),
                "busy": outcome.busy_s / (machines * outcome.end_s),
                "simulated_in_s": time.perf_counter() - start,
            }
        )
    return lines


def main() -> None:
    """Measure, simulate, and write a record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--tenants", type=int, nargs="*", default=[1000, 20_000])
    parser.add_argument("--count", type=int, default=200_000, help="requests")
    parser.add_argument("--times", type=Path, help="of an earlier run, instead of measuring")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    folder = record_folder(options.out, "service")
    if options.times is None:
        times = measured(folder)
        (folder / "times.json").write_text(json.dumps(asdict(times) | {"machine": machine.describe()}) + "\n")
    else:
        entry = json.loads(options.times.read_text())
        times = Times(entry["evaluation_s"], entry["load_s"], entry["key_bytes"])
    with (folder / "simulated.jsonl").open("w", encoding="utf-8") as file:
        for tenants in options.tenants:
            for line in simulate(times, options.machines, tenants, options.count):
                file.write(json.dumps(line) + "\n")
                file.flush()
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
