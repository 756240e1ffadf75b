"""Key sets of clients, on disk: uploads that can be interrupted and resumed, and that outlive the process.

Every set has a folder named after its identifier, 128 random bits, which are also what entitles to it:
whoever knows them can use and delete it. ``set.json`` says which model and which configuration it is for,
when it was begun, and the digest of a whole one; the bytes are in ``keys.part`` until all have come and been
checked, then in ``keys.kw``. How many bytes have come is the size of the file, so a server that was killed
goes on where it was; one that was killed while it checked a whole set asks for its last byte again.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keywright._core import HEAD_BYTES, contains_secret

from .configurations import Catalog, Configuration
from .errors import (
    BusyError,
    InvalidObjectError,
    KeysIncompleteError,
    SecretRefusedError,
    TooLargeError,
    UnknownKeysError,
    WrongOffsetError,
)
from .worker import digest_of, write_whole
from .workers import WorkerEndedError, Workers

PART, WHOLE, DESCRIPTION = "keys.part", "keys.kw", "set.json"
MAX_DESCRIPTION_BYTES = 4096

MAX_EMPTY = 256
"""Sets without a byte; the one that has waited longest makes room for the next."""

STALLED_S, MOVED_BYTES = 60.0, 1 << 16
"""An upload that has not moved so many bytes for so long makes room where all places are taken."""

IDENTIFIER = re.compile(r"[0-9a-f]{32}")


class SecretScanner:
    """Looks for secret keys in bytes that come piece by piece."""

    def __init__(self) -> None:
        self._tail = b""

    def look(self, piece: bytes) -> None:
        """Look through the next piece.

        Raises:
            SecretRefusedError: a secret key begins in it, or began at the end of the one before.
        """
        if contains_secret(self._tail + piece):
            raise SecretRefusedError(
                "a secret key was sent; it was deleted here, but must be regarded as known: make a new one, "
                "and send evaluation keys and ciphertexts only"
            )
        self._tail = (self._tail + piece)[-(HEAD_BYTES - 1) :]


@dataclass
class UploadedKeys:
    """A key set, or as much of it as has come.

    Attributes:
        identifier: 32 hexadecimal digits.
        folder: where it is.
        model: hash of the model that it was made for.
        configuration: whose keys they are.
        made: when it was begun, in seconds since 1970.
        received: bytes that have come.
        ready: whether all have, and were checked.
        used: when it was last used, in seconds of a clock that nobody sets.
        digest: SHA-256 of a set that is ready.
        tenant: whose it is.
        moved: when `MOVED_BYTES` had come since the time before, by that clock.
        lock: held by the upload that is under way.
    """

    identifier: str
    folder: Path
    model: str
    configuration: Configuration
    made: float
    received: int
    ready: bool
    used: float
    digest: str = ""
    tenant: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    moved: float = field(default_factory=time.monotonic)
    _mark: int = 0

    @property
    def path(self) -> Path:
        """Where the bytes are of a set that is ready."""
        return self.folder / WHOLE

    def describe(self) -> None:
        """Write what is not in the bytes."""
        entry = {"model": self.model, "configuration": self.configuration.identifier, "made": self.made}
        write_whole(
            self.folder / DESCRIPTION,
            json.dumps(entry | {"digest": self.digest, "tenant": self.tenant}).encode(),
        )

    def move(self) -> None:
        """Note that bytes have come."""
        if self.received - self._mark >= MOVED_BYTES:
            self.moved, self._mark = time.monotonic(), self.received

    def stalled(self) -> bool:
        """Whether it is incomplete and hardly moves: it makes room for others."""
        return not self.ready and time.monotonic() - self.moved > STALLED_S


class Piece:
    """A piece that is being received. What came of it before a connection broke stays."""

    def __init__(self, store: "UploadStore", uploaded: UploadedKeys) -> None:
        self.uploaded, self._store = uploaded, store
        self._scanner: SecretScanner | None = None

    def append(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            SecretRefusedError: a secret key is among them; the set is deleted.
            InvalidObjectError: the set is not the one that was asked for; it is deleted.
            UnknownKeysError: it was deleted meanwhile.
            OSError: a disk that is full, for one; what is on it counts.
        """
        uploaded, part = self.uploaded, self.uploaded.folder / PART
        try:
            with part.open("r+b") as file:
                if self._scanner is None:
                    self._scanner = SecretScanner()
                    file.seek(max(0, uploaded.received - HEAD_BYTES + 1))
                    self._scanner.look(file.read(HEAD_BYTES - 1))
                self._scanner.look(data)
                wanted = uploaded.configuration.key_set[uploaded.received :][: len(data)]
                if data[: len(wanted)] != wanted:
                    raise InvalidObjectError(
                        "these are not the keys that the manifest asks for: their head differs"
                    )
                file.seek(uploaded.received)
                file.write(data)
                uploaded.received += len(data)
            uploaded.move()
        except (SecretRefusedError, InvalidObjectError):
            self._store.delete(uploaded)
            raise
        except OSError:
            try:
                uploaded.received = min(uploaded.received, part.stat().st_size)
            except FileNotFoundError:
                raise UnknownKeysError("these keys were deleted meanwhile") from None
            raise

    def finish(self) -> bool:
        """End the piece. Returns whether the set is complete with it, and was checked.

        Raises:
            InvalidObjectError: the set cannot be used; it is deleted.
        """
        uploaded = self.uploaded
        if uploaded.ready or uploaded.received < uploaded.configuration.key_bytes:
            return False
        with (uploaded.folder / PART).open("rb") as file:
            os.fsync(file.fileno())
        try:
            self._store.check(uploaded)
        except InvalidObjectError:
            self._store.delete(uploaded)
            raise
        return True

    def close(self) -> None:
        """Let another piece be received."""
        self.uploaded.lock.release()


