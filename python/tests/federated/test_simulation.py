"""The command of examples/federated in Flower's simulation, whose engine is a separate extra."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[3] / "examples" / "federated" / "run.py"


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="NOT RUN: needs `pip install keywright[simulation]`"
)
def test_a_simulation_trains_on_encrypted_sums() -> None:
    command = [sys.executable, str(RUN), "simulation", "--clients", "2", "--fraction", "1.0", "--rounds", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    assert '"keywright-updates": 2' in run.stdout
    accuracy = float(run.stdout.rsplit("accuracy of the decrypted model:", 1)[1])
    # Ten classes: a model that was not decrypted guesses.
    assert accuracy > 0.15
