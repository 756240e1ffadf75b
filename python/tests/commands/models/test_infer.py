"""`keywright infer` on models that need bootstraps, and on images."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.cli import main
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.inputs import load_inputs, load_samples
from keywright.commands.models.infer import error_text
from keywright.errors import ParameterError
from keywright.model import Model
from keywright.plan.ring.preset_plans import bootstrap_plans
from onnx import TensorProto, helper, numpy_helper
from tests.bootstraps import DEGREE_62
from tests.commands.printed import fails

Write = Callable[[int], Path]


@pytest.fixture
def squares(tmp_path: Path) -> Write:
    """Return a function that writes a model of a number of squares and matrices, and inputs for it."""

    def write(count: int) -> Path:
        rng = np.random.default_rng(count)
        nodes, tensors, value = [], [], "x"
        for k in range(count):
            nodes.append(helper.make_node("MatMul", [value, f"w{k}"], [f"h{k}"], f"dense{k}"))
            nodes.append(helper.make_node("Mul", [f"h{k}", f"h{k}"], [f"s{k}"], f"square{k}"))
            weights = rng.normal(size=(4, 4)).astype(np.float32) / 2
            tensors.append(numpy_helper.from_array(weights, f"w{k}"))
            value = f"s{k}"
        graph = helper.make_graph(
            nodes,
            "squares",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", 4])],
            tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / "squares.onnx")
        np.save(tmp_path / "inputs.npy", rng.uniform(-1, 1, (6, 4)))
        return tmp_path

    return write


def test_a_deep_model_is_explained_with_its_bootstraps(
    squares: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for_batch = Model.for_batch

    def up_to_two(model: Model, batch: int) -> Model:
        """Each of 14 batches would be compiled and planned; more than these end as too few slots do."""
        if batch > 2:
            raise ParameterError("", code="batch", value=batch, maximum=2)
        return for_batch(model, batch)

    monkeypatch.setattr(Model, "for_batch", up_to_two)
    folder = squares(16)
    arguments = ["infer", str(folder / "squares.onnx"), "--explain", "--json"]
    assert main([*arguments, "--calibration", str(folder / "inputs.npy")]) == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if "layer" in line]
    predicted = lines[-1]
    assert 0 < predicted["predicted_mean_error"] < predicted["predicted_error"] < 1e-4
    bootstraps = [row for row in rows if row["layer"].startswith("bootstrap after")]
    compiled = kw.compile(folder / "squares.onnx", np.load(folder / "inputs.npy"))
    plan = kw.BootstrapperPlan.preset(compiled.program.operands.bootstraps[0].preset)
    # 32 levels: before the first bootstrap and after each, as many as a bootstrap leaves.
    assert len(bootstraps) == -(-32 // plan.levels_left) - 1
    # All lead to one level, which need not be the highest.
    (levels,) = {row["levels"] for row in bootstraps}
    low, high = map(int, levels.split(" to "))
    assert low == plan.input_level < high <= plan.output_level
    assert all("is read at level" in row["layer"] for row in bootstraps)
    assert all(row["seconds"] > 0 for row in rows)
    # A bootstrap refreshes every sample of its ciphertext.
    batches = [line for line in lines if "batch" in line]
    assert [line["batch"] for line in batches] == [1, 2]
    assert batches[1]["seconds"] < batches[0]["seconds"] / 1.5


def test_a_deep_model_needs_calibration(squares: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = squares(16)
    assert main(["infer", str(folder / "squares.onnx"), "--explain"]) == 2
    assert "(--calibration)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--count", "0", "--input", "x.npy"], "--count 0"), ([], "--input is missing")]
)
def test_arguments_that_contradict(
    squares: Write, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = squares(1)
    assert main(["infer", str(folder / "squares.onnx"), *arguments]) == 2
    assert word in capsys.readouterr().err


def test_a_program_of_an_unknown_bootstrap_is_refused(squares: Write) -> None:
    folder = squares(3)
    program = compiler.compile_program(
        folder / "squares.onnx",
        compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(4, 1, 4, preset="N99"),)),
        compiler.Fit(calibration=np.load(folder / "inputs.npy")),
    )
    compiler.save(program, folder / "program.kwp")
    loaded = compiler.load(folder / "program.kwp")
    assert loaded.operands.bootstraps == program.operands.bootstraps
    assert loaded.layers == program.layers
    with pytest.raises(ParameterError, match="N99", check=lambda error: error.code == "preset"):
        bootstrap_plans(loaded)


@pytest.mark.parametrize("batch", [1, 4])
def test_both_sides_in_one_process(squares: Write, batch: int) -> None:
    folder, inputs = squares(3), np.load(squares(3) / "inputs.npy")
    widths = [50, 40, 40, 45, 45, 45, *[50] * 7, 59, 60, 50, 50, 50]
    parameters = kw.Parameters.from_bits(10, widths, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        **DEGREE_62,
        values="real",
    )
    program = compiler.compile_program(
        folder / "squares.onnx",
        compiler.Target(
            slots=plan.slots, levels=plan.output_level, bootstraps=(compiler.Bootstrap.of(plan),), batch=batch
        ),
        compiler.Fit(calibration=inputs),
    )
    compiled = Model("squares", program, parameters, [plan])
    count = batch + 1
    planned = compiled.plan_process(count)
    inference = compiled.infer(inputs[:count], planned)
    assert inference.batches.samples == ([1, 1] if batch == 1 else [4, 1])
    assert len(inference.batches.evaluate_seconds) == 2
    expected = compiler.check(program, inputs[:count], folder / "squares.onnx").outputs
    assert np.abs(inference.outputs - expected).max() <= inference.error_bound
    assert inference.outputs.argmax(1).tolist() == expected.argmax(1).tolist()
    kinds = {row["kind"]: row for row in inference.kinds}
    assert kinds["bootstrap"]["layers"] == sum(layer.kind == "bootstrap" for layer in program.layers) > 0
    assert all(float(row["seconds"]) > 0 for row in inference.kinds)
    assert inference.preparation.plaintext_bytes > 0
    largest = float(np.abs(inference.outputs).max())
    assert "at most 0.25" in error_text(
        replace(inference, outputs=inference.outputs / largest, error_bound=0.25)
    )
    assert "larger than the outputs" in error_text(replace(inference, error_bound=largest))


def test_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (2, 5, 4, 3), np.uint8)
    for index, colours in enumerate(pixels):
        image.fromarray(colours).save(tmp_path / f"{index}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    both = load_inputs(tmp_path)
    assert np.array_equal(both, pixels.transpose(0, 3, 1, 2) / 255)
    assert np.array_equal(load_inputs(tmp_path, 1), both[:1])
    assert np.array_equal(load_samples(tmp_path / "1.png", (3, 5, 4)), both[1:])
    image.fromarray(pixels[0, :, :, 0]).save(tmp_path / "grey.bmp")
    assert load_inputs(tmp_path / "grey.bmp").shape == (1, 1, 5, 4)
    with pytest.raises(CommandError, match=r"grey\.bmp is"):
        load_inputs(tmp_path)
    with pytest.raises(CommandError, match="the model takes"):
        load_samples(tmp_path / "1.png", (3, 4, 5))
    (tmp_path / "grey.bmp").write_text("nothing")
    with pytest.raises(CommandError, match="not an image"):
        load_inputs(tmp_path / "grey.bmp")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CommandError, match="holds no images"):
        load_inputs(empty)


def test_a_result_replaces_nothing_that_is_read(
    squares: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = squares(1)
    before = (folder / "inputs.npy").read_bytes()
    monkeypatch.chdir(folder)
    for out in ("inputs.npy", "./inputs.npy", "squares.onnx"):
        line = fails(capsys, "infer", "squares.onnx", "--input", folder / "inputs.npy", "--out", out)
        assert "would replace a file that this command reads; name another" in line
    assert (folder / "inputs.npy").read_bytes() == before
    line = fails(capsys, "infer", "squares.onnx", "--input", "inputs.npy", "--out", folder / "none" / "y.npy")
    assert "there is no folder" in line


def test_one_sample_calibrates(squares: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a batch axis, a count of samples took features."""
    folder = squares(1)
    np.save(folder / "one.npy", np.load(folder / "inputs.npy")[0])
    for count in ([], ["--calibration-count", "1"]):
        arguments = [str(folder / "squares.onnx"), "--calibration", str(folder / "one.npy"), *count]
        assert main(["infer", *arguments, "--input", str(folder / "one.npy"), "--json"]) == 0
    assert "--threads 0 is too small" in fails(capsys, "presets", "--threads", "0")