class UploadStore:
    """The key sets of a service.

    Args:
        folder: where they are kept.
        catalog: what is served. Sets of configurations that are not stay as they are.
        workers: who checks whole sets.
        capacity: how many sets with bytes there are at most.
        expiry: seconds after which a set that is not used is deleted by `expire`.
    """

    def __init__(
        self, folder: Path, catalog: Catalog, workers: Workers, *, capacity: int = 16, expiry: float = 3600.0
    ) -> None:
        self.folder, self.capacity, self.expiry = folder, capacity, expiry
        self._catalog, self._workers = catalog, workers
        self._lock = threading.Lock()
        self._sets: dict[str, UploadedKeys] = {}
        self._retired: dict[str, str] = {}
        folder.mkdir(exist_ok=True, mode=0o700)
        for path in sorted(folder.iterdir()):
            self._recover(path)

    def __len__(self) -> int:
        return len(self._sets)

    def complete(self) -> list[UploadedKeys]:
        """The sets that can be used."""
        with self._lock:
            return [uploaded for uploaded in self._sets.values() if uploaded.ready]

    def counts(self, *, ready: bool) -> tuple[int, int]:
        """How many sets there are that are complete, or not, and their bytes."""
        with self._lock:
            sizes = [uploaded.received for uploaded in self._sets.values() if uploaded.ready == ready]
            return len(sizes), sum(sizes)

    def retired(self) -> int:
        """How many sets are here whose configurations are not served."""
        return len(self._retired)

    def _recover(self, path: Path) -> None:
        """Take over a set that an earlier process left, as if it were used now, and delete one of a served
        configuration that cannot be used. Whatever is no such set stays."""
        if not IDENTIFIER.fullmatch(path.name) or not path.is_dir() or path.is_symlink():
            return
        if not {entry.name for entry in path.iterdir()} <= {PART, WHOLE, DESCRIPTION, DESCRIPTION + ".part"}:
            return
        # A process that ended while it made a set leaves one without a description.
        if not (path / DESCRIPTION).exists():
            shutil.rmtree(path, ignore_errors=True)
            return
        described = _described(path / DESCRIPTION)
        if described is None:
            return
        configuration = self._catalog.configurations.get(described["configuration"])
        if configuration is None:
            self._retired[path.name] = described["configuration"]
            return
        ready, size = (path / WHOLE).is_file() and described["digest"] != "", -1
        with contextlib.suppress(OSError):
            size = (path / (WHOLE if ready else PART)).stat().st_size
        total = configuration.key_bytes
        if size == total if ready else 0 <= size <= total:
            size -= size == total and not ready
            self._sets[path.name] = UploadedKeys(
                path.name,
                path,
                described["model"],
                configuration,
                float(described["made"]),
                size,
                ready,
                time.monotonic(),
                described["digest"],
                described["tenant"],
            )
            return
        shutil.rmtree(path, ignore_errors=True)

    def create(self, model: str, tenant: str = "") -> UploadedKeys:
        """An empty set for a model, by its hash. It takes nobody's place until bytes come (`begin`), and
        makes room for newer ones."""
        with self._lock:
            self._expire()
            empty = [s for s in self._sets.values() if s.received == 0 and not s.lock.locked()]
            for uploaded in sorted(empty, key=lambda s: s.used)[: max(0, len(empty) - MAX_EMPTY + 1)]:
                self._delete(uploaded)
            identifier = secrets.token_hex(16)
            folder = self.folder / identifier
            folder.mkdir(mode=0o700)
            (folder / PART).touch(mode=0o600)
            configuration, now = self._catalog.of(model), time.monotonic()
            made = UploadedKeys(identifier, folder, model, configuration, time.time(), 0, False, now)
            made.tenant = tenant
            made.describe()
            self._sets[identifier] = made
            return made

    def _take_place(self, uploaded: UploadedKeys) -> None:
        """Room for the bytes of a set.

        Raises:
            BusyError: as many sets have bytes as there may be, all of them in use lately.
        """
        with self._lock:
            self._expire()
            others = [s for s in self._sets.values() if s.received > 0 and s is not uploaded]
            stalled = [s for s in others if s.stalled() and not s.lock.locked()]
            if len(others) >= self.capacity and stalled:
                self._delete(min(stalled, key=lambda s: s.moved))
            elif len(others) >= self.capacity:
                raise BusyError(f"{self.capacity} key sets are in use; ask again later")

    def all(self) -> list[UploadedKeys]:
        """The sets of all tenants."""
        with self._lock:
            return list(self._sets.values())

    def of(self, tenant: str) -> list[UploadedKeys]:
        """The sets of a tenant."""
        with self._lock:
            return [uploaded for uploaded in self._sets.values() if uploaded.tenant == tenant]

    def get(self, identifier: str, tenant: str = "") -> UploadedKeys:
        """The set of an identifier. One of another tenant is as unknown as one that never was.

        Raises:
            UnknownKeysError: there is none.
            RetiredError: its configuration is not served any more.
        """
        if identifier in self._retired:
            self._catalog.configuration(self._retired[identifier])
        with self._lock:
            found = self._sets.get(identifier)
            if found is None or found.tenant != tenant:
                raise UnknownKeysError("no keys of that identifier are here (any more); upload them again")
            found.used = time.monotonic()
            return found

    def touch(self, identifier: str) -> None:
        """Note that a set is in use, if it is there."""
        with self._lock:
            if (found := self._sets.get(identifier)) is not None:
                found.used = time.monotonic()

    def expire(self) -> list[str]:
        """Delete the sets that were not used for `expiry` seconds; their identifiers."""
        with self._lock:
            return self._expire()

    def _expire(self) -> list[str]:
        limit = time.monotonic() - self.expiry
        # Of a set that is being received, the upload is its use.
        old = [s for s in self._sets.values() if s.used < limit and not s.lock.locked()]
        for uploaded in old:
            self._delete(uploaded)
        return [uploaded.identifier for uploaded in old]

    def delete(self, uploaded: UploadedKeys) -> None:
        """Delete a set and its bytes."""
        with self._lock:
            self._delete(uploaded)

    def _delete(self, uploaded: UploadedKeys) -> None:
        self._sets.pop(uploaded.identifier, None)
        self._workers.forget(uploaded.identifier)
        shutil.rmtree(uploaded.folder, ignore_errors=True)

    def begin(self, uploaded: UploadedKeys, offset: int, length: int) -> "Piece":
        """A piece of a set, to be appended to it.

        Args:
            offset: where the piece begins.
            length: bytes of the piece.

        Raises:
            WrongOffsetError: the piece does not begin where the last one ended, or another one is being
                received.
            TooLargeError: it would end behind the end of the set.
            BusyError: it is the first piece, and there are as many sets as there may be.
        """
        if not uploaded.lock.acquire(blocking=False):
            raise WrongOffsetError(
                "another piece of these keys is being received", found=offset, received=uploaded.received
            )
        try:
            if uploaded.received == 0:
                self._take_place(uploaded)
            total = uploaded.configuration.key_bytes
            if offset != uploaded.received:
                raise WrongOffsetError(
                    f"the piece begins at byte {offset}, and {uploaded.received} have come",
                    found=offset,
                    received=uploaded.received,
                )
            if offset + length > total:
                raise TooLargeError(
                    f"the piece ends at byte {offset + length}, the keys at {total}",
                    value=offset + length,
                    maximum=total,
                )
            return Piece(self, uploaded)
        except BaseException:
            uploaded.lock.release()
            raise

    def check(self, uploaded: UploadedKeys) -> None:
        """Have a whole set read, which checks every residue, checksum and security bound.

        Raises:
            InvalidObjectError: it cannot be used.
            BusyError: the process that read it was killed; its last byte is to be sent again.
        """
        try:
            digest = self._workers.check(uploaded.folder / PART, uploaded.configuration.parameters)
        except WorkerEndedError as error:
            uploaded.received -= 1
            raise BusyError(
                "the process that checked the keys has ended; send the last byte again"
            ) from error
        uploaded.digest = digest
        uploaded.describe()
        (uploaded.folder / PART).replace(uploaded.path)
        uploaded.ready = True

    def intact(self, uploaded: UploadedKeys) -> bool:
        """Whether the bytes of a set that is ready are still those that were checked."""
        try:
            return digest_of(uploaded.path) == uploaded.digest
        except FileNotFoundError:
            return False

    def require_ready(self, uploaded: UploadedKeys) -> None:
        """Refuse a set that is not complete.

        Raises:
            KeysIncompleteError: not all bytes have come.
        """
        if not uploaded.ready:
            total = uploaded.configuration.key_bytes
            raise KeysIncompleteError(
                f"{uploaded.received} of {total} bytes of the keys have come; send the rest first",
                received=uploaded.received,
                expected=total,
            )


def _described(path: Path) -> dict[str, str] | None:
    """What the description of a set says; None if it is none."""
    entry: object = None
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= MAX_DESCRIPTION_BYTES:
            entry = json.loads(path.read_bytes())
    if not isinstance(entry, Mapping):
        return None
    made = entry.get("made")
    texts = [entry.get(name) for name in ("model", "configuration", "digest", "tenant")]
    if not isinstance(made, float) or not all(isinstance(text, str) for text in texts):
        return None
    return {
        "made": str(made),
        **dict(zip(("model", "configuration", "digest", "tenant"), map(str, texts), strict=True)),
    }
