"""Scans of a complete key set for secret keys, before a worker reads it."""

from pathlib import Path

from keywright._core import HEAD_BYTES
from keywright.errors.service import InvalidObjectError

from .secret_scanner import SecretScanner
from .uploaded import UploadedKeys

CHUNK_BYTES = 1 << 20


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
