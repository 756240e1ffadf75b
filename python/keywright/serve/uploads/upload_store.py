"""Key sets of clients: uploads that can be interrupted and resumed, and that outlive the process.

Every set has an identifier of 128 random bits; without accounts it also grants access. A table holds its
model, its configuration, its tenant, its start time and, once it is complete, its digest. The bytes are
objects named after their offset. The objects' sizes are the progress, so a server that was killed resumes
where it was. A server that was killed while it checked a complete set asks for the last byte again.
"""

import contextlib
import re
import secrets
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from keywright._files import digest_of
from keywright.errors import WorkerEndedError
from keywright.errors.service import BusyError, LimitError, UnknownKeysError, UploadError
from keywright.serve.configurations import Catalog
from keywright.serve.storage import Row, Storage
from keywright.serve.storage.incoming_file import IncomingFile
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.holders import holder_of
from keywright.serve.workers.workers import Workers

from .admission import Admission
from .eviction import empty_victims
from .secret_scanner import scan_all, scan_boundaries
from .uploaded import DIGITS, LEAST_PART, MAX_RUNS, IncomingRange, UploadedKeys

OBJECT = re.compile(rf"keys/([0-9a-f]{{32}})/([0-9a-f]{{32}})/([0-9a-f]{{{DIGITS}}})")

SMALL = 8
"""An object smaller than this fraction of full size is always extended."""


Removed = list[tuple[UploadedKeys, str]]
"""Sets that are removed, each with the reason that its record states."""


