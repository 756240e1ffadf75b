"""Classify handwritten digits that the server never sees; takes about a minute.

The client makes keys, encrypts digits and decrypts answers. The server evaluates a convolutional network on
ciphertexts. The output compares the predictions with those in the clear, and the bytes of the planned keys
with those of common key sets, and shows times.
"""

import argparse
from importlib.resources import files
from pathlib import Path
from statistics import median

import numpy as np

import keywright as kw
from keywright.commands.helpers.errors import CommandError
from keywright.commands.output.key_table import key_columns, key_table
from keywright.commands.output.rotation_table import draw, require_picture
from keywright.commands.terminal import Column, Terminal
from keywright.plan.memory.machine import default_budget
from keywright.runtime.checking import run_clear


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--samples", type=int, default=8, help="number of digits, 1 to 64 (default 8)")
    parser.add_argument(
        "--picture",
        type=Path,
        default=Path("keywright-demo.png"),
        help="picture of the rotation keys, .png or .svg (default keywright-demo.png)",
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Run the demonstration."""
    data = files("keywright") / "data"
    with (data / "digits_test.npz").open("rb") as file:
        archive = np.load(file)
        images, labels = archive["images"], archive["labels"]
    if not 1 <= options.samples <= len(images):
        raise CommandError(
            f"--samples {options.samples} is out of range; the demo has 1 to {len(images)} digits"
        )
    require_picture(options.picture)
    with terminal.progress("compiling", None):
        compiled = kw.compile((data / "digits.onnx").read_bytes(), batch=1)
    terminal.note(f"{compiled.parameters!r}")
    images, labels = images[: options.samples], labels[: options.samples]
    with terminal.progress("planning keys and memory", None):
        planned = compiled.plan_process(len(images), default_budget())
    samples = images.astype(np.float64)
    inference = compiled.infer(samples, planned, terminal.progress)

    clear = [run_clear(compiled.program, image) for image in images]
    rows = [
        {
            "digit": int(label),
            "encrypted": int(output.argmax()),
            "clear": int(reference.argmax()),
            "difference": float(np.abs(output - reference).max()),
            "seconds": seconds,
        }
        for label, output, reference, seconds in zip(
            labels, inference.outputs, clear, inference.batches.evaluate_seconds, strict=True
        )
    ]
    terminal.table(
        [
            Column("digit", "digit", "number"),
            Column("encrypted", "encrypted prediction", "number"),
            Column("clear", "prediction in clear", "number"),
            Column("difference", "largest difference", "number"),
            Column("seconds", "evaluation", "seconds"),
        ],
        rows,
        title="Predictions",
    )
    terminal.table(
        [Column("work", "work"), Column("seconds", "time", "seconds"), Column("bytes", "bytes", "bytes")],
        [
            {
                "work": "client: keys, once",
                "seconds": inference.preparation.key_seconds,
                "bytes": inference.preparation.key_bytes,
            },
            {"work": "server: encode the model, once", "seconds": inference.preparation.seconds},
            {
                "work": "client: encrypt and send",
                "seconds": median(inference.batches.encrypt_seconds),
                "bytes": inference.batches.sent_bytes,
            },
            {
                "work": "server: evaluate and answer",
                "seconds": median(inference.batches.evaluate_seconds),
                "bytes": inference.batches.returned_bytes,
            },
            {"work": "client: decrypt", "seconds": median(inference.batches.decrypt_seconds)},
        ],
        title="Work per digit (median)",
    )
    terminal.table(key_columns(), key_table(compiled), title="Evaluation keys that could serve the program")
    draw(compiled, options.picture, terminal)
