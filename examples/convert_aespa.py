"""Write a published ResNet-20 with quadratic activations as ONNX.

    python examples/convert_aespa.py WEIGHTS OUTPUT.onnx

WEIGHTS is the folder weights/resnet20_aespa-cifar10 of https://github.com/human-analysis/AutoFHE (MIT), text
files with one number a line: the AESPA network (Park et al., arXiv 2201.06699) as Ao and Boddeti give it
(USENIX Security 2024), accuracy 91.9 % on CIFAR-10. Needs numpy, onnx and pillow.
"""

import argparse
from pathlib import Path

import numpy as np
from cifar import Array, OnnxWriter


def convert(folder: Path, output: Path) -> None:
    """Read the text files and write the network."""

    def read(name: str, *shape: int) -> Array:
        return np.loadtxt(folder / f"{name}.txt").astype(np.float32).reshape(shape)

    def activation(value: str, name: str, channels: int) -> str:
        c0, c1, c2 = (read(f"{name}_w{power}", channels) for power in range(3))
        return writer.quadratic(value, c0, c1, c2, name)

    def block(value: str, name: str, inputs: int, outputs: int) -> str:
        stride = outputs // inputs
        first = read(f"{name}_conv1_weight", outputs, inputs, 3, 3)
        inner = writer.convolution(value, first, None, stride, f"{name}_conv1")
        inner = activation(inner, f"{name}_herpn1", outputs)
        second = read(f"{name}_conv2_weight", outputs, outputs, 3, 3)
        inner = writer.convolution(inner, second, None, 1, f"{name}_conv2")
        if stride > 1:  # every second pixel, channels of zeros on both sides
            pick = np.zeros((outputs, inputs, 1, 1), np.float32)
            pick[np.arange(inputs) + (outputs - inputs) // 2, np.arange(inputs)] = 1
            value = writer.convolution(value, pick, None, stride, f"{name}_shortcut")
        return activation(writer.node("Add", inner, value), f"{name}_herpn2", outputs)

    writer = OnnxWriter()
    value = writer.normalise("image")
    value = writer.convolution(value, read("conv1_weight", 16, 3, 3, 3), None, 1, "conv1")
    value = activation(value, "herpn", 16)
    inputs = 16
    for layer, outputs in ((1, 16), (2, 32), (3, 64)):
        for index in range(3):
            value = block(value, f"layer{layer}_{index}", inputs, outputs)
            inputs = outputs
    value = writer.node("Flatten", writer.node("GlobalAveragePool", value, name="pool"))
    weight, bias = read("linear_weight", 10, 64), read("linear_bias", 10)
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
