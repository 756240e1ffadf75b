"""Data that is there without a download, split into samples to train on and to test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.idx import read_idx
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split

MNIST_TRAINED, MNIST_TESTED = 20_000, 256


@dataclass(frozen=True)
class Data:
    """Samples (count, *shape) with labels, or with values to be predicted."""

    train: NDArray[np.float32]
    known: NDArray[np.float64]
    tests: NDArray[np.float32]
    expected: NDArray[np.float64]

    def shaped(self, *shape: int) -> Data:
        """With samples of another shape."""
        train, tests = (samples.reshape(-1, *shape) for samples in (self.train, self.tests))
        return Data(train, self.known, tests, self.expected)

    def standardised(self) -> Data:
        """With mean 0 and deviation 1 of what is trained on."""
        mean, deviation = self.train.mean(0), self.train.std(0)
        deviation = np.where(deviation > 0, deviation, 1)
        return Data(
            (self.train - mean) / deviation, self.known, (self.tests - mean) / deviation, self.expected
        )


def table(name: str) -> Data:
    """One of scikit-learn's tables: a quarter is tested."""
    samples, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        samples = samples / 16
    if name == "diabetes":
        labels = (labels - labels.mean()) / labels.std()
    train, tests, known, expected = train_test_split(samples, labels, test_size=0.25, random_state=0)
    return Data(train.astype(np.float32), known, tests.astype(np.float32), expected)


def mnist(folder: Path) -> Data:
    """The first images of MNIST's files, pixels in [0, 1]."""
    (train, known), (tests, expected) = (
        (
            (read_idx(folder / f"{kind}-images-idx3-ubyte.gz")[:count, None] / 255).astype(np.float32),
            read_idx(folder / f"{kind}-labels-idx1-ubyte.gz")[:count].astype(np.float64),
        )
        for kind, count in (("train", MNIST_TRAINED), ("t10k", MNIST_TESTED))
    )
    return Data(train, known, tests, expected)
