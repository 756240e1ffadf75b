"""Predicted and measured memory of a process, and memory budgets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.cli import main
from keywright.commands.helpers.memory import memory_budget
from keywright.model import Executable, Model
from keywright.model.parameters.parameter_choice import BOOTSTRAP_PRESETS, Compilation
from tests.commands.models.test_infer import Write, squares  # noqa: F401 (a fixture)

SHARE = 0.1
"""Relative error allowed for a prediction."""


def measured(*arguments: object) -> dict[str, Any]:
    """Return the summary of `infer` in a separate process."""
    command = [sys.executable, "-m", "keywright.cli", "infer", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary


def test_the_peak_of_a_small_network_is_predicted(folder: Path) -> None:
    measurement = measured(folder / "digits.onnx", "--input", folder / "images.npy")
    assert abs(measurement["predicted_peak_bytes"] / measurement["peak_bytes"] - 1) <= SHARE
    assert (
        sum(measurement["memory"].values())
        == measurement["predicted_peak_bytes"]
        <= measurement["memory_budget"]
    )


@pytest.mark.full
@pytest.mark.parametrize("budget", [None, 1.35])
def test_the_peak_of_a_bootstrapped_network_is_predicted(
    squares: Write,  # noqa: F811
    small_process: None,
    budget: float | None,
) -> None:
    """With all free memory, and with a third more than the minimum."""
    folder, preset = squares(5), "N15_QP858_L5_S32_real"
    model, inputs = folder / "squares.onnx", folder / "inputs.npy"
    arguments = [model, "--calibration", inputs, "--input", inputs, "--count", 1, "--preset", preset]
    if budget is not None:
        refusal = refused(kw.compile(model, np.load(inputs), parameters=preset), 1 << 20)
        arguments += ["--memory", f"{int(budget * refusal.needed)}B"]
    measurement = measured(*arguments)
    assert abs(measurement["predicted_peak_bytes"] / measurement["peak_bytes"] - 1) <= SHARE
    if budget is not None:
        assert measurement["peak_bytes"] <= measurement["memory_budget"]


@pytest.fixture
def small_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process holds does not count, but what one holds that has only begun."""
    for module in ("model.executable", "model.parameters.parameter_choice"):
        monkeypatch.setattr(f"keywright.{module}.resident_bytes", lambda: 100 << 20)


def refused(compiled: Model, budget: int) -> kw.errors.OutOfMemoryError:
    """Return the refusal of too small a budget, which takes no compilation."""

    def compiles(self: Compilation, batching: object) -> Executable:
        raise AssertionError("a refusal compiles nothing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compilation, "_compile", compiles)
        with pytest.raises(kw.errors.OutOfMemoryError, check=lambda error: error.code == "budget") as caught:
            compiled.plan_batches(1, budget)
    return caught.value


def test_what_cannot_fit_is_refused_before_any_key(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, images = str(folder / "digits.onnx"), str(folder / "images.npy")
    assert main(["infer", model, "--input", images, "--memory", "64MiB"]) == 2
    said = capsys.readouterr().err
    assert "a process of at most 67.1 MB cannot run this network" in said
    assert "The minimum is" in said
    assert main(["infer", model, "--input", images, "--memory", "much"]) == 2
    assert "not an amount of memory" in capsys.readouterr().err


def test_a_refusal_names_the_presets_that_take_less(squares: Write, small_process: None) -> None:  # noqa: F811
    folder = squares(5)
    inputs = np.load(folder / "inputs.npy")
    small, large = (
        refused(kw.compile(folder / "squares.onnx", inputs, parameters=preset), 64 << 20)
        for preset in BOOTSTRAP_PRESETS[:2]
    )
    said = str(large).split(f"{BOOTSTRAP_PRESETS[0]} (at least ")[1]
    number, unit = said.split(")")[0].split()
    least = float(number) * {"MB": 1e6, "GB": 1e9}[unit]
    assert "Presets that may need less: " in str(large)
    assert 0.4 * small.needed < least < small.needed
    assert large.budget == 64 << 20
    assert small.needed < large.needed == sum(large.parts.values())


def test_explain_prints_the_peak_part_by_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["infer", str(folder / "digits.onnx"), "--explain"]
    assert main([*arguments, "--json", "--memory", "8GiB"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    parts = {row["part"]: row["bytes"] for row in rows if "part" in row}
    peak = parts.pop("peak")
    assert sum(parts.values()) == peak <= 8 << 30
    assert {"process", "keys", "diagonals", "ciphertexts", "scratch", "idle"} <= set(parts)
    assert main(arguments) == 0
    assert "at most" in capsys.readouterr().out


def test_a_size_is_read() -> None:
    class Options:
        memory: str | None = None

    options: Any = Options()
    assert memory_budget(options) is None
    options.memory = "3GB"
    assert memory_budget(options) == 3_000_000_000


def test_a_run_keeps_to_a_budget_with_the_same_results(folder: Path, tmp_path: Path) -> None:
    model, images = str(folder / "digits.onnx"), str(folder / "images.npy")
    keys, sent = tmp_path / "keys", tmp_path / "sent"
    assert main(["keygen", model, "--out", str(keys), "--memory", "64MiB"]) == 2
    assert main(["keygen", model, "--out", str(keys), "--memory", "4GiB"]) == 0
    assert main(["encrypt", str(keys / "client"), "--input", images, "--out", str(sent)]) == 0
    scores = []
    for name, size in (("all", []), ("some", ["--key-memory", "8MiB"])):
        out = tmp_path / name
        run = ["run", str(keys / "server"), "--input", str(sent), "--out", str(out)]
        assert main([*run, *size]) == 0
        client = [str(keys / "client"), "--input", str(out), "--out", str(tmp_path / f"{name}.npy")]
        assert main(["decrypt", *client]) == 0
        scores.append(np.load(tmp_path / f"{name}.npy"))
    assert np.array_equal(*scores)


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
from keywright.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are enforced by Linux")
@pytest.mark.full
def test_no_limit_of_memory_aborts_a_command(folder: Path, tmp_path: Path) -> None:
    """From too little to enough, in steps of 50 MB. Nothing is aborted, and no temporary file stays."""
    model, images = folder / "digits.onnx", folder / "images.npy"
    arguments = ["infer", model, "--input", images, "--range", 0, 1, "--threads", 2]
    statuses = []
    for limit in range(400, 2000, 50):
        command = [sys.executable, "-c", LIMITED, str(limit), *map(str, arguments)]
        environment = {**os.environ, "TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        statuses.append(done.returncode)
        # 1 is an error of Python's own: a module without memory while it is read.
        assert done.returncode in (0, 1, 2), done.stderr
        assert done.returncode == 0 or done.stderr
        assert not list(tmp_path.iterdir())
        if done.returncode == 0:
            break
    assert statuses[-1] == 0
    assert statuses[0] != 0
