"""Classify handwritten digits that the server never sees; takes a few seconds.

The client makes keys, encrypts digits and decrypts answers. The server evaluates a convolutional network on
ciphertexts. The output shows the last digit, the noise that the server received instead, the answers, bytes
and times, and compares the keys with common key sets. It fits a terminal of 24 lines and 80 columns.
"""

import argparse
import sys
from importlib.resources import files
from pathlib import Path
from statistics import median
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright._units import format_bytes
from keywright.commands.helpers.errors import CommandError
from keywright.commands.output.blocks import ASCII_SHADES, SHADES, beside, shaded
from keywright.commands.output.key_table import KEY_COLUMNS, key_table
from keywright.commands.output.plan_picture import draw_rotations, require_picture
from keywright.commands.terminal import Column, Terminal, Value
from keywright.model import Inference, Model
from keywright.runtime import run_clear

EXAMPLE = "keywright demo --samples 3"

KEYS = """\
Evaluation keys (128-bit security) let the server compute, not decrypt. Most are
for rotations, which shift values in a ciphertext. Ciphertexts shrink from layer
to layer, so plans add smaller keys. Rotations without a key take several steps."""
"""Why the sets of the table differ in number, bytes and time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--samples", type=int, default=8, help="number of digits, 1 to 64 (default: 8)")
    parser.add_argument("--picture", type=Path, help="picture of the rotation keys to write, .png or .svg")


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
    if options.picture is not None:
        require_picture(options.picture)
    compiled = kw.compile((data / "digits.onnx").read_bytes(), batch=1, progress=terminal.progress)
    # The same keys are run, tabled and drawn.
    model = compiled.with_plan(compiled.execution.plan)
    images, labels = images[: options.samples], labels[: options.samples]
    planned = model.plan_process(len(images))
    inference = model.infer(images.astype(np.float64), planned, terminal.progress)
    clear = np.stack([run_clear(model.program, image) for image in images])
    rows: list[dict[str, Value]] = [
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
    if terminal.json:
        for row in rows:
            terminal.record(row)
    else:
        _show(images[-1], inference, rows, float(np.abs(clear).max()), terminal)
    columns = [
        Column("work", f"work, with --threads {kw.threads()}"),
        Column("seconds", "time", "seconds"),
        Column("bytes", "bytes sent", "bytes"),
    ]
    terminal.table(columns, _work(model, inference))
    terminal.table(KEY_COLUMNS, key_table(model, compiled.candidates))
    terminal.text(KEYS)
    if options.picture is not None:
        draw_rotations(model.execution.plan, options.picture, terminal)


def _show(
    image: NDArray[np.float64],
    inference: Inference,
    rows: list[dict[str, Value]],
    largest: float,
    terminal: Terminal,
) -> None:
    """Print the last digit, what the server received in its place, and the answers."""
    drawable = (sys.stdout.encoding or "").lower().startswith("utf")
    pixels = np.asarray(image, np.float64)[-1]
    noise = np.frombuffer(inference.batches.request[-pixels.size :], np.uint8).reshape(pixels.shape) / 256
    count = len(rows)
    pictures = [shaded(each, SHADES if drawable else ASCII_SHADES) for each in (pixels, noise)]
    title = "the last digit" if count > 1 else "the digit"
    canvas = beside([title, *pictures[0]], ["part of the noise", *pictures[1]])
    same = sum(row["encrypted"] == row["clear"] for row in rows)
    right = sum(row["encrypted"] == row["digit"] for row in rows)
    error = float(np.max([row["difference"] for row in rows]))
    sent = format_bytes(inference.batches.sent_bytes)
    compared = (
        f"{same} of {count} answers equal the unencrypted network's, and {right} of {count} are correct."
        if count > 1
        else f"It {'equals' if same else 'differs from'} the unencrypted network's answer and is "
        f"{'correct' if right else 'wrong'}."
    )
    changed = f"Encryption changed its scores, which are at most {largest:.2g}, by at most {error:.1g}."
    request = f"encrypts {count} digits. For each," if count > 1 else "encrypts a digit. For it,"
    paragraphs = [
        f"The client {request} the server gets {sent} of noise.",
        "The secret key never leaves the client.",
        f"The client decrypts the answer{'s' if count > 1 else ''}:",
        " ".join(str(row["encrypted"]) for row in rows),
        f"{compared} {changed}",
    ]
    for line in beside(canvas, [line for each in paragraphs for line in wrap(each, 39)]):
        terminal.text(line)
    terminal.text("")


def _work(model: Model, inference: Inference) -> list[dict[str, Value]]:
    return [
        {
            "work": "client: make keys, sent once",
            "seconds": inference.preparation.key_seconds,
            "bytes": model.manifest.keys.size,
        },
        {"work": "server: load keys and weights, once", "seconds": inference.preparation.seconds},
        {
            "work": "client: encrypt a digit",
            "seconds": median(inference.batches.encrypt_seconds),
            "bytes": inference.batches.sent_bytes,
        },
        {
            "work": "server: compute the answer",
            "seconds": median(inference.batches.evaluate_seconds),
            "bytes": inference.batches.returned_bytes,
        },
        {"work": "client: decrypt the answer", "seconds": median(inference.batches.decrypt_seconds)},
    ]
