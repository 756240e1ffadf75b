"""A service under the load of many tenants, compared with the engine alone.

    cd benchmarks && python -m studies.service.load FOLDER [--tenants 1000] [--seconds 30] [--out FOLDER]

FOLDER keeps models, the state of the server and its tenants from run to run; missing parts are made first.
`keywright serve` then runs on the loopback with 4 GiB for keys and as many workers as processors, each on
one thread. Requests of tenants follow Zipf's law with exponent 1.1. They name any of three models, which
take separate keys: 1,000 tenants have 3,000 key sets. Before the window every key set is used once, in
random order, and then by the same law, so the server's memory is full. In the window some clients send one
request after the other, and each waits for its answer in its request. Every answer is decrypted and
compared afterwards.

The engine alone has as many processes, on one thread each. They evaluate the same requests with keys in
memory, without service, files or loading.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
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

import numpy as np
from harness.folders import record_folder
from harness.measurement import machine
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Service
from keywright.serve.service import ServiceLimits

from studies.service.models import save_within, weights
from studies.service.simulator import requests
from studies.service.tenants import Connection, Question, Tenant, evaluate

OUTPUTS, KEYS, EXPONENT = (32, 16, 16), (3_300_000, 3_300_000, 2_600_000), 1.1
"""Of the models: outputs, and most bytes of keys in memory, for each of which other keys are planned."""

MODELS = len(OUTPUTS)
KEY_MEMORY = 4 << 30
CORES = 2
REQUESTS, REQUESTS_MOST = 50_000, 5_000
"""All that are drawn, and those of a window at most."""
BOUND = 1e-3
ALONE = 8
"""Key sets of each model that the engine alone has in memory."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Done:
    """An answered request."""

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
        self.models = save_within(self.folder / "models", OUTPUTS, KEYS)
        self.manifests = [Model.load(path).manifest for path in self.models]
        self.layers = [weights(outputs, 0) for outputs in OUTPUTS]
        self._known = self.folder / "tenants.json"
        self.keys: dict[str, str] = json.loads(self._known.read_text()) if self._known.exists() else {}
        self._questions: dict[tuple[int, int], tuple[Tenant, Question]] = {}

    def populate(self) -> None:
        """Put the key sets of all tenants into the state, as checked uploads leave them."""
        service = Service(
            [Model.load(path) for path in self.models],
            self.folder / "state",
            limits=ServiceLimits(expiry=1e9),
        )
        path = self.folder / "keys.kw"
        for number in range(len(self.keys), self.count * MODELS):
            tenant, model = divmod(number, MODELS)
            Tenant(tenant, self.manifests[model]).save_keys(path)
            data = path.read_bytes()
            upload = service.store.create(self.manifests[model].hash)
            service.store.objects.append(upload.name(0), 0, data)
            upload.parts = {0: len(data)}
            service.store.note_checked(upload, hashlib.sha256(data).hexdigest())
            self.keys[name_of(tenant, model)] = upload.identifier
            if number % 100 == 99 or number == self.count * MODELS - 1:
                self._known.write_text(json.dumps(self.keys))
                sys.stderr.write(f"{len(self.keys)} key sets\n")
        service.close()

    def question(self, tenant: int, model: int) -> Question:
        """The question of a tenant to a model."""
        if (tenant, model) not in self._questions:
            tenant_session = Tenant(tenant, self.manifests[model])
            self._questions[tenant, model] = (tenant_session, tenant_session.question(self.layers[model]))
        return self._questions[tenant, model][1]

    def error(self, done: Done) -> float:
        """The difference between an answer and the layer in the clear."""
        tenant, question = self._questions[done.tenant, done.model]
        return tenant.error(question, done.answer)


def name_of(tenant: int, model: int) -> str:
    """The name of a key set."""
    return f"{tenant}/{model}"


