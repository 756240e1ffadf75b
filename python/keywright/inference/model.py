"""One object for a compiled model: its report, runs in the clear and under encryption, both sides of it."""

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
from keywright.errors import MemoryBudgetError
from keywright.nn import ModelRefusedError, Program, Simulation, simulate
from keywright.nn.placement.bootstraps import DEFAULT_BOOTSTRAP_PRESET
from keywright.nn.simulation.simulate import REPETITIONS, SEED
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.memory.machine import default_budget, resident_bytes
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.plan.search.quick import plan_candidates, plan_network
from keywright.serve.model import Model

from .client import InferenceClient
from .folders import new_folder
from .report import ModelReport, returned_bytes, sent_bytes
from .server import InferenceServer
from .session import infer

BOOTSTRAP_PRESETS = ("N15_QP858_L5_S32_real", DEFAULT_BOOTSTRAP_PRESET, "N16_QP1745_L15_S40_real")
"""By the bytes of their keys: for models of thin clients, and tried where one takes too much memory."""

DEEP_PRESETS = (DEFAULT_BOOTSTRAP_PRESET, "N16_QP1725_L12_S40_real")
"""For models that need bootstraps, whichever is faster: of 25 and 21 bits. Tried too."""


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A program with the parameters that it is for; made by `keywright.compile`.

    Attributes:
        program: what is evaluated.
        parameters: of its ciphertexts.
        plans: of the program's bootstraps, in order.
        key_plan: of its keys; the fewest bytes that are about as fast as any where not given.
        name: for people.
        again: compiles the same model for another batch, ``again(batch=)``, or for the batch that is best for
            a number of samples, ``again(samples=)``, where there are bootstraps also for another preset,
            ``again(preset=)``; None where a batch was asked for.
    """

    program: Program = field(repr=False)
    parameters: Parameters
    plans: Sequence[BootstrapperPlan] = field(default=(), repr=False)
    key_plan: KeyPlan | None = field(default=None, repr=False)
    name: str = "model"
    again: "Callable[..., CompiledModel] | None" = field(default=None, repr=False)

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Plans of the keys, from the fewest bytes up to the fastest, with the weights of this machine if
        they are measured; the one that was given if there is one."""
        if self.key_plan is not None:
            return [self.execution]
        return plan_candidates(self.program, self.parameters, self.plans, model=stored_model())

    @cached_property
    def execution(self) -> PlanExecution:
        """The plan of the keys.

        Raises:
            PlanMismatchError: the plan that was given is for something else.
        """
        if self.key_plan is not None:
            return PlanExecution(self.key_plan, self.parameters, self.program, self.plans)
        return plan_network(self.program, self.parameters, self.plans, model=stored_model())

    @property
    def specs(self) -> list[KeySpec]:
        """The keys that the server needs: those of the plan."""
        return self.execution.key_specs()

    @cached_property
    def report(self) -> ModelReport:
        """What the model takes, and how closely it follows the one that was compiled; print it."""
        program, parameters, specs = self.program, self.parameters, self.specs
        return ModelReport(
            repr(parameters),
            parameters.log_n,
            tuple(sorted({ring for ring in program.rings.values() if ring}, reverse=True)),
            program.batch,
            program.depth,
            sum(step.opcode == "bootstrap" for step in program.instructions),
            len(specs),
            inspect(key_set_head(specs))["bytes"],
            sent_bytes(program, parameters),
            returned_bytes(program, parameters),
            sum(layer.seconds for layer in program.layers),
            program.fit_report,
        )

    def simulate(
        self, samples: ArrayLike, *, public: bool = False, repetitions: int = REPETITIONS, seed: int = SEED
    ) -> Simulation:
        """Run samples in the clear, with the errors that encryption would add drawn and added: outputs, and
        how far an encrypted run is off them. No keys are made.

        Args:
            samples: one, of shape ``program.input_shape``, or (count, *input_shape).
            public, repetitions, seed: see `keywright.nn.simulate`.

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            InvalidSamplesError: another shape, no samples, or values that are not finite.
        """
        return simulate(
            self.program,
            self.execution,
            self._samples(samples),
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
        """Encrypt samples, evaluate the model on ciphertexts and decrypt, all in this process, to try it:
        what `client` and `server` do with each other. Keys are made anew for every call. Unless `compile` was
        given a batch, as many samples share ciphertexts as makes all of them fastest.

        Args:
            samples: one, of shape ``program.input_shape``, or (count, *input_shape).
            force: whether samples that leave a range of the program are evaluated too; their results are
                wrong.
            memory: most bytes of this process; 80 percent of what is free where not given.
            key_memory: most bytes of keys in memory at a time, the others being read from a file; as there is
                room where not given.
            progress: told of every part.

        Returns:
            Of shape ``program.output_shape``, or (count, *output_shape).

        Raises:
            OutOfRangeError: a sample leaves a range of the program.
            InvalidSamplesError: another shape, no samples, or values that are not finite.
            MemoryBudgetError: keys and diagonals are not within the memory.
        """
        values = self._samples(samples)
        if not force:
            InferenceClient(self.program, self.parameters).guard(values)
        best = self if self.again is None else self.again(samples=len(values))
        budget = default_budget() if memory is None else memory
        compiled, planned = best.plan_batches(len(values), budget, key_memory)
        outputs = infer(compiled.program, compiled.parameters, values, planned, progress).outputs
        return outputs[0] if np.shape(samples) == self.program.input_shape else outputs

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """The model's own outputs by name, as labels and probabilities, of what `predict_encrypted` returned
        for many samples; see `keywright.nn.Program.answers`. None where these are the model's output."""
        return self.program.answers(outputs)

    def client(self) -> InferenceClient:
        """The owner of the data, with a new secret."""
        secret = SecretKey.generate(self.parameters)
        return InferenceClient(self.program, self.parameters, lambda: self.execution, secret=secret)

    def server(self, *, memory: int | None = None) -> InferenceServer:
        """Who evaluates.

        Args:
            memory: most bytes of its process; 80 percent of what is free where not given.
        """
        return InferenceServer(self.program, self.parameters, self.execution, memory=memory)

    def save(self, folder: str | Path) -> None:
        """Make a folder that `load_client`, `load_server` and ``keywright serve`` read. It holds the model's
        weights and nothing secret of a client.

        Raises:
            FolderError: it exists.
        """
        model = Model(self.name, self.program, self.parameters, self.plans, key_plan=self.execution.plan)
        with new_folder(Path(folder)) as made:
            model.save(made)

    def with_plan(self, plan: KeyPlan) -> "CompiledModel":
        """The same with another plan of its keys.

        Raises:
            PlanMismatchError: the plan is for something else.
        """
        planned = replace(self, key_plan=plan)
        _ = planned.execution
        return planned

    def plan_process(self, samples: int, budget: int, key_memory: int | None = None) -> ProcessPlan:
        """Keys and diagonals of a process that makes its keys and evaluates a number of samples.

        Args:
            samples: how many.
            budget: most bytes of the process.
            key_memory: most bytes of keys at a time; as the budget has room where not given.

        Raises:
            MemoryBudgetError: nothing is within the budget.
        """
        batches = -(-samples // self.program.batch)
        process = Process(resident_bytes(), self.program.outputs, samples=batches, key_memory=key_memory)
        return self._plan(process, budget)

    def plan_server(self, budget: int) -> PlanExecution:
        """Keys that a server of so much memory is fastest with.

        Raises:
            MemoryBudgetError: nothing is within the budget.
        """
        return self._plan(Process(resident_bytes(), self.program.outputs, makes_keys=False), budget).execution

    def plan_batches(
        self, samples: int, budget: int, key_memory: int | None = None
    ) -> "tuple[CompiledModel, ProcessPlan]":
        """What evaluates samples within a budget: this model, or the same for half as many samples at a time,
        a quarter, and so on, as long as more do not fit and no batch was asked for. Arguments are those of
        `plan_process`.

        Raises:
            MemoryBudgetError: not even one sample at a time is within the budget. It says which presets of
                bootstraps take less.
        """
        compiled = self
        while True:
            try:
                return compiled, compiled.plan_process(samples, budget, key_memory)
            except MemoryBudgetError as refusal:
                if self.again is None or compiled.program.batch == 1:
                    raise self._weigh_presets(refusal, samples) from None
            compiled = self.again(batch=compiled.program.batch // 2)

    def _weigh_presets(self, refusal: MemoryBudgetError, samples: int) -> MemoryBudgetError:
        """A refusal, with what other presets of bootstraps take at least, one sample at a time."""
        own = {bootstrap.preset for bootstrap in self.program.bootstraps}
        if self.again is None or not own:
            return refusal
        found = {}
        for preset in dict.fromkeys((*BOOTSTRAP_PRESETS, *DEEP_PRESETS)):
            if preset in own:
                continue
            try:
                self.again(batch=1, preset=preset).plan_process(samples, 0)
            except MemoryBudgetError as other:
                found[preset] = other.needed
            except ModelRefusedError:
                continue
        less = sorted((size, name) for name, size in found.items() if size < refusal.needed)
        least = ", ".join(f"{name} {format_bytes(size)}" for size, name in less)
        text = f"{refusal}. Of other presets less would do: {least}" if less else str(refusal)
        return MemoryBudgetError(text, needed=refusal.needed, budget=refusal.budget, parts=refusal.parts)

    def _plan(self, process: Process, budget: int) -> ProcessPlan:
        return plan_process(self.candidates, self.program, process, budget, stored_model() or CostModel())

    def _samples(self, samples: ArrayLike) -> NDArray[np.float64]:
        """Samples with an axis of their number."""
        values = np.asarray(samples, np.float64)
        return values[None] if values.shape == self.program.input_shape else values
