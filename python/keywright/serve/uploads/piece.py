"""A piece of a key set that is being received."""

from typing import Protocol

from keywright._core import HEAD_BYTES
from keywright.errors.service import (
    InvalidObjectError,
    SecretRefusedError,
    ServeError,
    UnknownKeysError,
    WrongOffsetError,
)
from keywright.serve.storage import Objects

from .secret_scanner import SecretScanner
from .uploaded import Stretch, UploadedKeys


class Receiver(Protocol):
    """The store that a piece belongs to: `UploadStore`."""

    objects: Objects

    def delete(self, uploaded: UploadedKeys, why: str) -> None:
        """Delete a set and its bytes."""

    def extended(self, uploaded: UploadedKeys, at: int) -> int:
        """Return where the object begins that bytes at a place belong to."""

    def dropped(self, uploaded: UploadedKeys, begin: int) -> bool:
        """Return whether a set was deleted while bytes of it were written."""

    def recount(self, uploaded: UploadedKeys, begin: int) -> int:
        """Return where an object ends after a write failed."""

    def tail(self, uploaded: UploadedKeys, at: int, length: int) -> bytes:
        """Return the bytes before a place, as many as are here."""

    def check(self, uploaded: UploadedKeys) -> None:
        """Check a complete set."""

    def lose_last_byte(self, uploaded: UploadedKeys) -> None:
        """Forget the last byte of a complete set, so that it is sent again."""


class Piece:
    """A piece that is being received. Bytes that arrive before a connection breaks are kept.

    Attributes:
        uploaded: the set.
        at: offset of its next bytes.
        end: offset of its end.
    """

    def __init__(self, store: Receiver, uploaded: UploadedKeys, stretch: Stretch) -> None:
        self.uploaded, self.at, self.end = uploaded, stretch.begin, stretch.end
        self._store, self._stretch = store, stretch
        self._scanner: SecretScanner | None = None

    def append(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            SecretRefusedError: they contain a secret key; the set is deleted.
            InvalidObjectError: the set is not the requested one; it is deleted.
            UnknownKeysError: the set was deleted meanwhile.
            WrongOffsetError: a later request continues the upload.
            OSError: for example, the disk is full; written bytes count.
        """
        with self._stretch.writing:
            self._append(data)

    def _append(self, data: bytes) -> None:
        if self._stretch.stopped:
            raise WrongOffsetError(
                "a later request continues this upload; ask for its offset",
                found=self.at,
                received=self.uploaded.received,
            )
        uploaded = self.uploaded
        try:
            self._look(data)
        except (SecretRefusedError, InvalidObjectError):
            self._store.delete(uploaded, "refused")
            raise
        begin = self._store.extended(uploaded, self.at)
        size = uploaded.parts.get(begin, 0)
        if uploaded.gone:
            raise UnknownKeysError("these keys were deleted meanwhile")
        try:
            self._store.objects.append(uploaded.name(begin), size, data)
        except FileNotFoundError:
            raise UnknownKeysError("these keys were deleted meanwhile") from None
        except OSError:
            self.at = self._store.recount(uploaded, begin)
            raise
        self.at += len(data)
        uploaded.came(begin, size + len(data))
        if self._store.dropped(uploaded, begin):
            raise UnknownKeysError("these keys were deleted meanwhile")

    def _look(self, data: bytes) -> None:
        """Refuse forbidden bytes."""
        uploaded = self.uploaded
        if self._scanner is None:
            self._scanner = SecretScanner()
            self._scanner.look(self._store.tail(uploaded, self.at, HEAD_BYTES - 1))
        self._scanner.look(data)
        wanted = uploaded.configuration.key_set[self.at :][: len(data)]
        if data[: len(wanted)] != wanted:
            raise InvalidObjectError(
                "these are not the keys that the manifest asks for: their head "
                "differs; make them again from the manifest"
            )

    def take_over(self, begin: int, end: int, name: str) -> None:
        """Have an object be all of the piece that somebody else has written.

        Raises:
            WrongOffsetError: it is not there, or has another length.
            UnknownKeysError: the set was deleted meanwhile.
            OSError: the storage fails.
        """
        uploaded, store = self.uploaded, self._store
        with self._stretch.writing:
            own = uploaded.name(begin)
            try:
                store.objects.copy(name, own)
                size = store.objects.sizes(own).get(own)
            except FileNotFoundError:
                size = None
            if size != end - begin:
                store.objects.delete([own])
                raise WrongOffsetError(
                    f"{size or 0} bytes were written of {end - begin} at byte {begin}; "
                    "ask for its address again",
                    found=begin,
                    received=uploaded.received,
                )
            self.at = end
            uploaded.unseen = True
            uploaded.came(begin, end - begin)
            if store.dropped(uploaded, begin):
                raise UnknownKeysError("these keys were deleted meanwhile")

    def finish(self) -> bool:
        """End the piece. Returns whether the set is now complete and checked.

        Raises:
            InvalidObjectError: the set cannot be used; it is deleted.
            BusyError: the process that checked it was killed; send its last byte again.
        """
        uploaded = self.uploaded
        with uploaded.lock:
            if uploaded.ready or uploaded.checking or not uploaded.whole:
                return False
            uploaded.checking = True
        try:
            self._store.check(uploaded)
        except (InvalidObjectError, SecretRefusedError):
            self._store.delete(uploaded, "refused")
            raise
        except (OSError, ServeError):
            self._store.lose_last_byte(uploaded)
            raise
        finally:
            uploaded.checking = False
        return True

    def close(self) -> None:
        """Free the slot for another piece."""
        with self.uploaded.lock:
            if self._stretch in self.uploaded.receiving:
                self.uploaded.receiving.remove(self._stretch)
