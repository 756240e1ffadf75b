"""ResNet-20 for CIFAR-10 with squares and weights at random, for times beside a peer that has no quadratics
with coefficients for each channel.

Every convolution is scaled so that values stay within [-1, 1] on a few images.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from keywright.compiler.checking import run_onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]
SEED = 20
INNER, OUTER, SHORTCUT = 0.9, 0.4, 0.5
"""Largest value of a convolution: alone before a square, and of those that are added."""
SHIFT = -0.5
"""Of a convolution that is added to a square, which is in [0, INNER^2]."""
LAYERS = ((16, 1), (32, 2), (64, 2))
"""Channels, and the stride of the first of three blocks."""
OPSET = 17


class _Builder:
    """Adds layers; each is scaled on the images.

    Args:
        images: (count, 3, 32, 32) in [0, 1].
    """

    def __init__(self, images: NDArray[np.float64]) -> None:
        self.images = images
        self.random = np.random.default_rng(SEED)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def model(self, result: str, shape: tuple[int | None, ...]) -> onnx.ModelProto:
        """The network up to a value."""
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "square_resnet20",
            [value("image", TensorProto.FLOAT, ["batch", 3, 32, 32])],
            [value(result, TensorProto.FLOAT, ["batch", *shape])],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def node(self, operator: str, *operands: str, **attributes: Any) -> str:
        """A node; its result."""
        result = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(operands), [result], result, **attributes))
        return result

    def convolution(
        self, source: str, name: str, shape: tuple[int, int, int], stride: int, largest: float, shift: float
    ) -> str:
        """A convolution whose largest value on the images is `largest`, and `shift`."""
        outputs, _, kernel = shape
        weight = self.random.standard_normal((*shape, kernel)).astype(np.float32)
        self.weights[f"{name}.weight"] = weight
        self.weights[f"{name}.bias"] = np.zeros(outputs, np.float32)
        result = self.node(
            "Conv",
            source,
            f"{name}.weight",
            f"{name}.bias",
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
        )
        values = run_onnxruntime(self.model(result, (outputs, None, None)), self.images)
        weight *= np.float32(largest / np.abs(values).max())
        self.weights[f"{name}.bias"] += np.float32(shift)
        return result

    def square(self, source: str) -> str:
        """Its square."""
        return self.node("Mul", source, source)


def build(images: Array, path: Path) -> dict[str, Array]:
    """Write the network and return its weights by the names of `peers.orion`.

    Args:
        images: (count, 3, 32, 32) in [0, 1], on which values stay within [-1, 1].
    """
    builder = _Builder(images.astype(np.float64))
    value = builder.square(builder.convolution("image", "stem", (16, 3, 3), 1, INNER, 0.0))
    inputs, number = 16, 0
    for outputs, first in LAYERS:
        for place in range(3):
            stride, block = (first if place == 0 else 1), f"blocks.{number}"
            inner = builder.convolution(value, f"{block}.conv1", (outputs, inputs, 3), stride, INNER, 0.0)
            inner = builder.convolution(
                builder.square(inner),
                f"{block}.conv2",
                (outputs, outputs, 3),
                1,
                OUTER,
                SHIFT if stride == 1 else 0.0,
            )
            if stride > 1:
                value = builder.convolution(
                    value, f"{block}.shortcut", (outputs, inputs, 1), stride, SHORTCUT, 0.0
                )
            value = builder.square(builder.node("Add", inner, value))
            inputs, number = outputs, number + 1
    value = builder.node("Flatten", builder.node("GlobalAveragePool", value))
    dense = builder.random.standard_normal((10, inputs)).astype(np.float32)
    builder.weights["linear.weight"], builder.weights["linear.bias"] = dense, np.zeros(10, np.float32)
    scores = builder.node("Gemm", value, "linear.weight", "linear.bias", transB=1)
    onnx.save(builder.model(scores, (10,)), str(path))
    return builder.weights
