"""The server's work: evaluates a program on ciphertexts with evaluation keys, without any secret key."""

import time
from collections.abc import Callable, Sequence

from keywright._core import Bootstrapper, Ciphertext, EvaluationKeys, Evaluator, Parameters
from keywright._progress import Progress, silent
from keywright.plan.memory.process import ProcessPlan
from keywright.program.program import Program
from keywright.runtime.encrypted.backend import EncryptedBackend

from .timing import LayerClock


class Evaluation:
    """A program with its diagonals encoded, and the keys of one owner.

    Args:
        program: the program.
        parameters: of the keys.
        keys: the keys of the plan's execution.
        planned: that execution, and how diagonals are stored.
        progress: reports the encoding.

    Attributes:
        keys: as given.
        clock: time of each layer.
        prepare_seconds: duration of the encoding.
        plaintext_bytes: bytes of the encoded model.
    """

    def __init__(
        self,
        program: Program,
        parameters: Parameters,
        keys: EvaluationKeys,
        planned: ProcessPlan,
        progress: Progress = silent,
    ) -> None:
        start = time.perf_counter()
        self.program, self.keys, self.clock = program, keys, LayerClock(program)
        with progress("encoding bootstraps", None):
            ways = zip(planned.execution.bootstrapper_plans, planned.bootstraps, strict=True)
            bootstrappers = [Bootstrapper(plan, storage=storage) for plan, storage in ways]
        self._backend = EncryptedBackend(
            Evaluator(parameters, keys),
            bootstrappers,
            plan=planned.execution,
            storage=planned.storage,
            on_step=self.clock.step,
        )
        with progress("encoding linear maps", len(program.transforms)) as advance:
            self._backend.prepare(program, advance)
        self.prepare_seconds = time.perf_counter() - start
        self._bootstrap_bytes = sum(bootstrapper.bytes for bootstrapper in bootstrappers)

    @property
    def plaintext_bytes(self) -> int:
        """Bytes of the encoded model."""
        return self._backend.plaintext_bytes + self._bootstrap_bytes

    def run(
        self, inputs: Sequence[Ciphertext], advance: Callable[[float, str], object] | None = None
    ) -> list[Ciphertext]:
        """Evaluate a batch of samples.

        Args:
            advance: called with every operation's predicted seconds, and the next one.

        Raises:
            BackendMisuseError: these are not the ciphertexts that the program takes.
        """
        if advance is None:
            self.clock.start()
        else:
            self.clock.start(advance)
        return self._backend.run(self.program, inputs)
