"""Accuracy of every round of federated averaging, encrypted and plain: the experiment of Zhao, *Chem*,
section 4.5.

    cd benchmarks && python -m studies.federated_averaging.accuracy --mnist FOLDER [--rounds 5] [--out FOLDER]

30 clients, 10 or 50 % of them in a round, images spread at random ("iid") or two runs of the sorted labels
to a client ("labels"), CNN and MLP of table 2. Both runs train on the same images in the same order with the
same clients; they differ by the rounding of encrypted averages alone, which the next rounds of training
amplify. Writes raw figures and a plot.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from harness.folders import record_folder
from harness.pages.plot import new_figure
from keywright.federated import ArrayLayout, Encoding, EncryptedSum, SumKey

from studies.federated_averaging.updates import (
    CLIENTS,
    RATE,
    Model,
    accuracy,
    encoding,
    initial,
    load,
    partition,
    train,
)

SESSION = bytes(16)


def plain_average(models: list[Model], samples: list[int]) -> Model:
    """What Flower's FedAvg computes: weighted sums in single precision."""
    total = sum(samples)
    return {
        name: np.sum(
            [model[name] * np.float32(n / total) for model, n in zip(models, samples, strict=True)], 0
        )
        for name in models[0]
    }


def encrypted_average(
    models: list[Model], samples: list[int], declared: Encoding, key: SumKey, number: int
) -> Model:
    """The same through encryption, addition without a key, and decryption."""
    layout = ArrayLayout.of(models[0])
    updates = []
    for client, (model, n) in enumerate(zip(models, samples, strict=True)):
        integers, clipped = declared.encode(layout.flatten(model), n)
        if clipped:
            raise ValueError(f"{clipped} values are above the bound of the declaration")
        updates.append(key.encrypt(integers, session=SESSION, round=number, client=client, weight=n))
    total = EncryptedSum.of(updates, declared.parameters)
    return layout.unflatten(declared.decode(key.decrypt(total), total.total_weight))


def experiment(folder: str, model: str, kind: str, fraction: float, rounds: int) -> dict[str, Any]:
    """Both runs of one setting: accuracies by round, and how far the two models are apart after the first
    average."""
    images, labels = load(folder, "train")
    tests = load(folder, "test")
    declared = encoding(CLIENTS)
    key = SumKey.generate(declared.parameters)
    parts = [partition(labels, CLIENTS, number, kind, 1) for number in range(CLIENTS)]
    start = initial(model, images.shape[2], 1)
    shares: dict[str, list[float]] = {"plain": [], "encrypted": []}
    first: dict[str, Model] = {}
    samples: list[int] = []
    for way, accuracies in shares.items():
        weights, rng = start, np.random.default_rng(2)
        for number in range(1, rounds + 1):
            chosen = rng.choice(CLIENTS, max(2, round(fraction * CLIENTS)), replace=False)
            models = []
            for client in chosen:
                own = {name: weight.copy() for name, weight in weights.items()}
                mine = parts[client]
                train(own, images[mine], labels[mine], rate=RATE, batch=32, seed=1000 * number + int(client))
                models.append(own)
            samples = [len(parts[client]) for client in chosen]
            if way == "plain":
                weights = plain_average(models, samples)
            else:
                weights = encrypted_average(models, samples, declared, key, number)
            first.setdefault(way, weights)
            accuracies.append(accuracy(weights, *tests))
    apart = max(float(np.abs(first["plain"][name] - first["encrypted"][name]).max()) for name in start)
    bound = declared.error_bound(len(samples), sum(samples))
    return {
        "model": model,
        "partition": kind,
        "fraction": fraction,
        "max_weight": declared.max_weight,
        "accuracy": shares,
        "first_average_apart": apart,
        "rounding_bound": bound,
    }


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """One panel for every setting: both curves."""
    columns = min(4, len(results))
    lines = -(-len(results) // columns)
    figure = new_figure(3.5 * columns, 3 * lines + 0.4)
    figure.suptitle("Federated averaging on MNIST, 30 clients: encrypted beside plain")
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axis, result in zip(axes.ravel(), results, strict=False):
        for way, style in (("plain", "k-"), ("encrypted", "r--")):
            values = result["accuracy"][way]
            axis.plot(range(1, len(values) + 1), values, style, label=way)
        data = {"iid": "iid", "labels": "by label"}[result["partition"]]
        axis.set_title(f"{result['model'].upper()}, data {data}, {result['fraction']:.0%} of clients")
        axis.set_xlabel("round")
    for row in axes:
        row[0].set_ylabel("test accuracy")
    axes[0, 0].legend()
    figure.savefig(path, dpi=100)


def main() -> None:
    """Run all settings. The same command with the same folder resumes an interrupted run."""
    program = "python -m studies.federated_averaging.accuracy"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("--mnist", required=True, help="folder of the four MNIST idx.gz files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", nargs="+", choices=["mlp", "cnn"], default=["mlp", "cnn"])
    parser.add_argument("--partition", nargs="+", choices=["iid", "labels"], default=["iid", "labels"])
    parser.add_argument("--fraction", nargs="+", type=float, default=[0.1, 0.5])
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-accuracy)")
    options = parser.parse_args()
    folder = record_folder(options.out, "accuracy")
    raw = folder / "accuracy.jsonl"
    results = [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []
    done = {(r["model"], r["partition"], r["fraction"], len(r["accuracy"]["plain"])) for r in results}
    for model in options.model:
        for kind in options.partition:
            for fraction in options.fraction:
                if (model, kind, fraction, options.rounds) in done:
                    continue
                results.append(experiment(options.mnist, model, kind, fraction, options.rounds))
                with raw.open("a") as file:
                    print(json.dumps(results[-1]), file=file)
                print(json.dumps(results[-1]), flush=True)
    plot(results, folder / "accuracy.png")


if __name__ == "__main__":
    main()
