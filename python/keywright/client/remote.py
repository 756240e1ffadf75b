"""The client: makes keys, encrypts and decrypts; the model runs on a server.

>>> model = RemoteModel("http://127.0.0.1:8700")       # doctest: +SKIP
>>> with model.session() as session:                   # doctest: +SKIP
...     session.upload_keys()
...     scores = session.infer(images)
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Unpicklable
from keywright._core import SecretKey
from keywright.errors import FormatError, MismatchError, NoiseError, ParameterError
from keywright.errors.service import (
    BadRequestError,
    InvalidReplyError,
    OtherModelError,
    RetiredError,
    ServeError,
    UnknownJobError,
    UnknownKeysError,
)
from keywright.model.exchange.encryption import Encryption
from keywright.model.served import framing
from keywright.model.served.demands import KEY_BYTES, KEY_COUNT, Demands
from keywright.model.served.manifest import LIMITS as MANIFEST
from keywright.model.served.manifest import Manifest
from keywright.program.file.storage import digest
from keywright.program.program import Program
from keywright.runtime import run_clear
from keywright.runtime.range_guard import guard, largest_result

from .connection import DEADLINE_S, SHORT_S, Deadline, within
from .exchange import RETRIES, Exchange, Progress, Steps
from .key_owner import KeyOwner, Uploads
from .spot_checks import Request, SpotChecks, answers

PROGRESS = 1000
"""Parts of a request in which its progress is told."""

SUCCESSORS = 2
"""How often an upload follows a model to its successor."""


class RemoteModel(Exchange, Unpicklable, elsewhere="make one of the URL in the other process"):
    """A model on a server.

    Thread safety: any number of threads may use one at the same time, except for `refresh`.

    Args:
        url: URL of the server.
        pinned: expected hash of the manifest; any by default.
        program: the program of the model, for clients that have it; with it, the check of samples is
            stricter, see `check`.
        key: API key, for a server with accounts.
        direct: whether keys may be uploaded directly to the server's object storage, at addresses that the
            server gives, over HTTPS if the server itself uses it. True: if the storage has the server's own
            address. Hosts, as ``name`` or ``name:port``: also at these. Keys for any other address go to the
            server itself.
        insecure: whether parameters below 128 bits of security are accepted, for experiments on made-up
            data. A server that chooses them can read what is encrypted.
        key_bytes, key_count: most bytes and most keys that the server may ask for; by default 32 GiB and
            4096.

    Raises:
        UnreachableError: there is no server, or it does not send the manifest within 30 seconds.
        InvalidReplyError, FormatError: the answer does not come from a keywright server of this version.
        OtherModelError: the hash or the program differs.
        SecurityError: the parameters, or a key, have less than 128 bits of security.
        LimitError: the server asks for more or larger keys, requests or answers than the limits.
        ParameterError: a limit is below 1.

    Attributes:
        manifest: inputs, outputs, parameters and keys of the model.
        joins: whether the server joins requests that leave places to others.
        program: the program of the model, None if the client does not have it.
        slowest: bytes per second that the server must send or take on average, by default 16 kB, from a
            minute after the beginning of each message and answer; 0 for any number.
        stalled: seconds that the evaluation of a request may wait or go on without a step, by default an
            hour; those that the server loses count, too.
    """

    manifest: Manifest
    joins: bool
    program: Program | None

    def __init__(
        self,
        url: str,
        pinned: str | None = None,
        program: Program | None = None,
        key: str | None = None,
        direct: bool | Collection[str] = True,
        *,
        insecure: bool = False,
        key_bytes: int = KEY_BYTES,
        key_count: int = KEY_COUNT,
    ) -> None:
        super().__init__(url, key, direct)
        self._pinned, self.program = pinned, program
        self._demands = Demands(insecure, key_bytes, key_count)
        with within(SHORT_S, longer=""):
            self._set_manifest(self._fetch())

    def refresh(self, *, deadline: float = SHORT_S) -> None:
        """Fetch the manifest again, for example after a new version has replaced the model, within
        ``deadline`` seconds; errors as above."""
        with within(deadline):
            self._set_manifest(self._fetch())

    def _fetch(self) -> Manifest:
        """Fetch the manifest and refuse it where a client must; errors as above."""
        pinned, program = self._pinned, self.program
        path = "/v1/model" if pinned is None else f"/v1/models/{pinned}"
        manifest = Manifest.read(self.request("GET", path, limit=MANIFEST.bytes))
        if pinned is not None and manifest.hash != pinned:
            raise OtherModelError(
                f"the server has the model {manifest.hash}, but {pinned} is expected",
                found=manifest.hash,
                expected=pinned,
            )
        if program is not None and digest(program) != manifest.program:
            raise OtherModelError(
                f"the server has the program {manifest.program}, but {digest(program)} was given",
                found=manifest.program,
                expected=digest(program),
            )
        manifest.require(self._demands)
        return manifest

    def _set_manifest(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.joins = manifest.input.places.batch > 1 and self._server_joins()

    def _server_joins(self) -> bool:
        """Whether the server reports that it joins requests."""
        with contextlib.suppress(ServeError):
            models = self.ask("GET", "/v1/models").get("models")
            for entry in models if isinstance(models, list) else ():
                if isinstance(entry, dict) and entry.get("model") == self.manifest.hash:
                    return entry.get("joins") is True
        return False

    def check(self, samples: Any, *, force: bool = False) -> NDArray[np.float64]:
        """Check and convert samples before keys are made for them, and compute their features by the model's
        first steps, if it has any. With the program, the features are run through it in the clear; without
        it, they must be in the range that the manifest states. The server sees none of this.

        Args:
            samples: one, of shape ``manifest.sample_shape``, or several, (count, *shape); what
                `Manifest.features` takes, if the model has first steps.
            force: whether features may leave the range; results are then wrong.

        Raises:
            BadRequestError: the shape is wrong, or values are not finite.
            EncodeError: the first steps do not take the samples.
            OutOfRangeError: a sample leaves the range of the inputs, or one inside the program.
        """
        return self._checked(self.manifest, samples, force=force)

    def _checked(self, manifest: Manifest, samples: Any, *, force: bool = False) -> NDArray[np.float64]:
        """Check and convert samples as `check`, by the manifest of a session: the model may have been
        replaced since it began."""
        shape = manifest.sample_shape
        outcome, single = manifest.features(samples)
        values = outcome[0] if single else outcome
        if values.shape != shape and (values.shape[1:] != shape or values.size == 0):
            raise BadRequestError(f"the model takes samples of shape {shape}, got {values.shape}")
        if fault := manifest.input.without_numbers(values):
            raise BadRequestError(fault)
        known = self.program is not None and manifest.format.packing == "slots"
        if not (force or known):
            manifest.require_range(values)
        if not force:
            if self.program is not None:
                parameters = manifest.parameters
                guard(self.program, values, largest_result(parameters, self.program.output.level))
            _require_declared(manifest, values)
        return values

    def session(self, secret: SecretKey | None = None) -> "Session":
        """Return a client of the model, with a new secret key by default."""
        return Session(self, secret)


def _require_declared(manifest: Manifest, values: NDArray[np.float64]) -> None:
    """Refuse samples that cannot be encrypted, whether forced or not."""
    batch = values.reshape(-1, *manifest.sample_shape)
    manifest.input.require_magnitude(batch, manifest.input_magnitude)


class Session(
    KeyOwner,
    Unpicklable,
    elsewhere="pass one secret key to RemoteModel.session in each process, and send to_bytes() of the key",
):
    """A client of a remote model: the secret key stays in this process, the server gets evaluation keys.

    Thread safety: one thread at a time, except for `infer`, which any number of threads may call after
    `upload_keys`.

    Args:
        remote: the model.
        secret: a secret key of the manifest's parameters; a new one by default.

    Raises:
        MismatchError: the secret key has other parameters.
    """

    remote: RemoteModel

    def __init__(self, remote: RemoteModel, secret: SecretKey | None = None) -> None:
        self.remote = remote
        self._secret = SecretKey.generate(remote.manifest.parameters) if secret is None else secret
        super().__init__(self._secret, "open a new session")
        self._placing, self._next_place = threading.Lock(), 0
        self._set_model()

    @property
    def _server(self) -> Exchange:
        return self.remote

    def _set_model(self) -> None:
        """Use the manifest of the remote model."""
        self.manifest = self.remote.manifest
        self.parameters = self.manifest.parameters
        self._specs = self.manifest.specs
        self._encryption = Encryption(self.manifest, self.parameters, self._secret)

    def _switch_model(self) -> None:
        """Switch to the model that has replaced this one, if it takes the same inputs and its results mean
        the same. Uploaded keys are kept if it accepts them.

        Samples were checked against the inputs of the model before. A server that could change what is
        checked while they wait would read from the client's next step whether they lie in a range of its
        choice.

        Raises:
            OtherModelError: the successor has other inputs or outputs; the session keeps its model.
        """
        with within(SHORT_S):
            before, successor = self.manifest, self.remote._fetch()
        changed = before.differences(successor)
        if changed:
            raise OtherModelError(
                f"the server has replaced the model by {successor.hash}, which differs in its "
                f"{' and '.join(changed)}; connect again with RemoteModel(...) to use it",
                found=successor.hash,
                expected=before.hash,
            )
        self.remote._set_manifest(successor)
        self._set_model()
        if self.manifest.keys.head != before.keys.head:
            self._drop_keys()

    def _upload_keys(self, uploads: Uploads, progress: Progress | None = None) -> None:
        for successors in range(SUCCESSORS + 1):
            try:
                hash_, size = self.manifest.hash, self.manifest.keys.size
                self._upload(uploads, self._specs, hash_, progress, size)
            except RetiredError:
                if successors == SUCCESSORS:
                    raise
                self._switch_model()
            else:
                return

    def infer(
        self,
        samples: Any,
        progress: Progress | None = None,
        *,
        force: bool = False,
        checks: SpotChecks | None = None,
        deadline: float = DEADLINE_S,
    ) -> NDArray[np.float64]:
        """Compute the model's result for samples on ciphertexts. A request holds as many samples as share
        ciphertexts.

        A request is retried after a broken connection, while the server is busy, and after the server's
        restart; at worst its samples are evaluated several times. If the server has lost the keys, they are
        sent again, up to three times for each request. If another version has replaced the model, has the
        same inputs and outputs, and no hash is pinned, that version is used, for all samples of the call.
        After the upload of keys, several threads may call this at once; the server evaluates their requests
        together if the model packs several samples.

        Args:
            samples: one, or any number of them; see `RemoteModel.check`.
            progress: called with the completed and the total work, in thousandths of a request.
            force: whether samples may leave the ranges of the model; see `RemoteModel.check`.
            checks: spot checks, for a server that may answer garbage: some answers are compared with the
                program's results in the clear, or, without the program, with answers to the same samples sent
                again.
            deadline: seconds that each request may take with all its retries, however slowly the server
                answers.

        Returns:
            An array of shape ``manifest.output``, or (count, *shape).

        Raises:
            BadRequestError, OutOfRangeError: as for `RemoteModel.check`.
            InvalidReplyError: the server's ciphertexts cannot be read.
            OtherModelError: the model was replaced by one with other inputs or outputs, or an answer is
                another model's.
            RetiredError: the model was replaced again and again.
            MissingKeyError: the session is closed.
            WrongAnswerError: a checked answer is wrong.
            ParameterError: there are more checks than requests, or the deadline is not above 0.
            UnreachableError: the server does not come back, or a deadline is over.
            UnknownKeysError: the server loses the keys again and again.
            ServeError: a refusal of the server.
        """
        Deadline(deadline)
        shape, size = self.manifest.sample_shape, self.manifest.input.places.batch
        # A refusal after the first request would tell the server which sample is refused.
        values = self.remote._checked(self.manifest, samples, force=force)
        _require_declared(self.manifest, values)
        many = values.reshape(-1, *shape)
        requests = [np.arange(first, min(first + size, len(many))) for first in range(0, len(many), size)]
        program = self.remote.program
        sent = len(requests) + (checks.count if checks is not None and program is None else 0)
        asked: list[Session] = []

        def send(place: int, request: Request) -> Callable[[], NDArray[np.float64]]:
            def advance(done: int, total: int) -> None:
                if progress is not None:
                    whole = PROGRESS * done // max(1, total)
                    progress(place * PROGRESS + whole, sent * PROGRESS)

            with within(deadline):
                used, decrypt = self._evaluate_batch(many[request], advance, *asked, alone=checks is not None)
            asked[:] = [used]
            return decrypt

        clear = None if program is None else lambda request: run_clear(program, many[request])
        results: list[NDArray[np.float64]] = []
        for replaced in range(SUCCESSORS + 1):
            asked.clear()
            try:
                results = answers(requests, send, checks, clear)
                break
            except RetiredError:
                # Rows of two models are no result.
                if not asked or self.manifest is asked[0].manifest or replaced == SUCCESSORS:
                    raise
        result: NDArray[np.float64] = np.concatenate(results)
        return result[0] if values.shape == shape else result

    def _evaluate_batch(
        self,
        batch: NDArray[np.float64],
        progress: Progress,
        asked: "Session | None" = None,
        *,
        alone: bool = False,
    ) -> tuple["Session", Callable[[], NDArray[np.float64]]]:
        """Evaluate samples that share ciphertexts. Returns the session as their message was made, and what
        decrypts the answer with its model and secret: another thread may follow the model to its successor
        meanwhile.

        Args:
            asked: a session whose model is asked; by default the model of now, or its successor.
            alone: leaves no places to other requests, so that the server sees no number of samples.

        Raises:
            RetiredError: another model has replaced that of ``asked``.
        """
        uploads, steps, failures = Uploads(), Steps(), 0
        used, message, places = None, b"", None
        while True:
            with self._uploading:
                if not self._uploaded:
                    self._upload_keys(uploads)
                keys, now = str(self._identifier), self._snapshot()
            if asked is not None and asked.manifest is not now.manifest:
                raise RetiredError(
                    f"the model was replaced by {now.manifest.hash} during a call; ask again",
                    found=asked.manifest.hash,
                    successor=now.manifest.hash,
                )
            if used is None or used.manifest is not now.manifest:
                used, places = now, None if alone else self._places(len(batch))
                message = framing.join(used._encrypt(batch, places))
            try:
                answer = used._evaluated(keys, message, progress, places, steps)
                return used, partial(used._decrypt, answer, len(batch), places)
            except (UnknownJobError, UnknownKeysError, RetiredError) as error:
                if failures == RETRIES:
                    raise
                failures += 1
                # A server that restarted without its state has lost the request, the keys, or both.
                if isinstance(error, UnknownKeysError):
                    self._lose_keys(keys)
                elif isinstance(error, RetiredError):
                    with self._uploading:
                        # Another thread may have done it.
                        if self.manifest is used.manifest:
                            self._switch_model()

    def _places(self, count: int) -> range | None:
        """Return the places for ``count`` samples: after those of the previous request, so that the two can
        be evaluated together. Returns None, for all places, if the server does not join requests or no place
        would be left."""
        size = self.manifest.input.places.batch
        if not self.remote.joins or count >= size:
            return None
        with self._placing:
            first = self._next_place if self._next_place + count <= size else 0
            self._next_place = first + count
        return range(first, first + count)

    def _evaluated(
        self,
        keys: str,
        message: bytes,
        progress: Progress,
        own: range | None = None,
        steps: Steps | None = None,
    ) -> bytes:
        """Submit a message and return the server's answer.

        Raises:
            UnknownJobError: the server has lost the request.
        """
        model = self.manifest
        path = f"/v1/keys/{keys}/jobs?model={model.hash}"
        if own is not None:
            path += f"&first={own.start}&samples={len(own)}"
        return self.remote.evaluate(path, message, model.answer_bytes, progress, steps, model=model.hash)

    def seen(self, *, deadline: float = SHORT_S) -> Mapping[str, object]:
        """Return the server's report on the objects of this client that it saw, within ``deadline``
        seconds."""
        with within(deadline):
            return self.remote.ask("GET", f"/v1/keys/{self._identifier}/seen")

    def _encrypt(self, batch: NDArray[np.float64], places: range | None = None) -> list[bytes]:
        return self._encryption.encrypt(batch, None if places is None else places.start)

    def _decrypt(self, message: bytes, count: int, own: range | None = None) -> NDArray[np.float64]:
        try:
            objects = framing.split(message, self.manifest.output.places.ciphertexts)
            return self._encryption.decrypt(objects, count, None if own is None else own.start)
        except (BadRequestError, FormatError, MismatchError, NoiseError, ParameterError) as error:
            raise InvalidReplyError(f"the answer of the server cannot be read: {error}") from error
