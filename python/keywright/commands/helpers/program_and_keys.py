"""From a model to a program, its parameters and its keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal
from keywright.nn.placement.bootstraps import DEFAULT_BOOTSTRAP_PRESET
from keywright.nn.presets import BootstrapPreset, preset_plans
from keywright.plan import CostModel
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.search.quick import plan_candidates, plan_network
from keywright.serve.model import Model

from .errors import CommandError

THIN_PRESETS = ("N15_QP858_L5_S32_real", DEFAULT_BOOTSTRAP_PRESET, "N16_QP1745_L15_S40_real")
"""For models of thin clients, by the bytes of their keys. The last bootstraps inside the program where it
must."""

HEADROOM_BITS = 8
"""Bits above the scale that the lowest level must leave for the values of a result."""


@dataclass(frozen=True)
class Batching:
    """How many samples are to be evaluated, and how many of them share ciphertexts: see `nn.Target`."""

    samples: int
    batch: int | None

    def target(self, *, slots: int, **options: Any) -> nn.Target:
        """What is compiled for.

        Raises:
            CommandError: there are more samples in a batch than slots.
        """
        if self.batch is not None and self.batch > slots:
            raise CommandError(
                f"--batch {self.batch}: a ciphertext has {slots} slots, of {slots} samples at most"
            )
        return nn.Target(slots=slots, samples=self.samples, batch=self.batch, **options)


@dataclass(frozen=True)
class Compiled:
    """A program, the parameters it is for, and the plans of its bootstraps, in order."""

    program: nn.Program
    parameters: kw.Parameters
    plans: Sequence[kw.BootstrapperPlan] = ()

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Plans of its keys, from the fewest bytes up to the fastest, with the weights of this machine if
        they are measured."""
        return plan_candidates(self.program, self.parameters, self.plans, model=stored_model())

    @cached_property
    def execution(self) -> PlanExecution:
        """The one of fewest bytes that is about as fast as any."""
        return plan_network(self.program, self.parameters, self.plans, model=stored_model())

    @property
    def specs(self) -> list[kw.KeySpec]:
        """The keys that the server needs: those of the plan."""
        return self.execution.key_specs()


def named_parameters(preset: str | None, path: Path | None) -> kw.Parameters | None:
    """The parameters of a preset, levelled or bootstrapping, or of a file; None if neither is named.

    Raises:
        CommandError: both are, or there is no such preset.
    """
    if preset is None:
        return None if path is None else kw.Parameters.load(path)
    if path is not None:
        raise CommandError("give either --preset or --parameters")
    if preset in kw.bootstrap_presets():
        return kw.BootstrapperPlan.preset(preset).parameters
    return kw.Parameters.preset(preset)


def bootstrap_plans(program: nn.Program) -> list[kw.BootstrapperPlan]:
    """The plans that a program's bootstraps name, in order.

    Raises:
        CommandError: one is not of a preset.
    """
    for bootstrap in program.bootstraps:
        if bootstrap.preset not in kw.bootstrap_presets():
            raise CommandError(
                f"the program bootstraps with preset {bootstrap.preset!r}, and this release has "
                f"{', '.join(kw.bootstrap_presets())}; compile the model again"
            )
    return preset_plans(program)


Source = Path | bytes | nn.ApproximatedModel
"""A model, or what `approximate_model` made of it."""


def approximate_model(
    model: Path | bytes, fit: nn.Fit | None = None, preset: str | None = None, *, thin: bool = False
) -> nn.ApproximatedModel:
    """Put polynomials in the place of activations, within the levels of a preset, or of the deepest one
    without bootstraps, where any choice is; for many calls of `compile_model` and `compile_thin`.

    Args:
        fit: calibration data and methods.
        thin: whether it will be compiled for thin clients.

    Raises:
        ModelRefusedError: it cannot be compiled for any target.
    """
    names = list(THIN_PRESETS) if thin else kw.presets()
    depths = [_depth(name) for name in (names if preset is None else [preset])]
    return nn.approximate(model, fit, depth=max(depths))


