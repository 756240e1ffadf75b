"""Encrypt samples for a program: the client's request.

With the secret key in the client folder, half of every ciphertext is replaced by a 32-byte seed. With the
public key alone, ciphertexts take twice the bytes.
"""

import argparse
import time
from pathlib import Path

from keywright._files import new_folder
from keywright.commands.helpers.arguments import add_shared
from keywright.commands.helpers.ciphertext_files import ciphertext_name
from keywright.commands.helpers.fit import guard_samples
from keywright.commands.helpers.inputs import load_features
from keywright.commands.terminal import Column, Terminal
from keywright.model import load_client
from keywright.model.folder import PUBLIC_KEY, SECRET_KEY, require_files

EXAMPLE = "keywright encrypt keys/client --input samples.npy --out sent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("keys", type=Path, metavar="FOLDER", help="client folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="one sample or many (.npy)")
    parser.add_argument("--out", type=Path, required=True, help="folder of ciphertexts to make")
    add_shared(parser, "--force", "--insecure")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Write the ciphertexts of every sample."""
    if not (options.keys / SECRET_KEY).exists():
        require_files(options.keys, (PUBLIC_KEY,), "client folder of keywright keygen")
    client = load_client(options.keys, insecure=options.insecure)
    program = client.program
    samples = load_features(options.input, program)
    guard_samples(client, samples, force=options.force, terminal=terminal)
    seconds, size = 0.0, 0
    with (
        new_folder(options.out) as folder,
        terminal.progress("encrypted samples", len(samples)) as advance,
    ):
        for number, batch in enumerate(program.batches(samples)):
            start = time.perf_counter()
            ciphertexts = client.encrypt_batch(batch)
            seconds += time.perf_counter() - start
            for index, data in enumerate(ciphertexts):
                (folder / ciphertext_name(number * program.batch, len(batch), index)).write_bytes(data)
                size += len(data)
            advance(len(batch))
        client.identity.save(folder, "request", len(samples))
    row = {"samples": len(samples), "batch": program.batch, "bytes": size, "seconds": seconds}
    columns = [
        Column("samples", "samples", "number"),
        Column("batch", "at a time", "number"),
        Column("bytes", "ciphertexts", "bytes"),
        Column("seconds", "encryption", "seconds"),
    ]
    terminal.table(columns, [row])
