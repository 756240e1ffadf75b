"""The ResNet-20 that runs beside a peer."""

from pathlib import Path

import numpy as np
import onnx
from keywright.compiler.checking import run_onnxruntime
from onnx import TensorProto, helper
from studies.networks.square_resnet import build

BLOCKS = 9


def test_values_stay_within_one_and_differ_between_images(tmp_path: Path) -> None:
    images = np.random.default_rng(1).uniform(0, 1, (4, 3, 32, 32)).astype(np.float32)
    path = tmp_path / "network.onnx"
    weights = build(images, path)
    model = onnx.load(path)
    squares = [node for node in model.graph.node if node.op_type == "Mul"]
    assert len(squares) == 1 + 2 * BLOCKS
    assert len([name for name in weights if name.endswith("weight")]) == 1 + 2 * BLOCKS + 2 + 1
    scores = run_onnxruntime(model, images.astype(np.float64))
    assert scores.shape == (4, 10)
    assert scores.std(axis=0).min() > 0
    for node in squares:
        assert node.input[0] == node.input[1]
        del model.graph.output[:]
        shape = ["batch", None, None, None]
        model.graph.output.append(helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, shape))
        values = run_onnxruntime(model, images.astype(np.float64))
        assert 0.5 < np.abs(values).max() <= 1
