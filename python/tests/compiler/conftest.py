"""Small ONNX models made of single operators."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from keywright.program.program import Program
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.generic]
Build = Callable[..., onnx.ModelProto]


def build_model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    constants: dict[str, Array] | None = None,
    *,
    batch: int | str = "batch",
    opset: int = 17,
) -> onnx.ModelProto:
    """A model from input "x" of (batch, *shape) to output "y"."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def require_equal_programs(one: Program, other: Program) -> None:
    """Require the same instructions, and diagonals that differ by rounding only."""
    assert (one.instructions, one.layers) == (other.instructions, other.layers)
    for fast, naive in zip(one.operands.transforms, other.operands.transforms, strict=True):
        assert fast.n1 == naive.n1
        for k, (diagonals, expected) in enumerate(zip(fast.diagonals, naive.diagonals, strict=True)):
            assert list(diagonals) == list(expected)
            for r in diagonals:
                assert np.allclose(
                    fast.full_diagonal(k, r), naive.full_diagonal(k, r), rtol=2.0**-48, atol=2.0**-60
                )


@pytest.fixture(scope="session")
def build() -> Build:
    return build_model
