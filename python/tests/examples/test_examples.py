"""The examples run; the numbered ones fail if an error exceeds its bound."""

import os
import pickle
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*_*.py"))
Run = Callable[..., str]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 11


def test_an_example_starts_as_a_program() -> None:
    example = ROOT / "examples" / "1_encrypt.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example in this process, as `python` runs a file, and return what it prints: a process of its
    own would take a second to import."""

    def run(example: str | Path, *arguments: str) -> str:
        path = ROOT / "examples" / example
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        monkeypatch.syspath_prepend(str(path.parent))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                pytest.fail(f"ended with {ended.code}")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, run: Run) -> None:
    assert run(example)


def test_a_regression_is_trained_as_in_the_clear(run: Run) -> None:
    said = run("logistic_regression.py", "--toy", "--steps", "5", "--blocks", "2")
    assert "0 predictions differ" in said
    # Two steps between bootstraps: before the third and the fifth, weights and velocity each.
    assert "4 bootstraps" in said


def test_a_regression_is_trained_on_all_samples(run: Run) -> None:
    said = run("logistic_regression.py", "--toy", "--all")
    assert "8 sent with 250 samples" in said  # 32 in a batch, 26 in the last one
    assert "0 predictions differ" in said


def test_a_torch_file_that_names_code_is_not_run(tmp_path: Path) -> None:
    """The converter of ResNet-20 accepts only tensors; a file that calls a function is refused."""
    weights, marker = tmp_path / "weights.th", tmp_path / "marker"

    class Call:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    parts: tuple[object, ...] = (0x1950A86A20F9469CFC6C, 1001, {}, {"state_dict": Call()})
    weights.write_bytes(b"".join(pickle.dumps(part, protocol=2) for part in parts))
    script = ROOT / "examples" / "convert_resnet20.py"
    command = [sys.executable, str(script), str(weights), str(tmp_path / "r.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "mkdir, which is not read" in done.stderr
    assert not marker.exists()
