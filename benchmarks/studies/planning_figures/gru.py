"""Accuracy of the GRU + MLP of KDS on NSL-KDD, as a model and as a program.

    python -m studies.planning_figures.gru --data FOLDER

The network of examples/train_nsl_kdd.py, compiled as `studies.executed_keys` runs it: with activations of
degree 7 and bootstraps. Labels are those of the program in the clear: nothing is encrypted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from harness.folders import record_folder
from keywright import compiler
from keywright.plan.workload.network import convert

from studies.executed_keys.subjects import SEED, SUBJECTS, Compiled, compile_subject, labelled, nsl_kdd

CHECKED = 12
"""Rows on which the program is compared with the model, of each part."""

Row = dict[str, Any]


def head(compiled: Compiled) -> Row:
    """What the program is made of: levels, bootstraps, and automorphisms, those of bootstraps among them."""
    bootstraps = sum(one.opcode == "bootstrap" for one in compiled.program.instructions)
    every = convert(compiled.program, compiled.parameters, "GRU + MLP", compiled.bootstraps)
    return {
        "levels": compiled.program.depth,
        "bootstraps": bootstraps,
        "rotations": len(every.highest_levels),
    }


def accuracy(program: compiler.Program, model: onnx.ModelProto, folder: Path) -> Iterator[Row]:
    """Accuracy on the held-out part and on KDDTest+: of the model, and of the program on some of the rows,
    with the share of these rows on which both agree.
    """
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for name, inputs, truth in labelled(folder):
        scores = session.run(None, {"features": inputs.astype(np.float32)})[0]
        some = np.random.default_rng(SEED).permutation(len(truth))[:CHECKED]
        accuracy = compiler.check(program, inputs[some], model)
        yield {
            "data": name,
            "rows": len(truth),
            "model": float((scores.argmax(axis=1) == truth).mean()),
            "checked": len(some),
            "program": float((accuracy.outputs.argmax(axis=1) == truth[some]).mean()),
            "agreement": accuracy.agreement,
        }


def main() -> int:
    """Write the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.planning_figures.gru", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of NSL-KDD's files")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-planning)")
    options = parser.parse_args()
    subject = SUBJECTS["gru"]
    assert subject.model is not None
    calibration, _ = nsl_kdd(options.data, 1)
    compiled = compile_subject(subject, subject.model, calibration)
    with (record_folder(options.out, "planning") / "gru.jsonl").open("w") as out:
        print(json.dumps(head(compiled)), file=out, flush=True)
        for row in accuracy(compiled.program, onnx.load(subject.model), options.data):
            print(json.dumps(row), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
