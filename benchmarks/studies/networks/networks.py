"""The measured networks, and their images."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
from harness.folders import HERE
from harness.idx import read_idx
from numpy.typing import NDArray
from PIL import Image

CIFAR_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


@dataclass(frozen=True)
class Images:
    """Samples of shape (count, *input_shape), values in [0, 1], and their labels."""

    samples: NDArray[np.float32]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """A network by its name.

    Attributes:
        title: what it is.
        images: reads so many images, from the argument --data where that is needed.
        model: ONNX file that comes with this repository; None where --model names it.
        calibration: how many images its activations are fitted on.
    """

    title: str
    images: Callable[[Path | None, Sequence[int]], Images]
    model: Path | None = None
    calibration: int = 0


def digits(data: Path | None, numbers: Sequence[int]) -> Images:
    """The shipped test images of handwritten digits, 8 x 8."""
    if data is not None:
        raise SystemExit(f"--data {data}: the digits come with the package")
    with (files("keywright") / "data" / "digits_test.npz").open("rb") as file:
        archive = np.load(file)
        images, labels = archive["images"], archive["labels"]
    return _chosen("digits", images.astype(np.float32), labels, numbers)


def mnist(data: Path | None, numbers: Sequence[int]) -> Images:
    """Test images of a folder of MNIST's files, (1, 28, 28)."""
    folder = _given(data, "a folder of MNIST's files")
    images = read_idx(folder / "t10k-images-idx3-ubyte.gz")[:, None] / np.float32(255)
    labels = read_idx(folder / "t10k-labels-idx1-ubyte.gz")
    return _chosen("MNIST", images.astype(np.float32), labels, numbers)


def cifar(data: Path | None, numbers: Sequence[int]) -> Images:
    """Images of CIFAR-10 in a tar file with a folder of 32 x 32 images for each class; class after class in
    turn, (3, 32, 32)."""
    path = _given(data, "a tar file of CIFAR-10's test images")
    with tarfile.open(path) as archive:
        members: dict[str, list[tarfile.TarInfo]] = {name: [] for name in CIFAR_CLASSES}
        for member in sorted(archive.getmembers(), key=lambda entry: entry.name):
            if member.isfile() and Path(member.name).parent.name in members:
                members[Path(member.name).parent.name].append(member)
        have = len(CIFAR_CLASSES) * min(map(len, members.values()))
        _require("CIFAR-10", have, numbers)
        samples = [_pixels(archive, members[CIFAR_CLASSES[n % 10]][n // 10]) for n in numbers]
    return Images(np.asarray(samples, np.float32), np.asarray([n % 10 for n in numbers], np.int64))


def _pixels(archive: tarfile.TarFile, member: tarfile.TarInfo) -> NDArray[np.float32]:
    stored = archive.extractfile(member)
    assert stored is not None
    with Image.open(BytesIO(stored.read())) as image:
        pixels = np.asarray(image.convert("RGB"), np.float32)
    if pixels.shape != (32, 32, 3):
        raise SystemExit(f"{member.name} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not 32 x 32")
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) / np.float32(255)


def _given(data: Path | None, what: str) -> Path:
    if data is None:
        raise SystemExit(f"--data names {what}")
    return data


def _require(name: str, have: int, numbers: Sequence[int]) -> None:
    if numbers and max(numbers) >= have:
        raise SystemExit(f"image {max(numbers)} is asked for; {name} has {have} here")


def _chosen(
    name: str, images: NDArray[np.float32], labels: NDArray[np.generic], numbers: Sequence[int]
) -> Images:
    _require(name, len(images), numbers)
    chosen = np.asarray(numbers, np.int64)
    return Images(images[chosen], np.asarray(labels, np.int64)[chosen])


NETWORKS = {
    "digits": Network(
        "convolutional, squares, 8 x 8 digits", digits, Path(str(files("keywright") / "data" / "digits.onnx"))
    ),
    "lenet-mnist": Network(
        "LeNet of examples/train_mnist.py, squares, MNIST",
        mnist,
        HERE.parent / "examples" / "models" / "lenet_mnist.onnx",
    ),
    "vit-mnist": Network(
        "vision transformer of examples/train_vit.py, 16 patches, MNIST",
        mnist,
        HERE.parent / "examples" / "models" / "vit_mnist.onnx",
        calibration=100,
    ),
    "lenet-orion": Network("LeNet of Orion, squares, MNIST", mnist),
    "resnet8": Network(
        "ResNet-8, quadratic activations, CIFAR-10",
        cifar,
        HERE.parent / "examples" / "models" / "resnet8_cifar.onnx",
        calibration=40,
    ),
    "resnet20-aespa": Network("ResNet-20 AESPA, AutoFHE's weights, CIFAR-10", cifar, calibration=100),
    "resnet20-relu": Network("ResNet-20 ReLU, CIFAR-10", cifar, calibration=100),
}
