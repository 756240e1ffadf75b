"""Decrypt the results of a program: the last step of the client."""

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright._files import new_file
from keywright.commands.helpers.arguments import add_shared
from keywright.commands.helpers.ciphertext_files import find_ciphertexts
from keywright.commands.terminal import Column, Terminal, Value
from keywright.compiler import Program
from keywright.model import Identity, load_client
from keywright.model.folder import PARAMETERS, PROGRAM, SECRET_KEY, require_files

EXAMPLE = "keywright decrypt keys/client --input answered"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("keys", type=Path, metavar="FOLDER", help="client folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="folder that keywright run made")
    parser.add_argument("--out", type=Path, help="file of the results (.npy), (count, *output_shape)")
    parser.add_argument(
        "--flooding",
        type=int,
        nargs=2,
        metavar=("BITS", "QUERIES"),
        help="add noise with which the results can be shared: BITS of statistical security over all QUERIES "
        "ciphertexts that will ever be decrypted for others with these keys",
    )
    add_shared(parser, "--insecure")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the largest output of every sample, and write all outputs if a file is named."""
    require_files(options.keys, (PARAMETERS, PROGRAM, SECRET_KEY), "client folder of keywright keygen")
    client = load_client(options.keys, insecure=options.insecure)
    program = client.program
    flooding = None if options.flooding is None else kw.Flooding(*options.flooding)
    rows: list[dict[str, Value]] = []
    results = []
    batches = find_ciphertexts(options.input, program.output.layout.ciphertexts, program.batch)
    samples = sum(batch.count for batch in batches)
    answered, read = Identity.load(options.input, "answer", samples)
    answered.require(client.identity, "client", "server")
    with terminal.progress("decrypted samples", samples) as advance:
        for batch in batches:
            objects = [read(path.name, client.most_bytes) for path in batch.paths]
            bound = client.error_bound(objects, flooding)
            outputs = client.decrypt_batch(objects, batch.count, flooding)
            shown_bound = bound if np.isfinite(bound) else None
            rows += [row | {"error_bound": shown_bound} for row in predictions(program, outputs, batch.first)]
            results += list(outputs)
            advance(batch.count)
    if options.out is not None:
        with new_file(options.out) as path, path.open("wb") as file:
            np.save(file, np.asarray(results))
    columns = prediction_columns(program)
    terminal.table([*columns, Column("error_bound", "error at most", "number")], rows)
    terminal.note(
        "error at most: the bound for the worst input, compared with the unencrypted program;\n"
        "a dash means that there is no bound (keywright infer --explain predicts typical errors)"
    )
    if flooding is not None:
        terminal.note(
            f"{flooding.queries - flooding.remaining} of {flooding.queries} queries are now used; results "
            "of all programs run with these keys count, and none may be handed out without flooding"
        )


def prediction_columns(program: Program) -> list[Column]:
    """Columns of `predictions`."""
    named = () if program.output.client_part is None else program.output.client_part.names
    several = math.prod(program.output.shape) > 1
    return [
        Column("sample", "sample", "number"),
        *([Column("prediction", "prediction", "number")] if several else []),
        Column("value", "largest output" if several else "output", "number"),
        *(Column(name, name) for name in named),
    ]


def predictions(program: Program, outputs: NDArray[np.float64], first: int = 0) -> list[dict[str, Value]]:
    """Return a row for each sample: the index of its largest output if there are several, that output, and
    the model's own answers.

    Args:
        outputs: (count, *output_shape).
        first: number of the first sample.
    """
    answers, rows = program.answers(outputs), []
    for number, output in enumerate(outputs):
        best = int(output.argmax())
        row: dict[str, Value] = {"sample": first + number}
        if output.size > 1:
            row["prediction"] = best
        row["value"] = float(output.ravel()[best])
        for name, values in answers.items():
            value = values[number].tolist()
            row[name] = value if isinstance(value, str | int | float) else " ".join(map(shown, value))
        rows.append(row)
    return rows


def shown(value: object) -> str:
    """Format a number of an answer with few digits, or a label."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
