"""Detects secret keys in uploads, also across the boundaries of chunks."""

from keywright._core import HEAD_BYTES, contains_secret
from keywright.errors.service import SecretRefusedError


class SecretScanner:
    """Scans a stream of bytes for secret keys."""

    def __init__(self) -> None:
        self._tail = b""

    def scan(self, chunk: bytes) -> None:
        """Scan the next chunk.

        Raises:
            SecretRefusedError: a secret key begins in it, or began at the end of the previous chunk.
        """
        if contains_secret(self._tail + chunk):
            raise SecretRefusedError(
                "a secret key was sent; it was deleted here, but treat it as compromised: make a new "
                "one, and send evaluation keys and ciphertexts only"
            )
        self._tail = (self._tail + chunk)[-(HEAD_BYTES - 1) :]
