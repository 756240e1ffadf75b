"""ConvFHE's network 3-20-1 as an ONNX model, for the compiler, whose values are in slots: `python -m
studies.coefficient_network.export --weights W --images I --out FILE`.

The model takes images of (3, 32, 32) in [0, 1], subtracts the mean, and leaves out the last rows and columns,
as the program of `studies.coefficient_network` does. `studies.networks` measures it with `--model FILE`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from studies.coefficient_network.network import (
    COLOURS,
    IMAGE,
    SETTINGS,
    Array,
    Network,
    read_images,
    read_network,
)

PIXEL = 255.0
"""The largest value of a pixel of a picture."""


def onnx_model(network: Network, mean: Array) -> onnx.ModelProto:
    """A network as a model; `mean` is that of each colour of a picture."""
    constants: dict[str, Array] = {"mean": (mean / PIXEL).reshape(1, COLOURS, 1, 1)}
    rows = IMAGE - network.layers[0].kernel // 2
    constants |= {"first": np.array([0, 0]), "behind": np.array([rows, rows]), "axes": np.array([2, 3])}
    nodes = [
        helper.make_node("Sub", ["image", "mean"], ["centred"]),
        helper.make_node("Slice", ["centred", "first", "behind", "axes"], ["relu0"]),
    ]
    for index, layer in enumerate(network.layers):
        scale, half = (1.0 if index else PIXEL), layer.kernel // 2
        constants[f"kernel{index}"] = scale * layer.weights.transpose(3, 2, 0, 1)
        constants[f"bias{index}"] = layer.bias
        # With stride, the centres are at odd rows.
        pads = [half] * 4 if layer.stride == 1 else [half - 1, half - 1, 0, 0]
        inputs = [f"relu{index}", f"kernel{index}", f"bias{index}"]
        strides = [layer.stride] * 2
        nodes.append(helper.make_node("Conv", inputs, [f"sum{index}"], pads=pads, strides=strides))
        nodes.append(helper.make_node("Relu", [f"sum{index}"], [f"relu{index + 1}"]))
    constants |= {"matrix": network.matrix, "summands": network.bias}
    nodes += [
        helper.make_node("GlobalAveragePool", [f"relu{len(network.layers)}"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "matrix", "summands"], ["scores"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", COLOURS, IMAGE, IMAGE])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", network.bias.size])
    stored = [
        numpy_helper.from_array(value if value.dtype.kind == "i" else value.astype(np.float32), name)
        for name, value in constants.items()
    ]
    graph = helper.make_graph(nodes, "convfhe", [image], [scores], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> int:
    """Write the model."""
    parser = argparse.ArgumentParser(prog="python -m studies.coefficient_network.export", description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="the folder of the weights")
    parser.add_argument("--images", type=Path, required=True, help="folders of CIFAR-10's test images")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    options = parser.parse_args()
    _, _, mean = read_images(options.images, 1)
    onnx.save(onnx_model(read_network(SETTINGS["3-20-1"], options.weights), mean), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
