"""Evaluate a program on encrypted samples: what the server does, without any secret."""

import argparse
import time
from pathlib import Path

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal, Value
from keywright.nn.run.encrypted import EncryptedBackend
from keywright.nn.run.timing import LayerClock
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import peak_bytes

from .helpers.errors import CommandError
from .helpers.folders import (
    EVALUATION_KEYS,
    MASTER_KEYS,
    PARAMETERS,
    PLAN,
    PROGRAM,
    ciphertext_name,
    find_ciphertexts,
    new_folder,
    require_files,
)
from .helpers.inputs import parse_bytes
from .helpers.memory import add_memory_argument, memory_budget, plan_run
from .helpers.program_and_keys import bootstrap_plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--keys", type=Path, required=True, help="server folder of keywright keygen")
    parser.add_argument("--input", type=Path, required=True, help="folder of keywright encrypt")
    parser.add_argument("--out", type=Path, required=True, help="folder of encrypted results to make")
    parser.add_argument(
        "--key-memory",
        help="most bytes of keys in memory, as 2GiB: keys are read, or derived from master keys, ahead of "
        "their use, and dropped (default: all, or as many as --memory leaves room for)",
    )
    add_memory_argument(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Write the encrypted results of every sample."""
    require_files(
        options.keys, (PARAMETERS, PROGRAM, PLAN, EVALUATION_KEYS), "server folder of keywright keygen"
    )
    parameters = kw.Parameters.load(options.keys / PARAMETERS)
    program = nn.Program.load(options.keys / PROGRAM)
    batches = find_ciphertexts(options.input, program.input_layout.ciphertexts, program.batch)
    key_plan = plan_file.load(options.keys / PLAN)
    execution = PlanExecution(key_plan, parameters, program, bootstrap_plans(program))
    with terminal.progress("planning memory", None):
        asked = None if options.key_memory is None else parse_bytes(options.key_memory)
        planned = plan_run(program, execution, len(batches), asked, memory_budget(options))
    keys = _keys(options, parameters, execution, planned.key_memory, terminal)
    evaluator = kw.Evaluator(parameters, keys)
    with terminal.progress("diagonals of bootstraps", None):
        ways = zip(execution.bootstrapper_plans, planned.bootstraps, strict=True)
        bootstrappers = [kw.Bootstrapper(plan, storage=storage) for plan, storage in ways]
    stopwatch = LayerClock(program)
    backend = EncryptedBackend(
        evaluator, bootstrappers, plan=execution, storage=planned.storage, on_step=stopwatch.step
    )
    with terminal.progress("encoding linear maps", len(program.transforms)) as advance:
        backend.prepare(program, advance)
    samples = sum(batch.count for batch in batches)
    predicted = sum(layer.seconds for layer in program.layers)
    with (
        new_folder(options.out) as folder,
        terminal.progress(f"{samples} samples", predicted * len(batches)) as advance,
    ):
        start = time.perf_counter()
        for batch in batches:
            inputs = [_load(path, parameters) for path in batch.paths]
            stopwatch.start(advance)
            for index, ciphertext in enumerate(backend.run(program, inputs)):
                ciphertext.save(folder / ciphertext_name(batch.first, batch.count, index))
        seconds = time.perf_counter() - start
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
    if keys.streaming is not None:
        _report_streaming(keys, terminal)


def _keys(
    options: argparse.Namespace,
    parameters: kw.Parameters,
    execution: PlanExecution,
    memory: int | None,
    terminal: Terminal,
) -> kw.EvaluationKeys:
    path = options.keys / EVALUATION_KEYS
    if execution.plan.masters is None:
        with terminal.progress("reading keys", None):
            return execution.load_keys(path, memory=memory)
    require_files(options.keys, (MASTER_KEYS,), "server folder of keywright keygen")
    masters = kw.MasterKeys.load(options.keys / MASTER_KEYS, parameters)
    if memory is not None:
        return execution.load_keys(path, masters, memory)
    start = time.perf_counter()
    count = len(execution.derived_specs())
    with terminal.progress("derived keys", count) as advance:
        keys = execution.load_keys(path, masters, progress=lambda done, total: advance(1))
    terminal.note(f"{count} keys derived in {time.perf_counter() - start:.1f} s")
    return keys


def _report_streaming(keys: kw.EvaluationKeys, terminal: Terminal) -> None:
    columns = [
        Column("loads", "keys made", "number"),
        Column("ahead", "ahead of use", "number"),
        Column("bytes", "their bytes", "bytes"),
        Column("peak_bytes", "most in memory", "bytes"),
        Column("waited_s", "waited", "seconds"),
    ]
    terminal.table(columns, [dict(keys.streaming or {})], title="streamed keys")


def _load(path: Path, parameters: kw.Parameters) -> kw.Ciphertext:
    """A ciphertext, seeded or not."""
    kind = kw.inspect(path)["kind"]
    if kind == "a seeded CKKS ciphertext":
        return kw.SeededCiphertext.load(path, parameters).expand()
    if kind == "a CKKS ciphertext":
        return kw.Ciphertext.load(path, parameters)
    raise CommandError(f"{path} is {kind}, not a ciphertext; make ciphertexts with keywright encrypt")
