"""Compiles a model into a program and its parameters: `compile`, and the choice of parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from keywright import compiler
from keywright._core import BootstrapperPlan, Parameters
from keywright.compiler.approximating import Source as ModelSource
from keywright.compiler.presets import BootstrapPreset
from keywright.errors import ModelRefusedError, TooDeepError
from keywright.errors.network import ChoiceError
from keywright.model.folder.loading import bootstrap_plans
from keywright.model.served.entry import deep_entry, deep_literal, entry_plan
from keywright.model.served.model import Model
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys import plan_file
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.ring.chain_sources import chain_of

from .encrypted_error import REFUSED_SHARE, predict_error, require_precision
from .model import BOOTSTRAP_PRESETS, DEEP_PRESETS, CompiledModel

HEADROOM_BITS = 8
"""Bits above the scale that the lowest level must have for the values of a result."""

Source = ModelSource | compiler.ApproximatedModel
"""A model, its bytes or its path, or the result of `keywright.compiler.approximate`."""


def compile(  # noqa: A001 (read as keywright.compile)
    model: object,
    calibration: ArrayLike | None = None,
    *,
    example: ArrayLike | None = None,
    accuracy: float | None = None,
    error: float | None = None,
    activations: Mapping[str, str] | None = None,
    margin: float | None = None,
    headroom: float = 2.0,
    input_range: tuple[float, float] | None = None,
    preset: str | None = None,
    parameters: Parameters | None = None,
    slots: int | None = None,
    levels: int | None = None,
    batch: int | None = None,
    samples: int = 1,
    plan: KeyPlan | str | Path | None = None,
    memory: int | None = None,
    noise: float = REFUSED_SHARE,
    name: str | None = None,
) -> CompiledModel:
    """Compile a model for private inference. Parameters, polynomials, packing and keys are chosen
    automatically, and each choice can be overridden.

    Args:
        model: an ONNX model, its bytes or its path; a ``torch.nn.Module``; or a fitted estimator or pipeline
            of scikit-learn: see `keywright.compiler.to_onnx`.
        calibration: typical inputs, (count, *input_shape), required for activations other than polynomials
            and for deep models.
        example: inputs, (count, *input_shape), whose shape the exporters of other libraries use; by default
            the calibration data.
        accuracy: minimum share of the calibration samples whose predictions must not change.
        error: maximum change of an output on calibration data.
        activations: polynomials for functions or ONNX nodes, as ``{"relu": "minimax:13"}``; see
            `keywright.compiler.Fit`, also for ``margin``, ``headroom`` and ``input_range``.
        preset: parameters by name, one of `keywright.Parameters.presets()` or of
            `keywright.BootstrapperPlan.presets()`; by default
            the smallest that are deep enough.
        parameters: parameters of your own, without bootstraps, instead of a preset.
        slots, levels: of the ciphertexts to compute on, with ``parameters``; by default all.
        batch: number of samples that share ciphertexts, a power of two.
        samples: number of samples to evaluate; without ``batch``, the fastest batch for them is chosen.
        plan: key plan from ``keywright plan``.
        memory: bytes of the server's process; the fastest keys within it are planned. By default, the fewest
            bytes of keys with nearly the best speed.
        noise: largest predicted error of encryption, as a share of the spread (the standard deviation on the
            calibration data) of any output. A model above it is refused, one above a hundredth is warned of.
        name: for people; by default the file's name.

    Raises:
        TypeError: another kind of model, or a missing example.
        PackageMissingError: the library that exports such a model is not installed.
        ModelRefusedError: the model cannot be compiled; with every reason.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
        ChoiceError: choices that contradict each other.
        ChoiceError: ciphertexts have fewer slots than the batch has samples.
        PlanMismatchError: the plan is for something else.
        MemoryBudgetError: no keys fit the memory.
    """
    if preset is not None and parameters is not None:
        raise ChoiceError("preset= and parameters= exclude each other; give one of them")
    if parameters is None and (slots is not None or levels is not None):
        raise ChoiceError("slots= and levels= need parameters=, because a preset has its own; leave them out")
    if plan is not None and memory is not None:
        raise ChoiceError("memory= plans the keys and plan= names them; give one of them")
    loaded = compiler.to_onnx(model, calibration if example is None else example)
    fit = compiler.Fit(
        calibration=calibration,
        activations=dict(activations or {}),
        accuracy=accuracy,
        error=error,
        margin=margin,
        headroom=headroom,
        input_range=input_range,
    )
    approximated = compiler.approximate(loaded, fit)
    if parameters is None:
        compiled = compile_model(approximated, None, preset, samples=samples, batch=batch)
    else:
        compiled = _compile_for(approximated, parameters, slots, levels, Batching(samples, batch))
    if isinstance(model, str | Path) and name is None:
        name = Path(model).stem
    compiled = replace(compiled, name=name or compiled.name)
    if plan is not None:
        compiled = compiled.with_plan(plan if isinstance(plan, KeyPlan) else plan_file.load(Path(plan)))
    elif memory is not None:
        compiled = compiled.with_plan(compiled.plan_server(memory).plan)
    predicted = predict_error(approximated, compiled.program, compiled.execution)
    require_precision(predicted, accuracy, noise)
    return replace(compiled, encrypted_error=predicted)


@dataclass(frozen=True)
class Batching:
    """The number of samples to evaluate, and how many of them share ciphertexts: see `compiler.Target`."""

    samples: int
    batch: int | None

    def target(self, *, slots: int, **options: Any) -> compiler.Target:
        """Return the compilation target.

        Raises:
            ChoiceError: the batch has more samples than a ciphertext has slots.
        """
        if self.batch is not None and self.batch > slots:
            raise ChoiceError(
                f"batch={self.batch} exceeds the {slots} slots of a ciphertext; use at most {slots} samples",
                code="batch",
                batch=self.batch,
                slots=slots,
            )
        return compiler.Target(slots=slots, samples=self.samples, batch=self.batch, **options)


def _lowest(parameters: Parameters) -> int:
    """Return the lowest level with room for a result."""
    return 0 if parameters.q[0].bit_length() - 1 - parameters.log_scale >= HEADROOM_BITS else 1


def compile_model(
    model: Source,
    fit: compiler.Fit | None = None,
    preset: str | None = None,
    *,
    samples: int = 1,
    batch: int | None = None,
) -> CompiledModel:
    """Compile a model for shipped parameters: the named ones, or among those of the smallest ring that are
    deep enough the ones with the smallest keys. A model that is too deep for all of them is bootstrapped with
    the fastest of `DEEP_PRESETS`.

    Args:
        fit: calibration data and methods; None for an approximated model.
        samples: number of samples to evaluate; see `compiler.Target`.
        batch: number of samples that share ciphertexts; by default the fastest.

    Raises:
        ModelRefusedError: it cannot be compiled for any of them.
        ChoiceError: the ciphertexts have fewer slots than the batch has samples.
    """
    if not isinstance(model, compiler.ApproximatedModel):
        model = compiler.approximate(model, fit)
    compiled = _compile_preset(model, preset, Batching(samples, batch))
    if batch is not None:
        return compiled
    return replace(compiled, again=partial(compile_model, model, None, preset=preset))


def _compile_preset(
    model: compiler.ApproximatedModel, preset: str | None, batching: Batching
) -> CompiledModel:
    if preset in BootstrapperPlan.presets():
        return _compile_bootstrapped(model, preset, batching)
    named = [Parameters.preset(name) for name in (Parameters.presets() if preset is None else [preset])]
    try:
        return _compile_levelled(model, named, batching)
    except ModelRefusedError as refusal:
        if preset is not None or not all(isinstance(r, TooDeepError) for r in refusal.exceptions):
            raise
        return _fastest(model, DEEP_PRESETS, lambda name: _compile_bootstrapped(model, name, batching))


class _Compiled(Protocol):
    """What has a program."""

    @property
    def program(self) -> compiler.Program:
        """With its predicted times."""


_Found = TypeVar("_Found", bound=_Compiled)


def _fastest(
    model: compiler.ApproximatedModel, names: Sequence[str], compiled: Callable[[str], _Found]
) -> _Found:
    """Compile for bootstrap presets and return the fastest result. A preset whose bootstraps alone take
    longer than the result so far is left out.

    Raises:
        ModelRefusedError: one of them refuses.
    """
    best = compiled(names[0])
    for name in names[1:]:
        shipped = BootstrapPreset(name, stored_model() or CostModel())
        if shipped.least_seconds(model.graph.depth()) < _seconds(best):
            best = min(best, compiled(name), key=_seconds)
    return best


def _seconds(compiled: _Compiled) -> float:
    return sum(layer.seconds for layer in compiled.program.layers)


def _compile_for(
    approximated: compiler.ApproximatedModel,
    parameters: Parameters,
    slots: int | None,
    levels: int | None,
    batching: Batching,
) -> CompiledModel:
    """Compile for parameters that are not a preset."""
    target = {"slots": slots or parameters.max_slots, "output_level": _lowest(parameters)}
    target["levels"] = parameters.max_level if levels is None else levels

    def again(*, samples: int = 1, batch: int | None = None) -> CompiledModel:
        aim = Batching(samples, batch).target(**target)
        return CompiledModel(compiler.compile(approximated, aim, costs=cost_table(parameters)), parameters)

    compiled = again(samples=batching.samples, batch=batching.batch)
    return compiled if batching.batch is not None else replace(compiled, again=again)


def compile_thin(
    model: Source,
    fit: compiler.Fit | None,
    preset: str | None,
    name: str,
    labels: tuple[str, ...] = (),
    *,
    batch: int = 1,
) -> Model:
    """Compile a model for thin clients. Their ciphertexts enter and leave through a bootstrapping, so the
    model has the levels between its last and its first stage.

    Args:
        fit: calibration data and methods; None for an approximated model.
        preset: a bootstrapping; by default the first of `BOOTSTRAP_PRESETS` that leaves enough levels, or for
            a model that is too deep for all of them the fastest of `DEEP_PRESETS`.
        batch: number of a client's samples that share ciphertexts.

    Raises:
        ModelRefusedError: it cannot be compiled.
    """
    if not isinstance(model, compiler.ApproximatedModel):
        model = compiler.approximate(model, fit)
    batching = Batching(1, batch)
    for choice in BOOTSTRAP_PRESETS if preset is None else (preset,):
        try:
            return _compile_levelled_thin(model, choice, batching, name, labels)
        except ModelRefusedError as refusal:
            if not all(isinstance(reason, TooDeepError) for reason in refusal.exceptions):
                raise
    choices = DEEP_PRESETS if preset is None else (preset,)
    return _fastest(model, choices, lambda choice: _compile_deep_thin(model, choice, batching, name, labels))


def _compile_levelled_thin(
    model: compiler.ApproximatedModel, preset: str, batching: Batching, name: str, labels: tuple[str, ...]
) -> Model:
    """Compile for one ring, the only one for which clients without this package have keys, without
    bootstraps."""
    plan = BootstrapperPlan.preset(preset)
    target = batching.target(
        slots=plan.slots,
        levels=plan.output_level,
        output_level=plan.input_level,
        fixed_slots=True,
        unit_inputs=True,
    )
    program = compiler.compile(model, target, costs=cost_table(plan.parameters, []))
    return Model(name, program, plan.parameters, [], plan, {"preset": preset}, labels)


def _compile_deep_thin(
    model: compiler.ApproximatedModel, preset: str, batching: Batching, name: str, labels: tuple[str, ...]
) -> Model:
    """Compile with bootstraps, and smaller rings between them."""
    shipped = BootstrapPreset(preset, stored_model() or CostModel())
    target = batching.target(
        slots=shipped.plan.slots,
        levels=shipped.plan.output_level,
        output_level=shipped.plan.input_level,
        bootstraps=shipped.options,
        rings=shipped.rings,
        fixed_slots=True,
        unit_inputs=True,
    )
    program = compiler.compile(model, target)
    plans = bootstrap_plans(program)
    literal = deep_literal(deep_entry(program))
    entry = entry_plan(program, plans, plans[0].parameters, literal)
    return Model(name, program, plans[0].parameters, plans, entry, literal, labels)


def _compile_bootstrapped(
    model: compiler.ApproximatedModel, preset: str, batching: Batching
) -> CompiledModel:
    shipped = BootstrapPreset(preset, stored_model() or CostModel())
    program = compiler.compile(
        model,
        batching.target(
            slots=shipped.plan.slots,
            levels=shipped.plan.output_level,
            bootstraps=shipped.options,
            rings=shipped.rings,
        ),
    )
    plans = bootstrap_plans(program)
    return CompiledModel(program, plans[0].parameters if plans else shipped.parameters(program), plans)


def _compile_levelled(
    model: compiler.ApproximatedModel, choices: Sequence[Parameters], batching: Batching
) -> CompiledModel:
    found: list[CompiledModel] = []
    needed = 0
    for parameters in choices:
        if found and parameters.n > found[0].parameters.n:
            break
        lowest, last = _lowest(parameters), parameters is choices[-1]
        full = batching.batch is not None and batching.batch > parameters.max_slots
        if (full or needed > parameters.max_level - lowest) and not last:
            continue
        try:
            program = compiler.compile(
                model,
                batching.target(slots=parameters.max_slots, levels=parameters.max_level, output_level=lowest),
                costs=cost_table(parameters),
            )
        except ModelRefusedError as refusal:
            too_deep = [reason for reason in refusal.exceptions if isinstance(reason, TooDeepError)]
            if len(too_deep) < len(refusal.exceptions) or (not found and last):
                raise
            needed = max(reason.needed for reason in too_deep)
        else:
            found.append(CompiledModel(program, parameters))
    return min(found, key=lambda compiled: compiled.execution.plan.stored_bytes)


def cost_table(parameters: Parameters, bootstraps: Sequence[BootstrapperPlan] = ()) -> compiler.CostTable:
    """Return the costs of operations with these parameters, by the cost model of `keywright plan`."""
    return compiler.CostTable.predicted(chain_of(parameters), stored_model() or CostModel(), bootstraps)
