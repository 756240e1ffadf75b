"""Train small convolutional networks with numpy alone and write them as ONNX.

The activation is the square, which CKKS evaluates exactly in one level (CryptoNets, ICML 2016). Layers work
on batches of shape (batch, channels, height, width) or (batch, features), in single precision. Needs numpy
and onnx.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]


class Layer(ABC):
    """A differentiable layer: `forward` keeps what `backward` needs; `backward` fills `gradients`.

    Attributes:
        parameters: weight and bias, or nothing.
        gradients: the loss gradient of each parameter, after `backward`.
    """

    def __init__(self) -> None:
        self.parameters: list[Array] = []
        self.gradients: list[Array] = []

    @abstractmethod
    def forward(self, x: Array) -> Array:
        """The layer's output for a batch."""

    @abstractmethod
    def backward(self, gradient: Array) -> Array:
        """The loss gradient of the input, given that of the output."""

    @abstractmethod
    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        """The ONNX node that computes ``target`` from ``source``; parameters are called name.weight and
        name.bias."""


class Convolution(Layer):
    """A convolution of square kernels: weights (outputs, inputs, kernel, kernel), zero padding on every
    side."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, padding: int, rng: np.random.Generator
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding
        deviation = np.sqrt(1.0 / (inputs * kernel * kernel))
        weight = rng.normal(0, deviation, (outputs, inputs, kernel, kernel)).astype(np.float32)
        self.parameters = [weight, np.zeros(outputs, np.float32)]

    def forward(self, x: Array) -> Array:
        p, k, s = self.padding, self.kernel, self.stride
        padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
        windows = sliding_window_view(padded, (k, k), (2, 3))[:, :, ::s, ::s]
        batch, channels, height, width = windows.shape[:4]
        self.padded_shape, self.output_size = padded.shape, (height, width)
        columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, channels * k * k)
        self.columns = np.ascontiguousarray(columns)
        weight, bias = self.parameters
        output = self.columns @ weight.reshape(len(weight), -1).T + bias
        return output.reshape(batch, height, width, -1).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array) -> Array:
        weight = self.parameters[0]
        batch, outputs, height, width = gradient.shape
        flat = gradient.transpose(0, 2, 3, 1).reshape(-1, outputs)
        self.gradients = [(flat.T @ self.columns).reshape(weight.shape), flat.sum(0)]
        k, s, p = self.kernel, self.stride, self.padding
        columns = (flat @ weight.reshape(outputs, -1)).reshape(batch, height, width, -1, k, k)
        padded: Array = np.zeros(self.padded_shape, np.float32)
        for y in range(k):
            for x in range(k):
                target = padded[:, :, y : y + s * height : s, x : x + s * width : s]
                target += columns[:, :, :, :, y, x].transpose(0, 3, 1, 2)
        return padded[:, :, p : padded.shape[2] - p, p : padded.shape[3] - p]

    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        k, s, p = self.kernel, self.stride, self.padding
        return helper.make_node(
            "Conv",
            [source, f"{name}.weight", f"{name}.bias"],
            [target],
            name,
            kernel_shape=[k, k],
            strides=[s, s],
            pads=[p] * 4,
        )


class AveragePool(Layer):
    """The mean over windows of ``size`` x ``size`` that do not overlap; ``size`` divides height and width."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Array) -> Array:
        batch, channels, height, width = x.shape
        size = self.size
        pixels = x.reshape(batch, channels, height // size, size, width // size, size)
        return np.asarray(pixels.mean((3, 5)), np.float32)

    def backward(self, gradient: Array) -> Array:
        return gradient.repeat(self.size, 2).repeat(self.size, 3) / np.float32(self.size**2)

    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        size = [self.size, self.size]
        return helper.make_node("AveragePool", [source], [target], name, kernel_shape=size, strides=size)


class Square(Layer):
    """The elementwise square."""

    def forward(self, x: Array) -> Array:
        self.x = x
        return x * x

    def backward(self, gradient: Array) -> Array:
        return 2 * self.x * gradient

    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Mul", [source, source], [target], name)


class Flatten(Layer):
    """(batch, ...) to (batch, features)."""

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient: Array) -> Array:
        return gradient.reshape(self.shape)

    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Flatten", [source], [target], name)


