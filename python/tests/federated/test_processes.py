"""Flower's SuperLink and SuperNodes as separate processes, and a restarted threshold run."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.federated import Encoding

RUN = Path(__file__).parents[3] / "examples" / "federated" / "run.py"
APP = Path(__file__).parent / "threshold_app"
# As in the app, which Flower loads by itself.
ENCODING = Encoding(bound=4.0, max_clients=3, max_weight=100)


@pytest.mark.large
def test_processes_train_on_encrypted_sums() -> None:
    command = [sys.executable, str(RUN), "processes", "--clients", "2", "--fraction", "1.0", "--rounds", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    assert '"keywright-updates": 2' in run.stdout
    accuracy = float(run.stdout.rsplit("accuracy of the decrypted model:", 1)[1])
    # Ten classes: a model that was not decrypted guesses.
    assert accuracy > 0.15


def example() -> Any:
    """The module of the example's command, which starts Flower's processes."""
    spec = importlib.util.spec_from_file_location("federated_run", RUN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.large
def test_threshold_keys_outlive_the_server_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of one SuperLink: for Flower they are unrelated, and each has its own ServerApp. The second
    one decrypts with the keys of the first."""
    command = example()
    for name, value in {
        "PATH": f"{command.BIN}:/usr/bin:/bin",
        "FLWR_HOME": str(tmp_path / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "KEYWRIGHT_TEST_FOLDER": str(tmp_path / "clients"),
    }.items():
        monkeypatch.setenv(name, value)
    start, kept = np.linspace(-1, 1, 7), []
    with command.superlink(tmp_path, 3) as link:
        for run in (1, 2):
            options = ["--stream", "--run-config", f"folder={json.dumps(str(tmp_path))}"]
            process = subprocess.run(
                [command.BIN / "flwr", "run", APP, link, *options],
                capture_output=True,
                text=True,
                check=False,
            )
            output = process.stdout[-6000:] + process.stderr[-2000:]
            assert process.returncode == 0, output
            model = np.load(tmp_path / "model.npy")
            # Every run's average is exact up to rounding.
            bound = run * (ENCODING.error_bound(3, 30) + 4 * float(np.finfo(np.float64).eps))
            assert np.abs(model - (start + run)).max() <= bound, output
            kept.append(json.loads((tmp_path / "server.json").read_text()))
    first, second = kept
    assert (first.pop("round"), second.pop("round")) == (1, 2)
    assert first == second
    assert len(list((tmp_path / "clients").glob("threshold-*.json"))) == 3
