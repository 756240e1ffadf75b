"""The server of a model: evaluates encrypted samples; `load_server` loads it from a folder."""

from functools import cached_property
from pathlib import Path

from keywright._core import Ciphertext, EvaluationKeys, MasterKeys, Parameters, SeededCiphertext, inspect
from keywright._progress import Progress, silent
from keywright.errors.model import FolderError, KeysMissingError, MessageError
from keywright.model.folder.files import EVALUATION_KEYS, MASTER_KEYS, PLAN, require_files
from keywright.model.folder.identity import Identity
from keywright.model.folder.loading import load
from keywright.plan.cost.calibration import stored_model
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import default_budget, resident_bytes
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.memory.process import ProcessPlan
from keywright.program.program import Program
from keywright.runtime.evaluation import Evaluation

from .messages import Message


class ModelServer:
    """Evaluates a program with the keys of one client.

    Args:
        program: the program.
        parameters: of its ciphertexts.
        execution: of its key plan.
        memory: maximum bytes of this process; by default 80 percent of the free memory.
        key_memory: maximum bytes of keys in memory; others are read from their file ahead of their use. By
            default, as many as ``memory`` allows.
    """

    def __init__(
        self,
        program: Program,
        parameters: Parameters,
        execution: PlanExecution,
        *,
        memory: int | None = None,
        key_memory: int | None = None,
    ) -> None:
        self.program, self.parameters, self.execution = program, parameters, execution
        self._memory, self._key_memory = memory, key_memory
        self._evaluation: Evaluation | None = None

    @cached_property
    def identity(self) -> Identity:
        """Which program the server has; its answers carry it."""
        return Identity.of(self.program)

    def load_keys(self, keys: bytes, masters: bytes | None = None, progress: Progress = silent) -> None:
        """Take a client's keys, and encode the model.

        Args:
            keys: result of `ModelClient.keys`.
            masters: result of `ModelClient.master_keys`, if the plan derives keys.

        Raises:
            PlanMismatchError: these are not the plan's keys.
            MemoryBudgetError: keys and diagonals do not fit the memory.
        """
        planned = self._plan(None, streams=False)
        with progress("reading keys", None):
            read = EvaluationKeys.from_bytes(keys, self.parameters)
        known = None if masters is None else MasterKeys.from_bytes(masters, self.parameters)
        with progress("derived keys", len(self.execution.derived_specs)) as advance:
            complete = self.execution.complete(read, known, lambda done, total: advance(1))
        self._evaluation = Evaluation(self.program, self.parameters, complete, planned, progress)

    def open_keys(
        self, folder: str | Path, batches: int | None = None, progress: Progress = silent
    ) -> ProcessPlan:
        """Open the keys of a server folder, all of them or as many at a time as memory allows, and encode the
        model. Returns the memory plan.

        Args:
            batches: how often the program will run; None for any number.

        Raises:
            FolderError: the folder has no keys.
            PlanMismatchError: these are not the plan's keys.
            MemoryBudgetError: keys and diagonals do not fit the memory.
        """
        place, derives = Path(folder), self.execution.plan.masters is not None
        names = (EVALUATION_KEYS, MASTER_KEYS) if derives else (EVALUATION_KEYS,)
        require_files(place, names, "server folder of keywright keygen")
        with progress("planning memory", None):
            planned = self._plan(batches, streams=True)
        masters = MasterKeys.load(place / MASTER_KEYS, self.parameters) if derives else None
        count = len(self.execution.derived_specs)
        with progress("derived keys" if derives else "reading keys", count or None) as advance:
            keys = self.execution.load_keys(
                place / EVALUATION_KEYS, masters, planned.key_memory, lambda done, total: advance(1)
            )
        self._evaluation = Evaluation(self.program, self.parameters, keys, planned, progress)
        return planned

    @property
    def evaluation(self) -> Evaluation:
        """The program with the loaded keys.

        Raises:
            KeysMissingError: no keys were loaded.
        """
        if self._evaluation is None:
            raise KeysMissingError("the server has no keys; load those of client.keys() with load_keys")
        return self._evaluation

    def run(self, message: bytes) -> bytes:
        """Evaluate every sample of a message of `ModelClient.encrypt`.

        Returns:
            The answer, for `ModelClient.decrypt`.

        Raises:
            KeysMissingError: no keys were loaded.
            MessageError: these bytes are not a message.
            ProgramMismatchError: the samples are encrypted for another program.
        """
        program, read, evaluation = self.program, Message.from_bytes(message), self.evaluation
        read.identity.require(self.identity, "server", "client")
        answer: list[bytes] = []
        for _, objects in read.batches(program.batch, program.input_layout.ciphertexts):
            outputs = evaluation.run([self.read_ciphertext(data) for data in objects])
            answer += [bytes(output.to_bytes()) for output in outputs]
        return Message(read.samples, answer, self.identity).to_bytes()

    def read_ciphertext(self, source: bytes | Path) -> Ciphertext:
        """Read a ciphertext from bytes or a file, seeded or not.

        Raises:
            MessageError: it is another kind of object.
            FormatError: it is damaged.
        """
        kind = inspect(source)["kind"]
        seeded, full = "a seeded CKKS ciphertext", "a CKKS ciphertext"
        if kind not in (seeded, full):
            what = f"{source} is" if isinstance(source, Path) else "the message holds"
            raise MessageError(f"{what} {kind}, not a ciphertext; make ciphertexts with the client's encrypt")
        if isinstance(source, Path):
            if kind == seeded:
                return SeededCiphertext.load(source, self.parameters).expand()
            return Ciphertext.load(source, self.parameters)
        if kind == seeded:
            return SeededCiphertext.from_bytes(source, self.parameters).expand()
        return Ciphertext.from_bytes(source, self.parameters)

    def _plan(self, batches: int | None, *, streams: bool) -> ProcessPlan:
        process = Process(
            resident_bytes(),
            samples=batches,
            makes_keys=False,
            streams=streams,
            key_memory=self._key_memory if streams else None,
        )
        budget = default_budget() if self._memory is None else self._memory
        return plan_process([self.execution], self.program, process, budget, stored_model() or CostModel())


def load_server(
    folder: str | Path,
    *,
    memory: int | None = None,
    key_memory: int | None = None,
) -> ModelServer:
    """Load the server of a model from a folder. After `CompiledModel.save` it gets keys by
    `ModelServer.load_keys`; a folder of ``keywright keygen`` contains keys for
    `ModelServer.open_keys`.

    Args:
        memory, key_memory: see `ModelServer`.

    Raises:
        FolderError: files are missing, or the model is for thin clients.
        PlanMismatchError: the key plan is for something else.
    """
    origin = "server folder of keywright keygen, or the model's folder"
    loaded = load(Path(folder), origin)
    if loaded.execution is None:
        raise FolderError(f"{folder} lacks {PLAN}; name the {origin}")
    return ModelServer(
        loaded.program,
        loaded.parameters,
        loaded.execution,
        memory=memory,
        key_memory=key_memory,
    )
