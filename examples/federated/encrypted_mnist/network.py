"""The two networks of the experiment in numpy: Zhao, *Chem*, table 2."""

from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]
Model = dict[str, Array]


def initial(model: str, side: int, seed: int) -> Model:
    """Random weights: "mlp" is side^2-64-10, "cnn" 1-10-20 (5 x 5) and 320-50-10 for images of 28 x 28."""
    rng = np.random.default_rng(seed)
    if model == "mlp":
        shapes = {"fc1": (64, side * side), "fc2": (10, 64)}
    elif model == "cnn" and side == 28:
        shapes = {"conv1": (10, 25), "conv2": (20, 250), "fc1": (50, 320), "fc2": (10, 50)}
    else:
        raise ValueError(f"no model {model!r} for images of {side} x {side}")
    weights: Model = {}
    for name, (outputs, inputs) in shapes.items():
        weights[f"{name}.weight"] = rng.uniform(-1, 1, (outputs, inputs)).astype(np.float32) / np.float32(
            inputs**0.5
        )
        weights[f"{name}.bias"] = np.zeros(outputs, np.float32)
    return weights


def _columns(images: Array, kernel: int) -> Array:
    windows = sliding_window_view(images, (kernel, kernel), (2, 3))
    batch, channels, height, width = windows.shape[:4]
    return np.ascontiguousarray(
        windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, channels * kernel * kernel)
    )


class _Convolution:
    """5 x 5 without padding, ReLU, maximum over 2 x 2."""

    def __init__(self, weights: Model, name: str) -> None:
        self.weight, self.bias, self.name = weights[f"{name}.weight"], weights[f"{name}.bias"], name

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.columns = _columns(x, 5)
        size = x.shape[2] - 4
        y = (self.columns @ self.weight.T + self.bias).reshape(len(x), size // 2, 2, size // 2, 2, -1)
        blocks = y.transpose(0, 1, 3, 5, 2, 4).reshape(len(x), size // 2, size // 2, -1, 4)
        self.best = blocks.argmax(4)
        pooled = np.take_along_axis(blocks, self.best[..., None], 4)[..., 0]
        self.active = pooled > 0
        return (pooled * self.active).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array, gradients: Model, *, first: bool) -> Array:
        half = gradient.shape[2]
        g = gradient.transpose(0, 2, 3, 1) * self.active
        blocks = np.zeros((*g.shape, 4), np.float32)
        np.put_along_axis(blocks, self.best[..., None], g[..., None], 4)
        batch, outputs = len(g), g.shape[3]
        flat = (
            blocks.reshape(batch, half, half, outputs, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(-1, outputs)
        )
        gradients[f"{self.name}.weight"] = flat.T @ self.columns
        gradients[f"{self.name}.bias"] = flat.sum(0)
        if first:
            return gradient
        size, channels = 2 * half, self.shape[1]
        columns = (flat @ self.weight).reshape(batch, size, size, channels, 5, 5)
        x: Array = np.zeros(self.shape, np.float32)
        for i in range(5):
            for j in range(5):
                x[:, :, i : i + size, j : j + size] += columns[..., i, j].transpose(0, 3, 1, 2)
        return x


def _forward(weights: Model, images: Array) -> tuple[Array, list[_Convolution], list[Array]]:
    """Return class scores, and the values that the backward pass needs."""
    x, convolutions = images, []
    for name in ("conv1", "conv2"):
        if f"{name}.weight" in weights:
            convolutions.append(_Convolution(weights, name))
            x = convolutions[-1].forward(x)
    inputs = [x.reshape(len(x), -1)]
    inputs.append(np.maximum(inputs[0] @ weights["fc1.weight"].T + weights["fc1.bias"], 0))
    return inputs[1] @ weights["fc2.weight"].T + weights["fc2.bias"], convolutions, [x, *inputs]


def train(
    weights: Model, images: Array, labels: NDArray[np.int64], *, rate: float, batch: int, seed: int
) -> float:
    """One epoch of stochastic gradient descent on the cross-entropy, in place; the mean loss."""
    order = np.random.default_rng(seed).permutation(len(images))
    losses = []
    for start, end in pairwise([*range(0, len(images), batch), len(images)]):
        chosen = order[start:end]
        scores, convolutions, (x, flat, hidden) = _forward(weights, images[chosen])
        scores = scores - scores.max(1, keepdims=True)
        probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        rows = np.arange(len(chosen))
        losses.append(-np.log(probabilities[rows, labels[chosen]] + 1e-12).mean())
        probabilities[rows, labels[chosen]] -= 1
        g = (probabilities / len(chosen)).astype(np.float32)
        gradients: Model = {"fc2.weight": g.T @ hidden, "fc2.bias": g.sum(0)}
        g = (g @ weights["fc2.weight"]) * (hidden > 0)
        gradients |= {"fc1.weight": g.T @ flat, "fc1.bias": g.sum(0)}
        if convolutions:
            g = (g @ weights["fc1.weight"]).reshape(x.shape)
            for layer in reversed(convolutions):
                g = layer.backward(g, gradients, first=layer is convolutions[0])
        for name, gradient in gradients.items():
            weights[name] -= np.float32(rate) * gradient
    return float(np.mean(losses))


def accuracy(weights: Model, images: Array, labels: NDArray[np.int64]) -> float:
    """The share of images whose highest score is at their label."""
    right = 0
    for start in range(0, len(images), 500):
        scores = _forward(weights, images[start : start + 500])[0]
        right += int((scores.argmax(1) == labels[start : start + 500]).sum())
    return right / len(images)
