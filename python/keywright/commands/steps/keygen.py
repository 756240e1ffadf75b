"""Compile a model and make its keys: one folder for the client, one for the server.

OUT/client holds the secret key and stays with the owner of the data. OUT/server holds the parameters, the
evaluation keys and the program, which contains the model's weights; it holds no secret of the client. MODEL
is an ONNX model, or a folder of keywright compile for either kind of client. Without a model the command
makes the keys of --plan, for a bootstrap or for the key switches of an application.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keywright as kw
from keywright import plan as planning
from keywright._files import new_folder
from keywright._units import format_bytes, quantity
from keywright.commands.helpers.arguments import (
    add_batch_argument,
    add_model_arguments,
    add_preset_argument,
    add_shared,
)
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import compile_model, print_fit
from keywright.commands.helpers.inputs import parse_bytes
from keywright.commands.helpers.parameters import named_parameters
from keywright.commands.terminal import Column, Terminal, Value
from keywright.model import Demands, Model, ModelClient, save_keys
from keywright.model.folder import PARAMETERS, PLAN, PUBLIC_KEY, SECRET_KEY
from keywright.plan import KeyPlan, PlanExecution

COMPILED = (
    "calibration", "calibration_count", "activation", "accuracy", "range", "error", "preset", "batch",
)  # fmt: skip
"""Options that compile a model."""

EXAMPLE = "keywright keygen model.onnx --calibration typical.npy --out keys"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser, "ONNX model, or folder of keywright compile", required=False)
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument(
        "--plan",
        type=Path,
        help="plan for this model, from keywright plan --out; the command makes exactly its keys, or its "
        "master keys (default: the fewest bytes of keys with nearly the best speed). Without a "
        "model: the plan of a bootstrapping preset, or of key switches in JSON",
    )
    add_preset_argument(parser)
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory of the process that will run the model, e.g. 8GB; chooses the fastest keys within it "
        "(default: the fewest bytes of keys with nearly the best speed)",
    )
    add_batch_argument(parser)
    parser.add_argument(
        "--parameters",
        type=Path,
        help="file of Parameters.save for a plan of key switches in JSON, instead of --preset",
    )
    add_shared(parser, "--insecure")
    parser.add_argument(
        "--key-bytes",
        metavar="SIZE",
        help=f"largest size of all keys, e.g. 64GB (default: {format_bytes(Demands.key_bytes)})",
    )
    parser.add_argument(
        "--key-count",
        metavar="N",
        type=int,
        default=Demands.key_count,
        help=f"largest number of keys (default: {Demands.key_count})",
    )


def _compiled(options: argparse.Namespace, terminal: Terminal, plan: KeyPlan | None) -> Model:
    if options.parameters is not None:
        raise CommandError("--parameters is for plans without a model; use --preset with a model")
    if plan is not None and options.memory is not None:
        raise CommandError("--plan names the keys, and --memory plans them; give one of them")
    loaded = options.model.is_dir()
    path, batch = options.model, options.batch or 1
    model = _loaded(options) if loaded else compile_model(path, options, terminal, batch=batch)
    if plan is not None:
        return model.with_plan(plan)
    return model if options.memory is None else model.with_server_within(parse_bytes(options.memory))


def _loaded(options: argparse.Namespace) -> Model:
    """Return the model of a folder of ``keywright compile``; with --memory, without its plan of keys."""
    given = [name for name in COMPILED if getattr(options, name) not in (None, [])]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CommandError(
            f"{options.model} is compiled, and {names} would compile it again; leave that out, or name the "
            "ONNX model"
        )
    model = Model.load(options.model)
    return model if options.memory is None else replace(model, key_plan=None)


def _of_plan(options: argparse.Namespace, plan: KeyPlan | None) -> PlanExecution:
    """Make keys for a bootstrap alone, or for key switches of an application."""
    if plan is None:
        raise CommandError(
            "neither a model nor a plan is named; name a model, or give --plan with a "
            "plan that needs no model"
        )
    if options.calibration is not None or options.activation:
        raise CommandError("--calibration and --activation need a model; leave them out, or name one")
    if options.batch is not None:
        raise CommandError("--batch needs a model; leave it out, or name one")
    parameters, bootstraps = _parameters(options, plan)
    return PlanExecution(plan, parameters, bootstraps=bootstraps)


def _parameters(
    options: argparse.Namespace, plan: KeyPlan
) -> tuple[kw.Parameters, Sequence[kw.BootstrapperPlan]]:
    """Return the parameters for a plan: the named ones, or those of the bootstrapping preset that the plan
    names."""
    name = plan.workload.name
    preset = options.preset
    if preset is None and options.parameters is None and name in kw.BootstrapperPlan.presets():
        preset = name
    if not plan.workload.common.bootstraps:
        parameters = named_parameters(preset, options.parameters)
        if parameters is not None:
            return parameters, ()
    elif preset in kw.BootstrapperPlan.presets() and options.parameters is None:
        bootstrap = kw.BootstrapperPlan.preset(preset)
        return bootstrap.parameters, [bootstrap]
    raise CommandError(
        f"the plan is for a program called {name!r}: if that is a model, name its file; otherwise say "
        + (
            "name its bootstrapping with --preset NAME"
            if plan.workload.common.bootstraps
            else "name its parameters with --preset NAME or --parameters FILE"
        )
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Make both folders."""
    if options.memory is not None and (options.plan is not None or options.model is None):
        raise CommandError("--memory plans the keys of a model and excludes --plan; leave one of them out")
    plan = None if options.plan is None else planning.load(options.plan)
    compiled = None if options.model is None else _compiled(options, terminal, plan)
    with terminal.progress("planning keys", None):
        execution = _of_plan(options, plan) if compiled is None else compiled.execution
    parameters, plan = execution.parameters, execution.plan
    most = Demands.key_bytes if options.key_bytes is None else parse_bytes(options.key_bytes)
    demands = Demands(options.insecure, most, options.key_count)
    demands.require_secure(parameters)
    demands.require_plan(execution)
    start = time.perf_counter()
    with new_folder(options.out) as folder:
        depth = "" if compiled is None else f"{quantity(compiled.program.depth, 'level')} deep; "
        terminal.note(f"{depth}{parameters!r}")
        client, server = folder / "client", folder / "server"
        client.mkdir(mode=0o700)
        server.mkdir()
        secret = kw.SecretKey.generate(parameters)
        save_keys(server, secret, execution, terminal.progress)
        # Write the secret key last: a process that is killed before leaves no secret behind.
        if compiled is None:
            parameters.save(server / PARAMETERS)
            planning.save(plan, server / PLAN)
            _write_owner(client, secret, parameters)
        else:
            compiled.write(server)
            ModelClient(compiled, secret=secret).write(client)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        rows: list[dict[str, Value]] = [
            {"file": str(options.out / path.relative_to(folder)), "bytes": path.stat().st_size}
            for path in files
        ]
    terminal.table([Column("file", "file"), Column("bytes", "bytes", "bytes")], rows)
    if compiled is not None:
        print_fit(compiled.program, terminal)
    beside = "" if plan.masters is None else f"{quantity(len(plan.masters.automorphisms), 'master key')} and "
    count = quantity(len(execution.key_specs), "evaluation key")
    terminal.note(f"{beside}{count} in {time.perf_counter() - start:.1f} s")
    terminal.note(f"keep {options.out / 'client'}; give {options.out / 'server'} to the server")


def _write_owner(folder: Path, secret: kw.SecretKey, parameters: kw.Parameters) -> None:
    """Write the owner's key files for a plan without a model."""
    kw.KeyGenerator(secret).public_key().save(folder / PUBLIC_KEY)
    parameters.save(folder / PARAMETERS)
    secret.save(folder / SECRET_KEY)
