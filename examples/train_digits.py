"""Train the network that the package ships: scikit-learn's handwritten digits, two convolutions, two squares,
5 levels.

    python examples/train_digits.py

Writes digits.onnx and digits_test.npz (64 images of the test split, with labels) into python/keywright/data.
Under a minute on one core. Needs numpy, onnx and scikit-learn.
"""

import argparse
from pathlib import Path

import numpy as np
from convnet import AveragePool, Convolution, Dense, Flatten, Layer, Square, accuracy, save_onnx, train
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

OUTPUT = Path(__file__).parent.parent / "python" / "keywright" / "data"
SHIPPED = 64


def network(rng: np.random.Generator) -> list[Layer]:
    """conv 3x3 (8) - square - average pool 2x2 - conv 3x3 (16) - square - dense 10."""
    return [
        Convolution(1, 8, kernel=3, stride=1, padding=1, rng=rng),
        Square(),
        AveragePool(2),
        Convolution(8, 16, kernel=3, stride=1, padding=1, rng=rng),
        Square(),
        Flatten(),
        Dense(16 * 4 * 4, 10, rng),
    ]


def main() -> None:
    """Train, print the test accuracy, write the model and the test images."""
    parser = argparse.ArgumentParser(description="Train the network that the package ships.")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.2, random_state=arguments.seed, stratify=labels
    )
    rng = np.random.default_rng(arguments.seed)
    layers = network(rng)

    def report(epoch: int, loss: float) -> None:
        if (epoch + 1) % 10 == 0:
            score = accuracy(layers, test_images, test_labels)
            print(f"epoch {epoch + 1}: loss {loss:.4f}, test accuracy {score:.4f} of {len(test_labels)}")

    train(
        layers,
        train_images,
        train_labels,
        rng,
        epochs=arguments.epochs,
        batch=32,
        decay=1e-3,
        reach=1,
        report=report,
    )
    save_onnx(layers, (1, 8, 8), 10, arguments.output / "digits.onnx")
    np.savez_compressed(
        arguments.output / "digits_test.npz", images=test_images[:SHIPPED], labels=test_labels[:SHIPPED]
    )
    for name in ("digits.onnx", "digits_test.npz"):
        print(f"{arguments.output / name}: {(arguments.output / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
