"""Options for activations and accuracy, the fit report that commands print, and the guard of ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright.cli import main
from keywright.commands.terminal import Terminal
from keywright.errors import ModelRefusedError
from keywright.errors.refusals.precision import no_labels
from onnx import TensorProto, helper, numpy_helper
from tests.commands.printed import fails, lines

node = helper.make_node


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLP with one hidden layer, typical inputs, and inputs of another scale."""
    path, rng = tmp_path_factory.mktemp("fit"), np.random.default_rng(11)
    tensors = [rng.normal(size=size).astype(np.float32) for size in ((6, 8), (8, 3))]
    graph = helper.make_graph(
        [
            node("MatMul", ["x", "w0"], ["a"]),
            node("Relu", ["a"], ["b"], "hidden"),
            node("MatMul", ["b", "w1"], ["y"]),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(tensor, f"w{k}") for k, tensor in enumerate(tensors)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path / "mlp.onnx")
    samples = rng.normal(size=(100, 6))
    np.save(path / "typical.npy", samples)
    np.save(path / "pixels.npy", 255 * samples[:2])
    return path


def explained(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The fit report that `infer --explain` prints."""
    calibration = ["--calibration", str(folder / "typical.npy")]
    capsys.readouterr()
    model = [str(folder / "mlp.onnx"), "--batch", "1"]
    assert main(["infer", *model, *calibration, "--explain", "--json", *more]) == 0
    (report,) = [line["fit"] for line in lines(capsys) if "fit" in line]
    return dict(report)


def test_methods_are_named_or_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = explained(folder, capsys, "--activation", "relu=minimax:8")
    assert [entry["method"] for entry in named["activations"]] == ["minimax:8"]
    by_node = explained(
        folder, capsys, "--activation", "hidden=chebyshev:15", "--activation", "relu=minimax:8"
    )
    assert [entry["method"] for entry in by_node["activations"]] == ["chebyshev:15"]
    chosen = explained(folder, capsys)
    assert chosen["agreement"] == 1.0
    assert (chosen["samples"], chosen["held_out"]) == (100, 20)
    tight = explained(folder, capsys, "--error", "0.02")
    assert tight["largest_change"] <= 0.02 < chosen["largest_change"]
    loose = explained(folder, capsys, "--accuracy", "80%")
    assert loose["largest_change"] >= chosen["largest_change"]


def test_calibration_has_its_own_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = explained(folder, capsys, "--count", "1", "--calibration-count", "30")
    assert (few["samples"], few["held_out"]) == (30, 0)
    assert "too few to hold some out" in few["warnings"][0]
    assert explained(folder, capsys, "--count", "1")["samples"] == 100


def test_samples_of_another_scale_are_refused_before_keys_are_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--calibration", folder / "typical.npy", "--input", folder / "pixels.npy"]
    line = fails(capsys, "infer", folder / "mlp.onnx", *arguments, "--json")
    assert "Relu at 'hidden' takes values from" in line
    assert "check the sample's scale" in line


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--activation", "relu"], "NAME=METHOD"),
        (["--activation", "relu=minimax:3"], "bits of minimax must be between 4 and 14, got 3"),
        (["--activation", "cosine=minimax:8"], "no activation is called 'cosine'"),
        (["--accuracy", "101%"], "--accuracy 101%"),
        (["--accuracy", "most"], "--accuracy most"),
        (["--error", "-1"], "above 0, got -1"),
        (["--calibration-count", "0"], "--calibration-count 0"),
        (["--calibration-count", "101"], "it has 100 samples"),
        (["--range", "2", "-1"], "--range 2.0 -1.0 is reversed or empty"),
        (["--range", "-1", "1"], "give one that holds them"),
        (["--error", "1e-9"], "the finest polynomials, or those requested, reach"),
    ],
)
def test_arguments_that_cannot_be(
    folder: Path, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = [folder / "mlp.onnx", "--calibration", folder / "typical.npy", "--explain", "--json"]
    assert word in fails(capsys, "infer", *model, *arguments)


def test_accuracy_needs_calibration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = [folder / "mlp.onnx", "--explain", "--json"]
    assert "need ranges" in fails(capsys, "infer", *model, "--accuracy", "0.9")


@pytest.mark.parametrize(
    "arguments", ["compile --out new", "infer --explain", "info", "keygen --out new", "plan"]
)
def test_commands_show_the_progress_of_compiling(
    arguments: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []

    def refuse(*_: object, progress: Any, **__: object) -> None:
        shown.append(progress.__self__)
        raise ModelRefusedError([no_labels()])

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kw, "compile", refuse, raising=False)
    name, *more = arguments.split()
    assert main([name, str(folder / "mlp.onnx"), *more]) == 2
    assert [type(each) for each in shown] == [Terminal]
