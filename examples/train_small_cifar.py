"""Train a small network of squares on CIFAR-10 images, shallow enough for a thin client's five levels.

    python examples/train_small_cifar.py FOLDER

FOLDER has a folder of 32 x 32 images for each class; one image in ten is kept for tests. Writes
examples/models/small_cifar.onnx, whose input is pixels in [0, 1]. A few minutes on one core. Needs numpy,
onnx and pillow.
"""

import argparse
from pathlib import Path

import numpy as np
from cifar import DEVIATION, MEAN, load
from convnet import Array, AveragePool, Convolution, Dense, Flatten, Layer, Square, accuracy, save_onnx, train

OUTPUT = Path(__file__).parent / "models" / "small_cifar.onnx"
CHANNELS = 16
HIDDEN = 64


def network(rng: np.random.Generator) -> list[Layer]:
    """conv 5x5/2 (16) - square - mean 2x2 - dense 64 - square - dense 10: no padding, so that the
    normalisation of pixels can be folded into the first weights."""
    return [
        Convolution(3, CHANNELS, kernel=5, stride=2, padding=0, rng=rng),
        Square(),
        AveragePool(2),
        Flatten(),
        Dense(CHANNELS * 7 * 7, HIDDEN, rng),
        Square(),
        Dense(HIDDEN, 10, rng),
    ]


def normalised(images: Array) -> Array:
    """Pixels to mean 0 and deviation 1 in each channel."""
    return (images - MEAN.reshape(1, 3, 1, 1)) / DEVIATION.reshape(1, 3, 1, 1)


def fold_normalisation(first: Layer) -> None:
    """The first layer's weights for pixels in [0, 1]."""
    weight, bias = first.parameters
    scaled = weight / DEVIATION.reshape(1, 3, 1, 1)
    shift = (scaled * MEAN.reshape(1, 3, 1, 1)).sum((1, 2, 3))
    first.parameters = [scaled.astype(np.float32), (bias - shift).astype(np.float32)]


def main() -> None:
    """Train, print the test accuracy, write the model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder with a folder of images for each class")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    images, labels = load(arguments.folder, test=False)
    test_images, test_labels = load(arguments.folder, test=True)
    # Each image also mirrored.
    images = np.concatenate([images, images[..., ::-1]])
    labels = np.concatenate([labels, labels])
    rng = np.random.default_rng(arguments.seed)
    layers = network(rng)

    def report(epoch: int, loss: float) -> None:
        score = accuracy(layers, normalised(test_images), test_labels)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, test accuracy {score:.4f}", flush=True)

    epochs = arguments.epochs
    train(
        layers, normalised(images), labels, rng, epochs=epochs, batch=64, decay=0.03, reach=2, report=report
    )
    fold_normalisation(layers[0])
    print(f"on pixels in [0, 1]: test accuracy {accuracy(layers, test_images, test_labels):.4f}")
    save_onnx(layers, (3, 32, 32), 10, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
