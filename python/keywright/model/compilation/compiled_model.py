"""A compiled model, which can be compiled for other batches."""

from collections.abc import Callable
from dataclasses import dataclass, field

from keywright.errors import OutOfMemoryError
from keywright.model.model import Model
from keywright.model.report.encrypted_error import follows
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.process import ProcessPlan

from .compilation import Compilation


@dataclass(frozen=True, eq=False)
class CompiledModel(Model):
    """A model of `keywright.compile`. Unless it was compiled for a batch, it predicts with the fastest batch
    for its samples.

    Attributes:
        compilation: compiles the model for other batches.
    """

    compilation: Compilation = field(kw_only=True, repr=False)

    @staticmethod
    def of(model: Model, compilation: Compilation) -> "CompiledModel":
        """Return one of a compilation's models, with the keys and errors that were computed for it."""
        compiled = object.__new__(CompiledModel)
        vars(compiled).update(vars(model), compilation=compilation)
        return compiled

    def require_precision(
        self, execution: PlanExecution | None = None, precise: Callable[[], str | None] | None = None
    ) -> None:
        """As for `Model.require_precision`."""
        super().require_precision(execution, precise or (lambda: self.compilation.precise(self)))

    def for_batch(self, batch: int) -> Model:
        """As for `Model.for_batch`."""
        if self.program.batch == batch:
            return self
        model = self.compilation.for_batch(batch)
        self.compilation.require_precision(model)
        return model

    def plan_batches(
        self, samples: int, budget: int | None = None, key_memory: int | None = None
    ) -> tuple[Model, ProcessPlan]:
        """As for `Model.plan_batches`."""
        compilation = self.compilation
        if compilation.batch is not None or self.key_plan is not None:
            return super().plan_batches(samples, budget, key_memory)
        model = compilation.for_samples(samples)
        while True:
            batch = model.program.batch // 2
            try:
                planned = model.plan_process(samples, budget, key_memory)
            except OutOfMemoryError as refusal:
                if batch == 0:
                    raise compilation.refusal(refusal, model) from None
            else:
                execution = planned.execution
                if batch == 0 or follows(model.error_with(execution), compilation.approximated.fit):
                    compilation.require_precision(model, execution)
                    return model, planned
                batch = min(self.program.batch, batch)  # its own was accepted
            model = compilation.for_batch(batch)
