"""The served models: linear layers in a small ring of 128 bits, whose keys are small and quickly made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
from keywright import compiler
from keywright.model import Model
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

INPUTS = 784

LOG_N, Q_BITS, SPECIAL_BITS, SCALE_BITS = 13, (40, 30), (40,), 30
"""log QP = 110, of at most 214 for 128 bits in this ring."""

Vector = NDArray[np.float64]


def weights(outputs: int, seed: int) -> Vector:
    """The weights of the layer with a seed."""
    return np.random.default_rng(seed).uniform(-1, 1, (INPUTS, outputs)) / INPUTS


def served_model(name: str, outputs: int, seed: int) -> Model:
    """A model of one layer. Models with the same number of outputs take the same keys."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights(outputs, seed).astype(np.float32), "w")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    parameters = kw.Parameters.from_bits(LOG_N, list(Q_BITS), list(SPECIAL_BITS), SCALE_BITS)
    program = compiler.compile_program(
        onnx.shape_inference.infer_shapes(proto), compiler.Target(slots=2048, levels=1)
    )
    return Model(name, program, parameters)


def save(folder: Path, outputs: Sequence[int], count: int) -> list[Path]:
    """Folders of ``count`` models of each number of outputs, made where they are missing."""
    manifests = []
    for size in outputs:
        for seed in range(count):
            path = folder / f"linear-{size}-{seed}"
            if not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                served_model(path.name, size, seed).save(path)
            manifests.append(path)
    return manifests


def save_within(folder: Path, outputs: Sequence[int], memory: Sequence[int]) -> list[Path]:
    """Make folders of models, with the outputs of each and the most bytes that its keys take."""
    manifests = []
    for number, (size, most) in enumerate(zip(outputs, memory, strict=True)):
        path = folder / f"linear-{size}-within-{most}"
        if not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            served_model(f"linear-{number}", size, 0).with_keys_within(most).save(path)
        manifests.append(path)
    return manifests
