"""What a server does, without HTTP: manifest, keys, evaluations, and an account of what it saw."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from keywright._core import inspect
from keywright.plan.memory.process import ProcessPlan

from . import framing
from .errors import BadRequestError, OtherModelError
from .jobs import Job, Worker
from .model import Model, ModelRunner
from .upload_store import WHOLE, Piece, SecretScanner, UploadedKeys, UploadStore

SEEN = 32
"""Objects of a client that its account lists."""

SAMPLE_BYTES = 32
"""Bytes of the middle of an object that an account shows."""


@dataclass(frozen=True)
class Sight:
    """Something that passed between a client and the server, as the server sees it.

    Attributes:
        direction: "received" or "sent".
        what: the kind of object, as its header says.
        size: its bytes.
        sample: a few bytes of its middle, in hexadecimal.
    """

    direction: str
    what: str
    size: int
    sample: str

    @staticmethod
    def of(direction: str, data: bytes) -> "Sight":
        """What can be said of bytes without any key."""
        middle = len(data) // 2
        kind = str(inspect(data)["kind"])
        return Sight(direction, kind, len(data), data[middle : middle + SAMPLE_BYTES].hex())


class Service:
    """One model, served to any number of clients.

    Args:
        model: what is served.
        state: folder of the clients' keys.
        capacity: how many key sets there are at most.
        expiry: seconds after which keys that are not used are deleted.
        on_event: called with a line for whoever runs the server, at every thing that happens.
        planned: as of `ModelRunner`.

    Raises:
        StateFolderError: another process serves the folder, or it is another model's.
    """

    def __init__(
        self,
        model: Model,
        state: Path,
        *,
        capacity: int = 16,
        expiry: float = 3600.0,
        on_event: Callable[[str], object] | None = None,
        planned: ProcessPlan | None = None,
    ) -> None:
        self.model = model
        loaded = 2 if planned is None else planned.key_sets
        self.store = UploadStore(state, model, capacity=capacity, expiry=expiry, loaded=loaded)
        self._event = on_event or (lambda line: None)
        self._runner = ModelRunner(model, planned)
        self._worker = Worker(on_end=self._ended)
        self._seen: OrderedDict[str, deque[Sight]] = OrderedDict()
        self._lock = threading.Lock()
        # What an earlier process left is here too.
        for uploaded in self.store.complete():
            self._saw_keys(uploaded)

    def manifest(self) -> bytes:
        """The manifest, whose hash names the model."""
        return self.model.manifest.encoded

    def create_keys(self, request: Mapping[str, object]) -> dict[str, object]:
        """Begin an upload of keys.

        Args:
            request: ``{"model": hash of the manifest}``.

        Raises:
            BadRequestError: it is something else.
            OtherModelError: the hash is not that of the served model.
            BusyError: there is no room.
        """
        found = request.get("model")
        if not isinstance(found, str) or set(request) != {"model"}:
            raise BadRequestError('the request is {"model": HASH}, HASH being that of the manifest')
        self._require(found)
        made = self.store.create()
        self._event("a client begins to upload keys")
        return self._describe(made)

    def keys(self, identifier: str) -> dict[str, object]:
        """How much of a key set has come.

        Raises:
            UnknownKeysError: there is none.
        """
        return self._describe(self.store.get(identifier))

    def begin_piece(self, identifier: str, offset: int, length: int) -> Piece:
        """Take a piece of a key set; errors as of `keys` and `Piece`."""
        return self.store.begin(self.store.get(identifier), offset, length)

    def end_piece(self, piece: Piece) -> dict[str, object]:
        """How much has come with a piece; errors as of `Piece.finish`."""
        uploaded = piece.uploaded
        if piece.finish():
            self._saw_keys(uploaded)
            self._event(f"{uploaded.received} bytes of keys are complete and checked")
        return self._describe(uploaded)

    def delete_keys(self, identifier: str) -> dict[str, object]:
        """Delete a key set and everything of its client.

        Raises:
            UnknownKeysError: there is none.
        """
        self.store.delete(self.store.get(identifier))
        self._forget(identifier)
        self._event("a client deleted its keys")
        return {"deleted": True}

    def submit(self, identifier: str, message: bytes) -> dict[str, object]:
        """Queue the evaluation of one batch of samples.

        Args:
            identifier: of the client's keys.
            message: its ciphertexts, see `framing`.

        Raises:
            UnknownKeysError, KeysIncompleteError: there are no such keys, or not all of them.
            SecretRefusedError: there is a secret key in the message.
            BadRequestError, InvalidObjectError: it is not the ciphertexts that the model takes.
            BusyError: too many evaluations wait.
        """
        uploaded = self.store.get(identifier)
        SecretScanner().look(message)
        objects = framing.split(message, self.model.manifest.input.ciphertexts)
        self.store.require_ready(uploaded)
        inputs = [self.model.read_input(data) for data in objects]
        for data in objects:
            self._saw(identifier, Sight.of("received", data))

        def work(job: Job) -> list[bytes]:
            # Read here, not while it waits: as few sets as possible are in memory.
            keys = self.store.keys(uploaded)
            results = self._runner.run(keys, inputs, job.step)
            return [self.model.write_output(result) for result in results]

        job = self._worker.submit(identifier, self.model.steps, work)
        self._event(f"{len(message)} bytes to evaluate")
        return job.to_json()

    def job(self, identifier: str) -> dict[str, object]:
        """How far an evaluation is.

        Raises:
            UnknownJobError: there is none.
        """
        job = self._worker.get(identifier)
        self.store.touch(job.owner)
        return job.to_json()

    def result(self, identifier: str) -> bytes:
        """The ciphertexts of an answer, see `framing`; errors as of `Worker.result`."""
        return framing.join(self._worker.result(identifier))

    def seen(self, identifier: str) -> dict[str, object]:
        """Everything that the server has of a client, but for the bytes themselves.

        Raises:
            UnknownKeysError: there is no such client.
        """
        self.store.get(identifier)
        with self._lock:
            sights = list(self._seen.get(identifier, ()))
        return {"secret_keys": 0, "objects": [asdict(sight) for sight in sights]}

    def tell(self, line: str) -> None:
        """Tell whoever runs the server."""
        self._event(line)

    def expire(self) -> None:
        """Delete the keys of clients that have not been heard of for so long, and everything of them."""
        for identifier in self.store.expire():
            self._forget(identifier)
            self._event("keys that were not used any more are deleted")

    def close(self) -> None:
        """End after the evaluation that runs, without those that wait, and leave the folder to others."""
        self._worker.close()
        self.store.close()

    def _forget(self, identifier: str) -> None:
        self._worker.forget(identifier)
        with self._lock:
            self._seen.pop(identifier, None)

    def _require(self, found: str) -> None:
        expected = self.model.manifest.hash
        if found != expected:
            raise OtherModelError(
                f"the keys are for model {found[:64]}, and {expected} is served; fetch the manifest again",
                found=found[:64],
                expected=expected,
            )

    def _describe(self, uploaded: UploadedKeys) -> dict[str, object]:
        return {
            "keys": uploaded.identifier,
            "received": uploaded.received,
            "bytes": self.model.manifest.key_bytes,
            "ready": uploaded.ready,
        }

    def _saw_keys(self, uploaded: UploadedKeys) -> None:
        with (uploaded.folder / WHOLE).open("rb") as file:
            file.seek(uploaded.received // 2)
            sample = file.read(SAMPLE_BYTES).hex()
        self._saw(
            uploaded.identifier, Sight("received", "a set of switching keys", uploaded.received, sample)
        )

    def _saw(self, identifier: str, sight: Sight) -> None:
        with self._lock:
            self._seen.setdefault(identifier, deque(maxlen=SEEN)).append(sight)
            while len(self._seen) > 2 * self.store.capacity:
                self._seen.popitem(last=False)

    def _ended(self, job: Job) -> None:
        if job.error is not None:
            self._event(f"an evaluation failed: {job.error}")
            if job.unforeseen is not None:
                self._event(job.unforeseen)
            return
        for data in job.result:
            self._saw(job.owner, Sight.of("sent", data))
        self._event(f"evaluated in {job.seconds:.2f} s, {sum(map(len, job.result))} bytes to send")
