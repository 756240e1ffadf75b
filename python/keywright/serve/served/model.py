"""A model as a service has it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._core import Ciphertext, EvaluationKeys
from keywright.model.model import Model
from keywright.plan.memory.process import ProcessPlan
from keywright.runtime.runner import Runner

from .interface import KeySet, MessageForm


class ServedModel(Unpicklable, elsewhere="load the model in the other process with keywright.load"):
    """A model that a service answers for.

    Thread safety: any number of threads may use one at the same time.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.name, self.parameters = model, model.name, model.parameters
        self.document, self.hash = model.manifest.encoded, model.manifest.hash
        self.encoded_parameters = model.manifest.format.parameters

    @cached_property
    def keys(self) -> KeySet:
        """The key set that each client sends."""
        model = self.model
        listed = model.manifest.keys
        return KeySet(
            listed.head,
            listed.size,
            model.resident_key_bytes,
            model.key_head_bytes,
            model.execution.key_steps,
        )

    @cached_property
    def message(self) -> MessageForm:
        inputs, outputs = self.model.manifest.input.places, self.model.manifest.output.places
        most = self.model.requests.most_bytes
        return MessageForm(inputs.ciphertexts, outputs.ciphertexts, most, inputs.batch, self.model.joins)

    @property
    def steps(self) -> int:
        """Number of steps of an evaluation."""
        return self.model.steps

    @property
    def predicted_seconds(self) -> float:
        """Predicted seconds of an evaluation, one thread."""
        return self.model.predicted_seconds

    @property
    def key_places(self) -> Sequence[tuple[int, int]]:
        """Begins and ends of the parts of a stored set, in the order in which an evaluation needs them."""
        return self.model.key_places

    def folder_in(self, state: Path) -> Path:
        """Return its folder; a compiled model is written under ``state``."""
        if self.model.folder is not None:
            return self.model.folder
        folder = state / "models" / self.hash
        if not folder.is_dir():
            making = folder.with_name(f".{self.hash}")
            folder.parent.mkdir(exist_ok=True, mode=0o700)
            making.mkdir(exist_ok=True, mode=0o700)
            self.model.write(making)
            making.replace(folder)
        return folder

    def plan_service(self, budget: int, resident_bytes: int) -> ProcessPlan:
        """Plan the memory of a worker, without keys; errors as for `Executable.plan_service`."""
        return self.model.plan_service(budget, resident_bytes)

    def runner(self, budget: int | None, resident_bytes: int) -> "ModelRunner":
        """Encode its diagonals; arguments and errors as for `plan_service`, without a budget unplanned."""
        planned = None if budget is None else self.plan_service(budget, resident_bytes)
        return ModelRunner(self.model, self.model.runner(planned))

    def example(self, address: str) -> str:
        """Return a Python program that asks a server at an address."""
        return (
            f'import keywright as kw\n\nmodel = kw.client.RemoteModel("{address}")\n'
            "with model.session() as session:\n    print(session.infer(sample))"
        )


class ModelRunner:
    """A model in the memory of a worker."""

    def __init__(self, model: Model, runner: Runner) -> None:
        self._model, self._runner = model, runner

    @property
    def working_bytes(self) -> int:
        """Planned bytes of an evaluation besides keys; 0 without a plan."""
        return self._runner.working_bytes

    def read(self, messages: Sequence[bytes]) -> list[Ciphertext]:
        """Read messages whose samples are at different places; errors as for `Requests.read_all`."""
        return self._model.requests.read_all(messages)

    def evaluate(
        self, inputs: Sequence[Ciphertext], keys: EvaluationKeys, on_step: Callable[[], object]
    ) -> list[bytes]:
        """Evaluate a batch of samples; see `ServedRunner.evaluate`."""
        followed = self._model.execution.follow(keys)
        return self._model.requests.answer(self._runner, followed, inputs, on_step=on_step).objects
