"""The service without HTTP: manifests, keys and evaluations."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._processes import OfOneProcess
from keywright._units import format_bytes
from keywright.errors import ParameterError
from keywright.errors.choices import require_integer
from keywright.errors.service import BadRequestError, BusyError, ServeError, UnauthorizedError
from keywright.model.model import Model
from keywright.serve.evaluation.evaluations import Evaluations
from keywright.serve.evaluation.job_execution import JobExecution, Reports
from keywright.serve.exchanged import SAMPLE_BYTES, ExchangedObject
from keywright.serve.jobs.queue import Jobs
from keywright.serve.storage.state_folder import StateFolder, operator_key
from keywright.serve.tenants.accounts import NOBODY, Accounts
from keywright.serve.tenants.audit import NAME as AUDIT_NAME
from keywright.serve.tenants.audit import Audit
from keywright.serve.tenants.holders import holder_of
from keywright.serve.tenants.quotas import Quotas, Usage
from keywright.serve.tenants.rate_limiter import RateLimiter
from keywright.serve.uploads.admission import Admission
from keywright.serve.uploads.buffers import MAX_CONNECTIONS, Buffers, body_bytes
from keywright.serve.uploads.direct import DirectUploads
from keywright.serve.uploads.part_writer import PartWriter
from keywright.serve.uploads.upload_store import UploadStore
from keywright.serve.uploads.uploaded import UploadedKeys
from keywright.serve.workers.workers import Workers

from .configurations import Catalog
from .logs import redacted
from .metrics import Metrics
from .overview import (
    MachineLine,
    ModelLine,
    Overview,
    QueueLine,
    ResidentKeys,
    oldest_wait,
    tenant_lines,
    this_machine,
)
from .served.interface import Served
from .storage import open_storage

OPENINGS_A_SECOND, OPENINGS = 8, 256
"""Key sets that a holder may open: on average, and at once. Each is a row of the database, and lines of the
audit."""


@dataclass(frozen=True)
class ServiceLimits:
    """Bounds of a service.

    Attributes:
        capacity: maximum number of key sets per tenant; without accounts all clients are one tenant.
        expiry: seconds after which unused keys and unfetched answers are deleted.
        budget: maximum bytes of a worker for each model; unlimited by default.
        connections: maximum number of connections, each of which takes up to 0.26 MB.

    Raises:
        ParameterError: a number is not an integer, or there is no room for a key set or a connection.
    """

    capacity: int = 16
    expiry: float = 3600.0
    budget: int | None = None
    connections: int = MAX_CONNECTIONS

    def __post_init__(self) -> None:
        for name, count in (("capacity", self.capacity), ("connections", self.connections)):
            if require_integer(name, count) < 1:
                raise ParameterError(f"{name} is {count}; use at least 1", what=name)
        if self.budget is not None:
            require_integer("budget", self.budget)


@dataclass(frozen=True)
class StorageAddresses:
    """Storage of a service outside of its folder.

    Attributes:
        objects: address of object storage; by default bytes are in the folder. See `open_storage`.
        records: address of a database; by default it is a file in the folder.
        audit: the audit file; by default it is in the folder.
    """

    objects: str | None = None
    records: str | None = None
    audit: Path | None = None


class Service(
    OfOneProcess,
    Unpicklable,
    elsewhere="make one in the process that serves, and start its workers with Workers",
):
    """Models, served to any number of clients.

    Thread safety: any number of threads may use one at the same time, until `close`.

    Args:
        models: one or several models or indices; requests that name none get the first.
        state: folder of all state that outlives the process: keys, jobs, former models.
        limits: bounds on tenants and workers.
        addresses: storage outside of the folder.
        on_event: called with a message for the operator about every event.
        workers: the processes that evaluate; the service starts one by default.
        accounts: tenants that may send requests; anyone by default.
        quotas: quotas of tenants; unlimited by default.

    Raises:
        ConfigurationError: another process serves the folder or the database, or it holds something else.
        PackageMissingError: the storage needs a package that is missing.
        FolderError: the list is empty, or names a model twice.
    """

    def __init__(
        self,
        models: Model | Served | Sequence[Model | Served],
        state: Path,
        *,
        limits: ServiceLimits | None = None,
        addresses: StorageAddresses | None = None,
        on_event: Callable[[str], object] | None = None,
        workers: Workers | None = None,
        accounts: Accounts | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        limits, addresses = limits or ServiceLimits(), addresses or StorageAddresses()
        self.metrics, self.draining, self.connections = Metrics(), False, limits.connections
        self._state, self._began = StateFolder(state), time.monotonic()
        self._prepared = self._awake = False
        self._openings = RateLimiter(OPENINGS_A_SECOND, OPENINGS)
        try:
            self._storage = open_storage(state, addresses.objects, addresses.records)
        except BaseException:
            self._state.close()
            raise
        told = on_event or (lambda line: None)
        self._event: Callable[[str], object] = lambda line: told(redacted(line))
        self._own_workers = Workers() if workers is None else None
        self._workers = workers or self._own_workers or Workers()
        self._expiry, self.accounts = limits.expiry, accounts
        self.catalog = Catalog(models if isinstance(models, Sequence) else [models], self._storage.records)
        self.operator_key = operator_key(state)
        self._audit = Audit(addresses.audit or state / AUDIT_NAME)
        self._usage = Usage(quotas or Quotas(), self._storage.records)
        self.jobs = Jobs(self._storage, workers=self._workers.count)
        self.store = UploadStore(
            self._storage,
            self.catalog,
            self._workers,
            admission=Admission(
                capacity=limits.capacity,
                expiry=limits.expiry,
                usage=self._usage,
                jobs=self.jobs,
                audit=self._audit,
            ),
            on_event=self._event,
        )
        self.direct = DirectUploads(self.store)
        if self.store.retired():
            self._event(
                f"{self.store.retired()} key sets belong to configurations that are not served; they are kept"
            )
        self.buffers = Buffers(body_bytes(self.request_bytes()))
        # Include what an earlier process left.
        for uploaded in self.store.complete():
            self._note_keys(uploaded)
        reports = Reports(self._usage, self._audit, self.metrics, self._event)
        self.evaluations = Evaluations(
            JobExecution(self.catalog, self.store, self.jobs, self._workers, reports, state, limits.budget)
        )
        self.evaluations.dispatcher.start()

    @property
    def model(self) -> Served:
        """The default model, or index."""
        return self.catalog.first

    def manifest(self, model: str | None = None) -> bytes:
        """Return the manifest of a model; its hash names the model.

        Raises:
            RetiredError, OtherModelError: the model is no longer served, or unknown.
        """
        return (self.model if model is None else self.catalog.model(model)).document

    def models(self) -> dict[str, object]:
        """Return the served models and the configurations of their keys."""
        return {"models": self.model_lines()}

    def model_lines(self) -> list[dict[str, object]]:
        """Return what `models` says of each model. With accounts its seconds are a prediction: the median of
        all evaluations would tell a tenant when others are served."""
        return [
            {
                "model": name,
                "name": model.name,
                "configuration": self.catalog.of(name).identifier,
                "bytes": model.keys.size,
                "joins": model.message.joins,
                "seconds": model.predicted_seconds if self.accounts else self.evaluations.seconds(name),
            }
            for name, model in self.catalog.models.items()
        ]

    def configuration(self, identifier: str) -> dict[str, object]:
        """Return a key configuration, and the models that use it.

        Raises:
            RetiredError, OtherModelError: it is no longer served, or unknown.
        """
        configuration = self.catalog.configuration(identifier)
        models = self.catalog.serving(identifier)
        return {"configuration": identifier, "models": models, "bytes": configuration.key_bytes}

    def create_keys(
        self, request: Mapping[str, object], tenant: str = NOBODY, address: str = ""
    ) -> dict[str, object]:
        """Start an upload of keys.

        Args:
            request: ``{"model": hash of the manifest}``.
            tenant: tenant of the request.
            address: address of the client, for which the set counts if there are no accounts.

        Raises:
            BadRequestError: the request is malformed.
            RetiredError, OtherModelError: the model is no longer served, or unknown.
            LimitError: the tenant has no room for the keys.
            BusyError: the server is shutting down, or the holder has just opened many sets.
        """
        self.require_accepting()
        delay = self._openings.delay(holder_of(tenant, address))
        if delay:
            raise BusyError("many key sets were opened just now; ask again soon", retry_after=ceil(delay))
        model = request.get("model")
        if not isinstance(model, str) or set(request) != {"model"}:
            raise BadRequestError('the request must be {"model": HASH} with the hash of the manifest')
        uploaded = self.store.create(self.catalog.model(model).hash, tenant, address)
        return self._describe(uploaded)

    def keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Return how much of a key set has arrived, its model and configuration, and how long it is kept.

        Raises:
            UnknownKeysError: there is no such set.
            RetiredError: its configuration is no longer served.
        """
        return self._describe(self.store.get(identifier, tenant))

    def is_settled(self, identifier: str, tenant: str = NOBODY) -> bool:
        """Whether no bytes of a key set are being received; raises the errors of `keys`."""
        return not self.store.get(identifier, tenant).busy()

    def key_sets(self, tenant: str) -> dict[str, object]:
        """Return the key sets of a tenant.

        Raises:
            UnauthorizedError: there are no accounts; identifiers then grant access and are not listed.
        """
        if tenant == NOBODY:
            raise UnauthorizedError("key sets are listed only for tenants with an account; send an API key")
        return {"keys": [self._describe(uploaded) for uploaded in self.store.of(tenant)]}

    def interrupt(self, identifier: str, tenant: str = NOBODY) -> None:
        """Abort the request that appends to a key set, as if its connection had broken. Parts at
        other offsets continue. Raises the errors of `keys`."""
        self.store.interrupt(self.store.get(identifier, tenant))

    def key_lifetime(self) -> int:
        """Seconds that an unused key set is kept."""
        return int(self._expiry)

    def bytes_of_keys(self, model: str) -> int:
        """Return the bytes of the keys that a model needs; raises the errors of `manifest`."""
        return self.catalog.of(model).key_bytes

    def longest_keys(self) -> int:
        """Return the bytes of the largest key set that a model needs."""
        return max(each.key_bytes for each in self.catalog.configurations.values())

    def begin_part(
        self, identifier: str, offset: int, length: int, tenant: str = NOBODY, *, anywhere: bool = False
    ) -> PartWriter:
        """Start to write a range of a key set; raises the errors of `keys` and `PartWriter`."""
        uploaded = self.store.get(identifier, tenant)
        self.direct.end(identifier, offset)
        on_bytes = partial(self._on_bytes, uploaded)
        return PartWriter(self.store, uploaded, offset, length, anywhere=anywhere, on_bytes=on_bytes)

    def end_part(self, writer: PartWriter) -> dict[str, object]:
        """End a range and return how much has arrived; raises the errors of `PartWriter.finish`."""
        uploaded = writer.uploaded
        if writer.finish():
            self._note_keys(uploaded)
            self._audit.note("complete", uploaded.tenant, uploaded.identifier, digest=uploaded.digest)
            self._event(f"keys complete and checked, {format_bytes(uploaded.received)}")
        return self._describe(uploaded)

    def grant_part(
        self, identifier: str, offset: int, length: int, tenant: str = NOBODY
    ) -> dict[str, object]:
        """Return an address for a part of a key set; raises the errors of `keys` and
        `DirectUploads.grant`."""
        uploaded = self.store.get(identifier, tenant)
        grant = self.direct.grant(uploaded, offset, length)
        self._wake()
        return grant

    def take_part(self, identifier: str, offset: int, tenant: str = NOBODY) -> PartWriter:
        """Take over a part that a client has written there; raises the errors of `keys` and
        `DirectUploads.take`. The caller ends it (`end_part`) and closes it."""
        return self.direct.take(self.store.get(identifier, tenant), offset)

    def delete_keys(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Delete a key set and all data of its client.

        Raises:
            UnknownKeysError: there is no such set.
            RetiredError: see `keys`.
        """
        self.store.delete(self.store.get(identifier, tenant), "client")
        self._forget(identifier)
        self._event("a client deleted its keys")
        return {"deleted": True}

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
            QueueLine(waiting, self.jobs.waiting, running, oldest_wait(jobs)),
            [
                ModelLine(model.name, name, model.keys.size, having[self.catalog.of(name).identifier])
                for name, model in self.catalog.models.items()
            ],
            tenant_lines(sets, jobs),
            [
                this_machine(self._state.folder, self._workers),
                *(MachineLine(name, processors) for name, processors in self._workers.machines()),
            ],
            self.evaluations.execution.durations.record(),
            ResidentKeys(self._workers.keys.count, self._workers.keys.size),
        )

    def health(self) -> dict[str, object]:
        """Report that requests are answered."""
        return {"alive": True}

    def readiness(self) -> dict[str, object]:
        """Report that evaluations are accepted.

        Raises:
            BusyError: they are not.
        """
        self.require_accepting()
        waiting, _ = self.jobs.counts()
        if waiting >= self.jobs.waiting:
            raise BusyError(f"{waiting} evaluations wait")
        self._workers.require_any_memory()
        return {"ready": True}

    def request_bytes(self) -> int:
        """Return the maximum bytes of a message of any model."""
        return max(model.message.most_bytes for model in self.catalog.models.values())

    def require_accepting(self) -> None:
        """Check that the server accepts new work.

        Raises:
            BusyError: the server is shutting down.
        """
        if self.draining:
            raise BusyError("this server is shutting down; ask again soon")

    def seen(self, identifier: str, tenant: str = NOBODY) -> dict[str, object]:
        """Return the record of all objects of a client, without their contents.

        Raises:
            UnknownKeysError: there is no such client.
        """
        exchanged = list(self.store.get(identifier, tenant).exchanged)
        return {"secret_keys": 0, "objects": [asdict(each) for each in exchanged]}

    def tell(self, line: str) -> None:
        """Send a line to the operator."""
        self._event(line)

    def expire(self) -> None:
        """Delete keys and data of idle clients, and old answers, and kill workers that were stopped."""
        self._workers.kill_silent()
        for uploaded in self.store.expire():
            self._forget(uploaded.identifier)
            self._event("unused keys expired and were deleted")
        self.jobs.expire(self._expiry)
        self._usage.flush()
        self.direct.sweep()
        # Prepared workers belong to this service alone, and `prepare` can start them again.
        if self._prepared and self._awake and not len(self.store) and not any(self.jobs.counts()):
            self._awake = False
            self._workers.rest()

    def _on_bytes(self, uploaded: UploadedKeys) -> None:
        """Wake resting workers once the head of a set has arrived: fewer bytes cost a client nothing."""
        if not self._awake and uploaded.received >= len(uploaded.configuration.key_set):
            self._wake()

    def _wake(self) -> None:
        """Wake resting workers, so that they are ready when a set is complete."""
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
        self._workers.prepare([self.evaluations.execution.description(name) for name in self.catalog.models])

    def drain(self, limit: float) -> None:
        """Report that the server is not ready, refuse new uploads and evaluations, and wait for running
        evaluations. Meanwhile answers can be fetched, and started uploads continue. After ``limit`` seconds,
        running evaluations are left to the next process, like waiting evaluations."""
        self.draining = True
        self._event("shutting down: no more evaluations are accepted")
        self.evaluations.dispatcher.close(limit)

    def close(self) -> None:
        """End after the running evaluations, and release the folder. The next process runs the
        waiting ones. A forked process ends nothing of its parent's."""
        if self._copied:
            return
        self.evaluations.dispatcher.close()
        if self._own_workers is not None:
            self._own_workers.close()
        try:
            self._usage.flush()
        except OSError as error:
            self._event(f"processor seconds could not be recorded: {error}")
        self._audit.close()
        self._storage.close()
        self._state.close()

    def _forget(self, identifier: str) -> None:
        self.direct.forget(identifier)
        self.evaluations.forget(identifier)

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
            "from": _moment(uploaded.start),
            "until": _moment(time.time() + left),
        }

    def _note_keys(self, uploaded: UploadedKeys) -> None:
        sample = self.store.sample(uploaded, uploaded.received // 2, SAMPLE_BYTES).hex()
        uploaded.exchanged.append(
            ExchangedObject("received", "a set of switching keys", uploaded.received, sample)
        )


def _moment(seconds: float) -> str:
    """Format a time in UTC as in RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
