"""Parts of key sets that clients write to the object storage themselves.

A *grant* is an address, signed for one length, under which one part may be written for a while, and the place
of that part in the set (`UploadStore.begin`): quotas and limits hold as for any other. The object has a name
of its own. The storage refuses another length; where it does not, `sweep` deletes what is longer.
When the client says that the part is there, the storage copies it to where it belongs, if it has the length
that was asked for; nobody has an address of that place. What nobody reports is deleted when the grant ends.

The service sees these bytes first when it checks the whole set, and then looks for what it looks for in
others as they come (`look_through` of `upload_check`).
"""

import re
import secrets
import threading
import time
from dataclasses import dataclass

from keywright.errors.service import StorageError, TooLargeError, WrongOffsetError
from keywright.serve.storage.objects import drawer

from .piece import Piece
from .upload_store import UploadStore
from .uploaded import UploadedKeys

PART_BYTES = 8 << 20
"""The longest part."""

GRANT_S = 300
"""How long an address may be used."""

SWEEP_S = 60.0
"""How often it is looked for objects that no grant names any more."""

PREFIX = "direct/"
OBJECT = re.compile(rf"{PREFIX}[0-9a-f]{{32}}/[0-9a-f]{{32}}")


@dataclass
class Grant:
    """One part that a client may write.

    Attributes:
        piece: its place in the set.
        begin, end: where it belongs.
        name: of the object that the client writes.
        until: when it ends, in seconds of a clock that nobody sets.
    """

    piece: Piece
    begin: int
    end: int
    name: str
    until: float


class DirectUploads:
    """The grants of a service.

    Args:
        store: of the key sets.
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
        """An address for a part of a set. One that was given for the same part before is of no use any more.

        Raises:
            StorageError: there is no storage that clients can write to.
            TooLargeError, WrongOffsetError, BusyError: as of `UploadStore.begin`.
            QuotaError: the tenant has no room for the set.
        """
        if not self.offered:
            raise StorageError(
                "keys are kept in a folder here; send them to this server", code="no_direct_uploads"
            )
        if not 0 < length <= PART_BYTES:
            raise TooLargeError(
                f"a part has 1 to {PART_BYTES} bytes, got {length}", value=length, maximum=PART_BYTES
            )
        self.end(uploaded.identifier, offset)
        piece = self._store.begin(uploaded, offset, length, anywhere=True)
        name = f"{PREFIX}{drawer(uploaded.tenant)}/{secrets.token_hex(16)}"
        try:
            url = self._objects.sign(name, GRANT_S, length)
        except BaseException:
            piece.close()
            raise
        grant = Grant(piece, offset, offset + length, name, time.monotonic() + GRANT_S)
        with self._lock:
            self._grants[uploaded.identifier, offset] = grant
        return {"offset": offset, "length": length, "method": "PUT", "url": url, "seconds": GRANT_S}

    def take(self, uploaded: UploadedKeys, offset: int) -> Piece:
        """Take over a part that a client has written; `Piece.finish` and `close` it then.

        Raises:
            WrongOffsetError: no part is expected there, or what was written has another length; ask for an
                address again.
            OSError: the storage fails.
        """
        with self._lock:
            grant = self._grants.pop((uploaded.identifier, offset), None)
        if grant is None:
            raise WrongOffsetError(
                f"no part is expected at byte {offset}; ask for its address again",
                found=offset,
                received=uploaded.received,
            )
        try:
            grant.piece.take_over(grant.begin, grant.end, grant.name)
        except BaseException:
            grant.piece.close()
            raise
        finally:
            # A client may write there again until the address expires: `sweep` deletes that.
            self._objects.delete([grant.name])
        return grant.piece

    def forget(self, identifier: str) -> None:
        """End the grants of a set."""
        for key in [key for key in list(self._grants) if key[0] == identifier]:
            self.end(*key)

    def sweep(self) -> None:
        """End the grants whose time is over, and delete what no grant names; called often."""
        now = time.monotonic()
        for key, grant in list(self._grants.items()):
            if grant.until < now:
                self.end(*key)
        if self.offered and now - self._swept >= SWEEP_S:
            self._delete_unknown()

    def end(self, identifier: str, offset: int) -> None:
        """End the grant of a part, if there is one: another way is taken."""
        with self._lock:
            grant = self._grants.pop((identifier, offset), None)
        if grant is not None:
            grant.piece.close()
            self._objects.delete([grant.name])

    def _delete_unknown(self) -> None:
        """Delete what no grant names, and what is longer than its grant."""
        self._swept = time.monotonic()
        found = {name: size for name, size in self._objects.sizes(PREFIX).items() if OBJECT.fullmatch(name)}
        with self._lock:
            grants = {grant.name: (key, grant) for key, grant in self._grants.items()}
        for name, (key, grant) in grants.items():
            if found.pop(name, 0) > grant.end - grant.begin:
                self.end(*key)
        self._objects.delete(list(found))
