"""Write the published ResNet-20 with ReLU as ONNX.

    python examples/convert_resnet20.py WEIGHTS OUTPUT.onnx

WEIGHTS is pretrained_models/resnet20-12fca82f.th of https://github.com/akamaster/pytorch_resnet_cifar10
(BSD-2-Clause), accuracy 91.73 % on CIFAR-10: a pickle of torch tensors, which is read without torch and
without executing code from the file. The network takes pixels in [0, 1]. Needs numpy, onnx and pillow.
"""

import argparse
from pathlib import Path

import numpy as np
from cifar import OnnxWriter
from torch_files import read_tensors

EPSILON = 1e-5
MEAN = np.asarray([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.asarray([0.229, 0.224, 0.225], np.float32)
"""The normalisation that the network was trained with."""


def convert(weights: Path, output: Path) -> None:
    """Read the weights and write the network."""
    tensors = read_tensors(weights)

    def convolution(value: str, name: str, norm: str, stride: int) -> str:
        """A convolution and the batch normalisation behind it, as one convolution."""
        scale = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"] + EPSILON)
        bias = tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale
        kernel = tensors[f"{name}.weight"] * scale.reshape(-1, 1, 1, 1)
        return writer.convolution(value, kernel, bias, stride, name)

    def block(value: str, name: str, inputs: int, outputs: int) -> str:
        stride = outputs // inputs
        inner = convolution(value, f"{name}.conv1", f"{name}.bn1", stride)
        inner = writer.node("Relu", inner, name=f"{name}.relu1")
        inner = convolution(inner, f"{name}.conv2", f"{name}.bn2", 1)
        if stride > 1:  # every second pixel, channels of zeros on both sides
            pick = np.zeros((outputs, inputs, 1, 1), np.float32)
            pick[np.arange(inputs) + (outputs - inputs) // 2, np.arange(inputs)] = 1
            value = writer.convolution(value, pick, None, stride, f"{name}.shortcut")
        return writer.node("Relu", writer.node("Add", inner, value), name=f"{name}.relu2")

    writer = OnnxWriter()
    value = writer.normalise("image", MEAN, DEVIATION)
    value = writer.node("Relu", convolution(value, "conv1", "bn1", 1), name="relu")
    inputs = 16
    for layer, outputs in ((1, 16), (2, 32), (3, 64)):
        for index in range(3):
            value = block(value, f"layer{layer}.{index}", inputs, outputs)
            inputs = outputs
    value = writer.node("Flatten", writer.node("GlobalAveragePool", value, name="pool"))
    weight, bias = tensors["linear.weight"], tensors["linear.bias"]
    value = writer.node(
        "Gemm", value, writer.constant(weight), writer.constant(bias), name="scores", transB=1
    )
    writer.save(value, output)


def main() -> None:
    """Convert and print the size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    convert(arguments.weights, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
