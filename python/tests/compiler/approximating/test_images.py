"""Outputs of a last function with a bounded image stay inside it, whatever error a polynomial makes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.compiler.activations.image import image
from keywright.errors import FormatError
from keywright.model.exchange.interface import interface
from keywright.model.model import Model
from keywright.model.served.manifest import Manifest
from keywright.program.file.codecs import read_interval
from keywright.program.program import Program
from onnx import helper
from onnx.reference import ReferenceEvaluator

Build = Callable[..., onnx.ModelProto]
node = helper.make_node
SAMPLES = np.random.default_rng(1).normal(size=(100, 6))
WEIGHTS = np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32)
BOUNDED: dict[str, tuple[list[onnx.NodeProto], float, float]] = {
    "Relu": ([node("Relu", ["h"], ["y"])], 0.0, np.inf),
    "Abs": ([node("Abs", ["h"], ["y"])], 0.0, np.inf),
    "Clip": ([node("Clip", ["h", "low", "high"], ["y"])], -0.5, 1.25),
    "Sqrt": ([node("Relu", ["h"], ["r"]), node("Sqrt", ["r"], ["y"])], 0.0, np.inf),
    "HardSigmoid": ([node("HardSigmoid", ["h"], ["y"])], 0.0, 1.0),
    "Tanh": ([node("Tanh", ["h"], ["y"])], -1.0, 1.0),
    "Exp": ([node("Exp", ["h"], ["y"])], 0.0, np.inf),
    "Softplus": ([node("Softplus", ["h"], ["y"])], 0.0, np.inf),
    "SiLU": ([node("Sigmoid", ["h"], ["s"]), node("Mul", ["h", "s"], ["y"])], -0.27847, np.inf),
    "affine Relu": ([node("Relu", ["h"], ["r"]), node("Add", ["r", "high"], ["y"])], 1.25, np.inf),
}
CONSTANTS = {"w": WEIGHTS, "low": np.float32(-0.5), "high": np.float32(1.25)}


def program_of(build: Build, nodes: list[onnx.NodeProto]) -> tuple[Program, Any]:
    model = build([node("MatMul", ["x", "w"], ["h"]), *nodes], (6,), CONSTANTS)
    fit = compiler.Fit(calibration=SAMPLES, error=0.5)
    results: Any = ReferenceEvaluator(model).run(None, {"x": SAMPLES.astype(np.float32)})
    exact = results[0]
    return compiler.compile_program(model, compiler.Target(slots=8, levels=20), fit), exact


@pytest.mark.parametrize("name", BOUNDED)
def test_outputs_stay_in_the_image_of_the_last_function(build: Build, name: str, tmp_path: Path) -> None:
    nodes, low, high = BOUNDED[name]
    program, exact = program_of(build, nodes)
    assert program.output.image is not None
    least, largest = program.output.image
    assert low - 1e-6 <= least <= exact.min()
    assert exact.max() <= largest <= high + 1e-6
    for wrong in (-1e3, 1e3):
        outputs = program.unpack(np.full((1, 8), wrong), 1)
        assert low - 1e-6 <= outputs.min() <= outputs.max() <= min(high, largest) + 1e-6
    compiler.save(program, tmp_path / "p.kwp")
    assert compiler.load(tmp_path / "p.kwp").output.image == program.output.image


def test_clients_without_the_program_clip_too(build: Build) -> None:
    program, _ = program_of(build, BOUNDED["Relu"][0])
    ring = kw.Parameters.from_bits(10, [50] + [40] * 20, [50], 40, insecure=True)
    manifest = Manifest.read(interface(program, ring, None, "relu", ()).encoded)
    assert manifest.output.image == program.output.image
    assert manifest.output.leaving(np.full((1, 6), -1.0)).min() == 0.0
    assert Model("relu", program, ring).interface.output.image == program.output.image
    entry = json.loads(manifest.encoded)
    for wrong in ([1.0, 0.0], [0.0], ["0", 1.0], 3, [0.0, 10**400]):
        with pytest.raises(FormatError, match="output_image"):
            Manifest.read(json.dumps(entry | {"output_image": wrong}).encode())
        with pytest.raises((FormatError, ValueError), match="outputs"):
            read_interval(wrong, "outputs")


def test_outputs_that_are_not_of_one_function_have_no_image(build: Build) -> None:
    for nodes in (
        [node("Identity", ["h"], ["y"])],
        [node("Relu", ["h"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
        [node("Relu", ["h"], ["r"]), node("Mul", ["r", "h"], ["q"]), node("Add", ["q", "x"], ["y"])],
    ):
        assert program_of(build, nodes)[0].output.image is None


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_no_value_is_outside_of_an_image(name: str) -> None:
    """Between the points at which it is computed, too."""
    rng = np.random.default_rng(3)
    for low, high in ((0.01, 3.0), (1.0, 1.001), (-2.0, 5.0), (-30.0, -1.0)):
        ends = image(ACTIVATIONS[name], low, high)
        with np.errstate(all="ignore"):
            values = ACTIVATIONS[name](np.sort(rng.uniform(low, high, 5000)))
        assert (
            ends is None
            or np.isnan(values).any()
            or ends[0] <= np.nanmin(values) <= np.nanmax(values) <= ends[1]
        )
