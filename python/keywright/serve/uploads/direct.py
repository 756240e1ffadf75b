"""Parts of key sets that clients write to the object storage themselves.

A *grant* is an address, signed for one length, under which a client may write one part for a while, and a
reserved range of the set (`UploadStore.reserve`): quotas and limits apply as to other parts. The object has a
separate name. The storage refuses other lengths; `sweep` deletes longer objects if a storage does not. When
the client reports the part, the storage copies an object of the right length to the part's name, for which no
client has an address. An object that no client reports is deleted when its grant ends.

The service first reads these bytes when it checks the whole set; `scan_all` of `secret_scanner` then scans
them.
"""

import re
import secrets
import threading
import time
from dataclasses import dataclass

from keywright.errors.service import LimitError, StorageError, UploadError
from keywright.serve.storage.objects import tenant_digest

from .part_writer import PartWriter
from .upload_store import UploadStore
from .uploaded import UploadedKeys

PART_BYTES = 8 << 20
"""The longest part."""

GRANT_S = 300
"""How long an address may be used."""

SWEEP_S = 60.0
"""Interval between searches for objects without a grant."""

PREFIX = "direct/"
OBJECT = re.compile(rf"{PREFIX}[0-9a-f]{{32}}/[0-9a-f]{{32}}")


@dataclass
class Grant:
    """One part that a client may write.

    Attributes:
        writer: writes its range of the set.
        begin, end: the range.
        name: name of the object that the client writes.
        until: end of the grant, in seconds of a monotonic clock.
    """

    writer: PartWriter
    begin: int
    end: int
    name: str
    until: float


class DirectUploads:
    """The grants of a service.

    Args:
        store: store of the key sets.
    """

    def __init__(self, store: UploadStore) -> None:
        self._store, self._objects = store, store.objects
        self._lock = threading.Lock()
        self._grants: dict[tuple[str, int], Grant] = {}
        self._swept = 0.0
        self.offered = self._objects.sign(PREFIX, 1, 1) is not None
        if self.offered:
            self._delete_unknown()

    def grant(self, uploaded: UploadedKeys, offset: int, length: int) -> dict[str, object]:
        """Return an address for a part of a set. An earlier address of the same part becomes invalid.

        Raises:
            StorageError: there is no storage that clients can write to.
            LimitError, UploadError, BusyError: the range is refused, see `UploadStore.reserve`.
            LimitError: the tenant has no room for the set.
        """
        if not self.offered:
            raise StorageError(
                "keys are kept in a folder here; send them to this server", code="no_direct_uploads"
            )
        if not 0 < length <= PART_BYTES:
            raise LimitError(
                f"a part has 1 to {PART_BYTES} bytes, got {length}", value=length, maximum=PART_BYTES
            )
        self.end(uploaded.identifier, offset)
        writer = PartWriter(self._store, uploaded, offset, length, anywhere=True)
        name = f"{PREFIX}{tenant_digest(uploaded.tenant)}/{secrets.token_hex(16)}"
        try:
            url = self._objects.sign(name, GRANT_S, length)
        except BaseException:
            writer.close()
            raise
        grant = Grant(writer, offset, offset + length, name, time.monotonic() + GRANT_S)
        with self._lock:
            self._grants[uploaded.identifier, offset] = grant
        return {"offset": offset, "length": length, "method": "PUT", "url": url, "seconds": GRANT_S}

    def take(self, uploaded: UploadedKeys, offset: int) -> PartWriter:
        """Take over a part that a client has written. The caller finishes and closes the writer.

        Raises:
            UploadError: no part is expected there, or the uploaded part has another length; request an
                address again.
            OSError: the storage fails.
        """
        with self._lock:
            grant = self._grants.pop((uploaded.identifier, offset), None)
        if grant is None:
            raise UploadError(
                f"no part is expected at byte {offset}; ask for its address again",
                found=offset,
                received=uploaded.received,
            )
        try:
            grant.writer.take_over(grant.begin, grant.end, grant.name)
        except BaseException:
            grant.writer.close()
            raise
        finally:
            # A client may write there again until the address expires: `sweep` deletes that.
            self._objects.delete([grant.name])
        return grant.writer

    def forget(self, identifier: str) -> None:
        """End the grants of a set."""
        for key in [key for key in list(self._grants) if key[0] == identifier]:
            self.end(*key)

    def sweep(self) -> None:
        """End grants that expired or lost their set, and delete objects without a grant; called often."""
        now = time.monotonic()
        for key, grant in list(self._grants.items()):
            if grant.until < now or grant.writer.uploaded.gone:
                self.end(*key)
        if self.offered and now - self._swept >= SWEEP_S:
            self._delete_unknown()

    def end(self, identifier: str, offset: int) -> None:
        """End the grant of a part, if there is one."""
        with self._lock:
            grant = self._grants.pop((identifier, offset), None)
        if grant is not None:
            grant.writer.close()
            self._objects.delete([grant.name])

    def _delete_unknown(self) -> None:
        """Delete objects without a grant, and objects longer than their grant."""
        self._swept = time.monotonic()
        objects = {name: size for name, size in self._objects.sizes(PREFIX).items() if OBJECT.fullmatch(name)}
        with self._lock:
            grants = {grant.name: (key, grant) for key, grant in self._grants.items()}
        for name, (key, grant) in grants.items():
            if objects.pop(name, 0) > grant.end - grant.begin:
                self.end(*key)
        self._objects.delete(list(objects))
