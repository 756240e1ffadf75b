"""Encrypted federated averaging beside plain FedAvg and TenSEAL: time and bytes of one round.

    cd benchmarks && python -m federated [--model cnn] [--clients 3 15] [--runs 7] [--output FILE]

One update of the networks of Zhao, *Chem*, table 2, for every client: encoding, encryption and serialisation
on a client, parsing and addition on the server, parsing and decryption on a client. Every way does the same
work on the same numbers, and its average is compared with that in double precision. TenSEAL is used as the
Flower and NVFlare examples do: CKKS, N = 8192, 60-40-40-60, scale 2^40, one vector per layer, public-key
encryption. The ways take turns in every run; medians, minima and maxima of wall time and of CPU time (all
threads) are reported. Needs ``pip install tenseal`` for its rows.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import keywright as kw
import numpy as np
from keywright.federated import (
    Encoding,
    EncryptedSum,
    EncryptedUpdate,
    Layout,
    SumKey,
    ThresholdKey,
    ThresholdParameters,
    ThresholdParty,
    ThresholdShare,
)
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float32]]
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "cnn": {
        "conv1": (10, 25),
        "conv1.bias": (10,),
        "conv2": (20, 250),
        "conv2.bias": (20,),
        "fc1": (50, 320),
        "fc1.bias": (50,),
        "fc2": (10, 50),
        "fc2.bias": (10,),
    },
    "mlp": {"fc1": (64, 784), "fc1.bias": (64,), "fc2": (10, 64), "fc2.bias": (10,)},
}
BOUND, WEIGHT, BITS = 4.0, 2000, 24
SESSION = bytes(16)


class Way(Protocol):
    """One way of averaging: what a client sends, what the server sends back, what a client gets."""

    name: str

    def client(self, arrays: Arrays, number: int) -> bytes:
        """Encrypt and serialise an update."""

    def server(self, updates: list[bytes]) -> bytes:
        """Parse and add."""

    def open(self, total: bytes, clients: int) -> NDArray[np.float64]:
        """Parse, decrypt and average."""


def flat(arrays: Arrays) -> NDArray[np.float64]:
    """All values of an update."""
    return np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float64)


class Plain:
    """Float32 arrays, as Flower sends them; equal weights."""

    name = "plain FedAvg"

    def client(self, arrays: Arrays, number: int) -> bytes:
        """The bytes of the arrays."""
        return b"".join(array.tobytes() for array in arrays.values())

    def server(self, updates: list[bytes]) -> bytes:
        """The mean in single precision."""
        total = np.zeros(len(updates[0]) // 4, np.float32)
        for update in updates:
            total += np.frombuffer(update, np.float32) / len(updates)
        return total.tobytes()

    def open(self, total: bytes, clients: int) -> NDArray[np.float64]:
        """Nothing to decrypt."""
        return np.frombuffer(total, np.float32).astype(np.float64)


class Shared:
    """Keywright with one key of all clients."""

    name = "Keywright, shared key"

    def __init__(self, clients: int) -> None:
        self.encoding = Encoding(bound=BOUND, bits=BITS, max_clients=max(clients, 2), max_weight=WEIGHT)
        self.key = SumKey.generate(self.encoding.parameters)

    def client(self, arrays: Arrays, number: int) -> bytes:
        """Flatten, encode, encrypt, serialise."""
        integers, _ = self.encoding.encode(Layout.of(arrays).flatten(arrays), WEIGHT)
        return self.key.encrypt(integers, session=SESSION, round=1, client=number, weight=WEIGHT).to_bytes()

    def server(self, updates: list[bytes]) -> bytes:
        """Parse every update and add them."""
        parameters = self.encoding.parameters
        return EncryptedSum.of(
            [EncryptedUpdate.from_bytes(update, parameters) for update in updates], parameters
        ).to_bytes()

    def open(self, total: bytes, clients: int) -> NDArray[np.float64]:
        """Decrypt and decode."""
        parsed = EncryptedSum.from_bytes(total, self.encoding.parameters)
        return self.encoding.decode(self.key.decrypt(parsed), parsed.total_weight)


class Threshold:
    """Keywright without a shared key: two thirds of 30 clients decrypt; their parts are counted as
    opening."""

    name = "Keywright, 20 of 30"

    def __init__(self, clients: int, count: int) -> None:
        self.encoding = Encoding(bound=BOUND, bits=BITS, max_clients=max(clients, 2), max_weight=WEIGHT)
        self.count = count
        self.parameters = ThresholdParameters(
            30, 20, max_inputs=max(clients, 2), magnitude=self.encoding.magnitude, max_values=count
        )
        parties = [ThresholdParty.generate(self.parameters) for _ in range(30)]
        self.key = ThresholdKey.combine(
            self.parameters, bytes(32), [p.public_half(bytes(32)) for p in parties]
        )
        dealt = [party.deal() for party in parties]
        self.shares = [
            ThresholdShare.combine(self.parameters, j + 1, [d[j] for d in dealt]) for j in range(20)
        ]

    def client(self, arrays: Arrays, number: int) -> bytes:
        """Flatten, encode, encrypt, serialise."""
        integers, _ = self.encoding.encode(Layout.of(arrays).flatten(arrays), WEIGHT)
        return self.key.encrypt(integers)

    def server(self, updates: list[bytes]) -> bytes:
        """Parse every update and add them."""
        return self.parameters.add(updates)

    def partial(self, total: bytes, party: int) -> bytes:
        """What one client does of a decryption."""
        return self.shares[party].partial(total, list(range(1, 21)))

    def open(self, total: bytes, clients: int) -> NDArray[np.float64]:
        """All 20 parts, one after another, and their sum: on 20 machines the parts take the time of one."""
        partials = [self.partial(total, party) for party in range(20)]
        integers = self.parameters.finish(total, partials, clients, self.count)
        return self.encoding.decode(integers, clients * WEIGHT)


class TenSeal:
    """TenSEAL as in the examples of Flower and NVFlare."""

    name = "TenSEAL"

    def __init__(self) -> None:
        import tenseal

        self.ts = tenseal
        self.context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 8192, -1, [60, 40, 40, 60])
        self.context.global_scale = 2**40

    def client(self, arrays: Arrays, number: int) -> bytes:
        """One vector per layer, each with its length before it."""
        parts = [
            self.ts.ckks_vector(self.context, array.ravel().tolist()).serialize() for array in arrays.values()
        ]
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)

    def _split(self, data: bytes) -> list[Any]:
        vectors, start = [], 0
        while start < len(data):
            size = int.from_bytes(data[start : start + 4], "little")
            vectors.append(self.ts.ckks_vector_from(self.context, data[start + 4 : start + 4 + size]))
            start += 4 + size
        return vectors

    def server(self, updates: list[bytes]) -> bytes:
        """Parse every layer and add."""
        total = self._split(updates[0])
        for update in updates[1:]:
            for sum_, vector in zip(total, self._split(update), strict=True):
                sum_ += vector
        parts = [vector.serialize() for vector in total]
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)

    def open(self, total: bytes, clients: int) -> NDArray[np.float64]:
        """Decrypt every layer."""
        return np.concatenate([vector.decrypt() for vector in self._split(total)]) / clients


def timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What work returns, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - wall, time.process_time() - cpu)


def one_round(
    way: Way, updates: list[Arrays]
) -> tuple[dict[str, tuple[float, float]], dict[str, int], float]:
    """Seconds of each stage, bytes, and the largest error of the average."""
    sent, seconds = [], []
    for number, arrays in enumerate(updates):
        data, took = timed(partial(way.client, arrays, number))
        sent.append(data)
        seconds.append(took)
    total, server = timed(lambda: way.server(sent))
    average, opened = timed(lambda: way.open(total, len(updates)))
    expected = np.mean([flat(arrays) for arrays in updates], 0)
    client = (statistics.median(s[0] for s in seconds), statistics.median(s[1] for s in seconds))
    stages = {"client": client, "server": server, "open": opened}
    return stages, {"update": len(sent[0]), "sum": len(total)}, float(np.abs(average - expected).max())


def measure(model: str, clients: int, runs: int) -> list[dict[str, Any]]:
    """A row for every way: medians, minima and maxima of all runs but the first."""
    rng = np.random.default_rng(1)
    updates: list[Arrays] = [
        {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in SHAPES[model].items()}
        for _ in range(clients)
    ]
    count = flat(updates[0]).size
    ways: list[Way] = [Plain(), Shared(clients), Threshold(clients, count)]
    try:
        ways.append(TenSeal())
    except ImportError:
        print("no TenSEAL here", file=sys.stderr)
    results: dict[str, list[Any]] = {way.name: [] for way in ways}
    for _ in range(runs + 1):
        for way in ways:
            results[way.name].append(one_round(way, updates))
    rows = []
    for name, found in results.items():
        row: dict[str, Any] = {
            "model": model,
            "values": count,
            "clients": clients,
            "way": name,
            "bytes": found[0][1],
        }
        row["largest_error"] = max(error for _, _, error in found)
        for stage in ("client", "server", "open"):
            for which, place in (("wall", 0), ("cpu", 1)):
                seconds = [stages[stage][place] for stages, _, _ in found[1:]]
                row[f"{stage}_{which}_ms"] = [
                    round(1e3 * s, 3) for s in (statistics.median(seconds), min(seconds), max(seconds))
                ]
        rows.append(row)
    return rows


def bandwidth(runs: int, values: int = 1 << 22, inputs: int = 15) -> dict[str, Any]:
    """Bytes a second that the addition of parsed updates reads, beside a copy of as many bytes."""
    shared = Shared(inputs)
    parameters = shared.encoding.parameters
    integers = np.zeros(values, np.int64)
    updates = [
        shared.key.encrypt(integers, session=SESSION, round=1, client=number, weight=1)
        for number in range(inputs)
    ]
    size = values * parameters.value_bytes * inputs
    source, target = np.ones(size // 8), np.empty(size // 8)
    added, copied = [], []
    for _ in range(runs + 1):
        added.append(timed(lambda: EncryptedSum.of(updates, parameters))[1][0])
        copied.append(timed(lambda: np.copyto(target, source))[1][0])
    return {
        "inputs": inputs,
        "values": values,
        "bytes": size,
        "threads": kw.threads(),
        "addition_GB_s": [
            round(size / s / 1e9, 2) for s in (statistics.median(added[1:]), max(added[1:]), min(added[1:]))
        ],
        "copy_read_GB_s": [
            round(size / s / 1e9, 2)
            for s in (statistics.median(copied[1:]), max(copied[1:]), min(copied[1:]))
        ],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Encrypted federated averaging beside its peers.")
    parser.add_argument("--model", nargs="+", choices=sorted(SHAPES), default=sorted(SHAPES))
    parser.add_argument("--clients", nargs="+", type=int, default=[3, 15])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = [
        row
        for model in arguments.model
        for n in arguments.clients
        for row in measure(model, n, arguments.runs)
    ]
    result = {"threads": kw.threads(), "rounds": rows, "bandwidth": bandwidth(arguments.runs)}
    for row in rows:
        times = "  ".join(
            f"{stage} {row[f'{stage}_wall_ms'][0]:9.2f}" for stage in ("client", "server", "open")
        )
        print(
            f"{row['model']} {row['clients']:3d}  {row['way']:22s} {row['bytes']['update']:9d} B  {times} ms",
            flush=True,
        )
    print(result["bandwidth"])
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
