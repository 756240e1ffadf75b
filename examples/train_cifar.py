"""Train a ResNet-8 with quadratic activations on CIFAR-10 images: 15 levels, so it needs a bootstrap.

    python examples/train_cifar.py FOLDER [--teacher resnet20.onnx]

FOLDER has a folder of 32 x 32 images for each class; one image in ten is kept for tests. A teacher, such as
the network of convert_aespa.py, gives soft labels (Hinton et al., arXiv 1503.02531). Writes
examples/models/resnet8_cifar.onnx. Needs numpy, onnx, pillow, torch, and onnxruntime for the teacher.

Every activation follows a batch normalisation, also the one after a shortcut's sum, and is 0.2 x^2 + 0.5 x +
0.2: the Hermite expansion of ReLU to degree 2 (AESPA: Park et al., arXiv 2201.06699).
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from cifar import DEVIATION, MEAN, Array, OnnxWriter, load
from numpy.typing import NDArray
from torch.nn import functional

OUTPUT = Path(__file__).parent / "models" / "resnet8_cifar.onnx"
ACTIVATION = (0.2, 0.5, 0.2)
BLOCKS = ((16, 16), (16, 32), (32, 64))
TEMPERATURE = 3.0
RATE = 5e-3
LARGEST_SCORE = 30.0
"""Scores of the teacher are clipped here, because quadratic activations diverge on single images."""

EPSILON = 1e-5

Weights = dict[str, torch.Tensor]


def initial_weights(generator: torch.Generator) -> tuple[Weights, Weights]:
    """Trained tensors and running statistics by name."""
    trained: Weights = {}
    statistics: Weights = {}

    def convolution(name: str, inputs: int, outputs: int, kernel: int) -> None:
        shape = (outputs, inputs, kernel, kernel)
        trained[name] = torch.randn(shape, generator=generator) * (2 / (inputs * kernel * kernel)) ** 0.5

    def normalisation(name: str, channels: int) -> None:
        trained[f"{name}.scale"], trained[f"{name}.shift"] = torch.ones(channels), torch.zeros(channels)
        statistics[f"{name}.mean"], statistics[f"{name}.variance"] = (
            torch.zeros(channels),
            torch.ones(channels),
        )

    convolution("stem", 3, 16, 3)
    normalisation("stem.norm", 16)
    for index, (inputs, outputs) in enumerate(BLOCKS):
        convolution(f"block{index}.first", inputs, outputs, 3)
        normalisation(f"block{index}.inner", outputs)
        convolution(f"block{index}.second", outputs, outputs, 3)
        if inputs != outputs:
            convolution(f"block{index}.shortcut", inputs, outputs, 1)
        normalisation(f"block{index}.outer", outputs)
    normalisation("pool", BLOCKS[-1][1])
    trained["dense"] = torch.randn(10, BLOCKS[-1][1], generator=generator) * BLOCKS[-1][1] ** -0.5
    trained["bias"] = torch.zeros(10)
    for tensor in trained.values():
        tensor.requires_grad_()
    return trained, statistics


def forward(trained: Weights, statistics: Weights, x: torch.Tensor, training: bool) -> torch.Tensor:
    """Class scores of normalised images."""

    def normalise(value: torch.Tensor, name: str) -> torch.Tensor:
        return functional.batch_norm(
            value,
            statistics[f"{name}.mean"],
            statistics[f"{name}.variance"],
            trained[f"{name}.scale"],
            trained[f"{name}.shift"],
            training,
            eps=EPSILON,
        )

    def activate(value: torch.Tensor, name: str) -> torch.Tensor:
        value = normalise(value, name)
        return ACTIVATION[0] + ACTIVATION[1] * value + ACTIVATION[2] * value * value

    x = activate(functional.conv2d(x, trained["stem"], padding=1), "stem.norm")
    for index, (inputs, outputs) in enumerate(BLOCKS):
        name, stride = f"block{index}", outputs // inputs
        inner = functional.conv2d(x, trained[f"{name}.first"], stride=stride, padding=1)
        inner = functional.conv2d(activate(inner, f"{name}.inner"), trained[f"{name}.second"], padding=1)
        if inputs != outputs:
            x = functional.conv2d(x, trained[f"{name}.shortcut"], stride=stride)
        x = activate(inner + x, f"{name}.outer")
    return normalise(x.mean((2, 3)), "pool") @ trained["dense"].T + trained["bias"]


def augmented(images: Array, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Each image moved by up to 4 pixels, edges mirrored in, and whether it is mirrored as a whole."""
    padded = np.pad(images, ((0, 0), (0, 0), (4, 4), (4, 4)), mode="reflect")
    out = np.empty_like(images)
    choices = rng.integers(0, (9, 9, 2), (len(images), 3))
    for i, (y, x, mirrored) in enumerate(choices):
        view = padded[i, :, y : y + 32, x : x + 32]
        out[i] = view[:, :, ::-1] if mirrored else view
    return out, choices[:, 2]


