"""The server's work: evaluates a program on ciphertexts with evaluation keys, without any secret key."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from keywright._copies import Unpicklable
from keywright._core import Bootstrapper, Ciphertext, EvaluationKeys, Evaluator
from keywright._progress import Progress, silent
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.diagonals import Storage
from keywright.plan.memory.machine import large_blocks_kept
from keywright.plan.memory.process import ProcessPlan
from keywright.program.program import Program
from keywright.runtime.encrypted.backend import EncryptedBackend

from .timing import Advance, LayerClock

OnStep = Callable[[], object]
"""Called after every operation."""


class Runner(Unpicklable, elsewhere="load the model in the other process with keywright.load_server"):
    """A program with its diagonals encoded, which runs with the keys of any owner, one after the other.

    A thin client knows one prime and no Fourier transform: it encrypts values as coefficients, at level 0.
    The runner applies ModRaise, CoeffsToSlots and EvalMod (`mod_raise`, `coeffs_to_slots`, `eval_mod`) and
    runs the program. Then it applies SlotsToCoeffs, which ends at level 0 with one prime left: boosted
    deflation (Aikata et al.).

    Thread safety: one thread at a time, because a run writes `clock`.

    Args:
        program: the program.
        execution: of its keys.
        planned: how diagonals are stored; by default they are kept encoded.
        entry: for thin clients, the index of the execution's bootstrap through which their ciphertexts enter
            and leave; None if clients encrypt slots.
        progress: reports the encoding.

    Attributes:
        program, execution: as given.
        clock: time of each layer.
        prepare_seconds: duration of the encoding.
        plaintext_bytes: bytes of the encoded model.
        working_bytes: planned bytes of an evaluation besides keys and diagonals; 0 without a plan.
    """

    @large_blocks_kept()
    def __init__(
        self,
        program: Program,
        execution: PlanExecution,
        planned: ProcessPlan | None = None,
        entry: int | None = None,
        progress: Progress = silent,
    ) -> None:
        start = time.perf_counter()
        self.program, self.execution, self.clock = program, execution, LayerClock(program)
        plans = execution.bootstrapper_plans
        ways: Sequence[Storage] = (
            ["encoded"] * len(plans) if planned is None else planned.diagonals.bootstraps
        )
        with (progress if plans else silent)("encoding bootstraps", None):
            bootstrappers = [Bootstrapper(p, storage=way) for p, way in zip(plans, ways, strict=True)]
        self._entry = None if entry is None else bootstrappers[entry]
        self._backend = EncryptedBackend(
            Evaluator(execution.parameters),
            bootstrappers[: len(program.operands.bootstraps)],
            plan=execution,
            storage=None if planned is None else planned.diagonals.transforms,
        )
        with progress("encoding linear maps", len(program.operands.transforms)) as advance:
            self._backend.prepare(program, advance)
        self.prepare_seconds = time.perf_counter() - start
        self._bootstrap_bytes = sum(bootstrapper.bytes for bootstrapper in bootstrappers)
        memory = None if planned is None else planned.memory
        self.working_bytes = 0 if memory is None else memory.ciphertexts + memory.scratch + memory.idle

    @property
    def plaintext_bytes(self) -> int:
        """Bytes of the encoded model."""
        return self._backend.plaintext_bytes + self._bootstrap_bytes

    def run(
        self,
        keys: EvaluationKeys,
        inputs: Sequence[Ciphertext],
        advance: Advance | None = None,
        on_step: OnStep | None = None,
    ) -> list[Ciphertext]:
        """Evaluate a batch of samples.

        Args:
            keys: keys of the execution, with its routes: `PlanExecution.follow`, `load_keys` or `complete`.
            inputs: the ciphertexts of a batch.
            advance: called with every operation's predicted seconds, and the next one.
            on_step: called after every operation, and after every ciphertext of a thin client that enters or
                leaves.

        Raises:
            OperandError: these are not the ciphertexts that the program takes.
        """
        evaluator = Evaluator(self.execution.parameters, keys)
        values = [self._enter(evaluator, value, on_step) for value in inputs]
        self.clock.start(advance)
        step = self.clock.step if on_step is None else partial(_both, self.clock.step, on_step)
        results = self._backend.with_keys(evaluator, step).run(self.program, values)
        return [self._leave(evaluator, result, on_step) for result in results]

    def _enter(self, evaluator: Evaluator, value: Ciphertext, on_step: OnStep | None) -> Ciphertext:
        """Return a client's ciphertext as the program takes it."""
        if self._entry is None:
            return value
        slots = self._entry.bootstrap_coefficients(evaluator, value)
        repeated = evaluator.view_slots(slots, self.program.slots)
        entered = evaluator.drop_to_level(repeated, self.program.input.level)
        if on_step is not None:
            on_step()
        return entered

    def _leave(self, evaluator: Evaluator, result: Ciphertext, on_step: OnStep | None) -> Ciphertext:
        """Return a result of the program as the client takes it."""
        if self._entry is None:
            return result
        once = evaluator.view_slots(result, self._entry.plan.slots)
        left = evaluator.drop_to_level(self._entry.slots_to_coeffs(evaluator, once), 0)
        if on_step is not None:
            on_step()
        return left


def _both(first: OnStep, second: OnStep) -> None:
    first()
    second()