class Dense(Layer):
    """A fully connected layer: weights (outputs, inputs)."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        super().__init__()
        weight = rng.normal(0, np.sqrt(1.0 / inputs), (outputs, inputs)).astype(np.float32)
        self.parameters = [weight, np.zeros(outputs, np.float32)]

    def forward(self, x: Array) -> Array:
        self.x = x
        return x @ self.parameters[0].T + self.parameters[1]

    def backward(self, gradient: Array) -> Array:
        self.gradients = [gradient.T @ self.x, gradient.sum(0)]
        return gradient @ self.parameters[0]

    def node(self, name: str, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Gemm", [source, f"{name}.weight", f"{name}.bias"], [target], name, transB=1)


def predict(layers: Sequence[Layer], images: Array, batch: int = 512) -> Array:
    """Class scores of images, computed ``batch`` at a time."""
    scores = []
    for start in range(0, len(images), batch):
        x = images[start : start + batch]
        for layer in layers:
            x = layer.forward(x)
        scores.append(x)
    return np.concatenate(scores)


def accuracy(layers: Sequence[Layer], images: Array, labels: NDArray[np.int64]) -> float:
    """The share of images whose highest score is at their label."""
    return float((predict(layers, images).argmax(1) == labels).mean())


def shifted(images: Array, reach: int, rng: np.random.Generator) -> Array:
    """A batch of images moved together by up to ``reach`` pixels in both directions, zeros moving in."""
    if reach == 0:
        return images
    height, width = images.shape[2:]
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    y, x = rng.integers(0, 2 * reach + 1, 2)
    return padded[:, :, y : y + height, x : x + width]


def train(
    layers: Sequence[Layer],
    images: Array,
    labels: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    epochs: int,
    batch: int,
    rate: float = 2e-3,
    decay: float = 1e-4,
    clip: float = 1.0,
    reach: int = 0,
    report: Callable[[int, float], None],
) -> None:
    """Minimise the cross-entropy by Adam with decoupled weight decay, clipped gradients and a cosine rate.

    Args:
        rate: the highest learning rate; warmed up over the first epoch.
        clip: the largest norm of one step's gradient; squares make large ones.
        reach: how many pixels each batch is moved at random.
        report: called after every epoch with its number and mean loss.
    """
    parameters = [(layer, index) for layer in layers for index in range(len(layer.parameters))]
    first = [np.zeros_like(layer.parameters[index]) for layer, index in parameters]
    second = [np.zeros_like(layer.parameters[index]) for layer, index in parameters]
    steps_per_epoch = len(images) // batch
    total = epochs * steps_per_epoch
    step = 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        loss = 0.0
        for index in range(steps_per_epoch):
            chosen = order[index * batch : (index + 1) * batch]
            x = shifted(images[chosen], reach, rng)
            for layer in layers:
                x = layer.forward(x)
            x = x - x.max(1, keepdims=True)
            probabilities = np.exp(x) / np.exp(x).sum(1, keepdims=True)
            rows = np.arange(batch)
            loss -= float(np.log(probabilities[rows, labels[chosen]] + 1e-12).mean())
            gradient = probabilities
            gradient[rows, labels[chosen]] -= 1
            gradient /= batch
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            gradients = [layer.gradients[i] for layer, i in parameters]
            norm = float(np.sqrt(sum(float((g * g).sum()) for g in gradients)))
            shrink = min(1.0, clip / (norm + 1e-12))
            step += 1
            now = rate * min(1.0, step / steps_per_epoch) * 0.5 * (1 + np.cos(np.pi * step / total))
            for (layer, i), g, m, v in zip(parameters, gradients, first, second, strict=True):
                m += 0.1 * (g * shrink - m)
                v += 0.001 * (np.square(g * shrink) - v)
                update = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
                layer.parameters[i] -= np.float32(now) * (update + np.float32(decay) * layer.parameters[i])
        report(epoch, loss / steps_per_epoch)


def save_onnx(layers: Sequence[Layer], shape: Sequence[int], classes: int, path: Path) -> None:
    """Write the network as ONNX: input ``image`` of (batch, *shape), output ``scores`` of (batch,
    classes)."""
    nodes, initializers = [], []
    value = "image"
    for index, layer in enumerate(layers):
        name = f"{type(layer).__name__.lower()}{index}"
        target = "scores" if index == len(layers) - 1 else f"{name}.output"
        nodes.append(layer.node(name, value, target))
        for parameter, role in zip(layer.parameters, ("weight", "bias"), strict=False):
            initializers.append(numpy_helper.from_array(parameter, f"{name}.{role}"))
        value = target
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", classes])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
