"""Evaluate a program on encrypted samples: what the server does, without any secret."""

import argparse
import time
from pathlib import Path

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal
from keywright.nn.encrypted import EncryptedBackend

from .common import (
    EVALUATION_KEYS,
    PARAMETERS,
    PROGRAM,
    CommandError,
    ciphertext_name,
    group_ciphertexts,
    new_folder,
    require_files,
)
from .session import bootstrap_plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keys", type=Path, required=True, help="server folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="folder of keywright encrypt")
    parser.add_argument("--out", type=Path, required=True, help="folder of encrypted results to make")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Write the encrypted results of every sample."""
    require_files(options.keys, (PARAMETERS, PROGRAM, EVALUATION_KEYS), "server folder of keywright keygen")
    parameters = kw.Parameters.load(options.keys / PARAMETERS)
    program = nn.Program.load(options.keys / PROGRAM)
    samples = group_ciphertexts(options.input, program.input_layout.ciphertexts)
    keys = kw.EvaluationKeys.load(options.keys / EVALUATION_KEYS, parameters)
    evaluator = kw.Evaluator(parameters, keys)
    bootstrappers = [kw.Bootstrapper(plan) for plan in bootstrap_plans(program)]
    steps = len(samples) * sum(step.operation != "input" for step in program.instructions)
    with (
        new_folder(options.out) as folder,
        terminal.progress("operations on ciphertexts", steps) as advance,
    ):
        backend = EncryptedBackend(evaluator, bootstrappers, on_step=lambda: advance(1))
        backend.prepare(program)
        start = time.perf_counter()
        for number, paths in enumerate(samples):
            inputs = [_load(path, parameters) for path in paths]
            for index, ciphertext in enumerate(backend.run(program, inputs)):
                ciphertext.save(folder / ciphertext_name(number, index))
        seconds = time.perf_counter() - start
    row = {"samples": len(samples), "seconds": seconds, "seconds_per_sample": seconds / len(samples)}
    columns = [
        Column("samples", "samples", "number"),
        Column("seconds", "time", "seconds"),
        Column("seconds_per_sample", "per sample", "seconds"),
    ]
    terminal.table(columns, [row])


def _load(path: Path, parameters: kw.Parameters) -> kw.Ciphertext:
    """A ciphertext, seeded or not."""
    kind = kw.inspect(path)["kind"]
    if kind == "a seeded CKKS ciphertext":
        return kw.SeededCiphertext.load(path, parameters).expand()
    if kind == "a CKKS ciphertext":
        return kw.Ciphertext.load(path, parameters)
    raise CommandError(f"{path} is {kind}, not a ciphertext; make ciphertexts with keywright encrypt")
