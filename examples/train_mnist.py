"""Train a LeNet-size network on MNIST: two convolutions, two dense layers, three squares, 7 levels.

    python examples/train_mnist.py FOLDER
    python examples/train_mnist.py FOLDER --widths 32 64 512 --epochs 2 --output lenet_orion.onnx

FOLDER holds the four idx.gz files of MNIST (train-images-idx3-ubyte.gz and so on). Writes
examples/models/lenet_mnist.onnx. About ten minutes on one core. Needs numpy and onnx.

The second command trains the LeNet of Orion (Ebel, Garimella and Reagen, ASPLOS 2025), whose batch
normalisations are part of the layers before them once it is trained.
"""

import argparse
import gzip
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from convnet import Array, Convolution, Dense, Flatten, Layer, Square, accuracy, save_onnx, train
from numpy.typing import NDArray

OUTPUT = Path(__file__).parent / "models" / "lenet_mnist.onnx"


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in a gzipped idx file of bytes. Raises ValueError if the header does not fit the data."""
    data = gzip.decompress(path.read_bytes())
    zeros, kind, dimensions = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise ValueError(
            f"{path}: not an idx file of unsigned bytes (magic {data[:4].hex()}, expected 000008..)"
        )
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def load(folder: Path, split: str) -> tuple[Array, NDArray[np.int64]]:
    """Images (count, 1, 28, 28) in [0, 1] and labels of one split: "train" or "t10k"."""
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
    return (images[:, None] / np.float32(255)).astype(np.float32), labels.astype(np.int64)


def network(rng: np.random.Generator, widths: Sequence[int] = (8, 16, 64)) -> list[Layer]:
    """Return conv 5x5/2 - square - conv 5x5/2 - square - dense - square - dense 10, with these
    channels of the convolutions and outputs of the first dense layer."""
    first, second, dense = widths
    return [
        Convolution(1, first, kernel=5, stride=2, padding=2, rng=rng),
        Square(),
        Convolution(first, second, kernel=5, stride=2, padding=2, rng=rng),
        Square(),
        Flatten(),
        Dense(second * 7 * 7, dense, rng),
        Square(),
        Dense(dense, 10, rng),
    ]


def main() -> None:
    """Train, print the test accuracy, write the model."""
    parser = argparse.ArgumentParser(description="Train the LeNet-size network of examples/models.")
    parser.add_argument("folder", type=Path, help="folder of the four MNIST idx.gz files")
    parser.add_argument(
        "--widths",
        type=int,
        nargs=3,
        default=(8, 16, 64),
        metavar=("FIRST", "SECOND", "DENSE"),
        help="channels of the convolutions, outputs of the first dense layer (default: 8 16 64)",
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    images, labels = load(arguments.folder, "train")
    test_images, test_labels = load(arguments.folder, "t10k")
    rng = np.random.default_rng(arguments.seed)
    layers = network(rng, arguments.widths)

    def report(epoch: int, loss: float) -> None:
        score = accuracy(layers, test_images, test_labels)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, test accuracy {score:.4f}")

    train(layers, images, labels, rng, epochs=arguments.epochs, batch=64, reach=1, report=report)
    save_onnx(layers, (1, 28, 28), 10, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
