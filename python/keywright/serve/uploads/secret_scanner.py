"""Detects secret keys in uploads: while they arrive, also across the boundaries of chunks, and in a complete
key set before a worker reads it."""

from pathlib import Path

from keywright._core import HEAD_BYTES, contains_secret
from keywright.errors.service import InvalidObjectError, SecretRefusedError

from .uploaded import UploadedKeys

CHUNK_BYTES = 1 << 20


class SecretScanner:
    """Scans a stream of bytes for secret keys."""

    def __init__(self) -> None:
        self._tail = b""

    def scan(self, chunk: bytes) -> None:
        """Scan the next chunk.

        Raises:
            SecretRefusedError: a secret key begins in it, or began at the end of the previous chunk.
        """
        data = self._tail + chunk
        if contains_secret(data):
            raise SecretRefusedError(
                "a secret key was sent; it was deleted here, but treat it as compromised: make a new "
                "one, and send evaluation keys and ciphertexts only"
            )
        self._tail = data[-(HEAD_BYTES - 1) :]


def scan_boundaries(path: Path, boundaries: set[int]) -> None:
    """Scan the boundaries between parts that were received separately.

    Raises:
        SecretRefusedError: a secret key crosses a boundary.
    """
    with path.open("rb") as file:
        for boundary in sorted(boundaries):
            file.seek(max(0, boundary - HEAD_BYTES + 1))
            SecretScanner().scan(file.read(2 * (HEAD_BYTES - 1)))


def scan_all(path: Path, uploaded: UploadedKeys) -> None:
    """Scan a whole set, some of whose bytes did not pass through the service.

    Raises:
        SecretRefusedError: the set contains a secret key.
        InvalidObjectError: its head is not that of the configuration.
    """
    head, scanner = uploaded.configuration.key_set, SecretScanner()
    with path.open("rb") as file:
        if file.read(len(head)) != head:
            raise InvalidObjectError("these are not the keys that the manifest asks for: their head differs")
        file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            scanner.scan(chunk)
