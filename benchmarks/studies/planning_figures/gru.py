"""Accuracy of the GRU + MLP of KDS on NSL-KDD, as a model and as a program.

    python -m studies.planning_figures.gru --data FOLDER

The network of examples/train_nsl_kdd.py, compiled as `studies.executed_keys` runs it: with activations of
degree 7 and bootstraps. Its labels come from its polynomials in the clear, on all rows; those of a higher
degree follow. Nothing is encrypted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from harness.folders import record_folder
from keywright import compiler
from keywright.compiler.graph.graph import Graph
from keywright.plan.workload.network import convert

from studies.executed_keys.subjects import SUBJECTS, Compiled, compile_subject, fit, labelled, nsl_kdd

DEGREES = (7, 15)
"""Of the polynomials: the paper's, and one more level for each."""

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


def accuracy(graphs: Mapping[int, Graph], model: Path, folder: Path) -> Iterator[Row]:
    """Accuracy on the held-out part and on KDDTest+: of the model, and of its polynomials (`graphs`, by their
    degree), with the share of rows on which both agree, and the largest difference of a score.
    """
    session = onnxruntime.InferenceSession(str(model))
    for name, inputs, truth in labelled(folder):
        scores = session.run(None, {"features": inputs.astype(np.float32)})[0]
        expected = scores.argmax(axis=1)
        for degree, graph in graphs.items():
            runs = graph.runs(inputs.reshape(len(inputs), -1))
            polynomials = np.concatenate([values[graph.output] for _, values in runs])
            labels = polynomials.argmax(axis=1)
            yield {
                "data": name,
                "degree": degree,
                "rows": len(truth),
                "model": float((expected == truth).mean()),
                "polynomials": float((labels == truth).mean()),
                "agreement": float((labels == expected).mean()),
                "largest_difference": float(np.abs(polynomials - scores).max()),
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
    with (record_folder(options.out, "planning") / "gru.jsonl").open("w") as out:
        compiled = compile_subject(subject, subject.model, calibration)
        print(json.dumps(head(compiled)), file=out, flush=True)
        graphs = {}
        for degree in DEGREES:
            methods = dict.fromkeys(subject.activations, f"chebyshev:{degree}")
            polynomials = fit(replace(subject, activations=methods), calibration)
            graphs[degree] = compiler.approximate(subject.model, polynomials).graph
        for row in accuracy(graphs, subject.model, options.data):
            print(json.dumps(row), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
