"""Accuracy of every round of federated averaging, encrypted and plain: the experiment of Zhao, *Chem*,
section 4.5.

    cd benchmarks && python -m federated_accuracy MNIST_FOLDER [--rounds 5] [--output FILE]

30 clients, 10 or 50 % of them in a round, images spread at random ("iid") or two runs of the sorted labels
to a client ("labels"), CNN and MLP of table 2. Both runs train on the same images in the same order with the
same clients; they differ by the rounding of encrypted averages alone, which the next rounds of training
amplify. Writes raw figures (.json) and a plot (.png).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from keywright.federated import Encoding, EncryptedSum, Layout, SumKey

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "federated"))

from encrypted_mnist.data import load, partition
from encrypted_mnist.federation import encoding
from encrypted_mnist.network import Model, accuracy, initial, train

CLIENTS = 30
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
    layout = Layout.of(models[0])
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
    found: dict[str, list[float]] = {"plain": [], "encrypted": []}
    first: dict[str, Model] = {}
    samples: list[int] = []
    for way, accuracies in found.items():
        weights, rng = start, np.random.default_rng(2)
        for number in range(1, rounds + 1):
            chosen = rng.choice(CLIENTS, max(2, round(fraction * CLIENTS)), replace=False)
            models = []
            for client in chosen:
                own = {name: weight.copy() for name, weight in weights.items()}
                mine = parts[client]
                train(own, images[mine], labels[mine], rate=0.05, batch=32, seed=1000 * number + int(client))
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
        "accuracy": found,
        "first_average_apart": apart,
        "rounding_bound": bound,
    }


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """One panel for every setting: both curves."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(14, 6), sharey=True)
    for axis, result in zip(axes.ravel(), results, strict=False):
        for way, style in (("plain", "k-"), ("encrypted", "r--")):
            values = result["accuracy"][way]
            axis.plot(range(1, len(values) + 1), values, style, label=way)
        axis.set_title(f"{result['model']}, {result['partition']}, {result['fraction']:.0%}")
        axis.set_xlabel("round")
    axes[0, 0].set_ylabel("test accuracy")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    """Run all settings."""
    parser = argparse.ArgumentParser(description="Accuracy of encrypted and plain federated averaging.")
    parser.add_argument("folder", help="folder of the four MNIST idx.gz files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("federated_accuracy"))
    arguments = parser.parse_args()
    results = []
    for model in ("mlp", "cnn"):
        for kind in ("iid", "labels"):
            for fraction in (0.1, 0.5):
                results.append(experiment(arguments.folder, model, kind, fraction, arguments.rounds))
                print(json.dumps(results[-1]), flush=True)
                arguments.output.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    plot(results, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
