"""How soon an evaluation begins if its keys are only on the disk, and the cost of shared keys afterwards.

    cd benchmarks
    python -m studies.service.cold MODEL [--rounds 3] [--turns 8] [--keys BYTES] [--objects ADDRESS]

MODEL is a folder of `keywright compile`. ``--keys`` takes the fastest keys within this many bytes of
memory. A process evaluates as a worker of `keywright serve` does, in rounds of these evaluations:

* *cold*: the pages of the key file are dropped from the system's memory; the evaluation begins while a
  thread reads the keys. The record has the time of the first key, at which the first key switch began, the
  total wait of operations for keys, and the time at which all keys were there.
* *fetched*, with ``--objects s3://BUCKET/PREFIX``: the same with keys that are only in object storage, in
  parts of 8 MiB. The evaluation begins while they are fetched. The address and the credentials of the
  storage come from the environment, as for `keywright serve`.
* *shared*: the same evaluation with the memory of the round before, mapped anew.
* *private*: with keys in the process's own memory, as `EvaluationKeys.load` reads them. The time to load
  them with the digest is when an evaluation would begin that waits for all keys.

Then evaluations with shared and with private keys take turns, ``--turns`` of each. The quotient of two
neighbours is the cost of shared keys.

Every answer is compared with that of the private keys, bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement.machine import describe
from keywright._core import EvaluationKeys
from keywright._files import digest_of
from keywright.model import Model
from keywright.serve.served.model import ServedModel
from keywright.serve.storage import open_storage
from keywright.serve.storage.objects import Objects
from keywright.serve.uploads.upload_store import order_of_parts
from keywright.serve.workers.worker import KeyLoading

PART_BYTES = 8 << 20


def forget_pages(path: Path) -> None:
    """Drop a file from the system's memory, so that it is read from the disk again."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Evaluation:
    """Evaluates one sample of a client repeatedly."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model, self.path = model, folder / "keys.kw"
        self._runner = model.runner()
        secret = kw.SecretKey.generate(model.parameters)
        kw.KeyGenerator(secret).save_evaluation_keys(self.path, model.specs)
        self._order = {"path": str(self.path), "digest": digest_of(self.path)}
        manifest = model.manifest
        sample = np.zeros((1, *manifest.input.places.shape))
        packed = manifest.input.places.pack(sample)
        if model.client_parameters is not None:
            client = kw.thin.Client.from_secret_bytes(secret.to_bytes(), model.client_parameters)
            fixed = [
                np.rint(row * 2**model.client_parameters.fraction_bits).astype(np.int64) for row in packed
            ]
            self._messages = [client.encrypt(numbers) for numbers in fixed]
        else:
            encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
            self._messages = [
                encryptor.encrypt(
                    row,
                    slots=model.program.slots,
                    level=manifest.input.level,
                    magnitude=manifest.input_magnitude,
                ).to_bytes()
                for row in packed
            ]
        self._descriptor = -1
        self.objects: Objects | None = None
        self._names: list[str] = []
        self._sizes: list[int] = []

    def _run(self, keys: EvaluationKeys) -> tuple[str, float]:
        inputs = [self._model.requests.read(data) for data in self._messages]
        start = time.perf_counter()
        results = self._runner.run(self._model.execution.follow(keys), inputs)
        seconds = time.perf_counter() - start
        return hashlib.sha256(b"".join(result.to_bytes() for result in results)).hexdigest(), seconds

    def turns(self, count: int) -> list[tuple[float, float]]:
        """Seconds with private and with shared keys, in turns; each kind is first equally often."""
        private = EvaluationKeys.load(self.path, self._model.parameters)
        loading = EvaluationKeys.load_shared(self.path, self._model.parameters, [])
        descriptor = loading.share()
        shared = EvaluationKeys.open_shared(descriptor, self._model.parameters)
        os.close(descriptor)
        del loading
        turns = []
        for turn in range(count):
            if turn % 2:
                second, first = self._run(shared)[1], self._run(private)[1]
            else:
                first, second = self._run(private)[1], self._run(shared)[1]
            turns.append((round(first, 4), round(second, 4)))
        return turns

    def private(self) -> tuple[str, dict[str, float]]:
        """Evaluate with keys in the process's own memory."""
        forget_pages(self.path)
        start = time.perf_counter()
        digest_of(self.path)
        keys = EvaluationKeys.load(self.path, self._model.parameters)
        loading = time.perf_counter() - start
        answer, seconds = self._run(keys)
        return answer, {"load_s": loading, "evaluate_s": seconds}

    def cold(self) -> tuple[str, dict[str, float]]:
        """Evaluate while the keys are read."""
        forget_pages(self.path)
        return self._load(time.perf_counter(), self._order)

    def fetched(self) -> tuple[str, dict[str, float]]:
        """Evaluate while the keys are fetched from object storage."""
        assert self.objects is not None
        self.objects.forget(self._names)
        start = time.perf_counter()
        begins = range(0, self.path.stat().st_size, PART_BYTES)
        with self.objects.incoming(
            self._names, self._sizes, order_of_parts(begins, self._model.key_places)
        ) as arrival:
            if isinstance(arrival, Path):
                raise SystemExit(f"{arrival} was not dropped")
            return self._load(
                start, {**self._order, "path": str(arrival.path), "incoming": arrival.to_json()}
            )

    def store(self, objects: Objects) -> None:
        """Put the keys into object storage, in parts."""
        self.objects, data = objects, self.path.read_bytes()
        pieces = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
        self._names, self._sizes = [f"{start:04}" for start in range(len(pieces))], list(map(len, pieces))
        for name, piece in zip(self._names, pieces, strict=True):
            objects.put(name, piece)

    def _load(self, start: float, order: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
        """Evaluate while keys are loaded, and record the time of each stage."""
        seen: dict[str, float] = {}

        def take(descriptor: int, seconds: float) -> None:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = os.dup(descriptor)
            seen["whole_s"], seen["handed_over_s"] = seconds, time.perf_counter() - start

        loading = KeyLoading(order, ServedModel(self._model), take)

        def watch() -> None:
            while (streaming := loading.keys.streaming) is not None and streaming["loads"] < 1:
                time.sleep(0.0005)
            seen["first_key_s"] = time.perf_counter() - start

        watching = threading.Thread(target=watch)
        watching.start()
        answer, _ = self._run(loading.keys)
        loading.wait()
        seen["end_s"] = time.perf_counter() - start
        watching.join()
        streaming = loading.keys.streaming
        assert streaming is not None
        return answer, {**seen, "waited_s": streaming["waited_s"]}

    def shared(self) -> tuple[str, dict[str, float]]:
        """Evaluate with the keys that `cold` left in shared memory."""
        start = time.perf_counter()
        keys = EvaluationKeys.open_shared(self._descriptor, self._model.parameters)
        mapping = time.perf_counter() - start
        os.close(self._descriptor)
        self._descriptor = -1
        answer, seconds = self._run(keys)
        return answer, {"map_s": mapping, "evaluate_s": seconds}


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--keys", type=int, help="most bytes of keys in memory")
    parser.add_argument("--objects", help="s3://BUCKET/PREFIX, where the keys are stored, too")
    parser.add_argument("--note", default="", help="what else the machine did")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    model = Model.load(options.model)
    if options.keys is not None:
        model = model.with_keys_within(options.keys)
    ways = ["private", "cold", *(["fetched"] if options.objects else []), "shared"]
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(dir=options.out) as folder, ExitStack() as stack:
        evaluation = Evaluation(model, Path(folder))
        if options.objects:
            storage = open_storage(Path(folder), objects=options.objects)
            stack.callback(storage.close)
            evaluation.store(storage.objects)
        first, _ = evaluation.private()
        for _ in range(options.rounds):
            for way, results in rounds.items():
                answer, seconds = getattr(evaluation, way)()
                if answer != first:
                    raise SystemExit(f"{way}: the answer differs from that of private keys")
                results.append({name: round(value, 4) for name, value in seconds.items()})
                print(way, results[-1], file=sys.stderr)
        turns = evaluation.turns(options.turns)
        size = evaluation.path.stat().st_size
    ratios = [shared / private for private, shared in turns]
    record = {
        "command": f"python -m studies.service.cold MODEL --rounds {options.rounds} --turns {options.turns}"
        + (f" --keys {options.keys}" if options.keys else "")
        + (" --objects s3://BUCKET/PREFIX" if options.objects else ""),
        "machine": describe(),
        "note": options.note,
        "model": {"name": model.name, "parameters": repr(model.parameters), "keys": len(model.specs)},
        "key_file_bytes": size,
        "key_memory_bytes": sum(spec.bytes for spec in model.specs),
        "first_key_s": {
            way: max(results["first_key_s"] for results in rounds[way])
            for way in ways
            if way in ("cold", "fetched")
        },
        "shared_over_private": round(float(np.median(ratios)), 4),
        "private_and_shared_s": turns,
        "rounds": rounds,
    }
    out = record_folder(options.out, "service") / "cold.json"
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
