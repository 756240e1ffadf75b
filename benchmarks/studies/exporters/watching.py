"""Reads and compiles an exported file, and compares the results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from keywright import compiler
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.front_ends.parts.client_end import load_parts
from keywright.compiler.front_ends.trees.onnx_ml import has_trees
from keywright.compiler.graph.simplify import simplify
from keywright.errors import ModelRefusedError
from keywright.runtime import run_clear
from numpy.typing import NDArray

Array = NDArray[Any]

TOLERANCE = 2e-5
"""Allowed error of an output, relative to the largest or to 1: single precision rounds every operation."""

FOLLOWS = 1 / 8
"""Allowed change of a program's output, with the default polynomials: twice the default target, because the
polynomials are chosen on only some of the samples."""

TARGET = compiler.Target(slots=1024, levels=60)


class WrongError(Exception):
    """A read or compiled model computes something else."""


@dataclass(frozen=True)
class Watched:
    """The outcome for a file.

    Attributes:
        difference: largest difference between the graph with exact functions, including the client's part,
            and the framework's own outputs, relative to the largest; 0 for equal labels. None if it was
            refused.
        refused: the reason.
        depth: levels of the program; None if it was not compiled.
        change: largest difference of a score between the program with polynomials and the graph, relative to
            the largest score.
    """

    difference: float | None = None
    refused: str | None = None
    depth: int | None = None
    change: float | None = None

    def to_json(self) -> dict[str, object]:
        """Without what is None."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def watch(path: Path, samples: Array, outputs: Array, calibration: int, *, compiled: bool) -> Watched:
    """Read a file, compare what it computes, and compile it.

    Args:
        outputs: the framework's own, of all samples.
        calibration: so many of the samples, the first; the program is compared on them.

    Raises:
        WrongError: an output is another one.
    """
    model = onnx.load(path)
    typical = samples[:calibration].astype(np.float64)
    try:
        if has_trees(model):
            return _trees(model, samples, outputs, typical)
        difference, scores = _read(model, samples, outputs)
        if not compiled:
            return Watched(difference)
        program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=typical))
    except ModelRefusedError as refusal:
        return Watched(refused="; ".join(str(reason) for reason in refusal.exceptions))
    clear_outputs = run_clear(program, typical).reshape(calibration, -1)
    change = float(np.abs(clear_outputs - scores[:calibration]).max()) / max(float(np.abs(scores).max()), 1.0)
    if not change < FOLLOWS:
        raise WrongError(f"{path.name}: the program is off by {change:.3g} of the largest output")
    return Watched(difference, None, program.depth, change)


def _trees(model: onnx.ModelProto, samples: Array, outputs: Array, typical: Array) -> Watched:
    """Trees with thresholds of their own: no polynomial is fitted, so the program is the graph."""
    fit = compiler.Fit(calibration=typical, thresholds="public")
    program = compiler.compile_program(model, TARGET, fit)
    whole = next(iter(program.answers(run_clear(program, samples)).values()))
    difference = _difference(whole, outputs)
    return Watched(difference, None, program.depth, difference)


def _read(model: onnx.ModelProto, samples: Array, outputs: Array) -> tuple[float, Array]:
    """The largest difference, and the graph's scores."""
    server, client = load_parts(model)
    read = import_model(server, requested=() if client is None else client.shapes)
    if read.reasons:
        raise ModelRefusedError(read.reasons)
    graph = simplify(read.graph)
    scores = graph.evaluate(samples.reshape(len(samples), -1).astype(np.float64))[graph.output]
    whole: Array = scores
    if client is not None:
        whole = next(iter(client.part(read.scores, read.known).run(scores).values()))
    return _difference(whole, outputs), scores


def _difference(whole: Array, outputs: Array) -> float:
    """The largest difference from the framework's own outputs."""
    whole = whole.reshape(outputs.shape)
    if outputs.dtype.kind in "iuU":
        if not np.array_equal(whole, outputs):
            raise WrongError(f"{int((whole != outputs).sum())} of {outputs.size} labels are others")
        return 0.0
    difference = float(np.abs(whole - outputs).max() / max(float(np.abs(outputs).max()), 1.0))
    if not difference < TOLERANCE:
        raise WrongError(f"outputs are off by {difference:.3g} of the largest")
    return difference
