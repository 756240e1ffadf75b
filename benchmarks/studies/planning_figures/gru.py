"""Key sets of KDS for GRU + MLP on NSL-KDD, its table 6.

    python -m studies.planning_figures.gru --data FOLDER

The network of examples/train_nsl_kdd.py with activations of degree 7, in the paper's parameters. Rotations
are those of the compiled program. Bytes are exact, seconds are predicted, labels are those of the program in
the clear: nothing is encrypted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import onnxruntime
from harness.folders import record_folder
from keywright import compiler, runtime
from keywright.plan import CostModel, Workload
from keywright.plan.workload.network import convert

from studies.network_keys.kds import BUDGETS, CHAIN, ROWS, Column

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))

from train_nsl_kdd import Array, Features, Records, split  # noqa: E402

MODEL = EXAMPLES / "models" / "gru_nsl_kdd.onnx"
ACTIVATIONS = {"sigmoid": "chebyshev:7", "tanh": "chebyshev:7"}
CALIBRATION = 300
CHECKED = 300
"""Rows on which the program is compared with the model, of each part."""

SEED = 1
"""Of the split that the example trains on."""

Row = dict[str, Any]


def compiled(model: onnx.ModelProto, calibration: Array) -> tuple[compiler.Program, Workload]:
    """The program with activations of degree 7, and its key switches in the paper's parameters."""
    fit = compiler.Fit(calibration=calibration, activations=ACTIVATIONS)
    program = compiler.compile(model, compiler.Target(slots=1 << 15, levels=len(CHAIN.q) - 1), fit)
    parameters = kw.Parameters.from_bits(16, [int(b) for b in CHAIN.q], [int(b) for b in CHAIN.p], 50)
    workload = convert(program, parameters, "GRU + MLP")
    return program, Workload(workload.name, CHAIN, workload.groups)


def accuracy(program: compiler.Program, model: onnx.ModelProto, folder: Path) -> Iterator[Row]:
    """Accuracy on the held-out part and on KDDTest+: of the model, and of the program on some of the rows,
    with the share of these rows on which both agree.
    """
    records, test = Records(folder / "KDDTrain+.txt.gz"), Records(folder / "KDDTest+.txt")
    features = Features(records)
    x, labels = features(records), records.labels()
    _, held = split(len(x), np.random.default_rng(SEED))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for name, inputs, truth in (
        ("held out", x[held], labels[held]),
        ("KDDTest+", features(test), test.labels()),
    ):
        scores = session.run(None, {"features": inputs})[0]
        some = np.random.default_rng(SEED).permutation(len(truth))[:CHECKED]
        found = runtime.check(program, inputs[some], model)
        yield {
            "data": name,
            "rows": len(truth),
            "model": float((scores.argmax(axis=1) == truth).mean()),
            "checked": len(some),
            "program": float((found.outputs.argmax(axis=1) == truth[some]).mean()),
            "agreement": found.agreement,
        }


def key_sets(workload: Workload, model: CostModel) -> Iterator[Row]:
    """A row for each key set of table 6, and for `optimal` within the times of some of them."""
    column = Column(workload, model, hops=4)
    for index, alpha, level, printed, *_ in ROWS:
        row = (index, alpha, level)
        plan = column.plans[row]
        yield {
            "index": index,
            "alpha": alpha,
            "level": level,
            "paper_gb": float(printed[0]),
            "rotations": column.rotations,
            "bytes": column.bytes_of(row),
            "predicted_s": plan.seconds(model),
        }
    for row, factor in BUDGETS:
        best = column.best[row, factor]
        yield {
            "index": "optimal",
            "within": " ".join(row),
            "times": factor,
            "keys": len(best.keys),
            "bytes": 2 * best.stored_bytes,
            "predicted_s": best.seconds(model),
        }


def main() -> int:
    """Write the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.planning_figures.gru", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of NSL-KDD's files")
    parser.add_argument("--model", type=Path, default=MODEL, help="ONNX file of examples/train_nsl_kdd.py")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-planning)")
    options = parser.parse_args()
    model = onnx.load(options.model)
    records = Records(options.data / "KDDTrain+.txt.gz")
    x = Features(records)(records)
    rows, _ = split(len(x), np.random.default_rng(SEED))
    program, workload = compiled(model, x[list(rows[:CALIBRATION])])
    with (record_folder(options.out, "planning") / "gru.jsonl").open("w") as out:
        print(json.dumps({"levels": program.depth, "rotations": len(workload.highest_levels)}), file=out)
        for rows_of in (key_sets(workload, CostModel()), accuracy(program, model, options.data)):
            for row in rows_of:
                print(json.dumps(row), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
