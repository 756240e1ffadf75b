"""A compiled model: its report, runs in the clear and under encryption, client and server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import BootstrapperPlan, KeySpec, Parameters, SecretKey, inspect, key_set_head
from keywright._progress import Progress, silent
from keywright._units import format_bytes
from keywright.errors import FolderError, MemoryBudgetError
from keywright.model.folder.files import new_folder
from keywright.model.served.model import Model
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.memory.machine import default_budget, resident_bytes
from keywright.plan.memory.planner import Process, bootstrap_bytes, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.search.quick import plan_candidates, plan_network
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET
from keywright.program.program import Program
from keywright.runtime import Simulation, simulate
from keywright.runtime.simulation.simulate import REPETITIONS, SEED

from .client import InferenceClient
from .encrypted_error import EncryptedError
from .report import ModelReport, returned_bytes, sent_bytes
from .server import InferenceServer
from .session import infer

BOOTSTRAP_PRESETS = ("N15_QP858_L5_S32_real", DEFAULT_BOOTSTRAP_PRESET, "N16_QP1745_L15_S40_real")
"""By the bytes of their keys. For models of thin clients; also tried if one needs too much memory."""

DEEP_PRESETS = ("N16_QP1725_L12_S40_real", DEFAULT_BOOTSTRAP_PRESET)
"""For models that need bootstraps, the faster one is used. They have 21 and 25 bits of precision. Also tried
if one needs too much memory."""


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A program with its parameters; made by `keywright.compile`.

    Attributes:
        program: the program.
        parameters: of its ciphertexts.
        plans: of the program's bootstraps, in order.
        key_plan: of its keys; by default the fewest bytes of keys with nearly the best speed.
        name: for people.
        again: compiles the same model for another batch, ``again(batch=)``, or for the best batch for a
            number of samples, ``again(samples=)``; with bootstraps also for another preset,
            ``again(preset=)``. None if a batch was requested.
        encrypted_error: the predicted error of encryption; None without calibration data.
    """

    program: Program = field(repr=False)
    parameters: Parameters
    plans: Sequence[BootstrapperPlan] = field(default=(), repr=False)
    key_plan: KeyPlan | None = field(default=None, repr=False)
    name: str = "model"
    again: "Callable[..., CompiledModel] | None" = field(default=None, repr=False)
    encrypted_error: EncryptedError | None = field(default=None, repr=False)

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Plans of the keys, from the fewest bytes to the fastest, predicted with the calibration of this
        machine if there is one; only the given plan if there is one."""
        if self.key_plan is not None:
            return [self.execution]
        return plan_candidates(self.program, self.parameters, self.plans, model=stored_model())

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            PlanMismatchError: the given plan is for something else.
        """
        if self.key_plan is not None:
            return PlanExecution(self.key_plan, self.parameters, self.program, self.plans)
        return plan_network(self.program, self.parameters, self.plans, model=stored_model())

    @property
    def specs(self) -> list[KeySpec]:
        """The keys that the server needs: those of the plan."""
        return self.execution.key_specs

    @cached_property
    def report(self) -> ModelReport:
        """The costs of the model, and how closely it follows the original model; print it."""
        program, parameters, specs = self.program, self.parameters, self.specs
        return ModelReport(
            repr(parameters),
            parameters.log_n,
            tuple(sorted({ring for ring in program.rings.values() if ring}, reverse=True)),
            program.batch,
            program.depth,
            sum(step.opcode == "bootstrap" for step in program.instructions),
            len(specs),
            inspect(key_set_head(specs))["bytes"] if specs else 0,
            sent_bytes(program, parameters),
            returned_bytes(program, parameters),
            sum(layer.seconds for layer in program.layers),
            program.fit_report,
            self.encrypted_error,
            "" if program.binning is None else str(program.binning),
        )

    def simulate(
        self, samples: ArrayLike, *, public: bool = False, repetitions: int = REPETITIONS, seed: int = SEED
    ) -> Simulation:
        """Simulate `predict_encrypted`: run samples in the clear with random errors as encryption would add
        them, with the batch and the keys that it would use. Returns outputs and their errors. No keys are
        made. The mean and the largest error are within a factor of 4 of measured ones.

        Args:
            samples: one, of shape ``program.input_shape``, or several, (count, *input_shape).
            public, repetitions, seed: see `keywright.runtime.simulate`.

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            InvalidSamplesError: another shape, no samples, or values that are not finite.
        """
        values = self._samples(samples)
        compiled, planned = self._planned(len(values))
        return simulate(
            compiled.program,
            planned.execution,
            values,
            public=public,
            repetitions=repetitions,
            seed=seed,
        )

    def predict_encrypted(
        self,
        samples: ArrayLike,
        *,
        force: bool = False,
        memory: int | None = None,
        key_memory: int | None = None,
        progress: Progress = silent,
    ) -> NDArray[np.float64]:
        """Encrypt samples, evaluate the model on ciphertexts and decrypt, all in this process, to try it: the
        work of `client` and `server`. Every call makes new keys. Unless `compile` was given a batch, the
        fastest batch for these samples is used.

        Args:
            samples: one, of shape ``program.input_shape``, or several, (count, *input_shape).
            force: also evaluate samples that leave a range of the program; their results are wrong.
            memory: maximum bytes of this process; by default 80 percent of the free memory.
            key_memory: maximum bytes of keys in memory; others are read from a file. By default, as memory
                allows.
            progress: receives the progress of every part.

        Returns:
            An array of shape ``program.output_shape``, or (count, *output_shape).

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            InvalidSamplesError: another shape, no samples, or values that are not finite.
            MemoryBudgetError: keys and diagonals do not fit the memory.
        """
        values = self._samples(samples)
        if not force:
            InferenceClient(self.program, self.parameters).guard(values)
        compiled, planned = self._planned(len(values), memory, key_memory)
        outputs = infer(compiled.program, compiled.parameters, values, planned, progress).outputs
        return outputs[0] if np.shape(samples) == self.program.input_shape else outputs

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from the result of
        `predict_encrypted` for several samples; see `keywright.compiler.Program.answers`. None if the results
        already are the model's output."""
        return self.program.answers(outputs)

    def client(self) -> InferenceClient:
        """Return a client with a new secret key."""
        secret = SecretKey.generate(self.parameters)
        return InferenceClient(self.program, self.parameters, lambda: self.execution, secret=secret)

    def server(self, *, memory: int | None = None) -> InferenceServer:
        """Return a server.

        Args:
            memory: maximum bytes of its process; by default 80 percent of the free memory.
        """
        return InferenceServer(self.program, self.parameters, self.execution, memory=memory)

    def save(self, folder: str | Path) -> None:
        """Create a folder that `load_client`, `load_server` and ``keywright serve`` read. It holds the
        model's weights and no secret of a client.

        Raises:
            FolderError: the folder exists.
        """
        model = Model(self.name, self.program, self.parameters, self.plans, key_plan=self.execution.plan)
        with new_folder(Path(folder)) as made:
            model.save(made)

    def with_plan(self, plan: KeyPlan) -> "CompiledModel":
        """Return the model with another key plan.

        Raises:
            PlanMismatchError: the plan is for something else.
        """
        planned = replace(self, key_plan=plan)
        _ = planned.execution
        return planned

    def plan_process(self, samples: int, budget: int, key_memory: int | None = None) -> ProcessPlan:
        """Plan keys and diagonals of a process that makes its keys and evaluates a number of samples.

        Args:
            samples: number of samples.
            budget: maximum bytes of the process.
            key_memory: maximum bytes of keys in memory; by default as the budget allows.

        Raises:
            MemoryBudgetError: nothing fits the budget.
        """
        batches = -(-samples // self.program.batch)
        process = Process(resident_bytes(), self.program.outputs, samples=batches, key_memory=key_memory)
        return self._plan(process, budget)

    def plan_server(self, budget: int) -> PlanExecution:
        """Return the fastest keys for a server with so much memory.

        Raises:
            MemoryBudgetError: nothing fits the budget.
        """
        return self._plan(Process(resident_bytes(), self.program.outputs, makes_keys=False), budget).execution

    def plan_batches(
        self, samples: int, budget: int, key_memory: int | None = None
    ) -> "tuple[CompiledModel, ProcessPlan]":
        """Return a model and a plan that evaluate samples within a budget. This is the model itself, or, if
        it does not fit and no batch was requested, the model for half as many samples at a time, a quarter,
        and so on. Arguments are those of `plan_process`.

        Raises:
            MemoryBudgetError: not even one sample at a time fits the budget. The message names presets of
                bootstraps that may need less.
        """
        compiled = self
        while True:
            try:
                return compiled, compiled.plan_process(samples, budget, key_memory)
            except MemoryBudgetError as refusal:
                if self.again is None or compiled.program.batch == 1:
                    raise self._with_presets(refusal) from None
            compiled = self.again(batch=compiled.program.batch // 2)

    def _planned(
        self, samples: int, memory: int | None = None, key_memory: int | None = None
    ) -> "tuple[CompiledModel, ProcessPlan]":
        """Return the model and the plan with which a process evaluates samples itself."""
        best = self if self.again is None else self.again(samples=samples)
        return best.plan_batches(samples, default_budget() if memory is None else memory, key_memory)

    def _with_presets(self, refusal: MemoryBudgetError) -> MemoryBudgetError:
        """Return a refusal with the presets of bootstraps that may need less, and what the smallest bootstrap
        needs. Nothing is compiled for them."""
        own = {bootstrap.preset for bootstrap in self.program.bootstraps}
        if self.again is None or not own:
            return refusal
        resident, slots = resident_bytes(), min(plan.slots for plan in self.plans)
        sizes = []
        for name in sorted(set(BOOTSTRAP_PRESETS + DEEP_PRESETS) - own):
            lowest = BootstrapperPlan.preset(name).input_level + 1
            plan = BootstrapperPlan.preset(name, "fastest", slots=slots, output_level=lowest)
            sizes.append((bootstrap_bytes(plan, resident), name))
        less = [
            f"{name} (at least {format_bytes(size)})" for size, name in sorted(sizes) if size < refusal.needed
        ]
        text = f"{refusal}. Presets that may need less: {', '.join(less)}" if less else str(refusal)
        return MemoryBudgetError(text, needed=refusal.needed, budget=refusal.budget, parts=refusal.parts)

    def _plan(self, process: Process, budget: int) -> ProcessPlan:
        return plan_process(self.candidates, self.program, process, budget, stored_model() or CostModel())

    def _samples(self, samples: ArrayLike) -> NDArray[np.float64]:
        """Return samples with a batch axis.

        Raises:
            InvalidSamplesError: there are none, or they have another shape or values that are not finite.
        """
        values = np.asarray(samples, np.float64)
        values = values[None] if values.shape == self.program.input_shape else values
        self.program.batches(values)
        return values


def load(folder: str | Path) -> CompiledModel:
    """Load a model that `CompiledModel.save` wrote.

    Raises:
        FolderError: the model is for thin clients.
        ModelFolderError: a file is missing, damaged, or does not match the others.
    """
    model = Model.load(Path(folder))
    if model.entry is not None:
        raise FolderError(
            f"{folder} holds a model for thin clients, which keywright serve and "
            "keywright.client.RemoteModel use; for full clients compile it with --slots"
        )
    return CompiledModel(model.program, model.parameters, model.plans, model.key_plan, model.name)
