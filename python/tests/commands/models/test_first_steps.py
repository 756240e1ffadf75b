"""The commands run a client's first steps: on each way, results are those of the model on raw samples."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from keywright.cli import main
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

node = helper.make_node
RNG = np.random.default_rng(4)
WEIGHTS = RNG.normal(size=(4, 3)).astype(np.float32)
TABLE = RNG.normal(size=(9, 2)).astype(np.float32)


def rounded() -> tuple[onnx.ModelProto, np.ndarray]:
    """First steps that keep the shape."""
    nodes = [
        node("Mul", ["x", "ten"], ["a"]),
        node("Round", ["a"], ["b"]),
        node("MatMul", ["b", "w"], ["y"]),
    ]
    arrays = {"ten": np.asarray(10, np.float32), "w": WEIGHTS}
    return model(nodes, arrays, TensorProto.FLOAT), RNG.normal(size=(60, 4)).astype(np.float32)


def embedded() -> tuple[onnx.ModelProto, np.ndarray]:
    """First steps that give a number for each of other numbers."""
    nodes = [
        node("Gather", ["table", "x"], ["a"]),
        node("Flatten", ["a"], ["b"]),
        node("MatMul", ["b", "w"], ["y"]),
    ]
    arrays = {"table": TABLE, "w": np.concatenate([WEIGHTS, -WEIGHTS[::-1]])}
    return model(nodes, arrays, TensorProto.INT64), RNG.integers(0, 9, (60, 4))


def imputed() -> tuple[onnx.ModelProto, np.ndarray]:
    """First steps that take missing values."""
    missing: dict[str, Any] = {"replaced_value_float": float("nan")}
    nodes = [
        node("Imputer", ["x"], ["a"], domain="ai.onnx.ml", imputed_value_floats=[0.5] * 4, **missing),
        node("MatMul", ["a", "w"], ["y"]),
    ]
    samples = RNG.normal(size=(60, 4)).astype(np.float32)
    samples[:2, 1] = np.nan
    return model(nodes, {"w": WEIGHTS}, TensorProto.FLOAT), samples


def model(nodes: list[onnx.NodeProto], arrays: dict[str, np.ndarray], kind: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=9
    )


@pytest.mark.parametrize("make", [rounded, embedded, imputed])
def test_commands_run_first_steps(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network, samples = make()
    onnx.save(network, "m.onnx")
    np.save("typical.npy", samples[3:])
    np.save("x.npy", samples[:3])
    given = ["m.onnx", "--calibration", "typical.npy"]
    expected: Any = next(iter(ReferenceEvaluator(network).run(None, {"x": samples[:3]})))
    bound = 1e-3 * float(np.abs(expected).max())
    assert main(["keygen", *given, "--out", "keys"]) == 0
    assert main(["encrypt", "keys/client", "--input", "x.npy", "--out", "sent"]) == 0
    assert main(["run", "keys/server", "--input", "sent", "--out", "answer"]) == 0
    assert main(["decrypt", "keys/client", "--input", "answer", "--out", "y.npy"]) == 0
    assert np.load("y.npy") == pytest.approx(expected, abs=bound)
    assert main(["infer", *given, "--input", "x.npy", "--out", "z.npy"]) == 0
    assert np.load("z.npy") == pytest.approx(expected, abs=bound)
    capfd.readouterr()
    assert main(["infer", *given, "--input", "x.npy", "--explain", "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])
    np.save("broken.npy", np.full((1, 4), np.inf))
    assert main(["encrypt", "keys/client", "--input", "broken.npy", "--out", "other"]) == 2
    assert not Path("other").exists()
