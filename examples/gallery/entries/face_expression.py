"""The expression of a face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from cifar import OnnxWriter

from gallery.entries.facenet_rnet import pictures
from gallery.entry import Array, Case, Entry

SIZE, EXPRESSIONS = 112, 7
TESTS, CALIBRATION = 1, 40
MEAN = np.array([122.782, 117.001, 104.298], np.float32)


def read_weights(folder: Path) -> dict[str, Array]:
    """The tensors of a model of TensorFlow.js by name, from bytes with a scale and a smallest value."""
    ((group,),) = [json.loads((folder / "face_expression_model-weights_manifest.json").read_text())]
    data, tensors, start = (folder / "face_expression_model.bin").read_bytes(), {}, 0
    for entry in group["weights"]:
        kind = entry.get("quantization", entry)
        count, dtype = int(np.prod(entry["shape"])), np.dtype(kind["dtype"])
        values = np.frombuffer(data, dtype, count, start).astype(np.float32)
        start += count * dtype.itemsize
        if "quantization" in entry:
            values = values * np.float32(kind["scale"]) + np.float32(kind["min"])
        tensors[entry["name"]] = values.reshape(entry["shape"])
    return tensors


def load(folder: Path) -> Case:
    """The network as `faceExpressionNet` has it, for faces of 112 x 112 pixels."""
    tensors = read_weights(folder / "node_modules" / "@vladmandic" / "face-api" / "model")
    writer = OnnxWriter()

    def convolution(value: str, name: str, stride: int) -> str:
        same: dict[str, Any] = {"auto_pad": "SAME_UPPER", "strides": [stride] * 2}
        bias = writer.constant(tensors[f"{name}/bias"])
        if f"{name}/filters" in tensors:
            filters = writer.constant(tensors[f"{name}/filters"].transpose(3, 2, 0, 1))
            return writer.node("Conv", value, filters, bias, name=name, **same)
        spread = tensors[f"{name}/depthwise_filter"].transpose(2, 3, 0, 1)
        points = writer.constant(tensors[f"{name}/pointwise_filter"].transpose(3, 2, 0, 1))
        value = writer.node("Conv", value, writer.constant(spread), group=len(spread), **same)
        return writer.node("Conv", value, points, bias, name=name)

    value = writer.node("Sub", "face", writer.constant(MEAN.reshape(1, 3, 1, 1)))
    value = writer.node("Div", value, writer.constant(np.array(255, np.float32)))
    for block in range(4):
        total = value = writer.node("Relu", convolution(value, f"dense{block}/conv0", 2))
        for layer in (1, 2, 3):
            total = writer.node("Add", total, convolution(value, f"dense{block}/conv{layer}", 1))
            value = writer.node("Relu", total)
    value = writer.node("Flatten", writer.node("AveragePool", value, kernel_shape=[7, 7], strides=[2, 2]))
    operands = [writer.constant(tensors[f"fc/{part}"]) for part in ("weights", "bias")]
    result = writer.node("Gemm", value, *operands, name="expressions")
    faces = [
        127.5 * (1 + pictures(2 * count, SIZE, seed)[::2]) for count, seed in ((CALIBRATION, 1), (TESTS, 2))
    ]
    return Case(
        writer.model("face", (3, SIZE, SIZE), result, EXPRESSIONS), faces[0], faces[1], options={"samples": 1}
    )


ENTRY = Entry(
    title="the expression of a face, one of 7; 16 convolutions with ReLU in four dense blocks",
    licence="MIT",
    data="drawn faces of 112 x 112 pixels",
    load=load,
)
