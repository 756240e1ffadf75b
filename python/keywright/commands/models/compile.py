"""Compile a model into a folder that `keywright serve` serves.

By default the folder is for clients with this package. They encrypt slots at the program's first level, and
the server need not bootstrap. With --client thin the folder is for thin clients. They need one prime, no
Fourier transform and no floating point, and upload less than a megabyte per request; the server bootstraps
their ciphertexts.
"""

import argparse
from pathlib import Path
from typing import get_args

import keywright as kw
from keywright._files import require_new
from keywright.commands.helpers.arguments import add_batch_argument, add_model_arguments, add_preset_argument
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import compile_model, print_fit
from keywright.commands.helpers.inputs import parse_bytes
from keywright.commands.terminal import Column, Terminal
from keywright.compiler import Fit
from keywright.model import BOOTSTRAP_PRESETS, Client
from keywright.model.folder import require_texts

EXAMPLE = "keywright compile model.onnx --calibration typical.npy --out served"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    add_preset_argument(
        parser,
        f"parameters, one of keywright presets; by default the smallest that is deep enough, or one with "
        f"bootstraps if none is; for thin clients the first of {', '.join(BOOTSTRAP_PRESETS)}",
    )
    add_batch_argument(parser)
    parser.add_argument(
        "--samples",
        type=int,
        default=1,
        metavar="N",
        help="without --batch: samples that a client sends at a time, for which the fastest batch is chosen "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--client",
        choices=get_args(Client),
        default="slots",
        help="who encrypts: clients with this package, or thin clients (default: %(default)s)",
    )
    parser.add_argument(
        "--key-memory",
        metavar="SIZE",
        help="limit on a client's keys in the server's memory, e.g. 2GB; chooses the fastest keys within "
        "it (default: the fewest bytes with nearly the best speed)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        default=Fit.noise,
        metavar="SHARE",
        help="largest predicted error of encryption as a share of the spread of an output on "
        "the calibration data (default: %(default)s); above 0.01 there is a warning",
    )
    parser.add_argument("--name", help="name of the model (default: the file's name)")
    parser.add_argument("--labels", help="labels of the outputs, separated by commas")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Make the folder."""
    if options.samples < 1:
        raise CommandError(f"--samples {options.samples} is too small; use at least 1 sample")
    require_new(options.out)
    if options.name is not None:
        require_texts(options.name)
    key_memory = None if options.key_memory is None else parse_bytes(options.key_memory)
    model = compile_model(
        options.model,
        options,
        terminal,
        options.noise,
        client=options.client,
        batch=options.batch,
        samples=options.samples,
        labels=options.labels.split(",") if options.labels else (),
    )
    with terminal.progress("planning keys", None):
        if key_memory is not None:
            model = model.with_keys_within(key_memory)
        model.save(options.out, options.name)
    saved = kw.load(options.out)
    terminal.table(
        [
            Column("model", "model"),
            Column("depth", "levels deep", "number"),
            Column("keys", "keys", "number"),
            Column("key_bytes", "sent once", "bytes"),
            Column("hash", "hash", "hash"),
        ],
        [
            {
                "model": saved.name,
                "depth": model.program.depth,
                "keys": len(model.specs),
                "key_bytes": saved.manifest.keys.size,
                "hash": saved.manifest.hash,
            }
        ],
    )
    print_fit(model.program, terminal)
    if model.encrypted_error is not None:
        terminal.note(str(model.encrypted_error))
        for warning in model.encrypted_error.warnings:
            terminal.warn(warning)
    if model.input_range is not None:
        low, high = model.input_range
        thin = model.entry is not None
        who = "clients refuse" if thin else "clients without the program refuse"
        terminal.note(f"inputs from {low:.6g} to {high:.6g}; {who} others")
        if not thin:
            terminal.note("clients with the program check the ranges inside it instead")
    terminal.note(f"{model.parameters!r}; serve it with keywright serve {options.out}")
