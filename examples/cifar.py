"""CIFAR-10 images in folders, and a small ONNX writer for networks of convolutions and quadratic activations.

Needs numpy, onnx and, to read images, pillow.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

Array = NDArray[np.float32]
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN = np.asarray([0.4914, 0.4822, 0.4465], np.float32)
DEVIATION = np.asarray([0.2023, 0.1994, 0.2010], np.float32)
TEST_EVERY = 10
"""Images of each class whose numbers are divisible by this are for tests, the others for training."""


def read_image(path: Path) -> Array:
    """One image as (3, 32, 32) in [0, 1]. Raises ValueError for another size."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"), np.float32)
    if pixels.shape != (32, 32, 3):
        raise ValueError(f"{path} has {pixels.shape[1]} x {pixels.shape[0]} pixels, expected 32 x 32")
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) / np.float32(255)


def image_paths(folder: Path, *, test: bool) -> list[tuple[Path, int]]:
    """Paths and labels of one split of a folder that has a folder of images for each class."""
    chosen = []
    for label, name in enumerate(CLASSES):
        paths = sorted((folder / name).iterdir())
        chosen += [(path, label) for i, path in enumerate(paths) if (i % TEST_EVERY == 0) == test]
    return chosen


def load(folder: Path, *, test: bool) -> tuple[Array, NDArray[np.int64]]:
    """Images (count, 3, 32, 32) in [0, 1] and labels of one split."""
    paths = image_paths(folder, test=test)
    return np.stack([read_image(path) for path, _ in paths]), np.asarray([label for _, label in paths])


class OnnxWriter:
    """Collects the nodes of a network with one input and one output; methods return the value they make."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[TensorProto] = []

    def constant(self, array: NDArray[np.generic]) -> str:
        """A constant operand."""
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator: str, *operands: str, name: str = "", **attributes: Any) -> str:
        """A node; its result has the node's name."""
        result = name or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(operands), [result], result, **attributes))
        return result

    def normalise(self, source: str, mean: Array = MEAN, deviation: Array = DEVIATION) -> str:
        """Pixels in [0, 1], of a mean and a deviation in each channel, to mean 0 and deviation 1."""
        centred = self.node("Sub", source, self.constant(mean.reshape(1, 3, 1, 1)))
        return self.node("Div", centred, self.constant(deviation.reshape(1, 3, 1, 1)))

    def convolution(self, source: str, weight: Array, bias: Array | None, stride: int, name: str) -> str:
        """A convolution that keeps the size of the image, but for the stride."""
        operands = [source, self.constant(weight)] + ([] if bias is None else [self.constant(bias)])
        pad = weight.shape[2] // 2
        return self.node("Conv", *operands, name=name, strides=[stride] * 2, pads=[pad] * 4)

    def quadratic(self, source: str, c0: Array, c1: Array, c2: Array, name: str) -> str:
        """c2 x^2 + c1 x + c0 with coefficients for each channel."""
        square = self.node("Mul", source, source)
        terms = [
            self.node("Mul", value, self.constant(c.reshape(1, -1, 1, 1)))
            for value, c in ((square, c2), (source, c1))
        ]
        return self.node("Add", self.node("Add", *terms), self.constant(c0.reshape(1, -1, 1, 1)), name=name)

    def model(self, source: str, shape: tuple[int, ...], result: str, outputs: int) -> onnx.ModelProto:
        """The network from ``source`` (batch, *shape) to ``result`` (batch, outputs)."""
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(source, TensorProto.FLOAT, ["batch", *shape])],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["batch", outputs])],
            self.tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model

    def save(self, result: str, path: Path) -> None:
        """Write the network from ``image`` (batch, 3, 32, 32) to ``result`` (batch, 10)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(self.model("image", (3, 32, 32), result, 10), path)