def _depth(preset: str) -> int:
    """Levels of a preset before a bootstrap."""
    if preset in kw.bootstrap_presets():
        plan = kw.BootstrapperPlan.preset(preset)
        return plan.output_level - plan.input_level
    return kw.Parameters.preset(preset).max_level - _lowest(kw.Parameters.preset(preset))


def _lowest(parameters: kw.Parameters) -> int:
    """The lowest level at which a result has room."""
    return 0 if headroom_bits(parameters) >= HEADROOM_BITS else 1


def compile_model(
    model: Source,
    fit: nn.Fit | None,
    preset: str | None,
    *,
    samples: int = 1,
    batch: int | None = None,
) -> Compiled:
    """Compile a model for shipped parameters: those named, or of the smallest ring that is deep enough those
    with the smallest keys. A model that is too deep for all of them is bootstrapped with
    `DEFAULT_BOOTSTRAP_PRESET`.

    Args:
        fit: calibration data and methods; None for a model that is approximated.
        samples: how many samples are to be evaluated; see `nn.Target`.
        batch: how many of them share ciphertexts; what is best for them where not given.

    Raises:
        ModelRefusedError: it cannot be compiled for any of them.
        CommandError: the ciphertexts have fewer slots than the batch has samples.
    """
    approximated = _approximated(model, fit, preset)
    batching = Batching(samples, batch)
    if preset in kw.bootstrap_presets():
        return _compile_bootstrapped(approximated, preset, batching)
    try:
        return _compile_levelled(approximated, kw.presets() if preset is None else [preset], batching)
    except nn.ModelRefusedError as refusal:
        if preset is not None or not all(isinstance(r, nn.TooDeepError) for r in refusal.exceptions):
            raise
        return _compile_bootstrapped(approximated, DEFAULT_BOOTSTRAP_PRESET, batching)


def _approximated(
    model: Source, fit: nn.Fit | None, preset: str | None, *, thin: bool = False
) -> nn.ApproximatedModel:
    if isinstance(model, nn.ApproximatedModel):
        return model
    return approximate_model(model, fit, preset, thin=thin)


def compile_thin(
    model: Source,
    fit: nn.Fit | None,
    preset: str | None,
    name: str,
    labels: tuple[str, ...] = (),
    *,
    batch: int = 1,
) -> Model:
    """Compile a model for thin clients: its levels are those between the last and the first stage of a
    bootstrapping, which clients' ciphertexts enter and leave by.

    Args:
        fit: calibration data and methods; None for a model that is approximated.
        preset: a bootstrapping; by default the first of `THIN_PRESETS` that leaves enough levels.
        batch: how many samples of a client share ciphertexts.

    Raises:
        ModelRefusedError: it cannot be compiled.
    """
    approximated = _approximated(model, fit, preset, thin=True)
    for choice in THIN_PRESETS if preset is None else (preset,):
        plan = kw.BootstrapperPlan.preset(choice)
        last = choice == (preset or THIN_PRESETS[-1])
        try:
            program = nn.compile(
                approximated,
                Batching(1, batch).target(
                    slots=plan.slots,
                    levels=plan.output_level,
                    output_level=plan.input_level,
                    fixed_slots=True,
                    bootstraps=(nn.Bootstrap.of(plan, preset=choice),) if last else (),
                ),
                costs=_costs(plan.parameters, [plan] if last else []),
            )
        except nn.ModelRefusedError as refusal:
            if last or not all(isinstance(r, nn.TooDeepError) for r in refusal.exceptions):
                raise
        else:
            plans = [plan] if program.bootstraps else []
            return Model(name, program, plan.parameters, plans, plan, {"preset": choice}, labels)
    raise AssertionError("the last preset is compiled or refused")


