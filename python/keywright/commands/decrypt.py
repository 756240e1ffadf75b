"""Decrypt the results of a program: the end of the client's work."""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright._terminal import Column, Terminal
from keywright.inference import load_client
from keywright.inference.folders import PARAMETERS, PROGRAM, SECRET_KEY, new_file, require_files

from .helpers.ciphertext_files import find_ciphertexts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keys", type=Path, required=True, help="client folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="folder of keywright run")
    parser.add_argument("--out", type=Path, help="file of the results (.npy), (count, *output_shape)")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the largest output of every sample, and write all outputs if a file is named."""
    require_files(options.keys, (PARAMETERS, PROGRAM, SECRET_KEY), "client folder of keywright keygen")
    client = load_client(options.keys)
    program = client.program
    rows, results = [], []
    batches = find_ciphertexts(options.input, program.output_layout.ciphertexts, program.batch)
    with terminal.progress("decrypted samples", sum(batch.count for batch in batches)) as advance:
        for batch in batches:
            ciphertexts = [kw.Ciphertext.load(path, client.parameters) for path in batch.paths]
            bound = max(ciphertext.error_bound for ciphertext in ciphertexts) * program.output_scale
            for number, result in enumerate(client.decrypt_batch(ciphertexts, batch.count)):
                rows.append(prediction(batch.first + number, result) | {"error_bound": bound})
                results.append(result)
            advance(batch.count)
    if options.out is not None:
        with new_file(options.out) as path, path.open("wb") as file:
            np.save(file, np.asarray(results))
    terminal.table([*PREDICTION, Column("error_bound", "error at most", "number")], rows)
    terminal.note(
        "errors are those of an encrypted run against the program in the clear, in the worst case over all "
        "inputs; keywright infer --explain predicts what they will be"
    )


PREDICTION = (
    Column("sample", "sample", "number"),
    Column("prediction", "prediction", "number"),
    Column("value", "its output", "number"),
)
"""Columns of `prediction`."""


def prediction(number: int, result: NDArray[np.float64]) -> dict[str, int | float]:
    """The index of the largest output of a sample, and that output."""
    best = int(result.argmax())
    return {"sample": number, "prediction": best, "value": float(result.ravel()[best])}
