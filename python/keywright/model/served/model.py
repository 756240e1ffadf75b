"""A compiled model as a server holds it: a program, and where a thin client's ciphertexts enter and leave it.

A thin client knows one prime and no Fourier transform: it encrypts values as coefficients, at level 0. The
server applies ModRaise, CoeffsToSlots and EvalMod (`mod_raise`, `coeffs_to_slots`, `eval_mod`) and runs the
program. Then it applies SlotsToCoeffs, which ends at level 0 with one prime left: boosted deflation (Aikata
et al.).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np

from keywright import compiler
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
from keywright.compiler.presets import preset_plans
from keywright.errors import BackendMisuseError, KeywrightError, OutOfRangeError
from keywright.errors.service import EvaluationFailedError, InvalidObjectError, ModelFolderError
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
from keywright.program.file.storage import digest
from keywright.program.operands.layout import Layout
from keywright.runtime.encrypted.backend import EncryptedBackend
from keywright.runtime.range_guard import guard

from . import framing
from .entered import EnteredNetwork
from .entry import entry_plan
from .manifest import Manifest, Packing, Places

FORMAT = "keywright-model"
VERSION = 1
MAX_DESCRIPTION_BYTES = 1 << 20
DESCRIPTION, PARAMETERS, PROGRAM, PLAN = "model.json", "parameters.kw", "program.kwp", "plan.json"

FRACTION_BITS = 24
"""Fraction bits of a thin client's numbers: more than bootstrapping preserves."""

ANSWER_GROWTH = 1.25
"""By how much truncation may increase the error of an answer."""

ANSWER_BOUND = 2.0**-8
"""Answers are truncated only if the bound on their error is at most this."""

UPLOAD_SCALE_TOLERANCE = 1 / 128
"""Relative tolerance between the scale of a bootstrapping's input and the planned scale."""

THIN_SLOWER = 1.15
"""Maximum slowdown of an evaluation for thin clients, relative to the fastest keys. Such a client makes and
sends every key before its first answer, and rotations by several hops take half the bytes."""

HEADER_BYTES = 8192
"""An upper bound on the bytes of a ciphertext or a key that are not residues."""


