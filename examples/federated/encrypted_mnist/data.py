"""Images, and how they are spread over clients."""

import gzip
import struct
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Labels = NDArray[np.int64]


def _idx(path: Path) -> NDArray[np.uint8]:
    data = gzip.decompress(path.read_bytes())
    zeros, kind, dimensions = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path}: not an idx file of unsigned bytes")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(
        struct.unpack_from(f">{dimensions}I", data, 4)
    )


@cache
def load(folder: str, split: str) -> tuple[Array, Labels]:
    """Images (count, 1, side, side) in [0, 1] and labels of "train" or "test": MNIST, or without a folder
    the 8 x 8 digits of scikit-learn."""
    if folder:
        name = "train" if split == "train" else "t10k"
        images = _idx(Path(folder) / f"{name}-images-idx3-ubyte.gz")
        labels = _idx(Path(folder) / f"{name}-labels-idx1-ubyte.gz")
        return (images[:, None] / np.float32(255)).astype(np.float32), labels.astype(np.int64)
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = digits.images[:, None].astype(np.float32) / 16, digits.target.astype(np.int64)
    part = slice(0, 1400) if split == "train" else slice(1400, None)
    return images[part], labels[part]


def partition(labels: Labels, clients: int, number: int, kind: str, seed: int) -> NDArray[np.int64]:
    """The indices of client ``number``: random ones ("iid"), or two runs of the images sorted by label
    ("labels")."""
    rng = np.random.default_rng(seed)
    if kind == "iid":
        return np.array_split(rng.permutation(len(labels)), clients)[number]
    if kind != "labels":
        raise ValueError(f'partition is {kind!r}; use "iid" or "labels"')
    runs = np.array_split(np.argsort(labels, kind="stable"), 2 * clients)
    first, second = rng.permutation(2 * clients)[2 * number : 2 * number + 2]
    return np.concatenate([runs[first], runs[second]])
