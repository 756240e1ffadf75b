"""The networks that come with the project."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.operators.images import convolution
from keywright.compiler.graph.convolution import Convolution
from tests.compiler.conftest import require_equal_programs

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"


def test_digits() -> None:
    data = files("keywright") / "data"
    model = (data / "digits.onnx").read_bytes()
    with (data / "digits_test.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    program = compiler.compile_program(model, compiler.Target(slots=4096, levels=5))
    assert program.depth == 5
    report = compiler.check(program, images, model)
    assert report.agreement == 1
    # Single precision through five layers of squares: 2^-24 per operation, some 400 behind each score.
    assert report.max_abs_error <= 400 * 2**-24 * np.abs(report.expected).max()
    assert (report.outputs.argmax(1) == labels).mean() >= 0.95
    assert sum(s.count for s in program.key_switches if s.kind == "rotation") <= 60


def test_convolutions_by_kernels_and_by_entries_compile_to_one_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = (files("keywright") / "data" / "digits.onnx").read_bytes()
    target = compiler.Target(slots=4096, levels=5)
    fast = compiler.compile_program(model, target)
    monkeypatch.setattr(convolution, "Convolution", lambda *parts: Convolution(*parts).explicit())
    naive = compiler.compile_program(model, target)
    require_equal_programs(fast, naive)


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
def test_lenet_depth_and_rotations() -> None:
    program = compiler.compile_program(EXAMPLES / "lenet_mnist.onnx", compiler.Target(slots=8192, levels=7))
    assert program.depth == 7
    assert sum(s.count for s in program.key_switches if s.kind == "rotation") <= 90
    assert (EXAMPLES / "lenet_mnist.onnx").stat().st_size < 500_000
