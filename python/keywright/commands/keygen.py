"""Compile a model and make the keys for it: one folder for the client, one for the server.

OUT/client holds the secret and stays with the owner of the data. OUT/server holds the parameters, the
evaluation keys and the program, which contains the model's weights; it holds nothing secret of the client.
Without a model the keys are those of --plan, for a bootstrap or an application's own key switches.
"""

import argparse
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal, Value
from keywright.plan import KeyPlan
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution

from .helpers.arguments import add_batch_argument, add_model_arguments, add_preset_argument
from .helpers.errors import CommandError
from .helpers.fit import print_fit, read_fit
from .helpers.folders import (
    EVALUATION_KEYS,
    MASTER_KEYS,
    PARAMETERS,
    PLAN,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    new_folder,
)
from .helpers.inputs import parse_bytes
from .helpers.memory import plan_server
from .helpers.program_and_keys import compile_model, named_parameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser, required=False)
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument(
        "--plan",
        type=Path,
        help="plan of keywright plan --out for this model: exactly its keys are made, or its master keys; by "
        "default the fewest bytes of keys that are about as fast as any. "
        "Without --model a plan of a bootstrapping preset, or of key switches in JSON",
    )
    add_preset_argument(parser)
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory of the process that will run the model, as 8GiB: the fastest keys within it (default: "
        "the fewest bytes of keys that are about as fast as any)",
    )
    add_batch_argument(parser)
    parser.add_argument(
        "--parameters",
        type=Path,
        help="file of Parameters.save that a plan of key switches in JSON is for, in the place of --preset",
    )


@dataclass(frozen=True)
class _Keys:
    """What is made, for whom.

    Attributes:
        parameters: of the keys.
        program: the compiled model; None if there is none.
        specs: the keys that the client makes.
        execution: of the plan.
    """

    parameters: kw.Parameters
    program: nn.Program | None
    specs: Sequence[kw.KeySpec]
    execution: PlanExecution


def _of_model(options: argparse.Namespace, plan: KeyPlan | None) -> _Keys:
    if options.parameters is not None:
        raise CommandError("--parameters is for plans without a model; name those of a model with --preset")
    compiled = compile_model(options.model, read_fit(options), options.preset, batch=options.batch or 1)
    if plan is None and options.memory is not None:
        execution = plan_server(compiled, parse_bytes(options.memory))
    elif plan is None:
        execution = compiled.execution
    else:
        execution = PlanExecution(plan, compiled.parameters, compiled.program, compiled.plans)
    return _Keys(compiled.parameters, compiled.program, execution.key_specs(), execution)


def _of_plan(options: argparse.Namespace, plan: KeyPlan | None) -> _Keys:
    """Keys of a plan for a bootstrap alone, or for key switches of an application's own."""
    if plan is None:
        raise CommandError("no model and no plan: give --model, or --plan with a plan that is for no model")
    if options.calibration is not None or options.activation:
        raise CommandError("--calibration and --activation are for a model; leave them out, or give --model")
    if options.batch is not None:
        raise CommandError("--batch is for a model; leave it out, or give --model")
    parameters, bootstraps = _parameters(options, plan)
    execution = PlanExecution(plan, parameters, bootstraps=bootstraps)
    return _Keys(parameters, None, execution.key_specs(), execution)


def _parameters(
    options: argparse.Namespace, plan: KeyPlan
) -> tuple[kw.Parameters, Sequence[kw.BootstrapperPlan]]:
    """What a plan is for: what is named, or else the bootstrapping preset that its program is called by."""
    name = plan.workload.name
    preset = options.preset
    if preset is None and options.parameters is None and name in kw.bootstrap_presets():
        preset = name
    if not plan.workload.bootstraps:
        parameters = named_parameters(preset, options.parameters)
        if parameters is not None:
            return parameters, ()
    elif preset in kw.bootstrap_presets() and options.parameters is None:
        bootstrap = kw.BootstrapperPlan.preset(preset)
        return bootstrap.parameters, [bootstrap]
    raise CommandError(
        f"the plan is for a program called {name!r}: if that is a model, give --model; otherwise say "
        + (
            "which bootstrapping it is with --preset NAME"
            if plan.workload.bootstraps
            else "what its parameters are with --preset NAME or --parameters FILE"
        )
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Make both folders."""
    if options.memory is not None and (options.plan is not None or options.model is None):
        raise CommandError("--memory plans the keys of --model; leave it out, or --plan")
    plan = None if options.plan is None else plan_file.load(options.plan)
    with terminal.progress("reading the program", None):
        keys = _of_plan(options, plan) if options.model is None else _of_model(options, plan)
    parameters, program, specs, execution = keys.parameters, keys.program, keys.specs, keys.execution
    plan = execution.plan
    masters = 0 if plan.masters is None else len(plan.masters.automorphisms)
    start = time.perf_counter()
    with new_folder(options.out) as folder:
        depth = "" if program is None else f"{program.depth} levels deep; "
        terminal.note(f"{depth}{parameters!r}")
        client, server = folder / "client", folder / "server"
        client.mkdir(mode=0o700)
        server.mkdir()
        secret = kw.SecretKey.generate(parameters)
        generator = kw.KeyGenerator(secret)
        secret.save(client / SECRET_KEY)
        generator.public_key().save(client / PUBLIC_KEY)
        parameters.save(client / PARAMETERS)
        shutil.copyfile(client / PARAMETERS, server / PARAMETERS)
        if program is not None:
            program.save(client / PROGRAM)
            shutil.copyfile(client / PROGRAM, server / PROGRAM)
        (server / PLAN).write_text(plan_file.to_json(plan), encoding="utf-8")
        if masters:
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
    if program is not None:
        print_fit(program, terminal)
    beside = f"{masters} master keys and " if masters else ""
    terminal.note(f"{beside}{len(specs)} evaluation keys in {time.perf_counter() - start:.1f} s")
    terminal.note(f"keep {options.out / 'client'}; give {options.out / 'server'} to the server")
