"""What a server does, without HTTP: manifests, keys, evaluations, and an account of what it saw."""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keywright._core import inspect

from . import framing
from .accounts import NOBODY, Accounts
from .audit import NAME as AUDIT_NAME
from .audit import Audit, alias
from .configurations import Catalog
from .dispatch import Dispatcher
from .errors import (
    BadRequestError,
    BusyError,
    EvaluationFailedError,
    OtherModelError,
    ServeError,
    UnauthorizedError,
    UnknownKeysError,
)
from .jobs import MAX_PRIORITY, Job, Jobs
from .logs import request_identifier
from .metrics import Metrics
from .model import Model
from .overview import MachineLine, ModelLine, Overview, oldest_wait, tenant_lines, this_machine
from .quotas import Quotas, Usage
from .secret_scanner import SecretScanner
from .state_folder import StateFolder
from .storage import open_storage
from .upload_store import Piece, UploadStore
from .uploaded import UploadedKeys
from .workers import Worker, WorkerEndedError, Workers

UNKNOWN = ""
"""No job has it."""

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
    """Models, served to any number of clients.

    Args:
        models: what is served: one, or several, of which the first is meant where none is named.
        state: folder of everything that outlives the process: keys, jobs, which models there were.
        capacity: how many key sets there are of a tenant at most; without accounts all clients are one.
        expiry: seconds after which keys that are not used are deleted, and answers that nobody fetches.
        on_event: called with a line for whoever runs the server, at every thing that happens.
        workers: the processes that evaluate; one of its own if they are not given.
        budget: most bytes of a worker for each model; as much as it takes if it is not given.
        accounts: who may ask; anybody if they are not given.
        objects: address of object storage; bytes are in the folder if it is not given. See `open_storage`.
        records: address of a database; it is a file of the folder if it is not given.
        quotas: what tenants may have; without limits if they are not given.
        audit: file of who uploaded, used and deleted which key set; one of the folder if it is not given.

    Raises:
        StateFolderError: another process serves the folder or the database, or it is something else.
        StorageMissingError: a package is missing that the storage needs.
        ModelFolderError: there is no model, or one is there twice.
    """

    def __init__(
        self,
        models: Model | Sequence[Model],
        state: Path,
        *,
        capacity: int = 16,
        expiry: float = 3600.0,
        on_event: Callable[[str], object] | None = None,
        workers: Workers | None = None,
        budget: int | None = None,
        accounts: Accounts | None = None,
        objects: str | None = None,
        records: str | None = None,
        quotas: Quotas | None = None,
        audit: Path | None = None,
    ) -> None:
        self.metrics, self.draining = Metrics(), False
        self._state, self._began = StateFolder(state), time.monotonic()
        self._prepared = self._awake = False
        try:
            self._storage = open_storage(state, objects, records)
        except BaseException:
            self._state.close()
            raise
        self._event = on_event or (lambda line: None)
        self._own_workers = Workers() if workers is None else None
        self._workers = workers or self._own_workers or Workers()
        self._budget, self._expiry, self.accounts = budget, expiry, accounts
        self.catalog = Catalog([models] if isinstance(models, Model) else models, self._storage.records)
        self._joins = {name: model.joins for name, model in self.catalog.models.items()}
        self._folders = {name: self._folder(state, model) for name, model in self.catalog.models.items()}
        self._audit = Audit(audit or state / AUDIT_NAME)
        self._usage = Usage(quotas or Quotas(), self._storage.records)
        self.store = UploadStore(
            self._storage,
            self.catalog,
            self._workers,
            capacity=capacity,
            expiry=expiry,
            admit=self._admit,
            on_delete=self._deleted,
        )
        if self.store.retired():
            self._event(
                f"{self.store.retired()} key sets are of configurations that are not served; they stay"
            )
        self._seen: OrderedDict[str, deque[Sight]] = OrderedDict()
        self._lock = threading.Lock()
        # What an earlier process left is here too.
        for uploaded in self.store.complete():
            self._saw_keys(uploaded)
        self.jobs = Jobs(self._storage)
        self._dispatcher = Dispatcher(self.jobs, self._workers, self._work, self._ended, self._event)

    @property
    def model(self) -> Model:
        """The model that is meant where none is named."""
        return self.catalog.first

    def manifest(self, model: str | None = None) -> bytes:
        """The manifest of a model, whose hash names it.

        Raises:
            RetiredError, OtherModelError: it is not served any more, or never was.
        """
        return (self.model if model is None else self.catalog.model(model)).manifest.encoded

    def models(self) -> dict[str, object]:
        """The models that are served, and the configurations of their keys."""
        return {
            "models": [
                {
                    "model": name,
                    "name": model.name,
                    "configuration": self.catalog.of(name).identifier,
                    "bytes": model.manifest.key_bytes,
                    "joins": self._joins[name],
                }
                for name, model in self.catalog.models.items()
            ]
        }

    def configuration(self, identifier: str) -> dict[str, object]:
        """A configuration of keys, and the models that take them.

        Raises:
            RetiredError, OtherModelError: it is not served any more, or never was.
        """
        found = self.catalog.configuration(identifier)
        models = self.catalog.serving(identifier)
        return {"configuration": identifier, "models": models, "bytes": found.key_bytes}

    def create_keys(self, request: Mapping[str, object], tenant: str = NOBODY) -> dict[str, object]:
        """Begin an upload of keys.

        Args:
            request: ``{"model": hash of the manifest}``.

        Raises:
            BadRequestError: it is something else.
            RetiredError, OtherModelError: the model is not served any more, or never was.
            QuotaBytesError: the tenant has no room for them.
            BusyError: the server is about to end.
        """
        self._require_staying()
        found = request.get("model")
        if not isinstance(found, str) or set(request) != {"model"}:
            raise BadRequestError('the request is {"model": HASH}, HASH being that of the manifest')
        made = self.store.create(self.catalog.model(found).manifest.hash, tenant)
        self._audit.note(
            "begin",
            tenant,
            made.identifier,
            model=made.model,
            configuration=made.configuration.identifier,
            bytes=made.configuration.key_bytes,
        )
        self._wake()
        self._event("a client begins to upload keys")
        return self._describe(made)

    def keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """How much of a key set has come, whose keys they are, and how long they are kept.

        Raises:
            UnknownKeysError: there is none.
            RetiredError: their configuration is not served any more.
        """
        return self._describe(self.store.get(identifier, tenant))

    def settled(self, identifier: str, tenant: str = NOBODY) -> bool:
        """Whether no piece of a key set is being received; errors as of `keys`."""
        return not self.store.get(identifier, tenant).busy()

    def key_sets(self, tenant: str) -> dict[str, object]:
        """The key sets of a tenant.

        Raises:
            UnauthorizedError: without an account identifiers are what entitles; they are not told.
        """
        if tenant == NOBODY:
            raise UnauthorizedError("key sets are listed for tenants with an account")
        return {"keys": [self._describe(uploaded) for uploaded in self.store.of(tenant)]}

    def interrupt(self, identifier: str, tenant: str = NOBODY) -> None:
        """Have the piece end that follows what has come of a key set, as if its connection had broken; parts
        that come anywhere go on. Errors as of `keys`."""
        self.store.interrupt(self.store.get(identifier, tenant))

    def key_lifetime(self) -> int:
        """Seconds that a key set is kept without being used."""
        return int(self._expiry)

    def bytes_of_keys(self, model: str) -> int:
        """Bytes of the keys that a model takes; errors as of `manifest`."""
        return self.catalog.of(model).key_bytes

    def longest_keys(self) -> int:
        """Bytes of the longest key set that a model takes."""
        return max(each.key_bytes for each in self.catalog.configurations.values())

    def begin_piece(
        self, identifier: str, offset: int, length: int, tenant: str = NOBODY, *, anywhere: bool = False
    ) -> Piece:
        """Take a piece of a key set; errors as of `keys` and `UploadStore.begin`."""
        return self.store.begin(self.store.get(identifier, tenant), offset, length, anywhere=anywhere)

    def end_piece(self, piece: Piece) -> dict[str, object]:
        """How much has come with a piece; errors as of `Piece.finish`."""
        uploaded = piece.uploaded
        if piece.finish():
            self._saw_keys(uploaded)
            self._audit.note("complete", uploaded.tenant, uploaded.identifier, digest=uploaded.digest)
            self._event(f"{uploaded.received} bytes of keys are complete and checked")
        return self._describe(uploaded)

    def delete_keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Delete a key set and everything of its client.

        Raises:
            UnknownKeysError: there is none.
            RetiredError: as of `keys`.
        """
        self.store.delete(self.store.get(identifier, tenant), "client")
        self._forget(identifier)
        self._event("a client deleted its keys")
        return {"deleted": True}

    def submit(
        self,
        identifier: str,
        message: bytes,
        model: str | None = None,
        priority: int = 0,
        tenant: str = NOBODY,
        places: range | None = None,
    ) -> dict[str, object]:
        """Accept the evaluation of one batch of samples.

        Args:
            identifier: of the client's keys.
            message: its ciphertexts, see `framing`.
            model: hash of one of the keys' configuration; the one that they were made for if it is not given.
            priority: 0 to 9; of one client's evaluations larger ones come first.
            tenant: who asks.
            places: of samples, those that the message has, zeros being at the others (`Places.pack`): it is
                evaluated with others of the client that wait and have other places. Its answer is at its
                places. None if it has all places.

        Raises:
            UnknownKeysError, KeysIncompleteError: there are no such keys, or not all of them.
            RetiredError, OtherModelError: the model is not served any more, or not with these keys.
            SecretRefusedError: there is a secret key in the message.
            BadRequestError, InvalidObjectError: it is not the ciphertexts that the model takes.
            BusyError: too many evaluations wait, there is no memory, or the server is about to end.
            TooLargeError: there never is memory for the keys.
            QuotaBytesError, QuotaSecondsError: the tenant has no room for the message, or has used its day.
        """
        self._require_staying()
        uploaded = self.store.get(identifier, tenant)
        name = uploaded.model if model is None else model
        wanted, configuration = self.catalog.model(name), self.catalog.of(name).identifier
        if configuration != uploaded.configuration.identifier:
            raise OtherModelError(
                f"the keys are of configuration {uploaded.configuration.identifier}, and model {name} takes "
                f"those of {configuration}",
                found=uploaded.configuration.identifier,
                expected=configuration,
            )
        if not 0 <= priority <= MAX_PRIORITY:
            raise BadRequestError(f"?priority= is 0 to {MAX_PRIORITY}, got {priority}")
        batch = wanted.manifest.input.batch
        if places is not None and not (self._joins[name] and 0 <= places.start < places.stop <= batch):
            raise BadRequestError(
                f"?first={places.start}&samples={len(places)}: the model has places for {batch} samples"
                + ("" if self._joins[name] else ", and leaves none of them to others")
            )
        SecretScanner().look(message)
        self._workers.require_memory(
            identifier, wanted.resident_key_bytes, wanted.manifest.hash, self.jobs.patience()
        )
        objects = framing.split(message, wanted.manifest.input.ciphertexts)
        self.store.require_ready(uploaded)
        for data in objects:
            wanted.read_input(data)
            self._saw(identifier, Sight.of("received", data))
        self._usage.require_seconds(tenant)
        keys, soon = self.store.room(tenant)

        def admit(job: str) -> None:
            """While nothing else is accepted: of a tenant's requests that come at once all count."""
            self._usage.require_bytes(tenant, keys + self.jobs.stored(tenant), len(message), soon)
            self._audit.note("use", tenant, identifier, model=name, job=alias(job), bytes=len(message))

        job = self.jobs.add(identifier, name, wanted.steps, message, priority, tenant, places, admit)
        job.request = request_identifier()
        self._event(f"{len(message)} bytes to evaluate")
        return job.to_json()

    def measure(self) -> str:
        """What is counted and what there is, for Prometheus; see `metrics`."""
        waiting, running = self.jobs.counts()
        self.metrics.set("waiting", waiting)
        self.metrics.set("running", running)
        for ready, name in ((True, "true"), (False, "false")):
            count, size = self.store.counts(ready=ready)
            self.metrics.set("key_sets", count, ready=name)
            self.metrics.set("key_bytes", size, ready=name)
        self.metrics.set("resident_key_sets", self._workers.keys.count)
        self.metrics.set("resident_key_bytes", self._workers.keys.size)
        return self.metrics.render()

    def overview(self) -> Overview:
        """What an operator sees."""
        jobs = self.jobs.all()
        sets = [(uploaded.tenant, uploaded.ready, uploaded.stored) for uploaded in self.store.all()]
        having = Counter(uploaded.configuration.identifier for uploaded in self.store.complete())
        waiting, running = self.jobs.counts()
        return Overview(
            time.monotonic() - self._began,
            self.draining,
            waiting,
            self.jobs.waiting,
            running,
            oldest_wait(jobs),
            [
                ModelLine(
                    model.name, name, model.manifest.key_bytes, having[self.catalog.of(name).identifier]
                )
                for name, model in self.catalog.models.items()
            ],
            tenant_lines(sets, jobs),
            [
                this_machine(self._state.folder, self._workers),
                *(MachineLine(name, processors) for name, processors in self._workers.machines()),
            ],
        )

    def health(self) -> dict[str, object]:
        """That requests are answered."""
        return {"alive": True}

    def readiness(self) -> dict[str, object]:
        """That evaluations are taken.

        Raises:
            BusyError: not any more, or not now.
        """
        self._require_staying()
        waiting, _ = self.jobs.counts()
        if waiting >= self.jobs.waiting:
            raise BusyError(f"{waiting} evaluations wait")
        return {"ready": True}

    def _require_staying(self) -> None:
        if self.draining:
            raise BusyError("this server is about to end; ask again soon")

    def request_bytes(self) -> int:
        """Bytes of the longest message that a model takes."""
        return max(model.request_bytes for model in self.catalog.models.values())

    def job(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """How far an evaluation is.

        Raises:
            UnknownJobError: there is none.
        """
        job = self._job(identifier, tenant)
        self.store.touch(job.owner)
        return job.to_json()

    def result(self, identifier: str, tenant: str = NOBODY) -> bytes:
        """The ciphertexts of an answer, see `framing`; errors as of `Jobs.fetch`."""
        return self.jobs.fetch(self._job(identifier, tenant).identifier)

    def cancel(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Drop an evaluation and its answer, whether it waits, runs or is done.

        Raises:
            UnknownJobError: there is none.
        """
        job = self._job(identifier, tenant)
        self._audit.note("cancel", tenant, job.owner, job=alias(identifier))
        self.jobs.delete([job])
        self._dispatcher.cancel(job)
        return {"deleted": True}

    def seen(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Everything that the server has of a client, but for the bytes themselves.

        Raises:
            UnknownKeysError: there is no such client.
        """
        self.store.get(identifier, tenant)
        with self._lock:
            sights = list(self._seen.get(identifier, ()))
        return {"secret_keys": 0, "objects": [asdict(sight) for sight in sights]}

    def tell(self, line: str) -> None:
        """Tell whoever runs the server."""
        self._event(line)

    def expire(self) -> None:
        """Delete the keys of clients that have not been heard of for so long, and everything of them,
        and answers that nobody fetches."""
        for uploaded in self.store.expire():
            self._forget(uploaded.identifier)
            self._event("keys that were not used any more are deleted")
        self.jobs.expire(self._expiry)
        # Only workers that were prepared are known to be this service's alone, and how to wake them.
        if self._prepared and self._awake and not len(self.store) and not any(self.jobs.counts()):
            self._awake = False
            self._workers.rest()

    def _wake(self) -> None:
        """Have workers that rest be ready by the time that keys have come."""
        if self._prepared and not self._awake:
            self._awake = True
            threading.Thread(target=self._prepare_again, name="keywright-wake", daemon=True).start()

    def _prepare_again(self) -> None:
        try:
            self.prepare()
        except (ServeError, OSError) as error:
            # Whoever asks for an evaluation is told the same.
            self._event(f"the workers could not be prepared: {error}")

    def prepare(self) -> None:
        """Have all models in the memory of all workers before anybody asks for them. They stay there as long
        as there are keys, or evaluations, of anybody; then the workers end until keys come again.

        Raises:
            ServeError: one cannot be used.
        """
        self._prepared = self._awake = True
        self._workers.prepare([self._load(name) for name in self.catalog.models])

    def drain(self, limit: float) -> None:
        """Say that the server is not ready, take no keys to begin with and no evaluations, and wait for those
        that run; answers can be fetched meanwhile, and keys that were begun be sent. What still runs after so
        many seconds is given up, and done by the next process, as are those that wait."""
        self.draining = True
        self._event("this server is about to end: evaluations are not taken any more")
        self._dispatcher.close(limit)

    def close(self) -> None:
        """End after the evaluations that run, and leave the folder to others; the next process has those done
        that wait."""
        self._dispatcher.close()
        if self._own_workers is not None:
            self._own_workers.close()
        self._storage.close()
        self._state.close()

    def _folder(self, state: Path, model: Model) -> Path:
        """Where workers load a model from."""
        if model.folder is not None:
            return model.folder
        folder = state / "models" / model.manifest.hash
        if not folder.is_dir():
            making = state / "models" / f".{model.manifest.hash}"
            making.mkdir(parents=True, exist_ok=True)
            model.save(making)
            making.replace(folder)
        return folder

    def _load(self, model: str) -> dict[str, Any]:
        """What a worker needs to know of a model."""
        return {"model": model, "folder": str(self._folders[model]), "budget": self._budget}

    def _work(self, worker: Worker, job: Job) -> float:
        """Have a job done; errors as of `Worker.order`. Of damaged keys another copy is fetched once."""
        uploaded, begun = self.store.get(job.owner, job.tenant), time.monotonic()
        try:
            try:
                end = self._order(worker, job, uploaded)
            except (UnknownKeysError, FileNotFoundError):
                if not self.store.fetch_again(uploaded):
                    raise
                end = self._order(worker, job, uploaded)
        except (UnknownKeysError, FileNotFoundError) as error:
            if self.store.intact(uploaded):
                raise EvaluationFailedError(
                    "a worker cannot read keys that are here; is the folder of state shared with its machine?"
                ) from error
            self.store.delete(uploaded, "damaged")
            raise UnknownKeysError(
                "the stored keys are damaged or cannot be read; upload them again"
            ) from error
        except WorkerEndedError:
            self.metrics.count("worker_deaths_total")
            raise
        for each in (job, *job.others):
            self.metrics.observe("stage_seconds", begun - each.asked, stage="wait")
        for stage, seconds in (("keys", end["loading"]), ("evaluate", end["seconds"])):
            self.metrics.observe("stage_seconds", seconds, stage=stage)
        self.metrics.count("joined_total", len(job.others))
        self.metrics.count("key_loads_total", place="memory" if end["hit"] else "disk")
        self.metrics.count("key_evictions_total", len(end["evicted"]))
        # Before it is said to be done: whoever then asks what was sent is told.
        self._saw_answer(job)
        return float(end["seconds"])

    def _order(self, worker: Worker, job: Job, uploaded: UploadedKeys) -> dict[str, Any]:
        """Have a worker evaluate; errors as of `Worker.order`."""

        with ExitStack() as stack:
            path = stack.enter_context(self.store.file(uploaded))
            messages = [stack.enter_context(self.jobs.message(each)) for each in (job, *job.others)]
            try:
                end = worker.order(
                    job.advance,
                    do="evaluate",
                    job=job.identifier,
                    **self._load(self.catalog.model(job.model).manifest.hash),
                    keys=job.owner,
                    bytes=self.catalog.model(job.model).resident_key_bytes,
                    path=str(path),
                    digest=uploaded.digest,
                    messages=[str(message) for message in messages],
                    answer=str(self.jobs.answer(job)),
                )
            except ServeError as error:
                self._use(job, error.processor)
                raise
        self._use(job, end["processor"])
        return end

    def _use(self, job: Job, seconds: float) -> None:
        """Note what an evaluation took of processors."""
        try:
            self._usage.use(job.tenant, seconds)
        except OSError as error:
            self._event(f"{seconds:.1f} processor seconds could not be noted: {error}")

    def _admit(self, tenant: str, more: int) -> None:
        """Refuse a key set that a tenant has no room for."""
        keys, soon = self.store.room(tenant)
        self._usage.require_bytes(tenant, keys + self.jobs.stored(tenant), more, soon)

    def _deleted(self, uploaded: UploadedKeys, why: str) -> None:
        """Note that a key set is gone; that goes on where the disk of the audit does not."""
        try:
            self._audit.note("delete", uploaded.tenant, uploaded.identifier, why=why)
        except OSError as error:
            self._event(f"the audit lacks that keys were deleted ({why}): {error}")

    def _job(self, identifier: str, tenant: str) -> Job:
        """A job of a tenant; one of another is as unknown as one that never was."""
        job = self.jobs.get(identifier)
        return job if job.tenant == tenant else self.jobs.get(UNKNOWN)

    def _forget(self, identifier: str) -> None:
        for job in self.jobs.of(identifier):
            self.jobs.delete([job])
            self._dispatcher.cancel(job)
        with self._lock:
            self._seen.pop(identifier, None)

    def _describe(self, uploaded: UploadedKeys) -> dict[str, object]:
        left = self._expiry - (time.monotonic() - uploaded.used)
        total = uploaded.configuration.key_bytes
        return {
            "keys": uploaded.identifier,
            "model": uploaded.model,
            "configuration": uploaded.configuration.identifier,
            # The last byte has come when the set was checked: until then it may be asked for again.
            "received": min(uploaded.received, total - (not uploaded.ready)),
            "bytes": total,
            "ready": uploaded.ready,
            "digest": uploaded.digest,
            "missing": [list(hole) for hole in uploaded.missing],
            "from": _moment(uploaded.made),
            "until": _moment(time.time() + left),
        }

    def _saw_keys(self, uploaded: UploadedKeys) -> None:
        sample = self.store.sample(uploaded, uploaded.received // 2, SAMPLE_BYTES).hex()
        self._saw(
            uploaded.identifier, Sight("received", "a set of switching keys", uploaded.received, sample)
        )

    def _saw_answer(self, job: Job) -> None:
        answer = self.jobs.answered(job)
        if job in self.jobs.of(job.owner):
            for data in framing.split(answer, self.catalog.model(job.model).manifest.output.ciphertexts):
                self._saw(job.owner, Sight.of("sent", data))

    def _saw(self, identifier: str, sight: Sight) -> None:
        with self._lock:
            self._seen.setdefault(identifier, deque(maxlen=SEEN)).append(sight)
            while len(self._seen) > 2 * max(self.store.capacity, len(self.store)):
                self._seen.popitem(last=False)

    def _ended(self, job: Job) -> None:
        self.metrics.count("evaluations_total", outcome="done" if job.error is None else job.error.code)
        if job.error is not None:
            self._event(f"an evaluation failed: {job.error}")
            return
        self.metrics.count("evaluation_seconds_total", job.seconds)
        self._event(f"evaluated in {job.seconds:.2f} s")


def _moment(seconds: float) -> str:
    """A time in UTC, as of RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