@contextmanager
def serving(world: World, memory: int) -> Iterator[tuple[str, int, int]]:
    """Run the command. Yields its address, its process and its bytes for keys."""
    command = [sys.executable, "-m", "keywright", "serve", *map(str, world.models)]
    command += [
        "--state",
        str(world.folder / "state"),
        "--port",
        "0",
        "--clients",
        str(world.count * MODELS + 200),
    ]
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
    """Processor seconds of the server, and of its workers together."""
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
    """Numbers of evaluations, by the place where their keys were."""
    connection = Connection(url)
    lines = connection.request("GET", "/metrics").decode().splitlines()
    connection.close()
    loads = [line for line in lines if line.startswith("keywright_key_loads_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in loads}


class Clients:
    """Clients that take requests from one sequence."""

    def __init__(self, world: World, url: str, sequence: Sequence[tuple[int, int]]) -> None:
        self._world, self._url, self._sequence = world, url, iter(sequence)
        self._lock = threading.Lock()
        self.done: list[Done] = []
        self.errors: list[str] = []

    def run(self, count: int, seconds: float, most: int) -> float:
        """Send requests for some seconds, or a number of them. Returns the seconds that it took."""
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
                    question = self._world.question(tenant, model)
                    hash_ = self._world.manifests[model].hash
                    keys = self._world.keys[name_of(tenant, model)]
                    answer = evaluate(connection, keys, question, hash_)
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


def alone(folders: Sequence[Path], seconds: float, number: int, results: Any) -> None:
    """Evaluate on one thread for some seconds, the models in turn, with keys in memory."""
    known = []
    for outputs, folder in zip(OUTPUTS, folders, strict=True):
        model, path = Model.load(folder), folder.parent / f"alone-{number}.kw"
        runner = model.runner()
        for tenant in range(ALONE):
            session = Tenant(tenant, model.manifest)
            session.save_keys(path)
            keys = model.execution.load_keys(path)
            known.append((tenant, model, runner, keys, session.question(weights(outputs, 0)).message))
    known.sort(key=lambda each: each[0])
    taken: list[float] = []
    results.put(None)
    start, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        _, model, runner, keys, message = known[len(taken) % len(known)]
        begun = time.perf_counter()
        framing.join(model.requests.answer(runner, keys, model.requests.read_all([message])).objects)
        taken.append(time.perf_counter() - begun)
    results.put((taken, time.perf_counter() - start, time.process_time() - used))


def engine_alone(world: World, seconds: float) -> dict[str, Any]:
    """Requests a second and seconds of a request of the engine."""
    context = multiprocessing.get_context("spawn")
    os.environ["RAYON_NUM_THREADS"] = "1"
    results: Any = context.Queue()
    processes = [
        context.Process(target=alone, args=(world.models, seconds, number, results))
        for number in range(CORES)
    ]
    for process in processes:
        process.start()
    rates = [results.get() for _ in range(2 * CORES)]
    for process in processes:
        process.join()
    measured = [each for each in rates if each is not None]
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


def sequence_of(count: int, seed: int) -> list[tuple[int, int]]:
    """A sequence of requests, each a tenant and a model."""
    models = {str(i): 1 for i in range(MODELS)}
    jobs = requests(REQUESTS, 1.0, tenants=count, models=models, exponent=EXPONENT, seed=seed)
    return [(int(job.task.keys.partition("/")[0]), int(job.task.model)) for job in jobs]


def measure(
    world: World,
    memory: int,
    clients: int,
    seconds: float,
    warm: int,
    sequence: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Measure one window of a server, with its counts of keys."""
    random = np.random.default_rng(0)
    every = [divmod(int(number), MODELS) for number in random.permutation(world.count * MODELS)]
    sequence = [*every, *sequence[: warm + REQUESTS_MOST]]
    for each in dict.fromkeys(sequence):
        world.question(*each)
    with serving(world, memory) as (url, process, key_memory):
        asking = Clients(world, url, sequence)
        asking.run(2 * CORES, 1e9, len(every) + warm)
        asking.done.clear()
        loads, used = key_loads(url), processor_seconds(process)
        span = asking.run(clients, seconds, REQUESTS_MOST)
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
    parser.add_argument(
        "--warm", type=int, default=12_000, help="requests before the window, after one of every key set"
    )
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--memory", type=int, default=KEY_MEMORY + (860 << 20), help="of serve, bytes")
    parser.add_argument("--seed", type=int, default=1, help="of the sequence of requests")
    parser.add_argument("--quiet", action="store_true", help="say that nothing else ran")
    parser.add_argument("--only-prepare", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    world = World(options.folder, options.tenants)
    if len(world.keys) < world.count * MODELS:
        world.populate()
    sequence = sequence_of(world.count, options.seed)
    if options.only_prepare:
        return
    common = {"tenants": world.count, "models": MODELS, "exponent": EXPONENT, "quiet": options.quiet}
    common |= {"outputs": OUTPUTS, "key_sets": len(world.keys), "machine": machine.describe()}
    common |= {"key_bytes": [manifest.keys.size for manifest in world.manifests]}
    window = partial(measure, world, options.memory, seconds=options.seconds, warm=options.warm)
    windows: list[Callable[[], dict[str, Any]]] = [lambda: engine_alone(world, options.seconds)]
    windows += [partial(window, clients=clients, sequence=sequence) for clients in options.clients]
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
