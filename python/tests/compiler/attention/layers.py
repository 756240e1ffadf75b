"""Small models with attention, their samples, and their outputs by the reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from keywright import compiler
from keywright.program.arrays import Vector
from keywright.runtime import run_clear
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tests.compiler.conftest import build_model

TARGET = compiler.Target(slots=1 << 13, levels=60)
SEED = 36
RNG = np.random.default_rng(SEED)
node = helper.make_node


def compiled(
    nodes: Sequence[onnx.NodeProto],
    shape: tuple[int, ...],
    constants: dict[str, Any] | None = None,
    *,
    opset: int = 20,
    size: float = 1.0,
    fit: dict[str, Any] | None = None,
    target: compiler.Target = TARGET,
) -> tuple[Any, Vector, Vector]:
    """A program, samples, and the model's outputs for them."""
    model = build_model(nodes, shape, constants, opset=opset)
    samples = size * RNG.normal(size=(60, *shape)).astype(np.float32)
    program = compiler.compile_program(model, target, compiler.Fit(calibration=samples, **fit or {}))
    return program, np.asarray(samples, np.float64), reference(model, samples)


def reference(model: onnx.ModelProto, samples: Any) -> Vector:
    """The model's outputs by ONNX's reference implementation."""
    outputs: Any = ReferenceEvaluator(model).run(None, {"x": np.asarray(samples, np.float32)})
    return np.asarray(outputs[0], np.float64)


def agree(program: Any, samples: Vector, expected: Vector, within: float = 1e-5) -> None:
    """Compare in the clear; products and sums are exact but for rounding."""
    outputs = run_clear(program, samples[:4]).reshape(expected[:4].shape)
    assert np.abs(outputs - expected[:4]).max() <= within * max(1.0, float(np.abs(expected).max()))


def attention_layer(length: int, width: int, heads: int, mask: Vector | None = None) -> Any:
    nodes = []
    for name in "qkv":
        nodes += [
            node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            node("Reshape", [f"{name}0", "apart"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    masked = "scores" if mask is None else "masked"
    nodes += [node("MatMul", ["q", "k"], ["products"]), node("Mul", ["products", "scale"], ["scores"])]
    nodes += [] if mask is None else [node("Add", ["scores", "mask"], ["masked"])]
    nodes += [
        node("Softmax", [masked], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["z"]),
        node("Transpose", ["z"], ["z0"], perm=[0, 2, 1, 3]),
        node("Reshape", ["z0", "together"], ["z1"]),
        node("MatMul", ["z1", "wo"], ["a"]),
        node("Add", ["a", "x"], ["y"]),
    ]
    constants = {
        f"w{name}": (RNG.normal(size=(width, width)) / np.sqrt(width)).astype(np.float32) for name in "qkvo"
    }
    constants |= {
        "apart": np.array([0, length, heads, width // heads]),
        "together": np.array([0, length, width]),
        "scale": np.float32(1 / np.sqrt(width // heads)),
    }
    return nodes, constants | ({} if mask is None else {"mask": mask.astype(np.float32)})
