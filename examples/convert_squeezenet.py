"""Write a SqueezeNet that train_squeezenet.py fine-tuned as ONNX.

    python examples/convert_squeezenet.py WEIGHTS.npz OUTPUT.onnx

Its input is pixels in [0, 1]. Needs numpy, onnx and pillow.
"""

import argparse
from pathlib import Path

import numpy as np
from cifar import Array, OnnxWriter
from convert_resnet20 import DEVIATION, MEAN

FIRES = range(2, 10)
POOLED = (1, 4, 8)
"""After which of them there is a mean of 3 x 3 pixels, every second one."""


def convert(weights: Path, output: Path) -> None:
    """Read the arrays and write the network."""
    with np.load(weights) as archive:
        arrays: dict[str, Array] = {name: archive[name].astype(np.float32) for name in archive.files}
    writer = OnnxWriter()

    def convolution(value: str, name: str) -> str:
        return writer.convolution(value, arrays[f"{name}.weight"], arrays[f"{name}.bias"], 1, name)

    def activated(value: str, name: str) -> str:
        value = convolution(value, name)
        if f"{name}.coefficients" not in arrays:
            return writer.node("Relu", value, name=f"{name}.relu")
        c0, c1, c2 = arrays[f"{name}.coefficients"]
        return writer.quadratic(value, c0, c1, c2, f"{name}.square")

    def pooled(value: str, name: str) -> str:
        shape = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
        return writer.node("AveragePool", value, name=name, count_include_pad=1, **shape)

    value = activated(writer.normalise("image", MEAN, DEVIATION), "conv_1")
    for number in (1, *FIRES):
        if number in FIRES:
            squeezed = activated(value, f"fire_{number}.squeeze")
            expanded = [convolution(squeezed, f"fire_{number}.expand{k}x{k}") for k in (1, 3)]
            value = writer.node("Concat", *expanded, name=f"fire_{number}", axis=1)
        if number in POOLED:
            value = pooled(value, f"pool_{number}")
    value = writer.node("GlobalAveragePool", activated(value, "conv_10"), name="pool_10")
    writer.save(writer.node("Flatten", value, name="scores"), output)


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
