"""A model: a program with its parameters, for clients that encrypt slots or for thin clients."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import Parameters, SecretKey, inspect, key_set_head
from keywright._files import new_folder
from keywright._progress import Progress, silent
from keywright.compiler.approximating import ApproximatedModel
from keywright.errors.engine import OutOfMemoryError, ParameterError
from keywright.errors.model import FolderError
from keywright.errors.network import ModelRefusedError
from keywright.errors.refusals.precision import imprecise
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.memory.machine import resident_bytes
from keywright.plan.memory.planner import Process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.ring.entry import read_entry
from keywright.plan.ring.preset_plans import bootstrap_plans, require_presets
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.program.file import storage
from keywright.runtime import Simulation, simulate
from keywright.runtime.simulation.simulate import REPETITIONS, SEED

from .client import ModelClient
from .executable import Executable
from .folder.description import Description
from .folder.files import DESCRIPTION, PARAMETERS, PLAN, PROGRAM, has_file
from .parameters.parameter_choice import Compilation, smaller_presets
from .report.encrypted_error import EncryptedError
from .report.report import ModelReport, RingFigures, RunFigures, Sizes, returned_bytes, revealed, sent_bytes
from .served.demands import KEY_BYTES, KEY_COUNT, Demands
from .server import ModelServer
from .session import Inference, infer


@dataclass(frozen=True, eq=False)
class Model(
    Executable,
    elsewhere="save() it, and load it in the other process with keywright.load, keywright.load_client or "
    "keywright.load_server",
):
    """A program with its parameters, compiled (`keywright.compile`) or read from a folder (`Model.load`). It
    predicts and simulates in this process, `save` writes it, and `keywright.serve.serve` serves it.

    Thread safety: one thread at a time; a client of it (`Model.client`) may be shared.

    Attributes:
        name, program, parameters, bootstraps, entry, labels, key_plan: as for `keywright.model.Executable`.
        folder: the folder that it was loaded from.
        compilation: compiles it for other batches and presets; None if it was loaded.
        fixed_batch: whether it only takes samples in its own batch; otherwise `predict` and `simulate`
            choose the fastest batch for theirs.
        server_seconds: predicted for a batch on one thread, in the memory of `with_server_within`; None
            without it, and of a loaded model, whose folder keeps no limit of memory.
    """

    folder: Path | None = field(default=None, repr=False)
    compilation: Compilation | None = field(default=None, repr=False)
    fixed_batch: bool = field(default=True, repr=False)
    server_seconds: float | None = field(default=None, repr=False)

    @staticmethod
    def of(executable: Executable, compilation: Compilation, *, fixed_batch: bool = True) -> "Model":
        """Return the model of a program that a compilation made."""
        own = {each.name: getattr(executable, each.name) for each in fields(Executable)}
        own["frontier"] = executable.key_frontier
        return Model(**own, compilation=compilation, fixed_batch=fixed_batch)

    @property
    def approximated(self) -> ApproximatedModel | None:
        """The network with its polynomials; None if the model was loaded."""
        return None if self.compilation is None else self.compilation.approximated

    # Keys

    def with_plan(self, plan: KeyPlan | str | Path) -> "Model":
        """Return the model with another key plan, or with the plan in a file of ``keywright plan``.

        Raises:
            MismatchError: the plan is for something else.
            ModelRefusedError: its keys add a larger error than `keywright.compiler.Fit` allows.
        """
        own = plan if isinstance(plan, KeyPlan) else plan_file.load(Path(plan))
        planned = replace(self, key_plan=own, server_seconds=None)
        planned.require_precision()
        return planned

    def with_keys_within(self, most: int) -> "Model":
        """Return the model with the fastest keys whose size in a server's memory is at most ``most`` bytes.
        If the network has several forms, such as orders of the products of attention, a compiled model is in
        the form that is fastest with such keys, unless its keys were chosen before. Forms whose errors of
        encryption are larger than its fit allows are left out.

        Raises:
            OutOfMemoryError: no keys are that small.
            ModelRefusedError: in all forms, they add a larger error than `keywright.compiler.Fit` allows.
        """

        def planned(model: Executable) -> tuple[float, PlanExecution]:
            execution = model.keys_within(most)
            return predict_plan(execution.plan, stored_model()).seconds, execution

        return self._in_fastest_form(planned, in_memory=False)

    def with_server_within(self, budget: int) -> "Model":
        """Return the model with the fastest keys for a server's process of at most ``budget`` bytes; of a
        compiled model, also in the fastest form, as for `with_keys_within`. After that, or with another plan
        of keys, the form stays as it is. The model's report predicts the time in this memory, where diagonals
        are made at every use if they do not fit.

        Raises:
            OutOfMemoryError: nothing fits the budget.
            ModelRefusedError: as for `with_keys_within`.
        """

        def planned(model: Executable) -> tuple[float, PlanExecution]:
            process = model.plan_memory(Process(resident_bytes(), makes_keys=False), budget)
            return process.seconds, process.execution

        return self._in_fastest_form(planned, in_memory=True)

    def _in_fastest_form(
        self, planned: Callable[[Executable], tuple[float, PlanExecution]], *, in_memory: bool
    ) -> "Model":
        """Return the model in the form that is fastest with the keys that a function times, and with these
        keys. ``in_memory`` keeps the time as `server_seconds`. Raises `OutOfMemoryError` if the function
        does for every form, and `ModelRefusedError` if errors of encryption are too large in every other."""
        compilation = self.compilation
        refusals: list[OutOfMemoryError] = []

        def timed(form: Executable) -> tuple[float, Model] | None:
            try:
                seconds, execution = planned(form)
            except OutOfMemoryError as refusal:
                refusals.append(refusal)
                return None
            if not isinstance(form, Model):
                assert compilation is not None
                form = Model.of(form, compilation, fixed_batch=self.fixed_batch)
            kept = seconds if in_memory else None
            return seconds, replace(form, key_plan=execution.plan, server_seconds=kept)

        forms: Iterator[Executable] = iter([self])
        if compilation is not None and self.key_plan is None and len(compilation.approximated.forms) > 1:
            forms = compilation.in_every_form(self.program.batch)
        # Of an iterator, the function keeps the best model alone.
        fastest = min(
            filter(None, map(timed, forms)), key=lambda each: (not each[1]._follows(), each[0]), default=None
        )
        if fastest is None:
            raise min(refusals, key=lambda refusal: refusal.needed)
        fastest[1].require_precision()
        return fastest[1]

    def plan_batches(
        self, samples: int, budget: int | None = None, key_memory: int | None = None
    ) -> tuple["Model", ProcessPlan]:
        """Return a model and a plan that evaluate samples within a budget. A compiled model has the fastest
        batch, or its own if the errors of encryption with the fastest, or with the keys that fit, are larger
        than its fit allows. If a batch does not fit and none was requested, it takes half as many samples at
        a time, a quarter, and so on.

        Args:
            samples: number of samples.
            budget: maximum bytes of the process; by default as for `keywright.plan.plan_process`.
            key_memory: maximum bytes of keys in memory; by default as the budget allows.

        Raises:
            OutOfMemoryError: not even one sample at a time fits the budget. The message names presets of
                bootstraps that may need less.
            ModelRefusedError: the errors of encryption with all that fits are larger than its fit allows.
        """
        compilation = None if self.fixed_batch or self.key_plan is not None else self.compilation
        if compilation is None:
            planned = self.plan_process(samples, budget, key_memory)
            self.require_precision(planned.execution)
            return self, planned
        model = self._compiled(compilation.for_samples(samples), compilation)
        while True:
            batch = model.program.batch // 2
            try:
                planned = model.plan_process(samples, budget, key_memory)
            except OutOfMemoryError as refusal:
                if batch == 0:
                    raise smaller_presets(refusal, model.program) from None
            else:
                if batch == 0 or model._follows(planned.execution):
                    model.require_precision(planned.execution)
                    return model, planned
                batch = min(self.program.batch, batch)  # its own was accepted
            model = self._compiled(compilation.for_batch(batch), compilation)

    def for_batch(self, batch: int) -> "Model":
        """Return the same model for a number of samples in shared ciphertexts. Each batch is compiled once.

        Raises:
            ParameterError: the ciphertexts have fewer slots; or the model was loaded, and is for another
                batch.
            ModelRefusedError: its diagonals are too large, or its errors of encryption.
        """
        if self.program.batch == batch:
            return self
        if self.compilation is None:
            raise ParameterError(
                f"batch={batch} differs from the {self.program.batch} samples of the loaded program; use "
                "those, or compile the model again",
                code="batch",
                what="batch",
                value=batch,
            )
        model = self._compiled(self.compilation.for_batch(batch), self.compilation)
        model.require_precision()
        return model

    def _compiled(self, compiled: Executable, compilation: Compilation) -> "Model":
        """Return the model of another program of the same compilation."""
        if compiled.program is self.program:
            return self
        return self._models.setdefault(compiled.program.batch, Model.of(compiled, compilation))

    @cached_property
    def _models(self) -> dict[int, "Model"]:
        """Models of the compilation's other programs, by their batch."""
        return {}

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
        enters: a thin client's answers leave by its first stage. Keys and encoded diagonals count as if they
        were all there, unless `with_server_within` has planned them."""
        if self.server_seconds is not None:
            return self.server_seconds
        seconds = self.program.seconds
        if self.entry is None:
            return seconds
        each = predict_bootstrap(self.entry.plan, stored_model())
        return seconds + self.program.input.layout.ciphertexts * each

    @cached_property
    def encrypted_error(self) -> EncryptedError | None:
        """The predicted error of encryption with the keys of `execution`; None for a loaded model, and
        without calibration data."""
        return self.error_with(self.execution)

    def error_with(self, execution: PlanExecution) -> EncryptedError | None:
        """Return the predicted error of encryption with other keys, such as those of one of `candidates`."""
        return None if self.compilation is None else self.compilation.error_with(self, execution)

    def _follows(self, execution: PlanExecution | None = None) -> bool:
        """Whether the predicted error with some keys, by default its own, is as small as the fit requires."""
        return self.compilation is None or self.compilation.follows(self, execution)

    def require_precision(self, execution: PlanExecution | None = None) -> None:
        """Refuse a compiled model whose predicted error of encryption is larger than its fit allows.

        Args:
            execution: its keys; by default those of `execution`.

        Raises:
            ModelRefusedError: with a `RefusalError`.
        """
        error, network = self.error_with(execution or self.execution), self.approximated
        excess = None if error is None or network is None else error.excess(network.fit)
        if error is not None and network is not None and excess is not None:
            reason = imprecise(
                f"{excess}{error.described}",
                error.share,
                network.fit.noise,
                ways=error.ways,
                divisor=1.0
                if self.entry is None or self.program.input.normalisation is not None
                else self.program.input.scale,
                preset=self._finer_preset,
            )
            raise ModelRefusedError([reason])

    @property
    def _finer_preset(self) -> str | None:
        """The first preset of a larger scale for which the model meets its fit; None if none is known."""
        compilation = self.compilation
        if compilation is None:
            return None
        for name in compilation.finer_presets(self.parameters.log_scale):
            try:
                other = Model.of(compilation.with_preset(name, self.program.batch), compilation)
                if other._follows():
                    return name
            except (ModelRefusedError, ParameterError):
                continue
        return None

    def simulate(
        self, samples: Any, *, public: bool = False, repetitions: int = REPETITIONS, seed: int = SEED
    ) -> Simulation:
        """Simulate `predict` without making keys: run samples in the clear with random errors as encryption
        would add them, for the batch and the keys that it would use. Its ``outputs`` are without errors,
        ``noisy`` has them. The mean and the largest error are within a factor of 4 of measured ones. For thin
        clients, the errors of entering and leaving are left out.

        Args:
            samples: one, of shape ``program.input.shape``, or several, (count, *input_shape); what
                `Program.features` takes, if the model has first steps.
            public, repetitions, seed: see `keywright.runtime.simulate`.

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            EncodeError: another shape, no samples, or values that are not finite.
        """
        values = self._samples(samples)
        ModelClient(self).guard_features(values)
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
            memory: maximum bytes of this process; by default as for `keywright.plan.plan_process`.
            key_memory: maximum bytes of keys in memory; others are read from a file. By default, as memory
                allows.
            progress: receives the progress of every part.

        Returns:
            An array of shape ``program.output.shape``, or (count, *output_shape). One number has the shape
            (1,), where ONNX has none.

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            EncodeError: another shape, no samples, or values that are not finite.
            OutOfMemoryError: keys and diagonals do not fit the memory.
            ModelRefusedError: errors of encryption with the keys that fit the memory are larger than the fit
                allows.
        """
        values, single = self.program.features(samples)
        if not force:
            ModelClient(self).guard_features(values)
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
        """Run client and server on features of samples, (count, *input_shape), as `Program.features` gives
        them, in batches of the program. The server's part only sees ciphertexts and evaluation keys. Returns
        outputs and costs.

        Args:
            planned: keys and diagonals, from `plan_process` or `plan_batches`.
            progress: receives the progress of every part.
        """
        return infer(*self.pair(planned.execution), samples, planned, progress)

    def pair(self, execution: PlanExecution) -> tuple[ModelClient, ModelServer]:
        """Return a client with a new secret key, and a server, for the keys of one of `candidates`."""
        secret = SecretKey.generate(self.parameters)
        return ModelClient(self, secret=secret, execution=execution), ModelServer(self, execution)

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from the result of
        `predict` for several samples; see `keywright.compiler.Program.answers`, also for errors."""
        return self.program.answers(outputs)

    def client(
        self, *, insecure: bool = False, key_bytes: int = KEY_BYTES, key_count: int = KEY_COUNT
    ) -> ModelClient:
        """Return a client with a new secret key.

        Args:
            insecure, key_bytes, key_count: as for `keywright.load_client`, of a model that was loaded from a
                folder.

        Raises:
            SecurityError: the folder's parameters have less than 128 bits of security.
            ParameterError: a limit is below 1, or not an integer.
        """
        demands = Demands(insecure, key_bytes, key_count)
        own = self.folder is None
        if not own:
            demands.require_secure(self.parameters)
        secret = SecretKey.generate(self.parameters)
        return ModelClient(self, secret=secret, demands=None if own else demands)

    def server(self, *, memory: int | None = None, key_memory: int | None = None) -> ModelServer:
        """Return a server.

        Args:
            memory: maximum bytes of its process; by default as for `keywright.plan.plan_process`.
            key_memory: maximum bytes of keys in memory; others are read from their file ahead of their use.
                By default, as many as ``memory`` allows.
        """
        return ModelServer(self, self.execution, memory=memory, key_memory=key_memory)

    # The folder

    def save(self, folder: str | Path, name: str | None = None) -> None:
        """Create a folder that `Model.load`, `keywright.load_client`, `keywright.load_server` and ``keywright
        serve`` read. It holds the model's weights and no secret of a client.

        Args:
            folder: the new folder.
            name: of the saved model, for people; by default its own.

        Raises:
            FolderError: the folder exists, or the name is empty or has control characters.
            ParameterError: no preset has one of its bootstraps.
        """
        require_presets(self.program)
        with new_folder(Path(folder)) as place:
            self.write(place, name)

    @staticmethod
    def load(folder: str | Path) -> "Model":
        """Load a model that `save` wrote.

        Raises:
            FolderError: a file is missing, damaged, or does not match the others.
            ParameterError: no preset has one of its bootstraps.
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
        parameters = Parameters.load(place / PARAMETERS, insecure=True)
        program = storage.load(place / PROGRAM)
        bootstraps = bootstrap_plans(program)
        entry = read_entry(program, bootstraps, parameters, described.entry)
        plan = plan_file.load(place / PLAN) if has_file(place, PLAN) else None
        try:
            return Model(
                described.name, program, parameters, bootstraps, entry, described.labels, plan, folder=place
            )
        except ParameterError as error:
            if error.what != "labels":
                raise
            raise FolderError(f"{place / DESCRIPTION}: {error}", code="model_folder") from error
