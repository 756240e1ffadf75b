"""The networks that come with the project."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from keywright import nn

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"


def test_digits() -> None:
    data = files("keywright") / "data"
    model = (data / "digits.onnx").read_bytes()
    with (data / "digits_test.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    program = nn.compile(model, nn.Target(slots=4096, levels=5))
    assert program.depth == 5
    report = program.check(images, model)
    assert report.agreement == 1
    # Single precision through five layers of squares: 2^-24 per operation, some 400 behind each score.
    assert report.max_abs_error <= 400 * 2**-24 * np.abs(report.expected).max()
    assert (report.outputs.argmax(1) == labels).mean() >= 0.95
    assert sum(s.count for s in program.key_switches if s.kind == "rotation") <= 60


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
def test_lenet_depth_and_rotations() -> None:
    program = nn.compile(EXAMPLES / "lenet_mnist.onnx", nn.Target(slots=8192, levels=7))
    assert program.depth == 7
    assert sum(s.count for s in program.key_switches if s.kind == "rotation") <= 90
    assert (EXAMPLES / "lenet_mnist.onnx").stat().st_size < 500_000
