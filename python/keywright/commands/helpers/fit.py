"""How closely a program is to follow its model: the options, and the report."""

import argparse
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keywright import nn
from keywright._terminal import Column, Terminal
from keywright.inference import InferenceClient
from keywright.inference.report import fit_text

from .errors import CommandError
from .inputs import load_inputs

COLUMNS = [
    Column("label", "activation"),
    Column("method", "method"),
    Column("low", "from", "number"),
    Column("high", "to", "number"),
    Column("max_error", "largest error", "number"),
    Column("rms_error", "rms error", "number"),
]


def add_fit_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare what ranges are measured on and what stands for activations."""
    parser.add_argument(
        "--calibration",
        type=Path,
        help="typical inputs, on which ranges are measured: .npy, an image or a folder of images",
    )
    parser.add_argument("--calibration-count", type=int, help="how many of them to use; all by default")
    parser.add_argument(
        "--activation",
        action="append",
        default=[],
        metavar="NAME=METHOD",
        help="polynomials for a function or an ONNX node, as relu=minimax:13 (bits) or sigmoid=chebyshev:15 "
        "(degree); may be given often. What is left open is chosen so that the calibration data keep their "
        "predictions",
    )
    parser.add_argument(
        "--accuracy",
        metavar="SHARE",
        help="share of the calibration samples, as 0.999 or 99.9%%, whose predictions must not change",
    )
    parser.add_argument(
        "--range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="range of the inputs that the program will be for; that of the calibration data, widened, by "
        "default, and -1 to 1 for thin clients without any",
    )
    parser.add_argument("--error", type=float, help="most by which an output may change on calibration data")


def read_fit(options: argparse.Namespace) -> nn.Fit:
    """What the arguments ask for.

    Raises:
        CommandError: an argument that cannot be read, or that needs calibration data where there are none.
    """
    count: int | None = options.calibration_count
    if count is not None and count < 1:
        raise CommandError(f"--calibration-count {count}: at least 1 sample is needed")
    activations = {}
    for text in options.activation:
        name, equals, method = text.partition("=")
        if not name or not equals:
            raise CommandError(f"--activation {text}: write NAME=METHOD, as relu=minimax:13")
        activations[name] = method
    accuracy = None if options.accuracy is None else _share(options.accuracy)
    if options.calibration is None and (activations or accuracy is not None or options.error is not None):
        raise CommandError("--activation, --accuracy and --error need --calibration, to measure ranges on")
    if options.range is not None and not options.range[0] < options.range[1]:
        raise CommandError("--range {} {}: write the lowest input and the highest".format(*options.range))
    typical = None if options.calibration is None else load_inputs(options.calibration, count)
    try:
        return nn.Fit(
            calibration=typical,
            activations=activations,
            accuracy=accuracy,
            error=options.error,
            input_range=None if options.range is None else tuple(options.range),
        )
    except ValueError as error:
        raise CommandError(str(error)) from error


def _share(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    share = 0.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if not 0 < share <= 1:
        raise CommandError(f"--accuracy {text}: write a share of samples, as 0.999 or 99.9%")
    return share


def fit_record(program: nn.Program) -> dict[str, object] | None:
    """The fit report for programs that read it; None if nothing was measured."""
    report = program.fit_report
    return None if report is None else asdict(report) | {"warnings": report.warnings}


def print_fit(program: nn.Program, terminal: Terminal, *, table: bool = True) -> None:
    """Print what polynomials change, if anything was measured.

    Args:
        table: with a line for each activation.
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
        terminal.table(COLUMNS, rows, title="Polynomials for activations, and their errors on the ranges")
    terminal.note(fit_text(report))
    for warning in report.warnings:
        terminal.warn(warning)


def guard_samples(
    client: InferenceClient, samples: NDArray[np.float64], *, force: bool, terminal: Terminal
) -> None:
    """Refuse samples that leave the ranges of a program, or only say so where ``force`` is set.

    Raises:
        OutOfRangeError: naming the layer, the value and the range.
    """
    with terminal.progress("checking ranges", None):
        try:
            client.guard(samples)
        except nn.OutOfRangeError as error:
            if not force:
                raise
            terminal.warn(f"{error}; going on, as --force says")
