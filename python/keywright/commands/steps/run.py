"""Evaluate a program on encrypted samples: the server's work, without any secret key."""

import argparse
import time
from pathlib import Path

import keywright as kw
from keywright._files import new_folder
from keywright._units import quantity
from keywright.commands.helpers.arguments import add_shared
from keywright.commands.helpers.ciphertext_files import ciphertext_name, find_ciphertexts
from keywright.commands.helpers.memory import key_memory, memory_budget
from keywright.commands.terminal import Column, Terminal, Value
from keywright.model import Identity, load_server
from keywright.model.folder import EVALUATION_KEYS, PARAMETERS, PLAN, PROGRAM, require_files
from keywright.plan.memory import peak_bytes

EXAMPLE = "keywright run keys/server --input sent --out answered"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("keys", type=Path, metavar="FOLDER", help="server folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="folder that keywright encrypt made")
    parser.add_argument("--out", type=Path, required=True, help="folder of encrypted results to make")
    add_shared(parser, "--key-memory", "--memory")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Write the encrypted results of every sample."""
    require_files(
        options.keys, (PARAMETERS, PROGRAM, PLAN, EVALUATION_KEYS), "server folder of keywright keygen"
    )
    server = load_server(
        options.keys,
        memory=memory_budget(options),
        key_memory=key_memory(options),
    )
    program = server.program
    batches = find_ciphertexts(options.input, program.input.layout.ciphertexts, program.batch)
    samples = sum(batch.count for batch in batches)
    sent, read = Identity.load(options.input, "request", samples)
    sent.require(server.identity, "server", "client")
    planned = server.open_keys(options.keys, len(batches), terminal.progress)
    predicted = program.seconds
    with (
        new_folder(options.out) as folder,
        terminal.progress(quantity(samples, "sample"), predicted * len(batches)) as advance,
    ):
        start = time.perf_counter()
        for batch in batches:
            objects = [read(path.name, server.requests.most_bytes) for path in batch.paths]
            for index, data in enumerate(server.evaluate(objects, advance).objects):
                (folder / ciphertext_name(batch.first, batch.count, index)).write_bytes(data)
        seconds = time.perf_counter() - start
        server.identity.save(folder, "answer", samples)
    row: dict[str, Value] = {
        "samples": samples,
        "batch": program.batch,
        "seconds": seconds,
        "seconds_per_sample": seconds / samples,
        "peak_bytes": peak_bytes(),
        "predicted_peak_bytes": planned.memory.total,
    }
    columns = [
        Column("samples", "samples", "number"),
        Column("batch", "at a time", "number"),
        Column("seconds", "time", "seconds"),
        Column("seconds_per_sample", "per sample", "seconds"),
        Column("peak_bytes", "peak memory", "bytes"),
        Column("predicted_peak_bytes", "predicted", "bytes"),
    ]
    terminal.table(columns, [row])
    if server.keys.streaming is not None:
        _report_streaming(server.keys, terminal)


def _report_streaming(keys: kw.EvaluationKeys, terminal: Terminal) -> None:
    columns = [
        Column("loads", "keys made", "number"),
        Column("ahead", "ahead of use", "number"),
        Column("bytes", "their bytes", "bytes"),
        Column("peak_bytes", "most in memory", "bytes"),
        Column("waited_s", "waited", "seconds"),
    ]
    terminal.table(columns, [dict(keys.streaming or {})], title="streamed keys")
