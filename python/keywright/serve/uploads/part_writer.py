"""Writes a range of a key set while its bytes arrive."""

from collections.abc import Callable

from keywright._core import HEAD_BYTES
from keywright.errors.service import (
    InvalidObjectError,
    SecretRefusedError,
    ServeError,
    UnknownKeysError,
    UploadError,
)

from .secret_scanner import SecretScanner
from .upload_store import UploadStore
from .uploaded import UploadedKeys


class PartWriter:
    """Writes a range of a key set. Bytes that arrive before a connection breaks are kept.

    Args:
        store: the store of the set.
        uploaded: the set.
        offset: begin of the range.
        length: bytes of the range.
        anywhere: whether the range may begin after a gap; by default it follows the bytes that have arrived.
        on_bytes: called after each piece that was written.

    Attributes:
        at: offset of the next bytes.
        end: end of the range.

    Raises:
        UploadError, LimitError, BusyError: the range is refused, see `UploadStore.reserve`.
    """

    def __init__(
        self,
        store: UploadStore,
        uploaded: UploadedKeys,
        offset: int,
        length: int,
        *,
        anywhere: bool = False,
        on_bytes: Callable[[], object] = lambda: None,
    ) -> None:
        self._range = store.reserve(uploaded, offset, offset + length, anywhere=anywhere)
        self.uploaded, self.at, self.end, self._store = uploaded, offset, offset + length, store
        self._scanner: SecretScanner | None = None
        self._on_bytes = on_bytes

    def append(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            SecretRefusedError: they contain a secret key; the set is deleted.
            InvalidObjectError: the set is not the requested one; it is deleted.
            UnknownKeysError: the set was deleted meanwhile.
            UploadError: a later request continues the upload.
            OSError: for example, the disk is full; written bytes count.
        """
        with self._range.writing:
            self._append(data)

    def _append(self, data: bytes) -> None:
        if self._range.stopped:
            raise UploadError(
                "a later request continues this upload; ask for its offset",
                found=self.at,
                received=self.uploaded.received,
            )
        uploaded = self.uploaded
        try:
            self._inspect(data)
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
        uploaded.record(begin, size + len(data))
        if self._store.dropped(uploaded, begin):
            raise UnknownKeysError("these keys were deleted meanwhile")
        self._on_bytes()

    def _inspect(self, data: bytes) -> None:
        """Refuse forbidden bytes."""
        uploaded = self.uploaded
        if self._scanner is None:
            self._scanner = SecretScanner()
            self._scanner.scan(self._store.tail(uploaded, self.at, HEAD_BYTES - 1))
        self._scanner.scan(data)
        head = uploaded.configuration.key_set[self.at :][: len(data)]
        if data[: len(head)] != head:
            raise InvalidObjectError(
                "these are not the keys that the manifest asks for: their head "
                "differs; make them again from the manifest"
            )

    def take_over(self, begin: int, end: int, name: str) -> None:
        """Take over an object with all bytes of the range, which the client wrote to the object storage.

        Raises:
            UploadError: it is not there, or has another length.
            UnknownKeysError: the set was deleted meanwhile.
            OSError: the storage fails.
        """
        uploaded, store = self.uploaded, self._store
        with self._range.writing:
            own = uploaded.name(begin)
            try:
                store.objects.copy(name, own)
                size = store.objects.sizes(own).get(own)
            except FileNotFoundError:
                size = None
            if size != end - begin:
                store.objects.delete([own])
                raise UploadError(
                    f"{size or 0} bytes were written of {end - begin} at byte {begin}; "
                    "ask for its address again",
                    found=begin,
                    received=uploaded.received,
                )
            self.at = end
            uploaded.unseen = True
            uploaded.record(begin, end - begin)
            if store.dropped(uploaded, begin):
                raise UnknownKeysError("these keys were deleted meanwhile")

    def finish(self) -> bool:
        """End the range. Returns whether the set is now complete and checked.

        Raises:
            InvalidObjectError: the set cannot be used; it is deleted.
            BusyError: the process that checked it was killed; send its last byte again.
            UnknownKeysError: the set was deleted meanwhile.
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
        except (OSError, ServeError) as error:
            if uploaded.gone:  # its bytes were missing for that reason
                raise UnknownKeysError("these keys were deleted meanwhile") from error
            self._store.drop_last_byte(uploaded)
            raise
        finally:
            uploaded.checking = False
        return True

    def close(self) -> None:
        """Free the range for another request."""
        with self.uploaded.lock:
            if self._range in self.uploaded.receiving:
                self.uploaded.receiving.remove(self._range)
