"""A network on its way to programs: the choice of parameters, and one program for each batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import repeat
from math import inf
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

from keywright._copies import Unchanging, Unpicklable
from keywright._core import BootstrapperPlan, Parameters
from keywright._units import format_bytes
from keywright.compiler.approximating import ApproximatedModel
from keywright.compiler.compiler import compile_forms
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.target import Target
from keywright.errors import ModelRefusedError, OutOfMemoryError
from keywright.errors.choices import require_choice, require_integer
from keywright.errors.engine import ParameterError
from keywright.model.executable import Executable
from keywright.model.report.encrypted_error import EncryptedError, predict_error
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import resident_bytes
from keywright.plan.memory.planner import bootstrap_bytes
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.entry import deep_entry, deep_literal, read_entry
from keywright.plan.ring.preset_plans import bootstrap_plans, shipped_plan
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET
from keywright.program.operands.normalisation import HEADROOM
from keywright.program.program import Program
from keywright.runtime.range_guard import largest_result

from .presets import BootstrapPreset

HEADROOM_BITS = 8
"""Bits above the scale that the lowest level must have for the values of a result."""

BOOTSTRAP_PRESETS = ("N15_QP858_L5_S32_real", DEFAULT_BOOTSTRAP_PRESET, "N16_QP1745_L15_S40_real")
"""By the bytes of their keys. For models of thin clients; also tried if one needs too much memory."""

DEEP_PRESETS = ("N16_QP1743_L12_S40_real", DEFAULT_BOOTSTRAP_PRESET)
"""For models that need bootstraps, the faster one is used. They have 21 and 25 bits of precision. Also tried
if one needs too much memory."""

FORM_SLOWER = 1.02
"""Maximum time of a form of a network with smaller keys, relative to the fastest form. The keys of the chosen
form may take more time than its fastest ones, too: both limits multiply, and what a faster form leaves of the
first its keys may take."""

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


@dataclass(frozen=True)
class ParameterChoice(Unchanging, elsewhere="compile the model again in the other process"):
    """What a program was compiled for.

    Attributes:
        ring: a preset's name, or parameters.
        deep: whether a preset's bootstraps may stand between layers, not only where thin clients enter.
    """

    ring: str | Ring
    deep: bool = False


_Chosen = tuple[ParameterChoice, Executable]
"""A program, and what it was compiled for."""


class Compilation(
    Unpicklable,
    elsewhere="save the model with keywright.Model.save, and load it elsewhere with keywright.load",
):
    """A network with its polynomials, and the programs that were compiled from it. The first program searches
    parameters, which programs of other batches share. Each program is compiled once.

    Thread safety: one thread at a time.

    Args:
        approximated: the network.
        ring: a preset's name, or parameters; None for the smallest presets that are deep enough.
        client: "slots" or "thin", the kind of clients that encrypt.
        name: for people.
        labels: labels of the outputs.

    Raises:
        ParameterError: there is no such kind of client, or thin clients need a preset with a bootstrapping.
    """

    def __init__(
        self,
        approximated: ApproximatedModel,
        ring: str | Ring | None = None,
        *,
        client: Client = "slots",
        name: str = "model",
        labels: tuple[str, ...] = (),
    ) -> None:
        require_choice("client", client, get_args(Client))
        if client == "thin" and ring is not None and not _takes_thin_clients(ring):
            presets = filter(_takes_thin_clients, BootstrapperPlan.presets())
            what = "parameters=" if isinstance(ring, Ring) else f"parameters={ring!r}"
            raise ParameterError(
                f"{what} has no bootstrapping of real values, which thin clients need; leave it out, choose "
                f"client='slots', or name one of {', '.join(presets)}",
                code="arguments",
            )
        self.approximated = approximated
        self._ring, self._client, self._name, self._labels = ring, client, name, labels
        self._programs: dict[int, Executable] = {}
        self._fastest: dict[int, Executable] = {}
        self._choice: ParameterChoice | None = None
        self._errors: WeakKeyDictionary[PlanExecution, EncryptedError | None] = WeakKeyDictionary()

    def for_samples(self, samples: int) -> Executable:
        """Return the program of the fastest batch for a number of samples. Numbers up to the same power of
        two share a batch.

        Raises:
            ModelRefusedError: it cannot be compiled.
        """
        batching = _Batching(samples, None)
        size = (batching.samples - 1).bit_length()
        if size not in self._fastest:
            compiled = self._compile(batching)
            self._fastest[size] = self._programs.setdefault(compiled.program.batch, compiled)
        return self._fastest[size]

    def for_batch(self, batch: int) -> Executable:
        """Return the program for so many samples in shared ciphertexts.

        Raises:
            ModelRefusedError: it cannot be compiled.
            ParameterError: ciphertexts have fewer slots than the batch has samples.
        """
        batch = require_integer("batch", batch)
        if batch not in self._programs:
            self._programs[batch] = self._compile(_Batching(1, batch))
        return self._programs[batch]

    def finer_presets(self, log_scale: float) -> tuple[str, ...]:
        """Return the presets of a larger scale without further bootstraps."""
        if self._client == "thin":
            scales = {name: shipped_plan(name).parameters.log_scale for name in BOOTSTRAP_PRESETS}
        elif self._choice is not None and isinstance(self._choice.ring, Ring):
            scales = {name: Parameters.preset(name).log_scale for name in Parameters.presets()}
        else:
            return ()  # a network with bootstraps
        return tuple(name for name, scale in scales.items() if scale > log_scale)

    def with_preset(self, name: str, batch: int) -> Executable:
        """Return the program for one of `finer_presets`; errors as for `for_batch`."""
        ring = Ring(Parameters.preset(name)) if name in Parameters.presets() else name
        return self._program(ParameterChoice(ring), _Batching(1, batch))

    def _compile(self, batching: "_Batching") -> Executable:
        """Compile for the parameters of the first program, or search others."""
        if self._choice is not None:
            try:
                return self._program(self._choice, batching)
            except (ModelRefusedError, ParameterError) as error:
                # Other parameters may have room for this batch.
                if isinstance(error, ParameterError) and error.code != "batch":
                    raise
        self._choice, compiled = self._searched(batching)
        return compiled

    def _searched(self, batching: "_Batching") -> _Chosen:
        ring = self._ring
        if self._client == "thin":
            return self._thin(batching)
        if isinstance(ring, Ring):
            return self._chosen(ParameterChoice(ring), batching)
        if ring in BootstrapperPlan.presets():
            return self._chosen(ParameterChoice(ring, deep=True), batching)
        named = [Parameters.preset(name) for name in (Parameters.presets() if ring is None else [ring])]
        if ring is None:
            named = [each for each in named if each.log_scale >= self.approximated.least_log_scale]
        try:
            return self._smallest(named, batching)
        except ModelRefusedError as refusal:
            if ring is not None or not _too_deep(refusal):
                raise
        return self._faster(DEEP_PRESETS, batching)

    def _chosen(self, choice: ParameterChoice, batching: "_Batching") -> _Chosen:
        return choice, self._program(choice, batching)

    def in_every_form(self, batch: int) -> Iterator[Executable]:
        """Yield the programs of a batch in all forms of the network that can be compiled for the parameters
        of the first program, the fastest first, and keep none; see `keywright.compiler.graph.commuting`."""
        assert self._choice is not None
        return self._forms(self._choice, _Batching(1, batch), inf)

    def error_with(self, program: Executable, execution: PlanExecution) -> EncryptedError | None:
        """Return the predicted error of encryption of a program of the network with some of its keys; None
        without calibration data."""
        if not len(self.approximated.run.samples):
            return None
        if execution not in self._errors:
            error = predict_error(self.approximated, program.program, execution, program.entry_index)
            self._errors[execution] = error
        return self._errors[execution]

    def follows(self, program: Executable, execution: PlanExecution | None = None) -> bool:
        """Whether the predicted error with some keys, by default its own, is as small as the fit requires."""
        error = self.error_with(program, execution or program.execution)
        return error is None or error.excess(self.approximated.fit) is None

    def _program(self, choice: ParameterChoice, batching: "_Batching") -> Executable:
        """Return the program of the fastest form of the network, or of one that is nearly as fast and has
        smaller keys."""
        return self._precise(choice, batching, list(self._forms(choice, batching, FORM_SLOWER)))

    def _precise(
        self, choice: ParameterChoice, batching: "_Batching", near: Sequence[Executable]
    ) -> Executable:
        """Return the program with the smallest keys among those of nearly the same time, the fastest first.
        Forms whose errors of encryption are too large are only taken if there is no other."""
        if len(self.approximated.forms) == 1:
            return near[0]
        for form in near:
            slower = FORM_SLOWER * near[0].program.seconds / form.program.seconds
            form.key_frontier.slower *= max(1.0, slower)
        # Errors take long to predict: from the smallest keys on, up to those that are precise enough.
        by_keys = sorted(near, key=lambda form: form.execution.plan.stored_bytes)
        best = next(filter(self.follows, by_keys), None)
        return best or next(filter(self.follows, self._forms(choice, batching, inf)), by_keys[0])

    def _forms(self, choice: ParameterChoice, batching: "_Batching", slower: float) -> Iterator[Executable]:
        """Compile the forms of the network; see `compile_forms`."""
        if isinstance(choice.ring, Ring):
            return self._levelled(choice.ring, batching, slower)
        return self._of_preset(choice, BootstrapPreset(choice.ring, stored_model()), batching, slower)

    def _levelled(self, ring: Ring, batching: "_Batching", slower: float) -> Iterator[Executable]:
        """Compile for parameters without bootstraps."""
        parameters = ring.parameters
        target = batching.target(
            slots=ring.slots or parameters.max_slots,
            levels=parameters.max_level if ring.levels is None else ring.levels,
            output_level=_lowest(parameters),
        )
        programs = compile_forms(
            self.approximated,
            target,
            slower=slower,
            costs=cost_table(parameters),
            largest_output=_largest_output(parameters, target),
        )
        return map(partial(Executable, self._name, labels=self._labels), programs, repeat(parameters))

    def _of_preset(
        self, choice: ParameterChoice, shipped: BootstrapPreset, batching: "_Batching", slower: float
    ) -> Iterator[Executable]:
        """Compile for a preset of bootstraps: with these between layers, and smaller rings between them; or
        for its ring alone, the only one for which clients without this package have keys."""
        thin, plan, options = self._client == "thin", shipped.plan, dict[str, Any]()
        if thin:
            options |= {"output_level": plan.input_level, "packing": "coefficients"}
        if choice.deep:
            options |= {"bootstraps": shipped.options, "rings": shipped.rings}
        costs = None if choice.deep else cost_table(plan.parameters, [])
        target = batching.target(slots=plan.slots, levels=plan.output_level, **options)
        largest = _largest_output(plan.parameters, target)
        programs = compile_forms(
            self.approximated, target, slower=slower, costs=costs, largest_output=largest
        )
        return map(partial(self._bootstrapped, choice, shipped), programs)

    def _bootstrapped(
        self, choice: ParameterChoice, shipped: BootstrapPreset, program: Program
    ) -> Executable:
        plans = bootstrap_plans(program)
        parameters = plans[0].parameters if plans else shipped.parameters(program)
        entry = None
        if self._client == "thin":
            literal = deep_literal(deep_entry(program)) if choice.deep else {"preset": shipped.name}
            entry = read_entry(program, plans, parameters, literal)
        return Executable(self._name, program, parameters, plans, entry, self._labels)

    def _smallest(self, choices: Sequence[Parameters], batching: "_Batching") -> _Chosen:
        """Compile for those of the smallest ring that are deep enough, and return the program with the
        smallest keys."""
        compiled: list[_Chosen] = []
        needed = 0
        for parameters in choices:
            if compiled and parameters.n > compiled[0][1].parameters.n:
                break
            lowest, last = _lowest(parameters), parameters is choices[-1]
            full = batching.batch is not None and batching.batch > parameters.max_slots
            if (full or needed > parameters.max_level - lowest) and not last:
                continue
            try:
                compiled.append(self._chosen(ParameterChoice(Ring(parameters)), batching))
            except ModelRefusedError as refusal:
                if not _too_deep(refusal) or (not compiled and last):
                    raise
                needed = max(reason.needed for reason in refusal.reasons)
        return min(compiled, key=lambda each: each[1].execution.plan.stored_bytes)

    def _thin(self, batching: "_Batching") -> _Chosen:
        """Compile for thin clients. Their ciphertexts enter and leave through a bootstrapping, so the program
        has the levels between its last and its first stage: with the named preset, the first that leaves
        enough, or for a model that is too deep for all of them the fastest with bootstraps."""
        named = (self._ring,) if isinstance(self._ring, str) else None
        for name in named or BOOTSTRAP_PRESETS:
            try:
                return self._chosen(ParameterChoice(name), batching)
            except ModelRefusedError as refusal:
                if not _too_deep(refusal):
                    raise
        return self._faster(named or DEEP_PRESETS, batching)

    def _faster(self, presets: Sequence[str], batching: "_Batching") -> _Chosen:
        """Compile for bootstrap presets and return the fastest program. A preset is left out if its
        bootstraps cannot be placed, or if less than a program takes longer than one: its bootstraps alone, or
        its fastest form, whose keys are then not planned.

        Raises:
            ModelRefusedError: all of them refuse, or the first refuses for another reason.
        """
        shipped = (BootstrapPreset(name, stored_model()) for name in presets)
        least = [each.least_seconds(self.approximated.depth) if n else 0.0 for n, each in enumerate(shipped)]
        # At least so many seconds, the preset, and its program, or the forms to choose it from.
        queue: list[tuple[float, int, Executable | list[Executable]]]
        queue = [(seconds, n, []) for n, seconds in enumerate(least)]
        heapify(queue)
        refusals, compiled = list[ModelRefusedError](), False
        while queue:
            _, n, result = heappop(queue)
            choice = ParameterChoice(presets[n], deep=True)
            if not isinstance(result, list):
                return choice, result
            if result:
                chosen = self._precise(choice, batching, result)
                heappush(queue, (chosen.program.seconds, n, chosen))
                continue
            try:
                near = list(self._forms(choice, batching, FORM_SLOWER))
            except ModelRefusedError as refusal:
                if not compiled and not _unplaced(refusal):
                    raise
                refusals.append(refusal)
            else:
                compiled = True
                heappush(queue, (min(form.program.seconds for form in near), n, near))
        raise refusals[0]


@dataclass(frozen=True)
class _Batching:
    """The number of samples to evaluate, and how many of them share ciphertexts: see `Target`."""

    samples: int
    batch: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", require_integer("samples", self.samples))

    def target(self, *, slots: int, **options: Any) -> Target:
        """Return the compilation target.

        Raises:
            ParameterError: the batch has more samples than a ciphertext has slots.
        """
        if self.batch is not None and self.batch > slots:
            raise ParameterError(
                f"batch={self.batch} exceeds the {slots} slots of a ciphertext; use at most {slots} samples",
                code="batch",
                what="batch",
                value=self.batch,
                maximum=slots,
            )
        return Target(slots=slots, samples=self.samples, batch=self.batch, **options)


def _largest_output(parameters: Parameters, target: Target) -> float:
    """Return the size of outputs on calibration data that fit a ciphertext `HEADROOM` times over. Thin
    clients read results of at most 1."""
    return 1.0 if target.thin else largest_result(parameters, target.exit_level) / HEADROOM


def smaller_presets(refusal: OutOfMemoryError, program: Program) -> OutOfMemoryError:
    """Return a refusal of a program's memory with the presets of bootstraps that may need less, and the
    memory of the smallest bootstrap. Nothing is compiled for them."""
    own = {bootstrap.preset for bootstrap in program.operands.bootstraps}
    if not own:
        return refusal
    resident, slots = resident_bytes(), min(each.slots for each in program.operands.bootstraps)
    sizes = []
    for name in sorted(set(BOOTSTRAP_PRESETS + DEEP_PRESETS) - own):
        lowest = shipped_plan(name).input_level + 1
        plan = BootstrapperPlan.preset(name, "fastest", slots=slots, output_level=lowest)
        sizes.append((bootstrap_bytes(plan, resident), name))
    less = [
        f"{name} (at least {format_bytes(size)})" for size, name in sorted(sizes) if size < refusal.needed
    ]
    text = f"{refusal}. Presets that may need less: {', '.join(less)}" if less else str(refusal)
    return OutOfMemoryError(text, needed=refusal.needed, budget=refusal.budget, parts=refusal.parts)


def _lowest(parameters: Parameters) -> int:
    """Return the lowest level with room for a result."""
    return 0 if parameters.q[0].bit_length() - 1 - parameters.log_scale >= HEADROOM_BITS else 1


def _too_deep(refusal: ModelRefusedError) -> bool:
    """Return whether nothing but too few levels speaks against a model."""
    return refusal.codes == {"depth"}


def _unplaced(refusal: ModelRefusedError) -> bool:
    """Return whether other bootstraps may fit the model."""
    return refusal.codes <= {"depth", "placement"}


def cost_table(parameters: Parameters, bootstraps: Sequence[BootstrapperPlan] = ()) -> CostTable:
    """Return the costs of operations with these parameters, by the cost model of `keywright plan`."""
    return CostTable.predicted(chain_of(parameters), stored_model(), bootstraps)


def _takes_thin_clients(ring: str | Ring) -> bool:
    """Return whether a ring is a preset of a bootstrap whose slots have real values, as thin clients'
    ciphertexts do."""
    if not isinstance(ring, str) or ring not in BootstrapperPlan.presets():
        return False
    return shipped_plan(ring).values == "real"
