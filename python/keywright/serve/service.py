"""What a server does, without HTTP: manifests, keys, evaluations, and a record of what it saw."""

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
"""An identifier that no job has."""

SEEN = 32
"""Objects per client that its record lists."""

SAMPLE_BYTES = 32
"""Bytes from the middle of an object that the record shows."""


@dataclass(frozen=True)
class Sight:
    """An object that passed between a client and the server, as the server sees it.

    Attributes:
        direction: "received" or "sent".
        what: the kind of object, from its header.
        size: its bytes.
        sample: a few bytes from its middle, in hexadecimal.
    """

    direction: str
    what: str
    size: int
    sample: str

    @staticmethod
    def of(direction: str, data: bytes) -> "Sight":
        """Describe bytes, as far as that is possible without keys."""
        middle = len(data) // 2
        kind = str(inspect(data)["kind"])
        return Sight(direction, kind, len(data), data[middle : middle + SAMPLE_BYTES].hex())


class Service:
    """Models, served to any number of clients.

    Args:
        models: one or several models; requests that name none get the first.
        state: folder of all state that outlives the process: keys, jobs, former models.
        capacity: maximum number of key sets per tenant; without accounts all clients are one tenant.
        expiry: seconds after which unused keys and unfetched answers are deleted.
        on_event: called with a line for the operator on every event.
        workers: the processes that evaluate; the service starts one by default.
        budget: maximum bytes of a worker for each model; unlimited by default.
        accounts: tenants that may send requests; anyone by default.
        objects: address of object storage; by default bytes are in the folder. See `open_storage`.
        records: address of a database; by default it is a file in the folder.
        quotas: quotas of tenants; unlimited by default.
        audit: the audit file; by default it is in the folder.

    Raises:
        StateFolderError: another process serves the folder or the database, or it holds something else.
        StorageMissingError: the storage needs a package that is missing.
        ModelFolderError: the list is empty, or names a model twice.
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
                f"{self.store.retired()} key sets belong to configurations that are not served; they are kept"
            )
        self._seen: OrderedDict[str, deque[Sight]] = OrderedDict()
        self._lock = threading.Lock()
        # Include what an earlier process left.
        for uploaded in self.store.complete():
            self._saw_keys(uploaded)
        self.jobs = Jobs(self._storage)
        self._dispatcher = Dispatcher(self.jobs, self._workers, self._work, self._ended, self._event)

    @property
    def model(self) -> Model:
        """The default model."""
        return self.catalog.first

    def manifest(self, model: str | None = None) -> bytes:
        """Return the manifest of a model; its hash names the model.

        Raises:
            RetiredError, OtherModelError: the model is no longer served, or unknown.
        """
        return (self.model if model is None else self.catalog.model(model)).manifest.encoded

    def models(self) -> dict[str, object]:
        """Return the served models and the configurations of their keys."""
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
        """Return a key configuration, and the models that use it.

        Raises:
            RetiredError, OtherModelError: it is no longer served, or unknown.
        """
        found = self.catalog.configuration(identifier)
        models = self.catalog.serving(identifier)
        return {"configuration": identifier, "models": models, "bytes": found.key_bytes}

    def create_keys(self, request: Mapping[str, object], tenant: str = NOBODY) -> dict[str, object]:
        """Start an upload of keys.

        Args:
            request: ``{"model": hash of the manifest}``.

        Raises:
            BadRequestError: the request is malformed.
            RetiredError, OtherModelError: the model is no longer served, or unknown.
            QuotaBytesError: the tenant has no room for the keys.
            BusyError: the server is about to end.
        """
        self._require_staying()
        found = request.get("model")
        if not isinstance(found, str) or set(request) != {"model"}:
            raise BadRequestError('the request must be {"model": HASH}, where HASH is that of the manifest')
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
        self._event("a client starts to upload keys")
        return self._describe(made)

    def keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Return how much of a key set has arrived, its model and configuration, and how long it is kept.

        Raises:
            UnknownKeysError: there is no such set.
            RetiredError: its configuration is no longer served.
        """
        return self._describe(self.store.get(identifier, tenant))

    def settled(self, identifier: str, tenant: str = NOBODY) -> bool:
        """Whether no piece of a key set is being received; errors as for `keys`."""
        return not self.store.get(identifier, tenant).busy()

    def key_sets(self, tenant: str) -> dict[str, object]:
        """Return the key sets of a tenant.

        Raises:
            UnauthorizedError: there is no account. Then identifiers grant access and are not listed.
        """
        if tenant == NOBODY:
            raise UnauthorizedError("key sets are listed only for tenants with an account; send an API key")
        return {"keys": [self._describe(uploaded) for uploaded in self.store.of(tenant)]}

    def interrupt(self, identifier: str, tenant: str = NOBODY) -> None:
        """Abort the piece that is being appended to a key set, as if its connection had broken. Parts at
        other offsets continue. Errors as for `keys`."""
        self.store.interrupt(self.store.get(identifier, tenant))

    def key_lifetime(self) -> int:
        """Seconds that an unused key set is kept."""
        return int(self._expiry)

    def bytes_of_keys(self, model: str) -> int:
        """Return the bytes of the keys that a model needs; errors as for `manifest`."""
        return self.catalog.of(model).key_bytes

    def longest_keys(self) -> int:
        """Return the bytes of the largest key set that a model needs."""
        return max(each.key_bytes for each in self.catalog.configurations.values())

    def begin_piece(
        self, identifier: str, offset: int, length: int, tenant: str = NOBODY, *, anywhere: bool = False
    ) -> Piece:
        """Start a piece of a key set; errors as for `keys` and `UploadStore.begin`."""
        return self.store.begin(self.store.get(identifier, tenant), offset, length, anywhere=anywhere)

    def end_piece(self, piece: Piece) -> dict[str, object]:
        """End a piece and return how much has arrived; errors as for `Piece.finish`."""
        uploaded = piece.uploaded
        if piece.finish():
            self._saw_keys(uploaded)
            self._audit.note("complete", uploaded.tenant, uploaded.identifier, digest=uploaded.digest)
            self._event(f"{uploaded.received} bytes of keys are complete and checked")
        return self._describe(uploaded)

    def delete_keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Delete a key set and all data of its client.

        Raises:
            UnknownKeysError: there is no such set.
            RetiredError: as for `keys`.
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
            model: hash of a model of the keys' configuration; by default the one that they were made for.
            priority: 0 to 9; among one client's evaluations larger ones run first.
            tenant: tenant of the request.
            places: the samples' places that the message uses, with zeros at the others (`Places.pack`). It
                may be evaluated together with waiting messages of the same client at other places. Its answer
                is at its places. None if it uses all places.

        Raises:
            UnknownKeysError, KeysIncompleteError: the keys are unknown or incomplete.
            RetiredError, OtherModelError: the model is no longer served, or needs other keys.
            SecretRefusedError: the message contains a secret key.
            BadRequestError, InvalidObjectError: the message does not hold the ciphertexts that the model
                takes.
            BusyError: the queue or memory is full, or the server is about to end.
            TooLargeError: memory can never hold the keys.
            QuotaBytesError, QuotaSecondsError: the tenant has no room for the message, or has used its day.
        """
        self._require_staying()
        uploaded = self.store.get(identifier, tenant)
        name = uploaded.model if model is None else model
        wanted, configuration = self.catalog.model(name), self.catalog.of(name).identifier
        if configuration != uploaded.configuration.identifier:
            raise OtherModelError(
                f"the keys have configuration {uploaded.configuration.identifier}, but model {name} needs "
                f"{configuration}",
                found=uploaded.configuration.identifier,
                expected=configuration,
            )
        if not 0 <= priority <= MAX_PRIORITY:
            raise BadRequestError(f"?priority= must be 0 to {MAX_PRIORITY}, got {priority}")
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
            """Check the quota while no other job is accepted: all simultaneous requests of a tenant count."""
            self._usage.require_bytes(tenant, keys + self.jobs.stored(tenant), len(message), soon)
            self._audit.note("use", tenant, identifier, model=name, job=alias(job), bytes=len(message))

        job = self.jobs.add(identifier, name, wanted.steps, message, priority, tenant, places, admit)
        job.request = request_identifier()
        self._event(f"{len(message)} bytes to evaluate")
        return job.to_json()

    def measure(self) -> str:
        """Return all counters and gauges for Prometheus; see `metrics`."""
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
        """Return the operator's overview."""
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
        """Report that requests are answered."""
        return {"alive": True}

    def readiness(self) -> dict[str, object]:
        """Report that evaluations are accepted.

        Raises:
            BusyError: they are not.
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
        """Return the maximum bytes of a message of any model."""
        return max(model.request_bytes for model in self.catalog.models.values())

    def job(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Return the progress of an evaluation.

        Raises:
            UnknownJobError: there is none.
        """
        job = self._job(identifier, tenant)
        self.store.touch(job.owner)
        return job.to_json()

    def result(self, identifier: str, tenant: str = NOBODY) -> bytes:
        """Return the ciphertexts of an answer, see `framing`; errors as for `Jobs.fetch`."""
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
        """Return the record of all objects of a client, without their contents.

        Raises:
            UnknownKeysError: there is no such client.
        """
        self.store.get(identifier, tenant)
        with self._lock:
            sights = list(self._seen.get(identifier, ()))
        return {"secret_keys": 0, "objects": [asdict(sight) for sight in sights]}

    def tell(self, line: str) -> None:
        """Send a line to the operator."""
        self._event(line)

    def expire(self) -> None:
        """Delete the keys and data of clients that have been idle too long, and answers that nobody
        fetched."""
        for uploaded in self.store.expire():
            self._forget(uploaded.identifier)
            self._event("unused keys expired and were deleted")
        self.jobs.expire(self._expiry)
        # Wake only prepared workers: they belong to this service alone, and their models are known.
        if self._prepared and self._awake and not len(self.store) and not any(self.jobs.counts()):
            self._awake = False
            self._workers.rest()

    def _wake(self) -> None:
        """Wake resting workers, so that they are ready when the keys have arrived."""
        if self._prepared and not self._awake:
            self._awake = True
            threading.Thread(target=self._prepare_again, name="keywright-wake", daemon=True).start()

    def _prepare_again(self) -> None:
        try:
            self.prepare()
        except (ServeError, OSError) as error:
            # A request for an evaluation reports the same error.
            self._event(f"the workers could not be prepared: {error}")

    def prepare(self) -> None:
        """Load all models into all workers before requests need them. They stay loaded while any client has
        keys or evaluations; then the workers end until keys arrive again.

        Raises:
            ServeError: a model cannot be used.
        """
        self._prepared = self._awake = True
        self._workers.prepare([self._load(name) for name in self.catalog.models])

    def drain(self, limit: float) -> None:
        """Report that the server is not ready, refuse new uploads and evaluations, and wait for running
        evaluations. Meanwhile answers can be fetched, and started uploads continue. After ``limit`` seconds,
        running evaluations are left to the next process, as are waiting ones."""
        self.draining = True
        self._event("this server is about to end: it accepts no more evaluations")
        self._dispatcher.close(limit)

    def close(self) -> None:
        """End after the running evaluations and release the folder; the next process runs those that wait."""
        self._dispatcher.close()
        if self._own_workers is not None:
            self._own_workers.close()
        self._storage.close()
        self._state.close()

    def _folder(self, state: Path, model: Model) -> Path:
        """Return the folder from which workers load a model."""
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
        """Return what a worker needs to know of a model."""
        return {"model": model, "folder": str(self._folders[model]), "budget": self._budget}

    def _work(self, worker: Worker, job: Job) -> float:
        """Run a job; errors as for `Worker.order`. If the keys are damaged, another copy is fetched once."""
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
        # Record this before the job counts as done, so that a later `seen` includes it.
        self._saw_answer(job)
        return float(end["seconds"])

    def _order(self, worker: Worker, job: Job, uploaded: UploadedKeys) -> dict[str, Any]:
        """Have a worker evaluate; errors as for `Worker.order`."""

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
        """Record the processor seconds of an evaluation."""
        try:
            self._usage.use(job.tenant, seconds)
        except OSError as error:
            self._event(f"{seconds:.1f} processor seconds could not be recorded: {error}")

    def _admit(self, tenant: str, more: int) -> None:
        """Check that a tenant has room for a key set."""
        keys, soon = self.store.room(tenant)
        self._usage.require_bytes(tenant, keys + self.jobs.stored(tenant), more, soon)

    def _deleted(self, uploaded: UploadedKeys, why: str) -> None:
        """Record that a key set was deleted; a failing audit disk does not stop the deletion."""
        try:
            self._audit.note("delete", uploaded.tenant, uploaded.identifier, why=why)
        except OSError as error:
            self._event(f"the audit file lacks the deletion of keys ({why}): {error}")

    def _job(self, identifier: str, tenant: str) -> Job:
        """Return a job of a tenant; a job of another tenant is reported as unknown."""
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
            # The check runs when the last byte has arrived: until then that byte may be requested again.
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
    """Format a time in UTC as in RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