def _compile_bootstrapped(model: nn.ApproximatedModel, preset: str, batching: Batching) -> Compiled:
    shipped = BootstrapPreset(preset, stored_model() or CostModel())
    program = nn.compile(
        model,
        batching.target(
            slots=shipped.plan.slots,
            levels=shipped.plan.output_level,
            bootstraps=shipped.options,
            rings=shipped.rings,
        ),
    )
    plans = bootstrap_plans(program)
    return Compiled(program, plans[0].parameters if plans else shipped.parameters(program), plans)


def _compile_levelled(model: nn.ApproximatedModel, names: list[str], batching: Batching) -> Compiled:
    found: list[Compiled] = []
    needed = 0
    for name in names:
        parameters = kw.Parameters.preset(name)
        if found and parameters.n > found[0].parameters.n:
            break
        lowest = _lowest(parameters)
        full = batching.batch is not None and batching.batch > parameters.max_slots
        if (full or needed > parameters.max_level - lowest) and name != names[-1]:
            continue
        try:
            program = nn.compile(
                model,
                batching.target(slots=parameters.max_slots, levels=parameters.max_level, output_level=lowest),
                costs=_costs(parameters),
            )
        except nn.ModelRefusedError as refusal:
            too_deep = [reason for reason in refusal.exceptions if isinstance(reason, nn.TooDeepError)]
            if len(too_deep) < len(refusal.exceptions) or (not found and name == names[-1]):
                raise
            needed = max(reason.needed for reason in too_deep)
        else:
            found.append(Compiled(program, parameters))
    return min(found, key=lambda compiled: compiled.execution.plan.stored_bytes)


def _costs(parameters: kw.Parameters, bootstraps: Sequence[kw.BootstrapperPlan] = ()) -> nn.CostTable:
    """What operations cost with these parameters, by the model that `keywright plan` predicts with."""
    return nn.CostTable.predicted(chain_of(parameters), stored_model() or CostModel(), bootstraps)


def headroom_bits(parameters: kw.Parameters) -> float:
    """log2 of the largest value that a result at level 0 can have."""
    return float(parameters.q[0].bit_length() - 1 - parameters.log_scale)


def make_keys(generator: kw.KeyGenerator, specs: list[kw.KeySpec], terminal: Terminal) -> kw.EvaluationKeys:
    """All keys in memory, with progress."""
    with terminal.progress("evaluation keys", len(specs)) as advance:
        return generator.evaluation_keys(
            relinearization=False, specs=specs, progress=lambda done, total: advance(1)
        )


def key_columns() -> list[Column]:
    """Columns of a table of key sets."""
    return [
        Column("set", "evaluation keys"),
        Column("keys", "keys", "number"),
        Column("bytes", "bytes", "bytes"),
        Column("unseeded_bytes", "without seeds", "bytes"),
    ]


def key_table(compiled: Compiled) -> list[dict[str, str | int]]:
    """The program's keys beside two common sets that would serve it, all at the highest level.

    Power-of-two: rotations by every power of two below the number of slots, of which all others are composed.
    All required: every rotation of the program at the highest level, as where keys have no level.
    Each with the relinearization key.
    """
    program, parameters = compiled.program, compiled.parameters
    steps = [key.step for key in program.required_keys if key.kind == "rotation"]
    powers = [1 << k for k in range(program.slots.bit_length() - 1)]
    top = kw.KeySpec.relinearization(parameters)

    def row(name: str, specs: list[kw.KeySpec]) -> dict[str, str | int]:
        return {
            "set": name,
            "keys": len(specs),
            "bytes": sum(spec.bytes for spec in specs),
            "unseeded_bytes": sum(spec.unseeded_bytes for spec in specs),
        }

    return [
        row("this program, as planned", compiled.specs),
        row("all required, at the top level", [top] * (len(steps) + 1)),
        row("powers of two, at the top level", [top] * (len(powers) + 1)),
    ]
