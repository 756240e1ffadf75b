"""A program with its parameters and its keys: what the client and the server of a model share."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from mmap import PAGESIZE
from pathlib import Path

import numpy as np

from keywright._copies import Unchanging
from keywright._core import BootstrapperPlan, ClientParameters, KeySpec, Parameters, inspect, key_set_head
from keywright._progress import Progress, silent
from keywright.errors import OutOfRangeError
from keywright.errors.choices import require_integer
from keywright.errors.engine import ParameterError
from keywright.errors.model import FolderError
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.memory.machine import resident_bytes
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.ring.entry import Entry
from keywright.plan.search.network_planner import HOPS, SLOWER, KeyFrontier, require_size
from keywright.plan.search.planner import DEFAULT_HOPS
from keywright.program.file import storage
from keywright.program.program import Program
from keywright.runtime.range_guard import guard
from keywright.runtime.runner import Runner

from .exchange.identity import Identity
from .exchange.interface import FRACTION_BITS, input_range, interface
from .exchange.requests import HEADER_BYTES, Requests
from .folder.description import Description, require_texts
from .folder.files import PARAMETERS, PLAN, PROGRAM
from .served.manifest import KeyList, Manifest

THIN_SLOWER = 1.15
"""Maximum slowdown of an evaluation for thin clients, relative to the fastest keys. Such a client makes and
sends every key before its first answer, and rotations by several hops take half the bytes."""


@dataclass(frozen=True, eq=False)
class Executable(
    Unchanging,
    elsewhere="save the model that it is of; workers use keywright.load, keywright.load_client or "
    "keywright.load_server",
):
    """A program with its parameters and its keys: what the client and the server of a model share.

    Attributes:
        name: name for people.
        program: the program.
        parameters: of its ciphertexts.
        bootstraps: plans of the program's bootstraps, in order.
        entry: for thin clients, the bootstrapping whose last three stages take in ciphertexts and whose first
            stage produces answers; None if clients encrypt slots.
        labels: labels of the outputs.
        key_plan: plan of the keys; by default the fewest bytes of keys with nearly the best speed.
        frontier: of its keys, if it was searched before.
    """

    name: str
    program: Program = field(repr=False)
    parameters: Parameters
    bootstraps: Sequence[BootstrapperPlan] = field(default=(), repr=False)
    entry: Entry | None = field(default=None, repr=False)
    labels: tuple[str, ...] = ()
    key_plan: KeyPlan | None = field(default=None, repr=False)
    frontier: KeyFrontier | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        program = self.program
        low, high = self.input_range or (0.0, 1.0)
        if not low < high:
            raise FolderError(
                f"thin clients send inputs up to {program.input.scale:.6g}, and the program is for "
                "others; compile the model again",
                code="model_folder",
            )
        require_texts(self.name, self.labels)
        if self.labels and len(self.labels) != len(program.output.layout.positions):
            raise ParameterError(
                f"{len(self.labels)} labels were given for {len(program.output.layout.positions)} "
                "outputs; give one for each",
                what="labels",
            )
        if len(set(self.labels)) != len(self.labels):
            twice = next(text for text in self.labels if self.labels.count(text) > 1)
            raise ParameterError(
                f"the label {twice!r} is given to several outputs; give each its own", what="labels"
            )
        if self.entry is not None:
            self.entry.require(program)

    # Keys and memory

    @property
    def entry_index(self) -> int | None:
        """Return the index of `entry` among `_plans`."""
        if self.entry is None:
            return None
        plan, own = self.entry.plan, self.bootstraps
        return next((index for index, each in enumerate(own) if each is plan), len(own))

    @property
    def _plans(self) -> tuple[BootstrapperPlan, ...]:
        """Return the plans of the program's bootstraps, and that of `entry` if it is not among them."""
        extra = self.entry is not None and self.entry_index == len(self.bootstraps)
        return (*self.bootstraps, *([self.entry.plan] if extra and self.entry is not None else []))

    @cached_property
    def _entered(self) -> Program:
        """Return the program whose key switches the planner counts."""
        index = self.entry_index
        return self.program if index is None else self.program.entered(index)

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            MismatchError: the given plan is for something else.
        """
        if self.key_plan is not None:
            return PlanExecution(self.key_plan, self.parameters, self._entered, self._plans)
        return self.key_frontier.execution

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Plans of the keys, from the fewest bytes to the fastest, predicted with the calibration of this
        machine if there is one; only the given plan if there is one."""
        return self.key_frontier.candidates if self.key_plan is None else [self.execution]

    def keys_within(self, most: int) -> PlanExecution:
        """Return the fastest keys that take at most ``most`` bytes in a server's memory. Raises
        `OutOfMemoryError` if none are that small."""
        if self.key_plan is None:
            return self.key_frontier.within(most)
        require_size(self.key_plan.stored_bytes, most)
        return self.execution

    @cached_property
    def key_frontier(self) -> KeyFrontier:
        """The keys among which those of `execution` and `candidates` are; searched at the first use."""
        thin = self.entry is not None
        return self.frontier or KeyFrontier(
            self._entered,
            self.parameters,
            self._plans,
            model=stored_model(),
            name=self.name,
            max_hops=DEFAULT_HOPS if thin else HOPS,
            slower=THIN_SLOWER if thin else SLOWER,
        )

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that a client sends, in order."""
        return self.execution.key_specs

    def plan_process(
        self, samples: int, budget: int | None = None, key_memory: int | None = None
    ) -> ProcessPlan:
        """Plan keys and diagonals of a process that makes its keys and evaluates a number of samples.

        Args:
            samples: number of samples.
            budget: maximum bytes of the process; by default as for `keywright.plan.plan_process`.
            key_memory: maximum bytes of keys in memory; by default as the budget allows.

        Raises:
            OutOfMemoryError: nothing fits the budget.
        """
        if (samples := require_integer("samples", samples)) < 1:
            raise ParameterError(f"samples must be at least 1, got {samples}", what="samples", value=samples)
        batches = -(-samples // self.program.batch)
        return self.plan_memory(Process(resident_bytes(), samples=batches, key_memory=key_memory), budget)

    def plan_service(self, budget: int, resident_bytes: int) -> ProcessPlan:
        """Plan the memory of a process that serves the model, without keys: keys are in memory shared by all
        processes.

        Args:
            budget: maximum bytes of the process.
            resident_bytes: bytes in use before diagonals are encoded.

        Raises:
            OutOfMemoryError: the model does not fit.
        """
        process = Process(resident_bytes, makes_keys=False, streams=False, key_sets=0)
        return self.plan_memory(process, budget, [self.execution])

    def plan_memory(
        self, process: Process, budget: int | None, candidates: Sequence[PlanExecution] | None = None
    ) -> ProcessPlan:
        """Plan keys and diagonals of a process.

        Args:
            process: the process.
            budget: its maximum bytes; None as for `keywright.plan.plan_process`.
            candidates: plans of keys to choose from; by default `candidates`.

        Raises:
            OutOfMemoryError: nothing fits the budget.
        """
        return plan_process(candidates or self.candidates, self._entered, process, budget, stored_model())

    def runner(self, planned: ProcessPlan | None = None, progress: Progress = silent) -> Runner:
        """Return the program with its diagonals encoded, which runs with the keys of any client.

        Args:
            planned: keys, and how diagonals are stored; by default those of `execution`, kept encoded.
            progress: reports the encoding.
        """
        execution = self.execution if planned is None else planned.execution
        return Runner(self.program, execution, planned, self.entry_index, progress)

    # Exchange with clients

    @cached_property
    def client_parameters(self) -> ClientParameters | None:
        """Parameters of thin clients; None if clients encrypt slots."""
        return None if self.entry is None else self.entry.plan.client_parameters(FRACTION_BITS)

    @cached_property
    def manifest(self) -> Manifest:
        """The facts about the model that clients of a service know."""
        head = key_set_head(self.specs) if self.specs else b""
        keys = KeyList(head, inspect(head)["bytes"] if head else 0)
        return replace(self.interface, keys=keys)

    @cached_property
    def interface(self) -> Manifest:
        """The manifest without keys; all arrays of the program are read for it."""
        return interface(self.program, self.parameters, self.entry, self.name, self.labels)

    @cached_property
    def identity(self) -> Identity:
        """Which program the messages of client and server are for."""
        return Identity(bytes.fromhex(self.interface.program), self.program.created)

    @cached_property
    def requests(self) -> Requests:
        """Reads the ciphertexts of clients, and writes answers."""
        return Requests(self.interface, self.parameters, self.client_parameters)

    @property
    def input_range(self) -> tuple[float, float] | None:
        """(low, high) of the model's inputs, None if unbounded."""
        return input_range(self.program, self.entry)

    @cached_property
    def joins(self) -> bool:
        """Whether requests of one client can be evaluated together, with their samples at different places.
        That holds if several samples share ciphertexts and zero, which a request has at the places of others,
        is a valid input."""
        shape = self.program.input.shape
        low, high = self.input_range or (-np.inf, np.inf)
        if self.program.batch == 1 or not low <= 0.0 <= high:
            return False
        try:
            guard(self.program, np.zeros((1, *shape)))
        except OutOfRangeError:
            return False
        return True

    @property
    def steps(self) -> int:
        """Number of calls of ``on_step`` by `Runner.run` for a batch of samples."""
        program, ends = self.program, 0
        if self.entry is not None:
            ends = program.input.layout.ciphertexts + program.output.layout.ciphertexts
        return ends + sum(step.opcode != "input" for step in program.instructions)

    @cached_property
    def resident_key_bytes(self) -> int:
        """Bytes of a client's keys in memory, each key on its own pages."""
        return sum(spec.bytes + PAGESIZE for spec in self.specs)

    @cached_property
    def key_places(self) -> list[tuple[int, int]]:
        """Begin and end of the head of a stored set, and estimates for its keys, in the order in which they
        are used, as if all were packed equally well."""
        head, total = len(self.manifest.keys.head), self.manifest.keys.size
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
        return len(self.manifest.keys.head) + HEADER_BYTES

    # Files

    def write(self, folder: Path, name: str | None = None) -> None:
        """Write the files of `save` into an existing folder. Raises `FolderError` for a name that is empty or
        has control characters."""
        literal = {} if self.entry is None else self.entry.literal
        description = Description(self.name if name is None else name, self.labels, literal)
        self.parameters.save(folder / PARAMETERS)
        storage.save(self.program, folder / PROGRAM)
        plan_file.save(self.execution.plan, folder / PLAN)
        description.save(folder)