class UploadStore:
    """The key sets of a service.

    Args:
        storage: where they are stored.
        catalog: the configurations. Sets of configurations that are not served are kept unchanged.
        workers: check complete sets.
        admission: decides which sets are taken; by default 16 of a tenant.
        on_event: called with a message for the operator.
    """

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        workers: Workers,
        *,
        admission: Admission | None = None,
        on_event: Callable[[str], object] = lambda line: None,
    ) -> None:
        self.admission, self._event = admission or Admission(), on_event
        self.objects, self._records = storage.objects, storage.records
        self._catalog, self._workers = catalog, workers
        self._lock = self.admission.lock
        self._sets: dict[str, UploadedKeys] = {}
        self._retired: dict[str, tuple[str, str]] = {}
        stored: dict[str, dict[int, int]] = {}
        for name, size in self.objects.sizes("keys/").items():
            if (match := OBJECT.fullmatch(name)) is not None:
                stored.setdefault(name.rpartition("/")[0], {})[int(match[3], 16)] = size
        for row in self._records.key_sets():
            self._recover(row, stored)
        # Objects of a process that ended while it deleted a set.
        self.objects.delete(f"{of}/{begin:0{DIGITS}x}" for of, parts in stored.items() for begin in parts)

    def __len__(self) -> int:
        return len(self._sets)

    def complete(self) -> list[UploadedKeys]:
        """Return the complete sets."""
        with self._lock:
            return [uploaded for uploaded in self._sets.values() if uploaded.ready]

    def counts(self, *, ready: bool) -> tuple[int, int]:
        """Return the number of sets that are complete, or incomplete, and their bytes."""
        with self._lock:
            sizes = [uploaded.stored for uploaded in self._sets.values() if uploaded.ready == ready]
            return len(sizes), sum(sizes)

    def retired(self) -> int:
        """Return the number of sets whose configurations are not served."""
        return len(self._retired)

    def _recover(self, row: Row, stored: dict[str, dict[int, int]]) -> None:
        """Recover a set of an earlier process, with its time of use set to now. A set of a served
        configuration that cannot be used is deleted."""
        identifier, tenant, requested = (str(row[name]) for name in ("key_set", "tenant", "configuration"))
        start = float(str(row["made"]))
        configuration = self._catalog.configurations.get(requested)
        if configuration is None:
            self._retired[identifier] = (tenant, requested)
            # Only this set's objects have its name.
            for of in [each for each in stored if each.endswith("/" + identifier)]:
                del stored[of]
            return
        model, holder = str(row["model"]), str(row["holder"])
        uploaded = UploadedKeys(identifier, model, configuration, start, tenant, holder)
        uploaded.parts = stored.pop(uploaded.name(0).rpartition("/")[0], {})
        uploaded.digest = str(row["digest"])
        self._cut_overlaps(uploaded)
        uploaded.boundaries = set(uploaded.parts) - {0}
        # The records do not say which parts clients wrote to the storage themselves.
        uploaded.unseen = self.objects.sign("", 1, 1) is not None
        uploaded.begun = bool(uploaded.parts)
        ends = [begin + size for begin, size in uploaded.parts.items()]
        uploaded.ready = uploaded.digest != "" and uploaded.whole
        self._sets[identifier] = uploaded
        if max(ends, default=0) > configuration.key_bytes or (uploaded.digest and not uploaded.ready):
            self.delete(uploaded, "damaged")
        elif uploaded.whole and not uploaded.ready:
            self.drop_last_byte(uploaded)

    def _cut_overlaps(self, uploaded: UploadedKeys) -> None:
        """Shorten objects that already contain the beginning of the next one: a process ended while it joined
        the two."""
        end, last = 0, 0
        for begin, size in sorted(uploaded.parts.items()):
            if begin + size <= end:
                self.objects.delete([uploaded.name(begin)])
                del uploaded.parts[begin]
                continue
            if begin < end:
                uploaded.parts[last] = begin - last
                self.objects.append(uploaded.name(last), begin - last, b"")
            end, last = begin + size, begin

    def create(self, model: str, tenant: str = NOBODY, address: str = "") -> UploadedKeys:
        """Create an empty set for a model, by its hash. It counts towards the capacity from its first byte on
        (`reserve`), and is evicted for newer ones.

        Args:
            model: hash of the model.
            tenant: tenant of the client.
            address: address of the client. Without accounts the set counts for it, also after a restart.
        """
        holder = holder_of(tenant, address)
        with self._deciding() as removed:
            self._expire(removed)
            sets, configuration = self.of(tenant), self._catalog.of(model)
            if tenant != NOBODY:
                self.admission.require_bytes(sets, tenant, configuration.key_bytes)
            # A tenant can neither evict another's sets nor count them.
            for victim in empty_victims(sets):
                self._remove(victim, "room", removed)
            uploaded = UploadedKeys(secrets.token_hex(16), model, configuration, time.time(), tenant, holder)
            self._sets[uploaded.identifier] = uploaded
        try:
            self._records.add_key_set(
                {
                    "key_set": uploaded.identifier,
                    "tenant": tenant,
                    "holder": holder,
                    "model": model,
                    "configuration": configuration.identifier,
                    "made": uploaded.start,
                    "digest": "",
                }
            )
        except BaseException:
            self.delete(uploaded, "room")
            raise
        if uploaded.gone:
            self._records.delete_key_set(uploaded.identifier)
        return uploaded

    def all(self) -> list[UploadedKeys]:
        """Return the sets of all tenants."""
        with self._lock:
            return list(self._sets.values())

    def of(self, tenant: str) -> list[UploadedKeys]:
        """Return the sets of a tenant."""
        with self._lock:
            return [uploaded for uploaded in self._sets.values() if uploaded.tenant == tenant]

    def get(self, identifier: str, tenant: str = NOBODY) -> UploadedKeys:
        """Return the set of an identifier. A set of another tenant is reported as unknown.

        Raises:
            UnknownKeysError: no set of the tenant has this identifier.
            RetiredError: its configuration is no longer served.
        """
        with self._lock:
            uploaded = self._sets.get(identifier)
            owner, configuration = self._retired.get(identifier, (None, ""))
            if owner == tenant:
                self._catalog.configuration(configuration)
            if uploaded is None or uploaded.tenant != tenant:
                raise UnknownKeysError(
                    "there are no keys with that identifier here (any more); upload them again"
                )
            uploaded.used = time.monotonic()
            return uploaded

    def touch(self, identifier: str) -> None:
        """Record the use of a set, if it exists."""
        with self._lock:
            if (uploaded := self._sets.get(identifier)) is not None:
                uploaded.used = time.monotonic()

    def expire(self) -> list[UploadedKeys]:
        """Delete the sets that were not used for `expiry` seconds. Returns them."""
        with self._deciding() as removed:
            return self._expire(removed)

    def _expire(self, removed: Removed) -> list[UploadedKeys]:
        limit = time.monotonic() - self.admission.expiry
        # An upload counts as a use.
        old = [s for s in self._sets.values() if s.used < limit and not s.busy()]
        for uploaded in old:
            self._remove(uploaded, "expired", removed)
        return old

    def delete(self, uploaded: UploadedKeys, why: str) -> None:
        """Delete a set and its bytes, and report the reason."""
        with self._deciding() as removed:
            self._remove(uploaded, why, removed)

    @contextlib.contextmanager
    def _deciding(self) -> Iterator[Removed]:
        """Hold the lock, and erase the sets that were removed in the context when it has been released."""
        removed: Removed = []
        try:
            with self._lock:
                yield removed
        finally:
            with contextlib.ExitStack() as erasures:
                for uploaded, why in removed:
                    erasures.callback(self._erase, uploaded, why)

    def _remove(self, uploaded: UploadedKeys, why: str, removed: Removed) -> None:
        """Remove a set, whose bytes and record are erased without the lock."""
        uploaded.gone = True
        known = self._sets.pop(uploaded.identifier, None) is not None
        if known:
            self.admission.leave(uploaded)
        removed.append((uploaded, why if known else ""))

    def _erase(self, uploaded: UploadedKeys, why: str) -> None:
        """Erase the bytes and the record of a set, and report the reason, if one is given."""
        if why:
            try:
                self.admission.end(uploaded, why)
            except OSError as error:
                # A full disk of the audit file does not prevent the deletion.
                self._event(f"the audit file lacks the deletion of keys ({why}): {error}")
        self._workers.forget(uploaded.identifier)
        names = uploaded.names
        try:
            self._records.delete_key_set(uploaded.identifier)
        finally:
            if names:
                self.objects.forget(names)
                self.objects.delete(names)

    def _admit_first_byte(self, uploaded: UploadedKeys, removed: Removed) -> None:
        """Make room for the bytes of a set; raises the errors of `reserve`."""
        self._expire(removed)
        for victim in self.admission.with_bytes(uploaded, self.of(uploaded.tenant)):
            self._remove(victim, "room", removed)

    def reserve(self, uploaded: UploadedKeys, offset: int, end: int, *, anywhere: bool) -> IncomingRange:
        """Reserve a range of a set for a `PartWriter`. The set counts from now on, unless the range is empty.

        Args:
            uploaded: the set.
            offset, end: the range.
            anywhere: whether it may begin after a gap; otherwise it must follow the bytes that have arrived.

        Raises:
            UploadError: the range does not begin where the last one ended, some of its bytes have arrived or
                are being received, or it is one of too many short ones.
            LimitError: it extends beyond the end of the set.
            BusyError: the range is the first, and the maximum number of sets is reached; or the maximum
                number of gaps is reached.
        """
        total, length = uploaded.configuration.key_bytes, end - offset
        with self._deciding() as removed, uploaded.lock:
            received = uploaded.received
            if any(
                (other.begin < end and offset < other.end) or other.begin == offset
                for other in uploaded.receiving
            ):
                raise UploadError(
                    "another request sends these bytes of the keys", found=offset, received=received
                )
            if offset != received and not anywhere:
                raise UploadError(
                    f"the content begins at byte {offset}, but {received} bytes have arrived; begin there",
                    found=offset,
                    received=received,
                )
            if end > total:
                raise LimitError(
                    f"the content ends at byte {end}, but the keys end at {total}", value=end, maximum=total
                )
            room = next((to - offset for begin, to in uploaded.missing if begin <= offset < to), 0)
            if length > room:
                raise UploadError(
                    f"bytes {offset} to {end} were announced, but some of them have arrived; ask which "
                    "are missing",
                    found=offset,
                    received=received,
                )
            if length and uploaded.before(offset) is None and offset > 0:
                if len(uploaded.runs) + len(uploaded.receiving) >= MAX_RUNS:
                    raise BusyError(
                        f"{MAX_RUNS} parts of these keys have gaps between them; fill some gaps first"
                    )
                if length < LEAST_PART and len(uploaded.boundaries) >= MAX_RUNS:
                    raise UploadError(
                        f"{len(uploaded.boundaries)} parts of these keys began where no other one ended; "
                        f"further ones have at least {LEAST_PART} bytes, or begin where one ended",
                        found=offset,
                        received=received,
                    )
                uploaded.boundaries.add(offset)
            if length and not uploaded.placed:
                self._admit_first_byte(uploaded, removed)
            begins, uploaded.begun = length > 0 and not uploaded.begun, uploaded.begun or length > 0
            uploaded.receiving.append(incoming := IncomingRange(offset, end, anywhere))
        if begins:
            try:
                self.admission.begin(uploaded)
            except BaseException:
                with uploaded.lock:
                    uploaded.receiving.remove(incoming)
                    uploaded.begun = False
                raise
            self._event("key upload started")
        return incoming

    def interrupt(self, uploaded: UploadedKeys) -> None:
        """Abort the request that appends to a set; its written bytes stay."""
        for incoming in [each for each in uploaded.receiving if not each.anywhere]:
            with incoming.writing, uploaded.lock:
                incoming.stopped = True
                if incoming in uploaded.receiving:
                    uploaded.receiving.remove(incoming)

    def extended(self, uploaded: UploadedKeys, at: int) -> int:
        """Return the offset of the object to which bytes at an offset are appended."""
        with uploaded.lock:
            begin = uploaded.before(at)
            if begin is None or begin == at:
                return at
            return begin if uploaded.parts[begin] < self.objects.part_bytes // SMALL else at

    def dropped(self, uploaded: UploadedKeys, begin: int) -> bool:
        """Whether a set was deleted while bytes of it were written; those are then deleted, too."""
        if uploaded.gone:
            self.objects.delete([uploaded.name(begin)])
        return uploaded.gone

    def recount(self, uploaded: UploadedKeys, begin: int) -> int:
        """Read the size of an object again after a failed write. Returns its end."""
        name = uploaded.name(begin)
        stored = self.objects.sizes(name).get(name, 0)
        with uploaded.lock:
            size = min(uploaded.parts.get(begin, 0), stored)
            if size:
                uploaded.parts[begin] = size
            else:
                uploaded.parts.pop(begin, None)
        if not size:
            self.objects.delete([name])
        return begin + size

    def tail(self, uploaded: UploadedKeys, at: int, length: int) -> bytes:
        """Return at most ``length`` bytes before an offset, as many as are there without a gap."""
        data = b""
        while len(data) < length and (begin := uploaded.before(at - len(data))) is not None:
            end = at - len(data) - begin
            start = max(0, end - (length - len(data)))
            data = self.objects.read(uploaded.name(begin), start, end - start) + data
        return data

    def sample(self, uploaded: UploadedKeys, at: int, length: int) -> bytes:
        """Return bytes of a set from an offset on, fewer if their object ends."""
        begin = max((begin for begin in list(uploaded.parts) if begin <= at), default=0)
        return self.objects.read(uploaded.name(begin), at - begin, length)

    def check(self, uploaded: UploadedKeys) -> None:
        """Check a complete set: a worker reads it and checks every residue, checksum and security bound.

        Raises:
            InvalidObjectError: the set cannot be used.
            SecretRefusedError: a secret key crosses a boundary of parts.
            BusyError: the process that read it was killed; send its last byte again.
            UnknownKeysError: the set was deleted while it waited for its turn.
        """
        if uploaded.gone:
            raise UnknownKeysError("these keys were deleted meanwhile")
        try:
            kept = self.objects.keep(uploaded.names)
        except OSError:
            self._reread_sizes(uploaded)
            raise
        if kept != uploaded.names:
            with uploaded.lock:
                uploaded.parts = {0: uploaded.configuration.key_bytes}
        try:
            with self.objects.file(kept) as path:
                if uploaded.unseen:
                    scan_all(path, uploaded)
                else:
                    scan_boundaries(path, uploaded.boundaries)
                digest = self._workers.check(uploaded.identifier, path, uploaded.configuration.parameters)
        except WorkerEndedError as error:
            raise BusyError(
                "the process that checked the keys has ended; send the last byte again"
            ) from error
        self.note_checked(uploaded, digest)

    def note_checked(self, uploaded: UploadedKeys, digest: str) -> None:
        """Record that a set is ready, and its SHA-256."""
        self._records.set_digest(uploaded.identifier, digest)
        uploaded.digest, uploaded.ready = digest, True

    def _reread_sizes(self, uploaded: UploadedKeys) -> None:
        """Read the sizes of all objects of a set again after they could not be joined."""
        sizes = self.objects.sizes(uploaded.name(0)[:-DIGITS])
        with uploaded.lock:
            uploaded.parts = {int(name[-DIGITS:], 16): size for name, size in sizes.items()}
            self._cut_overlaps(uploaded)

    def drop_last_byte(self, uploaded: UploadedKeys) -> None:
        """Remove the last byte of a complete set: when it arrives again, the set is checked."""
        if not uploaded.whole:
            return
        last = max(uploaded.parts)
        size = uploaded.parts[last] - 1
        self.objects.forget(uploaded.names)
        if size:
            self.objects.append(uploaded.name(last), size, b"")
            uploaded.parts[last] = size
        else:
            self.objects.delete([uploaded.name(last)])
            del uploaded.parts[last]

    def file(self, uploaded: UploadedKeys) -> AbstractContextManager[Path]:
        """Return the bytes of a ready set as a file that exists within the context. The reader must compare
        them with the set's digest."""
        return self.objects.file(uploaded.names)

    def incoming(
        self, uploaded: UploadedKeys, places: Iterable[tuple[int, int]]
    ) -> AbstractContextManager[Path | IncomingFile]:
        """Return the file of a ready set, or the file while it is fetched.

        Args:
            uploaded: the set.
            places: begins and ends of its keys, in the order in which they are used.
        """
        begins = sorted(uploaded.parts)
        order = order_of_parts(begins, places)
        return self.objects.incoming(uploaded.names, [uploaded.parts[begin] for begin in begins], order)

    def fetch_again(self, uploaded: UploadedKeys) -> bool:
        """Drop a damaged copy. Returns whether there was one: the stored bytes may be intact."""
        return self.objects.forget(uploaded.names)

    def intact(self, uploaded: UploadedKeys) -> bool:
        """Whether the bytes of a ready set still are those that were checked."""
        try:
            with self.file(uploaded) as path:
                return digest_of(path) == uploaded.digest
        except FileNotFoundError:
            return False

    def require_ready(self, uploaded: UploadedKeys) -> None:
        """Check that a set is complete.

        Raises:
            UploadError: bytes are missing.
        """
        if not uploaded.ready:
            total = uploaded.configuration.key_bytes
            raise UploadError(
                f"{uploaded.received} of {total} bytes of the keys have arrived; send the rest first",
                received=uploaded.received,
                expected=total,
                code="keys_incomplete",
            )


def order_of_parts(begins: Sequence[int], places: Iterable[tuple[int, int]]) -> list[int]:
    """Return the numbers of a file's parts in the order in which they are needed.

    Args:
        begins: begin of each part.
        places: begins and ends of the ranges that are read, in order. Other parts come last.
    """
    needed = dict.fromkeys(
        number
        for begin, end in places
        for number in range(bisect_right(begins, begin) - 1, bisect_right(begins, end - 1))
    )
    return [*needed, *(number for number in range(len(begins)) if number not in needed)]
