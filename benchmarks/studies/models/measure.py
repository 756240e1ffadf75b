"""The process that is measured: `python -m studies.models.measure FOLDER NAME SETTING.json`.

Compiles FOLDER/NAME.onnx, encrypts and evaluates all tests of FOLDER/NAME.npz and prints a JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes
from keywright.plan.memory.machine import default_budget
from keywright.runtime import run_clear, simulate
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SIMULATED = 8
"""Tests on which the error of encryption is predicted."""

FACTOR = 10
"""By which the largest error of all tests may be above that of these."""


def quality(outputs: Vector, expected: Vector, classes: bool) -> float:
    """Share of right labels, or R², of outputs (count, n); one score of two classes is 0 or above."""
    if not classes:
        return float(
            1 - ((outputs.ravel() - expected) ** 2).sum() / ((expected - expected.mean()) ** 2).sum()
        )
    return float((labels(outputs) == expected).mean())


def labels(outputs: Vector) -> NDArray[np.int64]:
    """The largest score, or the sign of the only one."""
    flat = outputs.reshape(len(outputs), -1)
    return flat.argmax(1) if flat.shape[1] > 1 else (flat[:, 0] > 0).astype(np.int64)


def measure(folder: Path, name: str, setting: dict[str, Any]) -> dict[str, Any]:
    """One model, all tests as one request."""
    arrays = np.load(folder / f"{name}.npz")
    tests = arrays["tests"].astype(np.float64)
    expected, own, classes = arrays["wanted"], arrays["outputs"], setting["classes"]
    compiled, taken = timed(
        kw.compile,
        folder / f"{name}.onnx",
        arrays["calibration"],
        activations=setting["activations"],
        samples=len(tests),
    )
    report = compiled.report.lines
    chosen, planned = compiled.plan_batches(len(tests), setting["memory"] or default_budget())
    chosen.client().guard(tests)
    result = chosen.infer(tests, planned)
    clear = run_clear(chosen.program, tests).reshape(result.outputs.shape)
    error = float(np.abs(result.outputs - clear).max())
    predicted = simulate(chosen.program, planned.execution, tests[:SIMULATED]).worst_error
    if not error <= FACTOR * predicted:
        raise SystemExit(
            f"{name}: an error of {error:.3g} is above {FACTOR} times the predicted {predicted:.3g}"
        )
    line = {
        "model": name,
        "tests": len(tests),
        "parameters": repr(chosen.parameters),
        "depth": chosen.program.depth,
        "bootstraps": chosen.report.run.bootstraps,
        "batches": result.batches,
        "fit": report["fit"],
        "clear": quality(own, expected, classes),
        "encrypted": quality(result.outputs, expected, classes),
        "compile_s": taken.wall,
        "keys_s": result.preparation.key_seconds,
        "prepare_s": result.preparation.seconds,
        "encrypt_s": sum(result.batches.encrypt_seconds),
        "evaluate_s": sum(result.batches.evaluate_seconds),
        "decrypt_s": sum(result.batches.decrypt_seconds),
        "key_bytes": chosen.report.sizes.key_bytes,
        "sent_bytes": result.batches.sent_bytes * len(result.batches.samples),
        "returned_bytes": result.batches.returned_bytes * len(result.batches.samples),
        "error": error,
        "predicted_error": predicted,
        "peak_bytes": peak_rss_bytes(),
    }
    if classes:
        line["same_labels"] = int((labels(result.outputs) == labels(own)).sum())
    return line


def main() -> None:
    """Measure and print."""
    folder, name, setting = sys.argv[1:]
    print(json.dumps(measure(Path(folder), name, json.loads(Path(setting).read_text()))), flush=True)


if __name__ == "__main__":
    main()
