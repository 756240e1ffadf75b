"""The server of a model: evaluates encrypted samples with the keys of one client."""

from collections.abc import Callable, Sequence
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._core import Ciphertext, EvaluationKeys, MasterKeys
from keywright._progress import Progress, silent
from keywright.errors.choices import require_integer
from keywright.errors.engine import FormatError, MissingKeyError
from keywright.errors.service import InvalidObjectError
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.machine import resident_bytes
from keywright.plan.memory.planner import Process
from keywright.plan.memory.process import ProcessPlan
from keywright.runtime.runner import Runner

from .exchange.identity import Identity
from .exchange.messages import Message
from .exchange.requests import Answer, Requests
from .executable import Executable
from .folder.files import EVALUATION_KEYS, MASTER_KEYS, require_files


class ModelServer(
    Unpicklable,
    elsewhere="save the model with keywright.Model.save, and use keywright.load_server in each worker",
):
    """Evaluates a program with the keys of one client.

    Thread safety: one thread at a time; load one server for each thread, or run a `keywright.serve.Service`.

    Args:
        executable: the program and its parameters.
        execution: of the key plan.
        memory: maximum bytes of this process; by default as for `keywright.plan.plan_process`.
        key_memory: maximum bytes of keys in memory; others are read from their file ahead of their use. By
            default, as many as ``memory`` allows.

    Raises:
        ParameterError: a number of bytes is not an integer.
    """

    def __init__(
        self,
        executable: Executable,
        execution: PlanExecution,
        *,
        memory: int | None = None,
        key_memory: int | None = None,
    ) -> None:
        for name, value in (("memory", memory), ("key_memory", key_memory)):
            if value is not None:
                require_integer(name, value)
        self.program, self.parameters, self.execution = executable.program, executable.parameters, execution
        self._executable, self._memory, self._key_memory = executable, memory, key_memory
        self._loaded: tuple[Runner, EvaluationKeys] | None = None

    @property
    def identity(self) -> Identity:
        """Which program the server has; its answers carry it."""
        return self._executable.identity

    @property
    def requests(self) -> Requests:
        """Reads the ciphertexts of clients, and writes answers."""
        return self._executable.requests

    def load_keys(self, keys: bytes, masters: bytes | None = None, progress: Progress = silent) -> None:
        """Take a client's keys, and encode the model.

        Args:
            keys: result of `ModelClient.keys`.
            masters: result of `ModelClient.master_keys`, if the plan derives keys.

        Raises:
            MismatchError: these are not the plan's keys.
            OutOfMemoryError: keys and diagonals do not fit the memory.
        """
        planned = self._plan(None, streams=False)
        with progress("reading keys", None):
            read = EvaluationKeys.from_bytes(keys, self.parameters)
        known = None if masters is None else MasterKeys.from_bytes(masters, self.parameters)
        with progress("derived keys", len(self.execution.derived_specs)) as advance:
            complete = self.execution.complete(read, known, lambda done, total: advance(1))
        self.take_keys(complete, planned, progress)

    def open_keys(
        self, folder: str | Path, batches: int | None = None, progress: Progress = silent
    ) -> ProcessPlan:
        """Open the keys of a server folder, all of them or as many at a time as memory allows, and encode the
        model. Returns the memory plan.

        Args:
            batches: how often the program will run; None for any number.

        Raises:
            FolderError: the folder has no keys.
            MismatchError: these are not the plan's keys.
            OutOfMemoryError: keys and diagonals do not fit the memory.
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
        self.take_keys(keys, planned, progress)
        return planned

    def take_keys(self, keys: EvaluationKeys, planned: ProcessPlan, progress: Progress = silent) -> None:
        """Take keys that follow the execution, and encode the model as planned."""
        self._loaded = self._executable.runner(planned, progress), keys

    @property
    def runner(self) -> Runner:
        """The program with its diagonals encoded.

        Raises:
            MissingKeyError: no keys were loaded.
        """
        return self._with_keys[0]

    @property
    def keys(self) -> EvaluationKeys:
        """The loaded keys; errors as for `runner`."""
        return self._with_keys[1]

    @property
    def _with_keys(self) -> tuple[Runner, EvaluationKeys]:
        if self._loaded is None:
            raise MissingKeyError(
                "the server has no keys; load those of client.keys() with load_keys", code="server"
            )
        return self._loaded

    def run(self, message: bytes) -> bytes:
        """Evaluate every sample of a message of `ModelClient.encrypt`.

        Returns:
            The answer, for `ModelClient.decrypt`.

        Raises:
            MissingKeyError: no keys were loaded.
            FormatError: these bytes are not a message.
            MismatchError: the samples are encrypted for another program.
        """
        program, read = self.program, Message.from_bytes(message)
        read.identity.require(self.identity, "server", "client")
        answer: list[bytes] = []
        for _, objects in read.batches(program.batch, program.input.layout.ciphertexts):
            answer += self.evaluate(objects).objects
        return Message(read.samples, answer, self.identity).to_bytes()

    def evaluate(
        self, objects: Sequence[bytes], advance: Callable[[float, str], object] | None = None
    ) -> Answer:
        """Read the ciphertexts of a batch of samples, evaluate them, and write the answer.

        Args:
            objects: results of `ModelClient.encrypt_batch`.
            advance: called with every operation's predicted seconds, and the next one.

        Raises:
            MissingKeyError: no keys were loaded.
            FormatError: the program takes no such ciphertext.
            OperandError: these are not as many ciphertexts as the program takes.
        """
        loaded = self._with_keys
        return self.requests.answer(*loaded, [self._read(each) for each in objects], advance)

    def _read(self, data: bytes) -> Ciphertext:
        try:
            return self.requests.read(data)
        except InvalidObjectError as error:
            raise FormatError(f"the message: {error}", code="message") from error

    def _plan(self, batches: int | None, *, streams: bool) -> ProcessPlan:
        process = Process(
            resident_bytes(),
            samples=batches,
            makes_keys=False,
            streams=streams,
            key_memory=self._key_memory if streams else None,
        )
        return self._executable.plan_memory(process, self._memory, [self.execution])
