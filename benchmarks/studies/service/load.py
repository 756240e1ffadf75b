"""A service under the load of many tenants, beside the engine alone.

    cd benchmarks && python -m studies.service.load FOLDER [--tenants 1000] [--seconds 30] [--out FOLDER]

FOLDER keeps models, the state of the server and its tenants from run to run; what is missing is made first:
1,000 tenants take some minutes. `keywright serve` then runs on the loopback with 4 GiB for keys and as many
workers as processors, each on one thread. Tenants ask by Zipf's law with exponent 1.1, any of three versions
of a model, whose keys are the same; requests before the window fill the server's memory. In the window some
clients ask one request after the other. Every answer is decrypted and compared afterwards.

The engine alone is as many processes, on one thread each, that evaluate the same requests with keys in
memory: no service, no files and nothing to load.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness import machine
from harness.folders import record_folder
from keywright.serve import Manifest, Model, ModelRunner, framing

from studies.service.models import save, weights
from studies.service.simulator import requests
from studies.service.tenants import Connection, Question, Tenant, evaluate, upload

OUTPUTS, MODELS, EXPONENT = 64, 3, 1.1
KEY_MEMORY = 4 << 30
CORES = 2
BOUND = 1e-3
ALONE = 24
"""Key sets that the engine alone has in memory."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Done:
    """A request that was answered."""

    tenant: int
    model: int
    at: float
    seconds: float
    answer: bytes


class World:
    """Models and tenants in a folder.

    Args:
        folder: of what is kept.
        tenants: how many.
    """

    def __init__(self, folder: Path, tenants: int) -> None:
        self.folder, self.count = folder.resolve(), tenants
        self.models = save(self.folder / "models", [OUTPUTS], MODELS)
        self.manifests = [Model.load(path).manifest for path in self.models]
        self.layers = [weights(OUTPUTS, seed) for seed in range(MODELS)]
        self._known = self.folder / "tenants.json"
        self.keys: list[str] = json.loads(self._known.read_text()) if self._known.exists() else []
        self._questions: dict[int, tuple[Tenant, Question]] = {}

    def populate(self, url: str) -> None:
        """Have all tenants upload their keys, as many as have not."""
        path = self.folder / "keys.kw"
        for number in range(len(self.keys), self.count):
            Tenant(number, self.manifests[0]).save_keys(path)
            connection = Connection(url)
            self.keys.append(upload(connection, self.manifests[0], path.read_bytes()))
            connection.close()
            if number % 50 == 49 or number == self.count - 1:
                self._known.write_text(json.dumps(self.keys))
                sys.stderr.write(f"{number + 1} tenants\n")

    def question(self, tenant: int) -> Question:
        """What a tenant asks, any model."""
        if tenant not in self._questions:
            made = Tenant(tenant, self.manifests[0])
            self._questions[tenant] = (made, made.question(self.layers[0]))
        return self._questions[tenant][1]

    def error(self, done: Done) -> float:
        """By how much an answer differs from the layer's."""
        tenant, question = self._questions[done.tenant]
        sample = np.random.default_rng(done.tenant).uniform(-1, 1, self.manifests[0].input.shape).ravel()
        return tenant.error(Question(question.message, sample @ self.layers[done.model]), done.answer)


