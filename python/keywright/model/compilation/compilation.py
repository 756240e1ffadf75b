"""A model on its way to programs: the choice of parameters, and one program for each batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, get_args

from keywright import compiler
from keywright._copies import Unchanging, Unpicklable
from keywright._core import BootstrapperPlan, Parameters
from keywright._units import format_bytes
from keywright.compiler.approximating import ApproximatedModel
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.presets import BootstrapPreset, bootstrap_plans
from keywright.errors import (
    ModelRefusedError,
    OutOfMemoryError,
)
from keywright.errors.choices import require_choice
from keywright.errors.engine import ParameterError
from keywright.model.model import Model
from keywright.model.report.encrypted_error import require_precision
from keywright.model.served.entry import deep_entry, deep_literal, read_entry
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import resident_bytes
from keywright.plan.memory.planner import bootstrap_bytes
from keywright.plan.ring.chain_sources import chain_of
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET

HEADROOM_BITS = 8
"""Bits above the scale that the lowest level must have for the values of a result."""

BOOTSTRAP_PRESETS = ("N15_QP858_L5_S32_real", DEFAULT_BOOTSTRAP_PRESET, "N16_QP1745_L15_S40_real")
"""By the bytes of their keys. For models of thin clients; also tried if one needs too much memory."""

DEEP_PRESETS = ("N16_QP1725_L12_S40_real", DEFAULT_BOOTSTRAP_PRESET)
"""For models that need bootstraps, the faster one is used. They have 21 and 25 bits of precision. Also tried
if one needs too much memory."""

Client = Literal["slots", "thin"]
"""Who encrypts: a client with this package, whose values are in slots, or a thin client with one prime and no
Fourier transform, whose values are in coefficients."""


@dataclass(frozen=True)
class Ring(Unchanging, elsewhere="send parameters.to_bytes(), and make one in the other process"):
    """Parameters that are not a preset, and the part of them that is used.

    Attributes:
        parameters: without bootstraps.
        slots, levels: of the ciphertexts to compute on; by default all.
    """

    parameters: Parameters
    slots: int | None = None
    levels: int | None = None


class Compilation(
    Unpicklable,
    elsewhere="save the model with keywright.Model.save, and load it elsewhere with keywright.load",
):
    """A network with its polynomials, and the models that were compiled from it. The first model searches
    parameters, which models of other batches share. Each model is compiled once.

    Thread safety: one thread at a time.

    Args:
        approximated: the network.
        ring: a preset's name, or parameters; None for the smallest presets that are deep enough.
        client: "slots" or "thin", the kind of clients that encrypt.
        batch: number of samples that share ciphertexts; None for the fastest.
        name, labels: of the models.

    Raises:
        ParameterError: there is no such kind of client, or thin clients need a preset with a bootstrapping.
    """

    def __init__(
        self,
        approximated: ApproximatedModel,
        ring: str | Ring | None = None,
        *,
        client: Client = "slots",
        batch: int | None = None,
        name: str = "model",
        labels: tuple[str, ...] = (),
    ) -> None:
        require_choice("client", client, get_args(Client))
        if client == "thin" and ring is not None and ring not in (presets := _real_presets()):
            what = "parameters=" if isinstance(ring, Ring) else f"parameters={ring!r}"
            raise ParameterError(
                f"{what} has no bootstrapping of real values, which thin clients need; leave it out, choose "
                f"client='slots', or name one of {', '.join(presets)}",
                code="arguments",
            )
        self.approximated, self.batch = approximated, batch
        self._ring, self._client, self._name, self._labels = ring, client, name, labels
        self._models: dict[int, Model] = {}
        self._fastest: dict[int, Model] = {}
        self._again: Callable[[_Batching], Model] | None = None

    def for_samples(self, samples: int) -> Model:
        """Return the model of the requested batch, or of the fastest batch for a number of samples. Numbers
        up to the same power of two share a batch.

        Raises:
            ModelRefusedError: it cannot be compiled.
            ParameterError: ciphertexts have fewer slots than the batch has samples.
        """
        if self.batch is not None:
            return self.for_batch(self.batch)
        size = (samples - 1).bit_length()
        if size not in self._fastest:
            model = self._compile(_Batching(samples, None))
            self._fastest[size] = self._models.setdefault(model.program.batch, model)
        return self._fastest[size]

    def for_batch(self, batch: int) -> Model:
        """Return the model for so many samples in shared ciphertexts; errors as for `for_samples`."""
        if batch not in self._models:
            self._models[batch] = self._compile(_Batching(1, batch))
        return self._models[batch]

    def require_precision(self, model: Model, execution: PlanExecution | None = None) -> None:
        """As for `Model.require_precision`; the refusal names a preset that is precise enough."""
        model.require_precision(execution, lambda: self.precise(model))

    def precise(self, model: Model) -> str | None:
        """Return the first preset of larger scale than a model's for which it meets its fit. Those for
        thin clients are tried, without further bootstraps; other models have no such list."""
        if self._client != "thin":
            return None
        fit = self.approximated.fit
        for name in BOOTSTRAP_PRESETS:
            if BootstrapperPlan.preset(name).parameters.log_scale <= model.parameters.log_scale:
                continue
            try:
                other = self._levelled_thin(name, _Batching(1, model.program.batch))
                require_precision(other.encrypted_error, fit)
            except (ModelRefusedError, ParameterError):
                continue
            return name
        return None

    def refusal(self, refusal: OutOfMemoryError, model: Model) -> OutOfMemoryError:
        """Return a refusal with the presets of bootstraps that may need less, and the memory of the smallest
        bootstrap. Nothing is compiled for them."""
        own = {bootstrap.preset for bootstrap in model.program.operands.bootstraps}
        if self.batch is not None or not own:
            return refusal
        resident, slots = resident_bytes(), min(plan.slots for plan in model.bootstraps)
        sizes = []
        for name in sorted(set(BOOTSTRAP_PRESETS + DEEP_PRESETS) - own):
            lowest = BootstrapperPlan.preset(name).input_level + 1
            plan = BootstrapperPlan.preset(name, "fastest", slots=slots, output_level=lowest)
            sizes.append((bootstrap_bytes(plan, resident), name))
        less = [
            f"{name} (at least {format_bytes(size)})" for size, name in sorted(sizes) if size < refusal.needed
        ]
        text = f"{refusal}. Presets that may need less: {', '.join(less)}" if less else str(refusal)
        return OutOfMemoryError(text, needed=refusal.needed, budget=refusal.budget, parts=refusal.parts)

    def _compile(self, batching: "_Batching") -> Model:
        if self._again is not None:
            try:
                return self._again(batching)
            except (ModelRefusedError, ParameterError) as error:
                # Other parameters may have room for this batch.
                if isinstance(error, ParameterError) and error.code != "batch":
                    raise
        ring = self._ring
        if self._client == "thin":
            return self._thin(batching, ring if isinstance(ring, str) else None)
        if isinstance(ring, Ring):
            return self._levelled(ring, batching)
        if ring in BootstrapperPlan.presets():
            return self._bootstrapped(ring, batching)
        named = [Parameters.preset(name) for name in (Parameters.presets() if ring is None else [ring])]
        if ring is None:
            named = [each for each in named if each.log_scale >= self.approximated.least_log_scale]
        try:
            return self._smallest(named, batching)
        except ModelRefusedError as refusal:
            if ring is not None or not _too_deep(refusal):
                raise
        return self._faster(DEEP_PRESETS, partial(self._bootstrapped, batching=batching))

    def _model(
        self,
        program: compiler.Program,
        parameters: Parameters,
        again: "Callable[[_Batching], Model]",
        **more: Any,
    ) -> Model:
        """Return a model; another batch is compiled with ``again``."""
        self._again = again
        return Model(
            self._name, program, parameters, labels=self._labels, approximated=self.approximated, **more
        )

    def _levelled(self, ring: Ring, batching: "_Batching") -> Model:
        """Compile for parameters without bootstraps."""
        parameters = ring.parameters
        target = batching.target(
            slots=ring.slots or parameters.max_slots,
            levels=parameters.max_level if ring.levels is None else ring.levels,
            output_level=_lowest(parameters),
        )
        program = compiler.compile(self.approximated, target, costs=cost_table(parameters))
        return self._model(program, parameters, partial(self._levelled, ring))

    def _smallest(self, choices: Sequence[Parameters], batching: "_Batching") -> Model:
        """Compile for those of the smallest ring that are deep enough, and return the model with the smallest
        keys."""
        models: list[Model] = []
        needed = 0
        for parameters in choices:
            if models and parameters.n > models[0].parameters.n:
                break
            lowest, last = _lowest(parameters), parameters is choices[-1]
            full = batching.batch is not None and batching.batch > parameters.max_slots
            if (full or needed > parameters.max_level - lowest) and not last:
                continue
            try:
                models.append(self._levelled(Ring(parameters), batching))
            except ModelRefusedError as refusal:
                if not _too_deep(refusal) or (not models and last):
                    raise
                needed = max(reason.needed for reason in refusal.reasons)
        best = min(models, key=lambda model: model.execution.plan.stored_bytes)
        self._again = partial(self._levelled, Ring(best.parameters))
        return best

    def _bootstrapped(self, preset: str, batching: "_Batching") -> Model:
        """Compile with bootstraps, and smaller rings between them."""
        shipped = BootstrapPreset(preset, stored_model())
        target = batching.target(
            slots=shipped.plan.slots,
            levels=shipped.plan.output_level,
            bootstraps=shipped.options,
            rings=shipped.rings,
        )
        program = compiler.compile(self.approximated, target)
        plans = bootstrap_plans(program)
        parameters = plans[0].parameters if plans else shipped.parameters(program)
        return self._model(program, parameters, partial(self._bootstrapped, preset), bootstraps=plans)

    def _thin(self, batching: "_Batching", preset: str | None) -> Model:
        """Compile for thin clients. Their ciphertexts enter and leave through a bootstrapping, so the model
        has
        the levels between its last and its first stage: with the named preset, the first that leaves enough,
            or
        for a model that is too deep for all of them the fastest with bootstraps."""
        for choice in BOOTSTRAP_PRESETS if preset is None else (preset,):
            try:
                return self._levelled_thin(choice, batching)
            except ModelRefusedError as refusal:
                if not _too_deep(refusal):
                    raise
        choices = DEEP_PRESETS if preset is None else (preset,)
        return self._faster(choices, partial(self._deep_thin, batching=batching))

    def _levelled_thin(self, preset: str, batching: "_Batching") -> Model:
        """Compile for one ring, the only one for which clients without this package have keys, without
        bootstraps."""
        plan = BootstrapperPlan.preset(preset)
        target = batching.target(
            slots=plan.slots,
            levels=plan.output_level,
            output_level=plan.input_level,
            packing="coefficients",
        )
        program = compiler.compile(self.approximated, target, costs=cost_table(plan.parameters, []))
        entry = read_entry(program, [], plan.parameters, {"preset": preset})
        return self._model(program, plan.parameters, partial(self._levelled_thin, preset), entry=entry)

    def _deep_thin(self, preset: str, batching: "_Batching") -> Model:
        """Compile with bootstraps, and smaller rings between them."""
        shipped = BootstrapPreset(preset, stored_model())
        target = batching.target(
            slots=shipped.plan.slots,
            levels=shipped.plan.output_level,
            output_level=shipped.plan.input_level,
            bootstraps=shipped.options,
            rings=shipped.rings,
            packing="coefficients",
        )
        program = compiler.compile(self.approximated, target)
        plans = bootstrap_plans(program)
        entry = read_entry(program, plans, plans[0].parameters, deep_literal(deep_entry(program)))
        again = partial(self._deep_thin, preset)
        return self._model(program, plans[0].parameters, again, bootstraps=plans, entry=entry)

    def _faster(self, presets: Sequence[str], compiled: Callable[[str], Model]) -> Model:
        """Compile for bootstrap presets and return the fastest model. A preset whose bootstraps alone take
        longer than the model so far is left out, and so is one whose bootstraps cannot be placed.

        Raises:
            ModelRefusedError: all of them refuse, or the first refuses for another reason.
        """
        best: Model | None = None
        again = self._again
        first: ModelRefusedError | None = None
        for name in presets:
            shipped = BootstrapPreset(name, stored_model())
            if best is not None and not shipped.least_seconds(self.approximated.graph.depth()) < _seconds(
                best
            ):
                continue
            try:
                model = compiled(name)
            except ModelRefusedError as refusal:
                if best is None and not _unplaced(refusal):
                    raise
                first = first or refusal
                continue
            if best is None or _seconds(model) < _seconds(best):
                best, again = model, self._again
        if best is None:
            assert first is not None
            raise first
        self._again = again
        return best


@dataclass(frozen=True)
class _Batching:
    """The number of samples to evaluate, and how many of them share ciphertexts: see `compiler.Target`."""

    samples: int
    batch: int | None

    def target(self, *, slots: int, **options: Any) -> compiler.Target:
        """Return the compilation target.

        Raises:
            ParameterError: the batch has more samples than a ciphertext has slots.
        """
        if self.batch is not None and self.batch > slots:
            raise ParameterError(
                f"batch={self.batch} exceeds the {slots} slots of a ciphertext; use at most {slots} samples",
                code="batch",
                batch=self.batch,
                slots=slots,
            )
        return compiler.Target(slots=slots, samples=self.samples, batch=self.batch, **options)


def _lowest(parameters: Parameters) -> int:
    """Return the lowest level with room for a result."""
    return 0 if parameters.q[0].bit_length() - 1 - parameters.log_scale >= HEADROOM_BITS else 1


def _too_deep(refusal: ModelRefusedError) -> bool:
    """Return whether nothing but too few levels speaks against a model."""
    return refusal.codes == {"depth"}


def _unplaced(refusal: ModelRefusedError) -> bool:
    """Return whether other bootstraps may fit the model."""
    return refusal.codes <= {"depth", "placement"}


def _seconds(model: Model) -> float:
    return sum(layer.seconds for layer in model.program.layers)


def cost_table(parameters: Parameters, bootstraps: Sequence[BootstrapperPlan] = ()) -> CostTable:
    """Return the costs of operations with these parameters, by the cost model of `keywright plan`."""
    return CostTable.predicted(chain_of(parameters), stored_model(), bootstraps)


@cache
def _real_presets() -> tuple[str, ...]:
    """Return the presets of bootstraps whose slots have real values, as thin clients' ciphertexts do."""
    return tuple(
        name for name in BootstrapperPlan.presets() if BootstrapperPlan.preset(name).values == "real"
    )
