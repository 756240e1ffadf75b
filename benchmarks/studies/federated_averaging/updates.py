"""Updates of the networks of Chem's paper, table 2, trained on MNIST."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "federated"))

from encrypted_mnist.data import load, partition
from encrypted_mnist.federation import encoding
from encrypted_mnist.network import Model, accuracy, initial, train

__all__ = [
    "CLIENTS",
    "RATE",
    "Model",
    "accuracy",
    "encoding",
    "initial",
    "load",
    "partition",
    "train",
    "trained",
]

CLIENTS = 30
"""Of the experiment."""

RATE = 0.01
"""Of training (table 2)."""


def trained(folder: str, model: str, kind: str, fraction: float, images: int) -> list[Model]:
    """What the clients of one round send: each has trained on so many of its images.

    Args:
        folder: of MNIST's four files.
        model: "cnn" or "mlp".
        kind: "iid", or "labels" for two runs of the sorted labels a client.
        fraction: share of the 30 clients that take part.
        images: of one client.
    """
    pictures, labels = load(folder, "train")
    chosen = np.random.default_rng(2).choice(CLIENTS, max(2, round(fraction * CLIENTS)), replace=False)
    start, updates = initial(model, pictures.shape[2], 1), []
    for client in chosen:
        own = {name: weight.copy() for name, weight in start.items()}
        mine = partition(labels, CLIENTS, int(client), kind, 1)
        mine = np.random.default_rng(int(client)).permutation(mine)[:images]
        train(own, pictures[mine], labels[mine], rate=RATE, batch=32, seed=int(client))
        updates.append(own)
    return updates