@contextmanager
def serving(world: World, memory: int) -> Iterator[tuple[str, int, int]]:
    """The command, its address, its process and its bytes for keys."""
    command = [sys.executable, "-m", "keywright", "serve", *map(str, world.models)]
    command += ["--state", str(world.folder / "state"), "--port", "0", "--clients", str(world.count + 200)]
    command += ["--workers", str(CORES), "--expiry", "1e9", "--memory", str(memory), "--json"]
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    with (world.folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
    try:
        assert process.stdout is not None
        entry = json.loads(process.stdout.readline())
        yield entry["url"], process.pid, int(entry["key_memory"])
    finally:
        process.terminate()
        process.wait(60.0)
        if process.stdout is not None:
            process.stdout.close()


def processor_seconds(process: int) -> dict[str, float]:
    """Of the server, and of its workers together."""
    own = {"server": 0.0, "workers": 0.0}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                seconds = (int(fields[11]) + int(fields[12])) * TICK_S
                if int(path.name) == process:
                    own["server"] += seconds
                elif int(fields[1]) == process:
                    own["workers"] += seconds
    return own


def key_loads(url: str) -> dict[str, float]:
    """Evaluations by where their keys were."""
    connection = Connection(url)
    lines = connection.request("GET", "/metrics").decode().splitlines()
    connection.close()
    found = [line for line in lines if line.startswith("keywright_key_loads_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in found}


class Clients:
    """So many clients, who take requests from one sequence."""

    def __init__(self, world: World, url: str, sequence: Sequence[tuple[int, int]]) -> None:
        self._world, self._url, self._sequence = world, url, iter(sequence)
        self._lock = threading.Lock()
        self.done: list[Done] = []
        self.errors: list[str] = []

    def run(self, count: int, seconds: float, most: int) -> float:
        """Ask for so long, or so often. Returns the seconds that it took."""
        start, left = time.perf_counter(), [most]

        def ask() -> None:
            connection = Connection(self._url)
            try:
                while time.perf_counter() - start < seconds:
                    with self._lock:
                        left[0] -= 1
                        if left[0] < 0:
                            return
                        tenant, model = next(self._sequence)
                    begun = time.perf_counter()
                    question = self._world.question(tenant)
                    hash_ = self._world.manifests[model].hash
                    answer = evaluate(connection, self._world.keys[tenant], question, hash_)
                    taken = time.perf_counter() - begun
                    self.done.append(Done(tenant, model, begun - start, taken, answer))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                self.errors.append(repr(error))
            finally:
                connection.close()

        threads = [threading.Thread(target=ask) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start


def alone(folder: Path, manifest: Manifest, seconds: float, number: int, results: Any) -> None:
    """Evaluate on one thread for so long, with keys in memory."""
    model = Model.load(folder)
    runner, path = ModelRunner(model), folder.parent / f"alone-{number}.kw"
    known = []
    for tenant in range(ALONE):
        made = Tenant(tenant, manifest)
        made.save_keys(path)
        keys = kw.EvaluationKeys.load(path, model.parameters)
        known.append((keys, made.question(weights(OUTPUTS, 0)).message))
    taken: list[float] = []
    results.put(None)
    start, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        keys, message = known[len(taken) % ALONE]
        begun = time.perf_counter()
        inputs = [model.read_input(data) for data in framing.split(message, manifest.input.ciphertexts)]
        framing.join([model.write_output(result) for result in runner.run(keys, inputs, lambda: None)])
        taken.append(time.perf_counter() - begun)
    results.put((taken, time.perf_counter() - start, time.process_time() - used))


def engine_alone(world: World, seconds: float) -> dict[str, Any]:
    """Requests a second and seconds of a request of the engine."""
    context = multiprocessing.get_context("spawn")
    os.environ["RAYON_NUM_THREADS"] = "1"
    results: Any = context.Queue()
    processes = [
        context.Process(target=alone, args=(world.models[0], world.manifests[0], seconds, number, results))
        for number in range(CORES)
    ]
    for process in processes:
        process.start()
    found = [results.get() for _ in range(2 * CORES)]
    for process in processes:
        process.join()
    measured = [each for each in found if each is not None]
    rate = sum(len(taken) / span for taken, span, _ in measured)
    every = [each for taken, _, _ in measured for each in taken]
    used = sum(used for _, _, used in measured) / len(every)
    return {
        "what": "engine alone",
        "requests_per_s": rate,
        "processor_s_per_request": {"workers": used},
        **percentiles(every),
    }


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Seconds of requests."""
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"p50_s": float(p50), "p99_s": float(p99), "requests": len(seconds)}


def measure(world: World, memory: int, clients: int, seconds: float, warm: int, seed: int) -> dict[str, Any]:
    """One window of a server, and what it said of keys."""
    models = {str(i): 1 for i in range(MODELS)}
    jobs = requests(200_000, 1.0, tenants=world.count, models=models, exponent=EXPONENT, seed=seed)
    sequence = [(int(job.task.keys.partition("/")[0]), int(job.task.model)) for job in jobs]
    for tenant, _ in sequence[: warm + 4000]:
        world.question(tenant)
    with serving(world, memory) as (url, process, key_memory):
        asking = Clients(world, url, sequence)
        asking.run(2 * CORES, 1e9, warm)
        asking.done.clear()
        loads, used = key_loads(url), processor_seconds(process)
        span = asking.run(clients, seconds, 1 << 60)
        after, spent = key_loads(url), processor_seconds(process)
    hits = {place: after.get(place, 0.0) - loads.get(place, 0.0) for place in ("memory", "disk")}
    worst = max(world.error(done) for done in asking.done)
    count = len(asking.done)
    return {
        "what": "service",
        "clients": clients,
        "key_memory": key_memory,
        "warm": warm,
        "requests_per_s": count / span,
        **percentiles([done.seconds for done in asking.done]),
        "resident": hits["memory"] / max(1.0, sum(hits.values())),
        "loads": hits["disk"],
        "processor_s_per_request": {name: (spent[name] - used[name]) / count for name in used},
        "worst_error": worst,
        "wrong": sum(world.error(done) >= BOUND for done in asking.done),
        "errors": asking.errors,
    }


def main() -> None:
    """Measure, and write a record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm", type=int, default=3000, help="requests before the window")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--memory", type=int, default=KEY_MEMORY + (7 << 27), help="of serve, bytes")
    parser.add_argument("--seed", type=int, default=1, help="of the sequence of requests")
    parser.add_argument("--quiet", action="store_true", help="say that nothing else ran")
    parser.add_argument("--only-prepare", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    world = World(options.folder, options.tenants)
    if len(world.keys) < world.count:
        with serving(world, options.memory) as (url, _, _):
            world.populate(url)
    if options.only_prepare:
        return
    common = {"tenants": world.count, "models": MODELS, "exponent": EXPONENT, "quiet": options.quiet}
    common |= {"key_bytes": world.manifests[0].key_bytes, "machine": machine.describe()}
    window = partial(measure, world, options.memory, seconds=options.seconds, warm=options.warm)
    windows: list[Callable[[], dict[str, Any]]] = [lambda: engine_alone(world, options.seconds)]
    windows += [partial(window, clients=clients, seed=options.seed) for clients in options.clients]
    failed = False
    with (record_folder(options.out, "service") / "load.jsonl").open("a", encoding="utf-8") as file:
        for make in windows:
            line = make() | common
            failed |= bool(line.get("wrong") or line.get("errors"))
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(json.dumps(line), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
