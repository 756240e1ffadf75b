"""A compiled model as a server holds it: a program, and where a thin client's ciphertexts enter and leave it.

A thin client knows one prime and no Fourier transform: its numbers are coefficients of a ciphertext at level
0. The server raises the modulus, moves coefficients to slots and removes what raising added (`mod_raise`,
`coeffs_to_slots`, `eval_mod`), runs the program, and moves slots back to coefficients at level 0, where one
prime
is left: boosted deflation (Aikata et al.).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np

from keywright import nn
from keywright._core import (
    Bootstrapper,
    BootstrapperPlan,
    Ciphertext,
    ClientParameters,
    EvaluationKeys,
    Evaluator,
    KeySpec,
    Parameters,
    SeededCiphertext,
    inspect,
    key_set_head,
)
from keywright.errors import KeywrightError
from keywright.nn.compiled.storage import digest
from keywright.nn.layout.layout import Layout
from keywright.nn.presets import preset_plans
from keywright.nn.run.encrypted import EncryptedBackend
from keywright.nn.run.guard import guard
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.memory.diagonals import Storage
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.search.planner import DEFAULT_HOPS
from keywright.plan.search.quick import HOPS, SLOWER, fastest_within, plan_candidates, plan_network
from keywright.plan.workload.network_protocol import NetworkLike

from . import framing
from .entered import EnteredNetwork
from .entry import entry_plan
from .errors import EvaluationFailedError, InvalidObjectError, ModelFolderError
from .manifest import Manifest, Packing, Places

FORMAT = "keywright-model"
VERSION = 1
MAX_DESCRIPTION_BYTES = 1 << 20
DESCRIPTION, PARAMETERS, PROGRAM, PLAN = "model.json", "parameters.kw", "program.kwp", "plan.json"

FRACTION_BITS = 24
"""Bits after the point of a thin client's numbers: more than bootstrapping leaves of them."""

ANSWER_GROWTH = 1.25
"""By how much the error of an answer may grow for fewer bytes of it."""

ANSWER_BOUND = 2.0**-8
"""Answers are shortened where their error is known to be at most this."""

UPLOAD_SCALE_TOLERANCE = 1 / 128
"""What a bootstrapping allows between the scale of its input and the one planned."""

THIN_SLOWER = 1.15
"""By how much an evaluation for thin clients may be slower than with the fastest keys: such a client makes
and sends every byte of them before its first answer, and rotations by several hops take half the bytes."""

HEADER_BYTES = 8192
"""More than a ciphertext has beside its residues."""


