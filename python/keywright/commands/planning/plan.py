"""Plan the keys of a program: which rotations get a key, and of what size, within a budget of time or bytes.

The program is an ONNX model, a list of key switches in JSON, or a bootstrapping preset. For a bootstrap, the
factors of its transforms are planned together with the keys.
"""

import argparse
import re
from dataclasses import asdict
from pathlib import Path

import keywright as kw
from keywright import plan as planning
from keywright._files import new_file, require_place
from keywright._units import format_bytes, format_seconds, quantity
from keywright.commands.helpers.arguments import add_batch_argument, add_preset_argument
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import add_fit_arguments, compile_model
from keywright.commands.helpers.inputs import parse_bytes
from keywright.commands.helpers.parameters import named_parameters
from keywright.commands.output.plan_picture import (
    draw_frontier,
    draw_residency,
    draw_rotations,
    require_picture,
)
from keywright.commands.terminal import Column, Terminal
from keywright.errors import WorkloadError
from keywright.plan.cost import Calibration
from keywright.plan.keys import DerivationDesign, PlannedKey
from keywright.plan.ring import Automorphism

MAX_PROGRAM_BYTES = 64 << 20

COLUMNS = [
    Column("name", "strategy"),
    Column("keys", "keys", "number"),
    Column("stored_bytes", "held", "bytes"),
    Column("sent_bytes", "sent", "bytes"),
    Column("predicted_s", "time", "seconds"),
    Column("relative", "ratio", "ratio"),
    Column("max_hops", "hops", "number"),
    Column("noise_bits", "noise", "number"),
    Column("offered", "noise ok"),
    Column("gap", "gap", "share"),
]
"""They fit 80 columns; JSON has more numbers."""


HOPS = {1: "one", 2: "two", 3: "three", 4: "four or more"}
SHOWN_GAP = 5e-4
"""Smaller gaps are due to rounding."""

KEY_COLUMNS = [
    Column("automorphism", "key of"),
    Column("level", "level", "number"),
    Column("digits", "digits", "number"),
    Column("special", "special primes", "number"),
    Column("bytes", "bytes", "bytes"),
    Column("uses", "uses", "number"),
]