def soft_labels(model: Path, images: Array) -> torch.Tensor:
    """A network's scores of images and of their mirror images, (2, count, 10)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    scores = [
        session.run(None, {"image": part})[0]
        for view in (images, np.ascontiguousarray(images[..., ::-1]))
        for part in np.array_split(view, max(len(view) // 250, 1))
    ]
    finite = np.nan_to_num(np.concatenate(scores), nan=0.0).clip(-LARGEST_SCORE, LARGEST_SCORE)
    return torch.from_numpy(finite.reshape(2, len(images), 10))


def normalised(images: Array) -> torch.Tensor:
    """Pixels to mean 0 and deviation 1 in each channel."""
    return torch.from_numpy((images - MEAN.reshape(1, 3, 1, 1)) / DEVIATION.reshape(1, 3, 1, 1))


def export(trained: Weights, statistics: Weights, path: Path) -> None:
    """Write the network as ONNX with the normalisations folded into convolutions and activations."""
    weights = {
        name: np.asarray(tensor.detach().numpy(), np.float64)
        for name, tensor in {**trained, **statistics}.items()
    }
    writer = OnnxWriter()

    def factors(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scale = weights[f"{name}.scale"] / np.sqrt(weights[f"{name}.variance"] + EPSILON)
        return scale, weights[f"{name}.shift"] - scale * weights[f"{name}.mean"]

    def activate(value: str, name: str) -> str:
        scale, shift = factors(name)
        c0, c1, c2 = ACTIVATION
        coefficients = (c0 + c1 * shift + c2 * shift**2, (c1 + 2 * c2 * shift) * scale, c2 * scale**2)
        lowest, middle, highest = (c.astype(np.float32) for c in coefficients)
        return writer.quadratic(value, lowest, middle, highest, f"{name}.activation")

    def convolve(value: str, name: str, stride: int) -> str:
        return writer.convolution(value, weights[name].astype(np.float32), None, stride, name)

    value = activate(convolve(writer.normalise("image"), "stem", 1), "stem.norm")
    for index, (inputs, outputs) in enumerate(BLOCKS):
        name, stride = f"block{index}", outputs // inputs
        inner = activate(convolve(value, f"{name}.first", stride), f"{name}.inner")
        inner = convolve(inner, f"{name}.second", 1)
        if inputs != outputs:
            value = convolve(value, f"{name}.shortcut", stride)
        value = activate(writer.node("Add", inner, value), f"{name}.outer")
    value = writer.node("Flatten", writer.node("GlobalAveragePool", value, name="pool"))
    scale, shift = factors("pool")
    dense, bias = weights["dense"] * scale, weights["bias"] + weights["dense"] @ shift
    operands = [writer.constant(array.astype(np.float32)) for array in (dense, bias)]
    writer.save(writer.node("Gemm", value, *operands, name="scores", transB=1), path)


def main() -> None:
    """Train, print the test accuracy, write the model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder with a folder of images for each class")
    parser.add_argument("--teacher", type=Path, help="ONNX network that gives soft labels")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    images, labels = load(arguments.folder, test=False)
    test_images, test_labels = load(arguments.folder, test=True)
    taught = None if arguments.teacher is None else soft_labels(arguments.teacher, images)
    rng = np.random.default_rng(arguments.seed)
    trained, statistics = initial_weights(torch.Generator().manual_seed(arguments.seed))
    optimizer = torch.optim.AdamW(trained.values(), lr=RATE, weight_decay=0.01)
    steps = len(images) // arguments.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=steps * arguments.epochs, pct_start=0.15
    )
    for epoch in range(arguments.epochs):
        start, total = time.perf_counter(), 0.0
        order = rng.permutation(len(images))
        for step in range(steps):
            chosen = order[step * arguments.batch : (step + 1) * arguments.batch]
            batch, mirrored = augmented(images[chosen], rng)
            scores = forward(trained, statistics, normalised(batch), True)
            loss = functional.cross_entropy(scores, torch.from_numpy(labels[chosen]))
            if taught is not None:
                distance = functional.kl_div(
                    functional.log_softmax(scores / TEMPERATURE, 1),
                    functional.log_softmax(taught[mirrored, chosen] / TEMPERATURE, 1),
                    reduction="batchmean",
                    log_target=True,
                )
                loss = 0.1 * loss + 0.9 * TEMPERATURE**2 * distance
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained.values(), 5.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        with torch.no_grad():
            parts = normalised(test_images).split(250)
            predictions = (
                torch.cat([forward(trained, statistics, part, False) for part in parts]).argmax(1).numpy()
            )
        print(
            f"epoch {epoch + 1}: loss {total / steps:.4f}, "
            f"test accuracy {(predictions == test_labels).mean():.4f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        export(trained, statistics, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
