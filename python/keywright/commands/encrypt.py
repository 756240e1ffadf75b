"""Encrypt samples for a program: what the client sends.

With the secret in the client folder, one half of every ciphertext is a 32-byte seed; with the public key
alone, ciphertexts have twice the bytes.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal
from keywright.nn.run.encrypted import encrypt_sample, encrypt_sample_seeded

from .helpers.arguments import add_force_argument
from .helpers.fit import guard_samples
from .helpers.folders import (
    PARAMETERS,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    ciphertext_name,
    new_folder,
    require_files,
)
from .helpers.inputs import load_samples


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keys", type=Path, required=True, help="client folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="one sample or many (.npy)")
    parser.add_argument("--out", type=Path, required=True, help="folder of ciphertexts to make")
    add_force_argument(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Write the ciphertexts of every sample."""
    require_files(options.keys, (PARAMETERS, PROGRAM), "client folder of keywright keygen")
    parameters = kw.Parameters.load(options.keys / PARAMETERS)
    program = nn.Program.load(options.keys / PROGRAM)
    samples = load_samples(options.input, program.input_shape)
    guard_samples(program, samples, parameters, force=options.force, terminal=terminal)
    encrypt = _encryption(options.keys, parameters, program)
    seconds, size = 0.0, 0
    with (
        new_folder(options.out) as folder,
        terminal.progress("encrypted samples", len(samples)) as advance,
    ):
        for number, batch in enumerate(program.batches(samples)):
            start = time.perf_counter()
            ciphertexts = encrypt(batch)
            seconds += time.perf_counter() - start
            for index, ciphertext in enumerate(ciphertexts):
                path = folder / ciphertext_name(number * program.batch, len(batch), index)
                ciphertext.save(path)
                size += path.stat().st_size
            advance(len(batch))
    row = {"samples": len(samples), "batch": program.batch, "bytes": size, "seconds": seconds}
    columns = [
        Column("samples", "samples", "number"),
        Column("batch", "at a time", "number"),
        Column("bytes", "ciphertexts", "bytes"),
        Column("seconds", "encryption", "seconds"),
    ]
    terminal.table(columns, [row])


def _encryption(
    folder: Path, parameters: kw.Parameters, program: nn.Program
) -> Callable[[NDArray[np.float64]], Sequence[kw.Ciphertext | kw.SeededCiphertext]]:
    """Encryption of samples with the secret in a client folder, or with its public key."""
    if (folder / SECRET_KEY).exists():
        decryptor = kw.Decryptor(kw.SecretKey.load(folder / SECRET_KEY, parameters))
        return lambda sample: encrypt_sample_seeded(program, decryptor, sample)
    encryptor = kw.Encryptor(kw.PublicKey.load(folder / PUBLIC_KEY, parameters))
    return lambda sample: encrypt_sample(program, encryptor, sample)