@dataclass(frozen=True, eq=False)
class Model:
    """A program with its parameters, ready to be served.

    Attributes:
        name: for people.
        program: the program.
        parameters: its parameters.
        plans: plans of the program's bootstraps, in order.
        entry: for thin clients, the bootstrapping whose last three stages take in ciphertexts and whose first
            stage produces answers; None if clients encrypt slots.
        entry_literal: the description that `entry` is made from, see `keywright.model.served.entry`.
        labels: labels of the outputs.
        key_plan: plan of the keys that clients send; made by `plan_network` by default.
        folder: folder that the model was loaded from.
    """

    name: str
    program: compiler.Program = field(repr=False)
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
                f"thin clients send inputs up to {program.input_scale:.6g}, and the program is for "
                "others; compile the model again"
            )
        if not all(text.isprintable() for text in (self.name, *self.labels)):
            raise ModelFolderError(
                f"the name {self.name[:80]!r} or a label has control characters; use printable ones"
            )
        if self.labels and len(self.labels) != len(program.output_layout.positions):
            raise ModelFolderError(
                f"{len(self.labels)} labels were given for {len(program.output_layout.positions)} "
                "outputs; give one for each"
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
                f"the program has {program.slots} slots and needs (used slots, input level, output level) "
                f"= {asked}; thin clients' bootstrapping offers {offered}"
            )

    @property
    def bootstraps(self) -> tuple[BootstrapperPlan, ...]:
        """Plans of the program's bootstraps, and `entry` if it is not among them."""
        extra = [] if self.entry is None or self.entry_index < len(self.plans) else [self.entry]
        return (*self.plans, *extra)

    @property
    def entry_index(self) -> int:
        """Index of `entry` among `bootstraps`."""
        return next((i for i, plan in enumerate(self.plans) if plan is self.entry), len(self.plans))

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            PlanMismatchError: `key_plan` is for another program.
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
        """Maximum number of key switches per rotation."""
        return HOPS if self.entry is None else DEFAULT_HOPS

    def with_keys_within(self, most: int) -> "Model":
        """Return the model with the fastest keys whose size in a server's memory is at most ``most`` bytes.

        Raises:
            MemoryBudgetError: no keys are that small.
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
        """Plan the memory of a process that serves the model, without keys: keys are in memory shared by all
        processes.

        Args:
            budget: maximum bytes of the process.
            resident_bytes: bytes in use before diagonals are encoded.

        Raises:
            MemoryBudgetError: the model does not fit.
        """
        process = Process(resident_bytes, self.program.outputs, makes_keys=False, streams=False, key_sets=0)
        model = stored_model() or CostModel()
        return plan_process([self.execution], self.network, process, budget, model)

    @cached_property
    def resident_key_bytes(self) -> int:
        """Bytes of a client's keys in memory, each key on its own pages."""
        return sum(spec.bytes + PAGESIZE for spec in self.specs)

    @cached_property
    def key_places(self) -> list[tuple[int, int]]:
        """Where the head of a stored set begins and ends, and about where its keys do, in the order in which
        they are used: as if all were packed equally well."""
        head, total = len(self.manifest.key_set), self.manifest.key_bytes
        scale = (total - head) / sum(spec.bytes for spec in self.specs)
        ends = accumulate((spec.bytes * scale for spec in self.specs), initial=float(head))
        places = {
            spec: (int(begin), max(int(begin) + 1, int(end)))
            for spec, (begin, end) in zip(self.specs, pairwise(ends), strict=True)
        }
        used = dict.fromkeys(spec for step in self.execution.key_steps for spec in step)
        return [(0, self.key_head_bytes), *(places[spec] for spec in used if spec in places)]

    @property
    def key_head_bytes(self) -> int:
        """Bytes of a stored set up to the contents of its first key, or a few more."""
        return len(self.manifest.key_set) + HEADER_BYTES

    @property
    def network(self) -> NetworkLike:
        """The program with the bootstraps through which clients' ciphertexts enter."""
        return self.program if self.entry is None else EnteredNetwork(self.program, self.entry_index)

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that a client sends, in order."""
        return self.execution.key_specs

    @cached_property
    def client(self) -> ClientParameters | None:
        """Parameters of thin clients; None if clients encrypt slots."""
        return None if self.entry is None else self.entry.client_parameters(FRACTION_BITS)

    @cached_property
    def manifest(self) -> Manifest:
        """Return the manifest."""
        program, entry, client = self.program, self.entry, self.client
        head = key_set_head(self.specs) if self.specs else b""
        packing: Packing = "slots" if entry is None else "coefficients"
        slots = program.slots if entry is None else entry.slots
        return Manifest(
            name=self.name,
            packing=packing,
            client=b"" if client is None else client.to_bytes(),
            parameters=self.parameters.to_bytes(),
            key_set=head,
            key_bytes=inspect(head)["bytes"] if head else 0,
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
            input_normalisation=program.input_normalisation,
            output_normalisation=program.output_normalisation,
        )

    @property
    def input_range(self) -> tuple[float, float] | None:
        """(low, high) of the model's inputs, None if unbounded. Thin clients divide inputs by the program's
        input scale, and the results must be at most 1 in size."""
        program = self.program
        if self.entry is None:
            return program.input_range
        most = program.input_scale
        low, high = program.input_range or (-most, most)
        return max(low, -most), min(high, most)

    @property
    def request_bytes(self) -> int:
        """Maximum bytes of the ciphertexts of a batch of samples."""
        level = self.manifest.input_level
        return self.manifest.input.ciphertexts * (2 * self.parameters.n * 8 * (level + 1) + HEADER_BYTES)

    @cached_property
    def joins(self) -> bool:
        """Whether requests of one client can be evaluated together, with their samples at different places.
        That holds if several samples share ciphertexts and zero, which a request has at the places of others,
        is a valid input."""
        shape = self.manifest.input.shape
        low, high = self.input_range or (-np.inf, np.inf)
        if self.manifest.input.batch == 1 or not low <= 0.0 <= high:
            return False
        try:
            guard(self.program, np.zeros((1, *shape)))
        except OutOfRangeError:
            return False
        return True

    def read_inputs(self, messages: Sequence[bytes]) -> list[Ciphertext]:
        """Read the ciphertexts of a message, or the sums of those of several messages whose samples are at
        different places (`joins`).

        Raises:
            BadRequestError, InvalidObjectError: as for `framing.split` and `read_input`.
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
        """Read a ciphertext of a sample in any form that clients send: full, seeded, or compact (thin
        clients).

        Raises:
            InvalidObjectError: the bytes are malformed, or have another level, packing or parameters than the
                model takes.
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
                raise InvalidObjectError(
                    f"expected a ciphertext, got {kind}; send a ciphertext of the model's parameters"
                )
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
        """Return a ciphertext of `ModelRunner.run` as a client receives it. A thin client receives the
        coefficients that hold numbers. If the bound on the error is tight enough, their low bits are
        truncated. The worst-case bound of a deep network is too loose to justify truncation, so its answers
        are sent in full."""
        known = result.error_bound < ANSWER_BOUND
        fits = (result.magnitude_bound + result.error_bound) * result.scale < self.parameters.q[0] / 2
        if self.client is None or not (known and fits):
            return result.to_bytes()
        return self.client.write_answer(result, ANSWER_GROWTH)

    def save(self, folder: Path) -> None:
        """Write the files of the model into an existing folder."""
        self.parameters.save(folder / PARAMETERS)
        self.program.save(folder / PROGRAM)
        plan_file.save(self.execution.plan, folder / PLAN)
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
        """Load a model that `save` wrote.

        Raises:
            ModelFolderError: a file is missing, damaged, or does not match the others.
        """
        missing = [name for name in (DESCRIPTION, PARAMETERS, PROGRAM, PLAN) if not (folder / name).is_file()]
        if missing:
            raise ModelFolderError(f"{folder} lacks {', '.join(missing)}; make it with keywright compile")
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
        program = compiler.Program.load(folder / PROGRAM)
        plans = preset_plans(program)
        return Model(
            name,
            program,
            parameters,
            plans,
            entry_plan(program, plans, parameters, literal),
            literal,
            labels,
            plan_file.load(folder / PLAN),
            folder,
        )


class ModelRunner:
    """A model with its diagonals encoded, which serves all clients one after the other.

    Args:
        model: the model.
        planned: how diagonals are stored, from `Model.plan_process`; by default they are encoded here.

    Attributes:
        model: as given.
        working_bytes: planned bytes of an evaluation besides keys and diagonals; 0 without a plan.
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
        """Evaluate a batch of samples.

        Args:
            keys: the client's keys, those of `Model.specs`.
            inputs: results of `Model.read_input`.
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
    except (KeywrightError, BackendMisuseError) as error:
        raise EvaluationFailedError(f"the model could not be evaluated: {error}") from error


def _places(layout: Layout, shape: tuple[int, ...], slots: int) -> Places:
    """Return the places of a layout's values in ciphertexts of ``slots`` slots, at least the layout's
    period."""
    repeat = slots // layout.period
    ciphertext, slot = np.divmod(layout.positions.astype(np.int64), layout.slots)
    start, stride = ciphertext * slots + slot, 1 if repeat == 1 else layout.period
    places = tuple(map(int, start))
    return Places(tuple(shape), layout.batch, layout.ciphertexts, slots, places, repeat, stride)
