"""Compile a model into a folder that `keywright serve` serves.

By default the folder is for thin clients. They need one prime, no Fourier transform and no floating point,
and upload less than a megabyte per request; the server bootstraps their ciphertexts. With --slots the folder
is for full clients. They encrypt slots at the program's first level, and the server need not bootstrap.
"""

import argparse
from pathlib import Path

import keywright as kw
from keywright import compiler
from keywright.commands.helpers.arguments import add_batch_argument, add_model_arguments, add_preset_argument
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import print_fit, read_fit
from keywright.commands.helpers.inputs import load_samples, parse_bytes
from keywright.commands.terminal import Column, Terminal
from keywright.model import encrypted_error
from keywright.model.compiling import compile_model, compile_thin
from keywright.model.folder.files import new_folder
from keywright.model.model import BOOTSTRAP_PRESETS
from keywright.model.served.model import Model

from .infer import predict_error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    add_preset_argument(
        parser,
        f"parameters, one of keywright presets; by default the first of {', '.join(BOOTSTRAP_PRESETS)} "
        "that is deep enough for thin clients, or with --slots the smallest that is deep enough",
    )
    add_batch_argument(parser)
    parser.add_argument(
        "--slots", action="store_true", help="make a folder for full clients, which encrypt slots"
    )
    parser.add_argument(
        "--key-memory",
        metavar="SIZE",
        help="limit on a client's keys in the server's memory, as 2GiB; chooses the fastest keys within "
        "it (default: the fewest bytes with nearly the best speed)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        default=encrypted_error.REFUSED_SHARE,
        metavar="SHARE",
        help="largest predicted error of encryption as a share of the spread of an output on "
        "the calibration data (default: %(default)s); above a hundredth it is warned of",
    )
    parser.add_argument("--name", help="name of the model; the file's name by default")
    parser.add_argument("--labels", help="labels of the outputs, separated by commas")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Make the folder."""
    labels = tuple(options.labels.split(",")) if options.labels else ()
    name = options.name or options.model.stem
    if options.slots:
        with terminal.progress("compiling", None):
            approximated = compiler.approximate(options.model, read_fit(options))
            compiled = compile_model(approximated, None, options.preset, batch=options.batch or 1)
        model = Model(name, compiled.program, compiled.parameters, compiled.plans, labels=labels)
    else:
        if options.preset in kw.Parameters.presets():
            raise CommandError(
                f"--preset {options.preset} has no bootstrapping, which thin clients need; add --slots or "
                f"name one of {', '.join(kw.BootstrapperPlan.presets())}"
            )
        with terminal.progress("compiling", None):
            approximated = compiler.approximate(options.model, read_fit(options))
            model = compile_thin(approximated, None, options.preset, name, labels, batch=options.batch or 1)
    with terminal.progress("planning keys", None):
        if options.key_memory is not None:
            model = model.with_keys_within(parse_bytes(options.key_memory))
        _ = model.execution
    with terminal.progress("predicting the error of encryption", None):
        entry = None if model.entry is None else model.entry_index
        predicted = encrypted_error.predict_error(approximated, model.program, model.execution, entry)
    encrypted_error.require_precision(predicted, approximated.fit.accuracy, options.noise)
    for warning in () if predicted is None else predicted.warnings:
        terminal.warn(warning)
    if options.slots and options.calibration is not None:
        samples = load_samples(options.calibration, model.program.input_shape, options.calibration_count)
        predict_error(model.program, model.execution, samples, terminal)
    with new_folder(options.out) as folder:
        model.save(folder)
    terminal.table(
        [
            Column("model", "model"),
            Column("depth", "levels deep", "number"),
            Column("keys", "keys", "number"),
            Column("key_bytes", "bytes of keys", "bytes"),
            Column("hash", "hash"),
        ],
        [
            {
                "model": name,
                "depth": model.program.depth,
                "keys": len(model.specs),
                "key_bytes": model.manifest.key_bytes,
                "hash": model.manifest.hash,
            }
        ],
    )
    print_fit(model.program, terminal)
    if model.input_range is not None:
        terminal.note("inputs from {:.6g} to {:.6g}; clients refuse others".format(*model.input_range))
    terminal.note(f"{model.parameters!r}; serve it with keywright serve {options.out}")
