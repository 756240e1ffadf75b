"""Options and report on how closely a program must follow its model."""

import argparse
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright import compiler
from keywright._units import quantity
from keywright.commands.terminal import Column, Terminal
from keywright.compiler import Fit
from keywright.errors import OutOfRangeError
from keywright.model import Model, ModelClient

from .errors import CommandError
from .inputs import load_typical

COLUMNS = [
    Column("label", "activation"),
    Column("method", "method"),
    Column("low", "from", "number"),
    Column("high", "to", "number"),
    Column("max_error", "largest error", "number"),
    Column("rms_error", "rms error", "number"),
]


def add_fit_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare the calibration data and the polynomials for activations."""
    parser.add_argument(
        "--calibration",
        type=Path,
        help="typical inputs, which set the calibrated ranges: .npy, an image or a folder of images",
    )
    parser.add_argument("--calibration-count", type=int, help="how many of them to use (default: all)")
    parser.add_argument(
        "--activation",
        action="append",
        default=[],
        metavar="NAME=METHOD",
        help="polynomial for a function or an ONNX node, e.g. relu=minimax:13 (bits) or "
        "sigmoid=chebyshev:15 (degree); may be repeated. The others are the cheapest that hardly "
        "change predictions on the calibration data",
    )
    parser.add_argument(
        "--accuracy",
        metavar="SHARE",
        help="share of the calibration samples, e.g. 0.999 or 99.9%%, whose predictions must not change",
    )
    parser.add_argument(
        "--range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="range of the program's inputs (default: that of the calibration data, widened; for thin "
        "clients without calibration data, -1 to 1)",
    )
    parser.add_argument("--error", type=float, help="maximum change of an output on the calibration data")


def compile_model(
    model: Path, options: argparse.Namespace, terminal: Terminal, noise: float = Fit.noise, **choices: Any
) -> Model:
    """Compile a model as the arguments say and `keywright.compile` does.

    Args:
        terminal: shows the progress.
        noise: see `keywright.compiler.Fit`.
        choices: further arguments of `keywright.compile`.

    Raises:
        CommandError: an argument is malformed, or needs calibration data that are missing.
    """
    fit = _read_fit(model, options, noise)
    return kw.compile(model, parameters=options.preset, progress=terminal.progress, **fit, **choices)


def _read_fit(model: Path, options: argparse.Namespace, noise: float) -> dict[str, Any]:
    """Return the calibration data, and how closely the program must follow the model, as arguments of
    `keywright.compile`."""
    count: int | None = options.calibration_count
    if count is not None and count < 1:
        raise CommandError(f"--calibration-count {count} is too small; use at least 1 sample")
    activations = {}
    for text in options.activation:
        name, equals, method = text.partition("=")
        if not name or not equals:
            raise CommandError(f"--activation {text} is malformed; write NAME=METHOD, e.g. relu=minimax:13")
        activations[name] = method
    accuracy = None if options.accuracy is None else _share(options.accuracy)
    if options.calibration is None and (activations or accuracy is not None or options.error is not None):
        raise CommandError("--activation, --accuracy and --error need ranges; give --calibration, too")
    if options.range is not None and not options.range[0] < options.range[1]:
        raise CommandError(
            "--range {} {} is reversed or empty; write the lowest input, then the highest".format(
                *options.range
            )
        )
    typical = None if options.calibration is None else load_typical(options.calibration, model, count)
    if typical is not None and count is not None and count > len(typical):
        held = quantity(len(typical), "sample")
        raise CommandError(
            f"--calibration-count {count} is more than {options.calibration} holds; it has {held}"
        )
    try:
        fit = {
            "calibration": typical,
            "activations": activations,
            "accuracy": accuracy,
            "error": options.error,
            "noise": noise,
            "ranges": compiler.Ranges(input_range=None if options.range is None else tuple(options.range)),
        }
        compiler.Fit(**fit)
        return fit
    except ValueError as error:
        raise CommandError(str(error)) from error


def _share(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    share = 0.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if not 0 < share <= 1:
        raise CommandError(f"--accuracy {text} is not a share; write 0.999 or 99.9%, for example")
    return share


def fit_record(program: compiler.Program) -> dict[str, object] | None:
    """Return the fit report as JSON; None if nothing was measured."""
    report = program.fit_report
    return None if report is None else report.to_json() | {"warnings": report.warnings}


def print_fit(program: compiler.Program, terminal: Terminal, *, table: bool = True) -> None:
    """Print how polynomials change the outputs, if that was measured.

    Args:
        table: also print a line for each activation.
    """
    report = program.fit_report
    if report is None:
        return
    if terminal.json:
        if table:
            terminal.record({"fit": fit_record(program)})
        return
    if table and report.activations:
        rows = [
            {name: value for name, value in asdict(fitted).items() if name != "degrees"}
            for fitted in report.activations
        ]
        terminal.table(
            COLUMNS, rows, title="Polynomials for activations, and their errors on the calibrated ranges"
        )
    terminal.note(str(report))
    for warning in report.warnings:
        terminal.warn(warning)


def guard_samples(
    client: ModelClient, features: NDArray[np.float64], *, force: bool, terminal: Terminal
) -> None:
    """Refuse features of samples that leave the ranges of a program, or warn if ``force`` is set.

    Raises:
        OutOfRangeError: names the layer, the value and the range.
    """
    with terminal.progress("checking ranges", None):
        try:
            client.guard_features(features)
        except OutOfRangeError as error:
            if not force:
                raise
            terminal.warn(f"{error}; continuing because of --force")
