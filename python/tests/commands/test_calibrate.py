"""`keywright calibrate`, and plans that follow it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keywright.cli import main
from keywright.plan.cost.calibration import Calibration
from keywright.plan.cost.measuring import ROUNDS
from keywright.plan.keys import plan_file
from tests.commands.printed import lines


def test_calibrate(
    planned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cache" / "machine.json"
    monkeypatch.setenv("KEYWRIGHT_CALIBRATION", str(path))
    monkeypatch.setitem(ROUNDS, 13, 1)
    assert main(["calibrate", "--rings", "13", "--threads", "2", "--json"]) == 0
    rows = lines(capsys)
    words = {"a key switch alone", "making a key", "a switch from the ring of twice the degree"}
    assert {row["what"] for row in rows if "what" in row} >= words
    (threads,) = [row for row in rows if "speedup" in row]
    measured = Calibration.from_json(path.read_text()).speedups
    assert (threads["threads"], threads["speedup"]) == (2, round(measured[2], 2))
    assert main(["calibrate", "--network", "digits.onnx"]) == 2
    assert "--check" in capsys.readouterr().err
    assert main(["calibrate", "--rings", "13", "--check", "--json"]) == 0
    (network,) = [row for row in lines(capsys) if "measured_s" in row]
    assert network["what"].startswith("network digits")
    assert network["predicted_s"] == pytest.approx(network["switches_s"] + network["rest_s"])
    ratio = network["predicted_s"] / network["measured_s"]
    assert network["error"] == pytest.approx(abs(ratio - 1))
    assert network["steady_error"] == pytest.approx(abs(ratio * network["slowdown"] - 1))
    assert main(["calibrate", "--rings", "14", "--check"]) == 2
    assert "no ring of degree 2^14" in capsys.readouterr().err
    program = tmp_path / "program.json"
    program.write_text(plan_file.load(planned).workload.to_json())
    plan = ["plan", str(program), "--hops", "1", "--key-memory", "100MiB", "--json"]
    capsys.readouterr()
    assert main(plan) == 0
    calibrated = Calibration.from_json(path.read_text())
    (record,) = [row for row in lines(capsys) if "plan" in row]
    assert record["calibration"] == calibrated.machine
    elsewhere = json.loads(path.read_text())
    elsewhere["machine"] = "an abacus"
    path.write_text(json.dumps(elsewhere))
    assert main(plan) == 2
    assert "an abacus" in capsys.readouterr().err
    path.write_text("{}")
    assert main(plan) == 2
    assert "not a calibration" in capsys.readouterr().err
