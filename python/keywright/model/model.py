"""A model: a program with its parameters, for clients that encrypt slots or for thin clients."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from mmap import PAGESIZE
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright import compiler
from keywright._copies import Unchanging
from keywright._core import (
    BootstrapperPlan,
    ClientParameters,
    KeySpec,
    Parameters,
    SecretKey,
    inspect,
    key_set_head,
)
from keywright._progress import Progress, silent
from keywright.compiler.approximating import ApproximatedModel
from keywright.compiler.presets import bootstrap_plans
from keywright.errors import (
    OutOfMemoryError,
    OutOfRangeError,
)
from keywright.errors.engine import ParameterError
from keywright.errors.model import FolderError
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.memory.machine import default_budget, resident_bytes
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.search.planner import DEFAULT_HOPS
from keywright.plan.search.quick import HOPS, SLOWER, fastest_within, plan_candidates, plan_network
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.runtime import Simulation, simulate
from keywright.runtime.evaluation import Runner
from keywright.runtime.range_guard import guard
from keywright.runtime.simulation.simulate import REPETITIONS, SEED

from .client import ModelClient
from .exchange.interface import FRACTION_BITS, input_range, interface
from .exchange.requests import HEADER_BYTES, Requests
from .exchange.shared import Shared
from .folder.description import Description
from .folder.files import DESCRIPTION, PARAMETERS, PLAN, PROGRAM, has_file, new_folder
from .report.encrypted_error import EncryptedError, follows, predict_error, require_precision
from .report.report import (
    ModelReport,
    RingFigures,
    RunFigures,
    Sizes,
    returned_bytes,
    revealed,
    sent_bytes,
)
from .served.entry import Entry, read_entry
from .served.manifest import KeyList, Manifest
from .server import ModelServer
from .session import Inference, infer

THIN_SLOWER = 1.15
"""Maximum slowdown of an evaluation for thin clients, relative to the fastest keys. Such a client makes and
sends every key before its first answer, and rotations by several hops take half the bytes."""


class Source(Protocol):
    """The origin of a model, which gives the same model for other batches: `Compilation`."""

    @property
    def approximated(self) -> ApproximatedModel:
        """The network with its polynomials."""

    @property
    def batch(self) -> int | None:
        """The requested batch; None for the fastest."""

    def for_batch(self, batch: int) -> "Model":
        """Return the model for so many samples in shared ciphertexts."""

    def for_samples(self, samples: int) -> "Model":
        """Return the model of the fastest batch for a number of samples."""

    def precise(self, model: "Model") -> str | None:
        """Return a preset for which the model is precise enough; None if none is known."""

    def refusal(self, refusal: OutOfMemoryError, model: "Model") -> OutOfMemoryError:
        """Return a refusal with the choices that may need less memory."""


@dataclass(frozen=True, eq=False)
class Model(
    Unchanging,
    elsewhere="save() it; workers use keywright.load, keywright.load_client or keywright.load_server",
):
    """A program with its parameters, compiled (`keywright.compile`) or read from a folder (`Model.load`). It
    predicts and simulates in this process, `save` writes it, and `keywright.serve.serve` serves it.

    Thread safety: one thread at a time; a client of it (`Model.client`) may be shared.

    Attributes:
        name: name for people.
        program: the program.
        parameters: of its ciphertexts.
        bootstraps: plans of the program's bootstraps, in order.
        entry: for thin clients, the bootstrapping whose last three stages take in ciphertexts and whose first
            stage produces answers; None if clients encrypt slots.
        labels: labels of the outputs.
        key_plan: plan of the keys; by default the fewest bytes of keys with nearly the best speed.
        source: the compilation or the folder from which the model comes; None for neither.
    """

    name: str
    program: compiler.Program = field(repr=False)
    parameters: Parameters
    bootstraps: Sequence[BootstrapperPlan] = field(default=(), repr=False)
    entry: Entry | None = field(default=None, repr=False)
    labels: tuple[str, ...] = ()
    key_plan: KeyPlan | None = field(default=None, repr=False)
    source: Source | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        program = self.program
        low, high = self.input_range or (0.0, 1.0)
        if not low < high:
            raise FolderError(
                f"thin clients send inputs up to {program.input.scale:.6g}, and the program is for "
                "others; compile the model again",
                code="model_folder",
            )
        if not all(text.isprintable() for text in (self.name, *self.labels)):
            raise FolderError(
                f"the name {self.name[:80]!r} or a label has control characters; use printable ones",
                code="model_folder",
            )
        if self.labels and len(self.labels) != len(program.output.layout.positions):
            raise FolderError(
                f"{len(self.labels)} labels were given for {len(program.output.layout.positions)} "
                "outputs; give one for each",
                code="model_folder",
            )
        if self.entry is not None:
            self.entry.require(program)

    @property
    def folder(self) -> Path | None:
        """The folder that the model was loaded from."""
        return self.source if isinstance(self.source, Path) else None

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
    def _entered(self) -> compiler.Program:
        """Return the program whose key switches the planner counts."""
        index = self.entry_index
        return self.program if index is None else self.program.entered(index)

    @property
    def _hops(self) -> int:
        """Return the maximum number of key switches per rotation."""
        return HOPS if self.entry is None else DEFAULT_HOPS

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            MismatchError: the given plan is for something else.
        """
        network, plans = self._entered, self._plans
        if self.key_plan is not None:
            return PlanExecution(self.key_plan, self.parameters, network, plans)
        return plan_network(
            network,
            self.parameters,
            plans,
            model=stored_model(),
            name=self.name,
            max_hops=self._hops,
            slower=SLOWER if self.entry is None else THIN_SLOWER,
        )

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Plans of the keys, from the fewest bytes to the fastest, predicted with the calibration of this
        machine if there is one; only the given plan if there is one."""
        if self.key_plan is not None:
            return [self.execution]
        return plan_candidates(
            self._entered,
            self.parameters,
            self._plans,
            model=stored_model(),
            name=self.name,
            max_hops=self._hops,
        )

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that a client sends, in order."""
        return self.execution.key_specs

    def with_plan(self, plan: KeyPlan | str | Path) -> "Model":
        """Return the model with another key plan, or with the plan in a file of ``keywright plan``.

        Raises:
            MismatchError: the plan is for something else.
            ModelRefusedError: its keys add a larger error than `keywright.compiler.Fit` allows.
        """
        planned = replace(self, key_plan=plan if isinstance(plan, KeyPlan) else plan_file.load(Path(plan)))
        _ = planned.execution
        planned.require_precision()
        return planned

    def with_keys_within(self, most: int) -> "Model":
        """Return the model with the fastest keys whose size in a server's memory is at most ``most`` bytes.

        Raises:
            OutOfMemoryError: no keys are that small.
        """
        return self.with_plan(fastest_within(self.candidates, most).plan)

    def with_server_within(self, budget: int) -> "Model":
        """Return the model with the fastest keys for a server's process of at most ``budget`` bytes.

        Raises:
            OutOfMemoryError: nothing fits the budget.
        """
        return self.with_plan(self._plan(Process(resident_bytes(), makes_keys=False), budget).execution.plan)

    def plan_process(self, samples: int, budget: int, key_memory: int | None = None) -> ProcessPlan:
        """Plan keys and diagonals of a process that makes its keys and evaluates a number of samples.

        Args:
            samples: number of samples.
            budget: maximum bytes of the process.
            key_memory: maximum bytes of keys in memory; by default as the budget allows.

        Raises:
            OutOfMemoryError: nothing fits the budget.
        """
        batches = -(-samples // self.program.batch)
        return self._plan(Process(resident_bytes(), samples=batches, key_memory=key_memory), budget)

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
        return plan_process([self.execution], self._entered, process, budget, stored_model() or CostModel())

    def plan_batches(
        self, samples: int, budget: int | None = None, key_memory: int | None = None
    ) -> tuple["Model", ProcessPlan]:
        """Return a model and a plan that evaluate samples within a budget. The model has the fastest batch,
        or its own if the errors of encryption with the fastest, or with the keys that fit, are larger than
        its fit allows. If a batch does not fit and none was requested, it takes half as many samples at a
        time, a quarter, and so on.

        Args:
            samples: number of samples.
            budget: maximum bytes of the process; by default 80 percent of the free memory.
            key_memory: maximum bytes of keys in memory; by default as the budget allows.

        Raises:
            OutOfMemoryError: not even one sample at a time fits the budget. The message names presets of
                bootstraps that may need less.
            ModelRefusedError: the errors of encryption with all that fits are larger than its fit allows.
        """
        budget = default_budget() if budget is None else budget
        source = None if isinstance(self.source, Path) or self.key_plan is not None else self.source
        if source is not None and source.batch is not None:
            source = None
        model = self if source is None else source.for_samples(samples)
        while True:
            batch = model.program.batch // 2
            try:
                planned = model.plan_process(samples, budget, key_memory)
            except OutOfMemoryError as refusal:
                if source is None:
                    raise
                if batch == 0:
                    raise source.refusal(refusal, model) from None
            else:
                error = model.error_with(planned.execution)
                if source is None or batch == 0 or follows(error, source.approximated.fit):
                    model.require_precision(planned.execution)
                    return model, planned
                batch = min(self.program.batch, batch)  # its own was accepted
            model = source.for_batch(batch)

    def _plan(self, process: Process, budget: int) -> ProcessPlan:
        return plan_process(self.candidates, self._entered, process, budget, stored_model() or CostModel())

    def _samples(self, samples: Any) -> NDArray[np.float64]:
        """Return the features of samples, with a batch axis.

        Raises:
            EncodeError: there are none, or they have another shape or values that are not finite.
        """
        return self.program.features(samples)[0]

    # Runs

    @cached_property
    def report(self) -> ModelReport:
        """The costs of the model, and how closely it follows the original model; print it."""
        program, parameters, specs = self.program, self.parameters, self.specs
        thin = self.client_parameters
        return ModelReport(
            RingFigures(
                repr(parameters),
                parameters.log_n,
                tuple(sorted({ring for ring in program.rings.values() if ring}, reverse=True)),
            ),
            RunFigures(
                program.batch,
                program.depth,
                sum(step.opcode == "bootstrap" for step in program.instructions),
                self.predicted_seconds,
                self.entry is not None,
            ),
            Sizes(
                len(specs),
                inspect(key_set_head(specs))["bytes"] if specs else 0,
                sent_bytes(program, parameters, thin),
                returned_bytes(program, parameters, thin),
            ),
            program.fit_report,
            self.encrypted_error,
            revealed(program),
        )

    @cached_property
    def predicted_seconds(self) -> float:
        """Return the predicted seconds of a batch, one thread, with a bootstrap for each ciphertext that
        enters: a thin client's answers leave by its first stage."""
        seconds = sum(layer.seconds for layer in self.program.layers)
        if self.entry is None:
            return seconds
        each = predict_bootstrap(self.entry.plan, stored_model() or CostModel())
        return seconds + self.program.input.layout.ciphertexts * each

    @cached_property
    def encrypted_error(self) -> EncryptedError | None:
        """The predicted error of encryption with the keys of `execution`; None for a loaded model, and
        without calibration data."""
        return self.error_with(self.execution)

    def error_with(self, execution: PlanExecution) -> EncryptedError | None:
        """Return the predicted error of encryption with other keys, such as those of one of `candidates`."""
        if self.source is None or isinstance(self.source, Path):
            return None
        network = self.source.approximated
        if not len(network.run.samples):
            return None
        for plan, error in self._errors:
            if plan == execution.plan:
                return error
        error = predict_error(network, self.program, execution, self.entry_index)
        self._errors.append((execution.plan, error))
        return error

    @cached_property
    def _errors(self) -> list[tuple[KeyPlan, EncryptedError | None]]:
        """Plans of keys whose errors are known."""
        return []

    def require_precision(self, execution: PlanExecution | None = None) -> None:
        """Refuse a compiled model whose predicted error of encryption is larger than its fit allows.

        Args:
            execution: its keys; by default those of `execution`.

        Raises:
            ModelRefusedError: with a `RefusalError`.
        """
        if self.source is not None and not isinstance(self.source, Path):
            source, fit = self.source, self.source.approximated.fit
            require_precision(
                self.error_with(execution or self.execution),
                fit,
                divisor=1.0 if self.entry is None else self.program.input.scale,
                precise=lambda: source.precise(self),
            )

    def for_batch(self, batch: int) -> "Model":
        """Return the same model for a number of samples in shared ciphertexts. Each batch is compiled once.

        Raises:
            ParameterError: the ciphertexts have fewer slots; or the model was loaded, and is for another
                batch.
            ModelRefusedError: its diagonals are too large, or its errors of encryption.
        """
        if self.program.batch == batch:
            return self
        if self.source is None or isinstance(self.source, Path):
            raise ParameterError(
                f"batch={batch} differs from the {self.program.batch} samples of the loaded program; use "
                "those, or compile the model again",
                code="batch",
                batch=batch,
                slots=self.program.batch,
            )
        model = self.source.for_batch(batch)
        model.require_precision()
        return model

    def simulate(
        self, samples: Any, *, public: bool = False, repetitions: int = REPETITIONS, seed: int = SEED
    ) -> Simulation:
        """Simulate `predict` without making keys: run samples in the clear with random errors as encryption
        would add them, for the batch and the keys that it would use. Returns outputs and their errors. The
        mean and the largest error are within a factor of 4 of measured ones. For thin clients, the errors of
        entering and leaving are left out.

        Args:
            samples: one, of shape ``program.input.shape``, or several, (count, *input_shape); what
                `Program.features` takes, if the model has first steps.
            public, repetitions, seed: see `keywright.runtime.simulate`.

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            EncodeError: another shape, no samples, or values that are not finite.
        """
        values = self._samples(samples)
        model, planned = self.plan_batches(len(values))
        return simulate(
            model.program, planned.execution, values, public=public, repetitions=repetitions, seed=seed
        )

    def predict(
        self,
        samples: Any,
        *,
        force: bool = False,
        memory: int | None = None,
        key_memory: int | None = None,
        progress: Progress = silent,
    ) -> NDArray[np.float64]:
        """Try the model: encrypt samples, evaluate them as ciphertexts and decrypt, all in this process,
        which does the work of `client` and `server`. Every call makes new keys. Unless `compile` was given a
        batch, the fastest batch for these samples is used, or one of smaller errors if those of encryption
        are larger than the fit allows (see `plan_batches`). A warning says if they are large, and which
        predictions they may have changed. The program of each batch is compiled once.

        Args:
            samples: one, of shape ``program.input.shape``, or several, (count, *input_shape); what
                `Program.features` takes, if the model has first steps.
            force: also evaluate samples that leave a range of the program; their results are wrong.
            memory: maximum bytes of this process; by default 80 percent of the free memory.
            key_memory: maximum bytes of keys in memory; others are read from a file. By default, as memory
                allows.
            progress: receives the progress of every part.

        Returns:
            An array of shape ``program.output.shape``, or (count, *output_shape).

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            EncodeError: another shape, no samples, or values that are not finite.
            OutOfMemoryError: keys and diagonals do not fit the memory.
            ModelRefusedError: errors of encryption with the keys that fit the memory are larger than the fit
                allows.
        """
        values, single = self.program.features(samples)
        if not force:
            ModelClient(self.shared).guard_features(values)
        model, planned = self.plan_batches(len(values), memory, key_memory)
        outputs = model.infer(values, planned, progress).outputs
        for text in model.warnings_about(outputs, planned):
            warnings.warn(text, stacklevel=2)
        return outputs[0] if single else outputs

    def warnings_about(self, outputs: NDArray[np.float64], planned: ProcessPlan) -> tuple[str, ...]:
        """Return warnings about the error of encryption of outputs, (count, *output_shape), with the keys of
        a plan from `plan_batches`."""
        error = self.error_with(planned.execution)
        return () if error is None else error.warnings_about(outputs)

    def infer(
        self, samples: NDArray[np.float64], planned: ProcessPlan, progress: Progress = silent
    ) -> Inference:
        """Run client and server on samples, (count, *input_shape), in batches of the program. The server's
        part only sees ciphertexts and evaluation keys. Returns outputs and costs.

        Args:
            planned: keys and diagonals, from `plan_process` or `plan_batches`.
            progress: receives the progress of every part.
        """
        return infer(*self.pair(planned.execution), samples, planned, progress)

    def pair(self, execution: PlanExecution) -> tuple[ModelClient, ModelServer]:
        """Return a client with a new secret key, and a server, for the keys of one of `candidates`."""
        shared = replace(self.shared, make_execution=lambda: execution)
        secret = SecretKey.generate(self.parameters)
        return ModelClient(shared, secret=secret), ModelServer(shared, execution)

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from the result of
        `predict` for several samples; see `keywright.compiler.Program.answers`. None if the results already
        are the model's output."""
        return self.program.answers(outputs)

    def client(self) -> ModelClient:
        """Return a client with a new secret key."""
        return ModelClient(self.shared, secret=SecretKey.generate(self.parameters))

    def server(self, *, memory: int | None = None, key_memory: int | None = None) -> ModelServer:
        """Return a server.

        Args:
            memory: maximum bytes of its process; by default 80 percent of the free memory.
            key_memory: maximum bytes of keys in memory; others are read from their file ahead of their use.
                By default, as many as ``memory`` allows.
        """
        return ModelServer(self.shared, self.execution, memory=memory, key_memory=key_memory)

    def runner(self, planned: ProcessPlan | None = None) -> Runner:
        """Return the program with its diagonals encoded, which runs with the keys of any client.

        Args:
            planned: how diagonals are stored, from `plan_service`; by default they are kept encoded.
        """
        return Runner(self.program, self.execution, planned, self.entry_index)

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
        return replace(self.shared.interface, keys=keys)

    @cached_property
    def shared(self) -> Shared:
        """The part of the model that its client and server share."""
        return Shared(
            self.program,
            self.parameters,
            lambda: interface(self.program, self.parameters, self.entry, self.name, self.labels),
            lambda: self.execution,
            self.write,
            self.entry_index,
        )

    @property
    def requests(self) -> Requests:
        """Reads the ciphertexts of clients, and writes answers."""
        return self.shared.requests

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

    # The folder

    def save(self, folder: str | Path, name: str | None = None) -> None:
        """Create a folder that `Model.load`, `keywright.load_client`, `keywright.load_server` and ``keywright
        serve`` read. It holds the model's weights and no secret of a client.

        Args:
            folder: the new folder.
            name: of the saved model, for people; by default its own.

        Raises:
            FolderError: the folder exists.
        """
        with new_folder(Path(folder)) as place:
            self.write(place, name)

    def write(self, folder: Path, name: str | None = None) -> None:
        """Write the files of `save` into an existing folder."""
        self.parameters.save(folder / PARAMETERS)
        compiler.save(self.program, folder / PROGRAM)
        plan_file.save(self.execution.plan, folder / PLAN)
        literal = {} if self.entry is None else self.entry.literal
        Description(self.name if name is None else name, self.labels, literal).save(folder)

    @staticmethod
    def load(folder: str | Path) -> "Model":
        """Load a model that `save` wrote.

        Raises:
            FolderError: a file is missing, damaged, or does not match the others.
            ParameterError: a bootstrap is not one of a preset.
        """
        place = Path(folder)
        missing = [name for name in (DESCRIPTION, PARAMETERS, PROGRAM, PLAN) if not (place / name).is_file()]
        if missing:
            raise FolderError(
                f"{place} lacks {', '.join(missing)}; make it with keywright compile", code="model_folder"
            )
        return Model.read(place)

    @staticmethod
    def read(place: Path) -> "Model":
        """Read the files of a model from a folder of any kind. Without a description it is a nameless model
        for clients of slots; without a plan, its keys are planned here. Errors as for `load`."""
        described = Description.load(place) if (place / DESCRIPTION).is_file() else Description()
        parameters = Parameters.load(place / PARAMETERS)
        program = compiler.load(place / PROGRAM)
        bootstraps = bootstrap_plans(program)
        return Model(
            described.name,
            program,
            parameters,
            bootstraps,
            read_entry(program, bootstraps, parameters, described.entry),
            described.labels,
            plan_file.load(place / PLAN) if has_file(place, PLAN) else None,
            place,
        )
