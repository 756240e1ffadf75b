"""What a service and its workers need of a model or an index (`Served`), and of the same in memory
(`ServedRunner`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from keywright._core import BfvParameters, EvaluationKeys, KeySpec, Parameters
from keywright.plan.memory.process import Parts


@dataclass(frozen=True)
class KeySet:
    """The key set that each client sends.

    Attributes:
        head: bytes that it begins with; they name every key.
        size: bytes of the stored set.
        resident_bytes: bytes in memory, each key on its own pages.
        first_key: bytes of the stored set up to the contents of its first key, or a few more.
        steps: the keys of each step of an evaluation, in order.
    """

    head: bytes
    size: int
    resident_bytes: int
    first_key: int
    steps: Sequence[Sequence[KeySpec]]


@dataclass(frozen=True)
class MessageForm:
    """The messages and answers of an evaluation.

    Attributes:
        inputs, outputs: ciphertexts of a message and of its answer.
        most_bytes: maximum bytes of a message.
        batch: places for samples.
        joins: whether messages of one client with samples at different places are evaluated together.
    """

    inputs: int
    outputs: int
    most_bytes: int
    batch: int = 1
    joins: bool = False


class ServicePlan(Protocol):
    """The memory plan of a process that answers requests, without keys."""

    @property
    def memory(self) -> Parts:
        """Its bytes by part."""

    def explain(self) -> str:
        """Describe what is stored, and how."""


class ServedRunner(Protocol):
    """A model or an index in the memory of a worker."""

    @property
    def working_bytes(self) -> int:
        """Planned bytes of an evaluation besides keys; 0 without a plan."""

    def read(self, messages: Sequence[bytes]) -> Any:
        """Read a message, or several that are evaluated together. Returns the ciphertexts for `evaluate`.

        Raises:
            BadRequestError, InvalidObjectError: these are not messages for it.
        """

    def evaluate(self, inputs: Any, keys: EvaluationKeys, on_step: Callable[[], object]) -> list[bytes]:
        """Evaluate ciphertexts with a client's keys. Returns the objects of the answer.

        Args:
            inputs: result of `read`.
            keys: the client's keys.
            on_step: called after each step.
        """


class Served(Protocol):
    """A model or an index, as a service answers for it."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def document(self) -> bytes:
        """What clients know of it: a manifest, or a directory."""

    @property
    def hash(self) -> str:
        """SHA-256 of `document`, in hexadecimal; the name in requests."""

    @property
    def parameters(self) -> Parameters | BfvParameters:
        """The parameters of keys."""

    @property
    def encoded_parameters(self) -> bytes:
        """The parameters as clients know them."""

    @property
    def keys(self) -> KeySet:
        """The key set that each client sends."""

    @property
    def message(self) -> MessageForm:
        """The form of messages."""

    @property
    def steps(self) -> int:
        """Number of steps of an evaluation."""

    @property
    def predicted_seconds(self) -> float:
        """Predicted seconds of an evaluation, one thread."""

    @property
    def key_places(self) -> Sequence[tuple[int, int]]:
        """Begins and ends of the parts of a stored set, in the order in which an evaluation needs them."""

    def folder_in(self, state: Path) -> Path:
        """Return the folder from which workers load it. If it has none, it is written under ``state``."""

    def plan_service(self, budget: int, resident_bytes: int) -> ServicePlan:
        """Plan the memory of a worker, without keys.

        Args:
            budget: maximum bytes of the process.
            resident_bytes: bytes in use before anything is loaded.

        Raises:
            OutOfMemoryError: it does not fit.
        """

    def runner(self, budget: int | None, resident_bytes: int) -> ServedRunner:
        """Load it into memory; arguments and errors as for `plan_service`, without a budget unplanned."""

    def example(self, address: str) -> str:
        """Return a Python program that asks a server at an address."""