@dataclass(frozen=True, eq=False)
class Model:
    """A program with its parameters, ready to be served.

    Attributes:
        name: for people.
        program: what is evaluated.
        parameters: for which.
        plans: of the program's bootstraps, in order.
        entry: for thin clients, the bootstrapping whose last three stages ciphertexts enter by and whose
            first they leave by; None if clients encrypt slots.
        entry_literal: what makes `entry`, see `keywright.serve.entry`.
        labels: what the outputs stand for.
        key_plan: of the keys that clients send; made where it is not given (`plan_network`).
        folder: that it was loaded from.
    """

    name: str
    program: nn.Program = field(repr=False)
    parameters: Parameters
    plans: Sequence[BootstrapperPlan] = field(default=(), repr=False)
    entry: BootstrapperPlan | None = None
    entry_literal: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    key_plan: KeyPlan | None = field(default=None, repr=False)
    folder: Path | None = None

    def __post_init__(self) -> None:
        program, entry = self.program, self.entry
        low, high = self.input_range or (0.0, 1.0)
        if not low < high:
            raise ModelFolderError(
                f"thin clients send inputs up to {program.input_scale:.6g}, and the program is for others; "
                "compile the model anew"
            )
        if self.labels and len(self.labels) != len(program.output_layout.positions):
            raise ModelFolderError(
                f"{len(self.labels)} labels for {len(program.output_layout.positions)} outputs"
            )
        if entry is None:
            return
        offered = (entry.slots, entry.output_level, entry.input_level)
        period = max(program.input_layout.period, program.output_layout.period)
        asked = (period, program.input_level, program.output_level)
        if (
            entry.slots > program.slots
            or period > offered[0]
            or asked[1] > offered[1]
            or asked[2] < offered[2]
        ):
            raise ModelFolderError(
                f"the program has {program.slots} slots, of which (used, input level, output level) are "
                f"{asked}; thin clients' bootstrapping offers {offered}"
            )

    @property
    def bootstraps(self) -> tuple[BootstrapperPlan, ...]:
        """The plans of the program's bootstraps, and `entry` where it is none of these."""
        extra = [] if self.entry is None or self.entry_index < len(self.plans) else [self.entry]
        return (*self.plans, *extra)

    @property
    def entry_index(self) -> int:
        """The place of `entry` among `bootstraps`."""
        return next((i for i, plan in enumerate(self.plans) if plan is self.entry), len(self.plans))

    @cached_property
    def execution(self) -> PlanExecution:
        """The plan of the keys.

        Raises:
            PlanMismatchError: `key_plan` is for something else.
        """
        if self.key_plan is None:
            return plan_network(
                self.network,
                self.parameters,
                self.bootstraps,
                name=self.name,
                max_hops=self.max_hops,
                slower=SLOWER if self.entry is None else THIN_SLOWER,
            )
        return PlanExecution(self.key_plan, self.parameters, self.network, self.bootstraps)

    @property
    def max_hops(self) -> int:
        """Most key switches for a rotation."""
        return HOPS if self.entry is None else DEFAULT_HOPS

    def with_keys_within(self, most: int) -> "Model":
        """The same with the fastest keys that take at most so many bytes of a server's memory.

        Raises:
            MemoryBudgetError: no keys are as small.
        """
        model = stored_model() or CostModel()
        found = plan_candidates(
            self.network,
            self.parameters,
            self.bootstraps,
            model=model,
            name=self.name,
            max_hops=self.max_hops,
        )
        return replace(self, key_plan=fastest_within(found, most).plan)

    def plan_process(self, budget: int, resident_bytes: int) -> ProcessPlan:
        """Memory of a process that serves the model, without keys: those are in memory that all share.

        Args:
            budget: most bytes of the process.
            resident_bytes: what it has before diagonals are encoded.

        Raises:
            MemoryBudgetError: it does not fit.
        """
        process = Process(resident_bytes, self.program.outputs, makes_keys=False, streams=False, key_sets=0)
        model = stored_model() or CostModel()
        return plan_process([self.execution], self.network, process, budget, model)

    @cached_property
    def resident_key_bytes(self) -> int:
        """Bytes of a client's keys in memory, each on pages of its own."""
        return sum(spec.bytes + PAGESIZE for spec in self.specs)

    @property
    def network(self) -> NetworkLike:
        """The program with the bootstraps that clients' ciphertexts enter by."""
        return self.program if self.entry is None else EnteredNetwork(self.program, self.entry_index)

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that a client sends, in order."""
        return self.execution.key_specs()

    @cached_property
    def client(self) -> ClientParameters | None:
        """What thin clients know; None if clients encrypt slots."""
        return None if self.entry is None else self.entry.client_parameters(FRACTION_BITS)

    @cached_property
    def manifest(self) -> Manifest:
        """What clients are told."""
        program, entry, client = self.program, self.entry, self.client
        head = key_set_head(self.specs)
        packing: Packing = "slots" if entry is None else "coefficients"
        slots = program.slots if entry is None else entry.slots
        return Manifest(
            name=self.name,
            packing=packing,
            client=b"" if client is None else client.to_bytes(),
            parameters=self.parameters.to_bytes(),
            key_set=head,
            key_bytes=inspect(head)["bytes"],
            input=_places(program.input_layout, program.input_shape, slots),
            output=_places(program.output_layout, program.output_shape, slots),
            input_level=program.input_level if entry is None else 0,
            output_level=program.output_level if entry is None else 0,
            scale=round(self.parameters.scale) if client is None else client.scale,
            input_range=self.input_range,
            divisor=program.input_scale,
            factor=float(program.output_scale),
            program=digest(program),
            labels=self.labels,
            client_part=program.client_part,
        )

    @property
    def input_range(self) -> tuple[float, float] | None:
        """(low, high) of the inputs that the model is for, None if it is for any: the program's, of which
        thin clients encrypt what is at most 1 when it is divided by the program's input scale."""
        program = self.program
        if self.entry is None:
            return program.input_range
        most = program.input_scale
        low, high = program.input_range or (-most, most)
        return max(low, -most), min(high, most)

    @property
    def request_bytes(self) -> int:
        """Bytes that the ciphertexts of a batch of samples have at most."""
        level = self.manifest.input_level
        return self.manifest.input.ciphertexts * (2 * self.parameters.n * 8 * (level + 1) + HEADER_BYTES)

    @cached_property
    def joins(self) -> bool:
        """Whether requests of one client can be evaluated together, each with samples at places of its own:
        several samples share ciphertexts, and zeros, which a request has at the places of others, are an
        input that the model is for."""
        shape = self.manifest.input.shape
        low, high = self.input_range or (-np.inf, np.inf)
        if self.manifest.input.batch == 1 or not low <= 0.0 <= high:
            return False
        try:
            guard(self.program, np.zeros((1, *shape)))
        except nn.OutOfRangeError:
            return False
        return True

    def read_inputs(self, messages: Sequence[bytes]) -> list[Ciphertext]:
        """The ciphertexts of a message, or the sums of those of several, whose samples are at different
        places (`joins`).

        Raises:
            BadRequestError, InvalidObjectError: as of `framing.split` and `read_input`.
        """
        count = self.manifest.input.ciphertexts
        rows = [[self.read_input(data) for data in framing.split(message, count)] for message in messages]
        add = Evaluator(self.parameters).add
        return [reduce(add, column) for column in zip(*rows, strict=True)]

    @property
    def steps(self) -> int:
        """How often `ModelRunner.run` calls back for a batch of samples."""
        ends = 0 if self.entry is None else self.manifest.input.ciphertexts + self.manifest.output.ciphertexts
        return ends + sum(step.opcode != "input" for step in self.program.instructions)

    def read_input(self, data: bytes) -> Ciphertext:
        """A ciphertext of a sample in any form that clients send: whole, seeded, and of thin ones compact.

        Raises:
            InvalidObjectError: the bytes are none, or not of the level, packing and parameters that the model
            takes.
        """
        try:
            kind = inspect(data)["kind"]
            if self.client is not None:
                return self.client.read_upload(data, self.parameters)
            if kind == "a seeded CKKS ciphertext":
                ciphertext = SeededCiphertext.from_bytes(data, self.parameters).expand()
            elif kind == "a CKKS ciphertext":
                ciphertext = Ciphertext.from_bytes(data, self.parameters)
            else:
                raise InvalidObjectError(f"a ciphertext is needed, and {kind} was sent")
        except KeywrightError as error:
            if isinstance(error, InvalidObjectError):
                raise
            raise InvalidObjectError(f"a ciphertext cannot be read: {error}") from error
        manifest, slots = self.manifest, self.program.slots
        if (ciphertext.level, ciphertext.slots, ciphertext.degree) != (manifest.input_level, slots, 1):
            raise InvalidObjectError(
                f"the model takes {slots} slots at level {manifest.input_level}, degree 1; got {ciphertext!r}"
            )
        if abs(ciphertext.scale / manifest.scale - 1.0) > UPLOAD_SCALE_TOLERANCE:
            raise InvalidObjectError(
                f"the model takes ciphertexts of scale {manifest.scale}, got {ciphertext.scale:.0f}"
            )
        return ciphertext

    def write_output(self, result: Ciphertext) -> bytes:
        """A ciphertext of `ModelRunner.run` as a client gets it: a thin one the coefficients with numbers,
        without the low bits that say nothing, where the derived bound on the error says which those are. That
        of a deep network is for inputs that never come: its answers are whole."""
        known = result.error_bound < ANSWER_BOUND
        fits = (result.magnitude_bound + result.error_bound) * result.scale < self.parameters.q[0] / 2
        if self.client is None or not (known and fits):
            return result.to_bytes()
        return self.client.write_answer(result, ANSWER_GROWTH)

    def save(self, folder: Path) -> None:
        """Write the files of the model into a folder that exists."""
        self.parameters.save(folder / PARAMETERS)
        self.program.save(folder / PROGRAM)
        (folder / PLAN).write_text(plan_file.to_json(self.execution.plan), encoding="utf-8")
        description = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "labels": self.labels,
            "entry": dict(self.entry_literal),
        }
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n")

    @staticmethod
    def load(folder: Path) -> "Model":
        """A model that `save` wrote.

        Raises:
            ModelFolderError: a file is missing, damaged, or does not fit the others.
        """
        missing = [name for name in (DESCRIPTION, PARAMETERS, PROGRAM) if not (folder / name).is_file()]
        if missing:
            raise ModelFolderError(f"{folder} holds no {', '.join(missing)}; make it with keywright compile")
        try:
            if (folder / DESCRIPTION).stat().st_size > MAX_DESCRIPTION_BYTES:
                raise ValueError(f"more than {MAX_DESCRIPTION_BYTES} bytes")
            entry = json.loads((folder / DESCRIPTION).read_text())
            if (entry["format"], entry["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {entry['format']!r}, version {entry['version']!r}")
            name, labels, literal = str(entry["name"]), tuple(map(str, entry["labels"])), dict(entry["entry"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ModelFolderError(
                f"{folder / DESCRIPTION} is not the description of a model: {error}"
            ) from error
        parameters = Parameters.load(folder / PARAMETERS)
        program = nn.Program.load(folder / PROGRAM)
        plans = preset_plans(program)
        # A folder of an earlier release has no plan: it is planned now.
        planned = plan_file.load(folder / PLAN) if (folder / PLAN).is_file() else None
        return Model(
            name,
            program,
            parameters,
            plans,
            entry_plan(program, plans, parameters, literal),
            literal,
            labels,
            planned,
            folder,
        )


class ModelRunner:
    """A model with everything encoded, which serves all clients one after the other.

    Args:
        model: what is evaluated.
        planned: how diagonals are kept, of `Model.plan_process`; encoded where it is not given.

    Attributes:
        model: as given.
        working_bytes: what an evaluation takes beside keys and diagonals, by the plan; 0 without one.
    """

    def __init__(self, model: Model, planned: ProcessPlan | None = None) -> None:
        self.model, memory = model, None if planned is None else planned.memory
        self.working_bytes = 0 if memory is None else memory.ciphertexts + memory.scratch + memory.idle
        execution = model.execution
        plans = execution.bootstrapper_plans
        kept: Sequence[Storage] = ["encoded"] * len(plans) if planned is None else planned.bootstraps
        bootstrappers = [Bootstrapper(p, storage=way) for p, way in zip(plans, kept, strict=True)]
        self._entry = None if model.entry is None else bootstrappers[model.entry_index]
        nobody = Evaluator(model.parameters)
        own = bootstrappers[: len(model.plans)]
        storage = None if planned is None else planned.storage
        self._backend = EncryptedBackend(nobody, own, plan=execution, storage=storage)
        self._backend.prepare(model.program)

    def run(
        self, keys: EvaluationKeys, inputs: Sequence[Ciphertext], on_step: Callable[[], object]
    ) -> list[Ciphertext]:
        """The encrypted result of a batch of samples.

        Args:
            keys: of the client, those of `Model.specs`.
            inputs: of `Model.read_input`.
            on_step: called `Model.steps` times.

        Raises:
            PlanMismatchError: these are not the model's keys.
            EvaluationFailedError: the ciphertexts cannot be evaluated.
        """
        program, entry = self.model.program, self._entry
        evaluator = Evaluator(self.model.parameters, self.model.execution.follow(keys))
        backend = self._backend.with_keys(evaluator, on_step)
        values, results = list(inputs), []
        with _failures():
            if entry is not None:
                for index, value in enumerate(values):
                    slots = entry.bootstrap_coefficients(evaluator, value)
                    repeated = evaluator.view_slots(slots, program.slots)
                    values[index] = evaluator.drop_to_level(repeated, program.input_level)
                    on_step()
            for output in backend.run(program, values):
                if entry is None:
                    results.append(output)
                else:
                    once = evaluator.view_slots(output, entry.plan.slots)
                    results.append(evaluator.drop_to_level(entry.slots_to_coeffs(evaluator, once), 0))
                    on_step()
        return results


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except (KeywrightError, nn.BackendMisuseError) as error:
        raise EvaluationFailedError(f"the model could not be evaluated: {error}") from error


def _places(layout: Layout, shape: tuple[int, ...], slots: int) -> Places:
    """Where the values of a layout are, in ciphertexts of so many slots, at least the layout's period."""
    repeat = slots // layout.period
    ciphertext, slot = np.divmod(layout.positions.astype(np.int64), layout.slots)
    start, stride = ciphertext * slots + slot, 1 if repeat == 1 else layout.period
    places = tuple(map(int, start))
    return Places(tuple(shape), layout.batch, layout.ciphertexts, slots, places, repeat, stride)