EXAMPLE = "keywright plan model.onnx --key-memory 2GB --out plan.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "program",
        type=Path,
        metavar="PROGRAM",
        help="ONNX model, program of key switches (.json), or name of a bootstrapping preset",
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--key-memory",
        metavar="SIZE",
        help="limit on the bytes of keys in memory, e.g. 8GB; the fastest plan within it is chosen",
    )
    budget.add_argument(
        "--time",
        metavar="LIMIT",
        help="limit on time, in seconds, e.g. 3.5s, or as a multiple, e.g. 1.2x, of the time with all "
        "required keys: one for every rotation at the top level with the largest digits (default: "
        "1.05x)",
    )
    parser.add_argument(
        "--strategy",
        choices=["optimal", *planning.STRATEGIES],
        default="optimal",
        metavar="NAME",
        help="the plan that is listed and written: optimal (default), or that of a published strategy: "
        + ", ".join(planning.STRATEGIES),
    )
    parser.add_argument(
        "--hops",
        type=int,
        default=2,
        choices=[1, 2, 3, 4],
        help="maximum number of key switches by which one rotation is composed (default: 2)",
    )
    parser.add_argument(
        "--derived",
        nargs="?",
        const="",
        metavar="BYTES",
        help="let the server derive the Galois keys of the shown plan from master keys; limit on the "
        "bytes that the client sends, e.g. 600MB (default: the fewest possible)",
    )
    add_fit_arguments(parser)
    add_preset_argument(
        parser,
        "parameters of a model, one of keywright presets (default: the smallest that fit), or of a "
        "program in JSON",
    )
    parser.add_argument("--parameters", type=Path, help="file of Parameters.save for a program in JSON")
    parser.add_argument(
        "--machine",
        type=Path,
        help="calibration for predictions of time (default: that of keywright calibrate)",
    )
    add_batch_argument(parser)
    parser.add_argument("--out", type=Path, help="file for the plan, for keywright keygen --plan (.json)")
    parser.add_argument(
        "--noise",
        type=float,
        help="limit on the noise bits of a plan (default: the program's own; for a model, 4.0, the noise of "
        "an encryption, or an eighth of a bootstrap's bits of precision if that is less)",
    )
    parser.add_argument("--picture", type=Path, help="picture of memory against time (.png or .svg)")
    parser.add_argument("--rotations", type=Path, help="picture of the plan's rotations (.png or .svg)")
    parser.add_argument("--residency", type=Path, help="picture of when each key is needed (.png or .svg)")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print a table of strategies and the chosen plan."""
    for picture in (options.picture, options.rotations, options.residency):
        if picture is not None:
            require_picture(picture)
    if options.out is not None:
        require_place(options.out)
    sent = parse_bytes(options.derived) if options.derived else None
    problem = _load(options, terminal)
    workload = problem.workload
    if not problem.needs_keys:
        raise CommandError(
            f"{options.program} needs no keys: it has no rotations and no products; there is nothing to plan"
        )
    model, machine = _model(options)
    plans = problem.published(model)
    every = next(plan for plan in plans if plan.strategy == "all-required")
    whole = planning.predict_plan(every, model).seconds
    budget = parse_budget(options.key_memory, options.time, whole)
    steps = (1 + len(problem.variants)) * (len(planning.STRATEGIES) + 1)
    with terminal.progress("planning", steps) as advance:
        planner = planning.ProblemPlanner(problem, model, max_hops=options.hops, report=lambda _: advance(1))
    with terminal.progress("searching for the best plan within the budget", None):
        best = planner.best(budget)
    rows = [_row(plan, model, whole) for plan in [*plans, best]]
    chosen = (
        best if options.strategy == "optimal" else next(p for p in plans if p.strategy == options.strategy)
    )
    planner.require_quiet(chosen)
    derived = None
    if options.derived is not None:
        with terminal.progress("master keys", None):
            derived = _derive(chosen, model, sent)
    if options.out is not None:
        with new_file(options.out) as path:
            planned = chosen if derived is None else derived.planned
            planning.save(planned, path)
    if derived is not None:
        rows.append(_derived_row(derived, model, whole))
    if terminal.json:
        described = _described(chosen, model)
        if derived is not None:
            described["derived"] = _described_masters(derived)
        terminal.record(
            {
                "program": workload.digest,
                "calibration": machine,
                "strategies": rows,
                "plan": described,
            }
        )
    else:
        # Without derived keys, the client sends what the server holds, packed in a file.
        columns = [column for column in COLUMNS if column.key != ("gap" if derived else "sent_bytes")]
        terminal.table(columns, rows, title=f"{workload.name}: {_counted(workload)}")
        terminal.table(
            KEY_COLUMNS,
            _key_rows(chosen),
            title=f"keys of {chosen.strategy}",
        )
        terminal.note(explain(chosen, model, every, budget, options.hops))
        if derived is not None:
            terminal.note(explain_derived(derived))
        if machine is None:
            terminal.note("times are for another machine; keywright calibrate measures this one")
    if options.picture is not None:
        draw_frontier(planner, plans, best, budget, options.picture, terminal)
    if options.rotations is not None:
        draw_rotations(chosen, options.rotations, terminal)
    if options.residency is not None:
        draw_residency(chosen, model, options.residency, terminal)


def _model(options: argparse.Namespace) -> tuple[planning.CostModel, str | None]:
    """Return the cost model and its machine; the machine is None for the built-in weights."""
    result = Calibration.stored() if options.machine is None else Calibration.load(options.machine)
    return (planning.CostModel(), None) if result is None else (result.model, result.machine)


def parse_budget(memory: str | None, time: str | None, every: float) -> planning.Budget:
    """Parse a budget.

    Args:
        memory: bytes with a unit.
        time: seconds, or a multiple.
        every: seconds of all-required, the unit of multiples.

    Raises:
        CommandError: a text is malformed, or has an unknown unit.
    """
    if memory is not None:
        return planning.Budget(stored_bytes=parse_bytes(memory))
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([xs])", "1.05x" if time is None else time.strip())
    if match is None or float(match[1]) == 0:
        raise CommandError(
            f"{time!r} is not a time; write 3.5s for seconds, or 1.2x for a multiple of the time with all "
            "required keys"
        )
    return planning.Budget(seconds=float(match[1]) * (every if match[2] == "x" else 1.0))


def explain(
    plan: planning.KeyPlan,
    model: planning.CostModel,
    every: planning.KeyPlan,
    budget: planning.Budget,
    hops: int,
) -> str:
    """Describe the plan in words, with the proven bounds on plans of at most ``hops`` hops."""
    depths = {1: 0, 2: 0, 3: 0, 4: 0}
    for group, tree in zip(plan.workload.groups, plan.hops, strict=True):
        table = {Automorphism(0): 0}
        for hop in tree:
            table[hop.child] = table[hop.parent] + 1
        for target in group.targets:
            depths[min(4, table[target])] += group.count
    served = ", ".join(
        f"{count:,} in {HOPS[hops]} hop{'s' * (hops > 1)}" for hops, count in depths.items() if count
    )
    seconds = planning.predict_plan(plan, model).seconds
    slower = planning.predict_plan(every, model).seconds / seconds if seconds else 1.0
    text = ""
    if plan.strategy == "optimal" and budget.stored_bytes is not None:
        text = f"This is the fastest plan found within {format_bytes(budget.stored_bytes)}. "
    elif plan.strategy == "optimal":
        text = f"This plan has the fewest bytes found within {format_seconds(budget.seconds or 0.0)}. "
    keys = sum(len(ring.keys) for ring in plan.rings) + plan.workload.ephemeral_keys
    text += (
        f"{quantity(keys, 'key')}, {format_bytes(plan.stored_bytes)} held in memory, for every rotation and "
        f"conjugation: {served or 'there is none'}. All-required, with a key for every rotation at the top "
        f"level, takes {every.stored_bytes / max(1, plan.stored_bytes):.1f} times the bytes and "
        f"{slower:.2f} times the predicted {format_seconds(seconds)}."
    )
    if plan.workload.ephemeral_keys:
        text += (
            f" These include {quantity(plan.workload.ephemeral_keys, 'key')} of the ephemeral secret, "
            f"{format_bytes(plan.workload.ephemeral_bytes)} in all; ModRaise switches to it and back."
        )
    for index, factors in enumerate(plan.workload.common.bootstraps):
        which = f" {index + 1}" if len(plan.workload.common.bootstraps) > 1 else ""
        steps = ", ".join(str(babies) for _, babies in factors)
        layers = ", ".join(str(count) for count, _ in factors)
        text += (
            f" The factors of the transforms of the bootstrap{which}, slots to coefficients first, merge "
            f"{layers} "
            f"layers of the Fourier transform and have {steps} baby steps."
        )
    if plan.subrings:
        text += (
            f" {sum(len(ring.keys) for ring in plan.subrings)} of these keys are in smaller rings, chosen "
            "within the same budget; the proof is for the largest ring."
        )
    if plan.gap is not None:
        less = "time" if budget.stored_bytes is not None else "bytes"
        text += f" Proven: no plan of at most {quantity(hops, 'hop')} with keys of any level and shape has "
        text += (
            f"less than {100 * (1 - plan.gap):.1f} % of this plan's {less}."
            if plan.gap >= SHOWN_GAP
            else f"{'less' if less == 'time' else 'fewer'} {less}."
        )
    return text


def explain_derived(derived: DerivationDesign) -> str:
    """Describe the master keys in words."""
    costs = derived.costs
    return (
        f"Number of master keys: {len(derived.masters)}, at level {derived.shape.level} of their chain, "
        f"{derived.master_bytes / 1e6:,.1f} MB; extra primes: {len(derived.extra_bits)}. The client makes "
        f"and sends {derived.sent_bytes / 1e6:,.1f} MB in {costs.client_seconds:.2f} s, keys that are not "
        f"derived ({len(derived.direct)}) included. The server derives {quantity(costs.derived, 'key')} "
        f"in {costs.server_seconds:.2f} s on one thread, in at most {quantity(costs.depth, 'step')} each, "
        f"and holds {derived.stored_bytes / 1e6:,.1f} MB unless it forgets them. "
        f"Masters: {', '.join(_name(automorphism) for automorphism in derived.masters)}."
    )


def _derive(plan: planning.KeyPlan, model: planning.CostModel, sent: int | None) -> DerivationDesign:
    """Return the fastest derivation within a limit on sent bytes, or the one with the fewest bytes."""
    planner = planning.DerivationPlanner(plan, model)
    if sent is None and planner.priced:
        return planner.priced[0]
    return planner.best(float("inf") if sent is None else sent)


def _derived_row(
    derived: DerivationDesign, model: planning.CostModel, every: float
) -> dict[str, str | int | float | None]:
    return {
        **_row(derived.plan, model, every),
        "name": f"{derived.plan.strategy}, derived",
        "stored_bytes": derived.stored_bytes,
        "sent_bytes": derived.sent_bytes,
        "client_keygen_s": derived.costs.client_seconds,
        "noise_bits": round(derived.costs.noise_bits, 2),
        "offered": "yes",
        "gap": None,
    }


def _described_masters(derived: DerivationDesign) -> dict[str, object]:
    group = derived.plan.workload.automorphisms
    return {
        "masters": [group.galois_element(automorphism) for automorphism in derived.masters],
        "extra_bits": list(derived.extra_bits),
        "chain_level": derived.shape.level,
        "master_bytes": derived.master_bytes,
        "sent_bytes": derived.sent_bytes,
        "stored_bytes": derived.stored_bytes,
        "client_s": derived.costs.client_seconds,
        "server_s": derived.costs.server_seconds,
        "direct_keys": len(derived.direct),
        "derived": derived.costs.derived,
        "depth": derived.costs.depth,
        "noise_bits": round(derived.costs.noise_bits, 2),
    }


def _load(options: argparse.Namespace, terminal: Terminal) -> planning.PlanningProblem:
    """Load the program that is planned."""
    path: Path = options.program
    if not path.exists() and not path.suffix and str(path) not in kw.BootstrapperPlan.presets():
        raise CommandError(
            f"{path} is neither a file nor a bootstrapping preset; the presets are "
            f"{', '.join(kw.BootstrapperPlan.presets())}"
        )
    if str(path) in kw.BootstrapperPlan.presets() and not path.exists():
        _refuse(options, "a bootstrapping preset", "preset", "parameters", "calibration", "batch")
        problem = planning.PlanningProblem.of_bootstrap(kw.BootstrapperPlan.preset(str(path)), str(path))
    elif path.suffix == ".json":
        _refuse(options, "a program in JSON", "calibration", "batch")
        workload = _read_workload(path)
        parameters = named_parameters(options.preset, options.parameters)
        problem = planning.PlanningProblem(
            workload if parameters is None else workload.on_parameters(parameters)
        )
    else:
        _refuse(options, "a model", "parameters")
        compiled = compile_model(path, options, terminal, batch=options.batch or 1)
        problem = planning.PlanningProblem.of_program(
            compiled.program, compiled.parameters, compiled.bootstraps, path.stem
        )
    return problem if options.noise is None else problem.with_noise(options.noise)


def _refuse(options: argparse.Namespace, what: str, *names: str) -> None:
    """Refuse options that do not apply to a kind of program."""
    for name in names:
        if getattr(options, name) is not None:
            raise CommandError(f"--{name} does not apply to {what}; leave it out")


def _read_workload(path: Path) -> planning.Workload:
    size = path.stat().st_size
    if size > MAX_PROGRAM_BYTES:
        raise CommandError(f"{path} has {size} bytes; a program may have at most {MAX_PROGRAM_BYTES}")
    try:
        return planning.Workload.from_json(path.read_text(encoding="utf-8", errors="replace"))
    except WorkloadError as error:
        raise CommandError(f"{path}: {error}") from None


def _counted(workload: planning.Workload) -> str:
    uses = sum(group.count * len(group.targets) for group in workload.groups)
    return f"{quantity(uses, 'automorphism')} of {quantity(len(workload.highest_levels), 'kind')}"


def _row(
    plan: planning.KeyPlan, model: planning.CostModel, every: float
) -> dict[str, str | int | float | None]:
    predicted = planning.predict_plan(plan, model)
    return {
        "name": plan.strategy,
        "keys": len(plan.keys) + plan.workload.ephemeral_keys,
        "stored_bytes": plan.stored_bytes,
        "sent_bytes": plan.stored_bytes,
        "client_keygen_s": sum(model.key_seconds(key.shape) for key in plan.keys)
        + plan.workload.ephemeral_key_seconds(model),
        "predicted_s": predicted.seconds,
        "switches_s": predicted.switches,
        "rest_s": predicted.rest,
        "relative": predicted.seconds / every if every else 1.0,
        "max_hops": plan.max_hops,
        "noise_bits": round(plan.noise_bits(model), 2),
        "offered": "yes" if plan.is_quiet(model) else "no",
        "gap": None if plan.gap is None else round(plan.gap, 4),
    }


def _name(automorphism: Automorphism | None) -> str:
    if automorphism is None:
        return "relinearization"
    text = f"rotation {automorphism.step}" if automorphism.step else ""
    return f"{text} conjugation".strip() if automorphism.conjugate else text


def _key_rows(plan: planning.KeyPlan) -> list[dict[str, str | int | float | None]]:
    uses: dict[PlannedKey, int] = dict.fromkeys(plan.keys, 0)
    for group, tree in zip(plan.workload.groups, plan.hops, strict=True):
        for hop in tree:
            uses[hop.key] += group.count
    for use in plan.workload.relinearizations:
        uses[plan.relinearization[use.level]] += use.count
    chain = plan.workload.chain
    fixed: list[dict[str, str | int | float | None]] = [
        {
            "automorphism": f"ephemeral secret, {keys.count} key{'s' * (keys.count > 1)}",
            "level": keys.level,
            "digits": 1,
            "special": keys.special,
            "bytes": keys.stored_bytes(chain),
            "uses": None,
        }
        for keys in plan.workload.common.fixed
    ]
    results: list[dict[str, str | int | float | None]] = [
        {
            "automorphism": _name(key.automorphism),
            "level": key.shape.level,
            "digits": len(key.shape.digits),
            "special": key.shape.special,
            "bytes": key.shape.stored_bytes,
            "uses": count,
        }
        for key, count in uses.items()
    ]
    return results + fixed


def _described(plan: planning.KeyPlan, model: planning.CostModel) -> dict[str, object]:
    index = {key: position for position, key in enumerate(plan.keys)}
    group = plan.workload.automorphisms
    return {
        "strategy": plan.strategy,
        "keys": [
            {
                "galois_element": None
                if key.automorphism is None
                else group.galois_element(key.automorphism),
                "level": key.shape.level,
                "alpha": key.shape.alpha,
                "special": key.shape.special,
                "bytes": key.shape.stored_bytes,
            }
            for key in plan.keys
        ],
        "uses": [
            {
                "name": used.name,
                "level": used.level,
                "count": used.count,
                "hops": [
                    [group.galois_element(hop.parent), group.galois_element(hop.child), index[hop.key]]
                    for hop in tree
                ],
            }
            for used, tree in zip(plan.workload.groups, plan.hops, strict=True)
        ],
        "fixed_keys": [
            {**asdict(keys), "bytes": keys.stored_bytes(plan.workload.chain)}
            for keys in plan.workload.common.fixed
        ],
        "bootstraps": [
            [{"layers": layers, "baby_steps": babies} for layers, babies in factors]
            for factors in plan.workload.common.bootstraps
        ],
        "relinearization": {str(level): index[key] for level, key in plan.relinearization.items()},
        "predicted_s": planning.predict_plan(plan, model).seconds,
    }
