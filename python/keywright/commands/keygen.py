"""Compile a model and make the keys for it: one folder for the client, one for the server.

OUT/client holds the secret and stays with the owner of the data. OUT/server holds the parameters, the
evaluation keys and the program, which contains the model's weights; it holds nothing secret of the client.
"""

import argparse
import shutil
import time
from pathlib import Path

import keywright as kw
from keywright._terminal import Column, Terminal, Value
from keywright.plan import plan_file
from keywright.plan.execution import PlanExecution

from .common import (
    EVALUATION_KEYS,
    MASTER_KEYS,
    PARAMETERS,
    PLAN,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    new_folder,
)
from .session import compile_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument(
        "--plan",
        type=Path,
        help="plan of keywright plan --out for this model: exactly its keys are made, or its master keys",
    )
    add_preset_argument(parser)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is compiled."""
    parser.add_argument("--model", type=Path, required=True, help="ONNX model")
    parser.add_argument(
        "--calibration",
        type=Path,
        help="typical inputs, on which ranges are measured: .npy, an image or a folder of images",
    )


def add_preset_argument(parser: argparse.ArgumentParser) -> None:
    """Declare what it is compiled for."""
    parser.add_argument(
        "--preset",
        choices=[*kw.presets(), *kw.bootstrap_presets()],
        help="parameters; the smallest deep enough by default, with bootstraps if none is",
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Make both folders."""
    compiled = compile_model(options.model, options.calibration, options.preset)
    plan = None if options.plan is None else plan_file.load(options.plan)
    specs, execution = compiled.specs, None
    if plan is not None:
        execution = PlanExecution(plan, compiled.parameters, compiled.program, compiled.plans)
        specs = execution.key_specs()
    masters = 0 if plan is None or plan.masters is None else len(plan.masters.automorphisms)
    start = time.perf_counter()
    with new_folder(options.out) as folder:
        terminal.note(f"{compiled.program.depth} levels deep; {compiled.parameters!r}")
        client, server = folder / "client", folder / "server"
        client.mkdir(mode=0o700)
        server.mkdir()
        secret = kw.SecretKey.generate(compiled.parameters)
        generator = kw.KeyGenerator(secret)
        secret.save(client / SECRET_KEY)
        generator.public_key().save(client / PUBLIC_KEY)
        compiled.parameters.save(client / PARAMETERS)
        compiled.program.save(client / PROGRAM)
        for name in (PARAMETERS, PROGRAM):
            shutil.copyfile(client / name, server / name)
        if plan is not None:
            (server / PLAN).write_text(plan_file.to_json(plan), encoding="utf-8")
        if execution is not None and masters:
            with terminal.progress("master keys", masters) as advance:
                made = execution.make_masters(secret, lambda done, total: advance(1))
            made.save(server / MASTER_KEYS)
        with terminal.progress("evaluation keys", len(specs)) as advance:
            generator.save_evaluation_keys(
                server / EVALUATION_KEYS, specs, progress=lambda done, total: advance(1)
            )
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        rows: list[dict[str, Value]] = [
            {"file": str(options.out / path.relative_to(folder)), "bytes": path.stat().st_size}
            for path in files
        ]
    terminal.table([Column("file", "file"), Column("bytes", "bytes", "bytes")], rows)
    beside = f"{masters} master keys and " if masters else ""
    terminal.note(f"{beside}{len(specs)} evaluation keys in {time.perf_counter() - start:.1f} s")
    terminal.note(f"keep {options.out / 'client'}; give {options.out / 'server'} to the server")
