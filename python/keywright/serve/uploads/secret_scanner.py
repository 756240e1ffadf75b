"""Detects secret keys in uploads, also across the boundaries of pieces."""

from keywright._core import HEAD_BYTES, contains_secret
from keywright.errors.service import SecretRefusedError


class SecretScanner:
    """Scans bytes for secret keys piece by piece."""

    def __init__(self) -> None:
        self._tail = b""

    def scan(self, piece: bytes) -> None:
        """Scan the next piece.

        Raises:
            SecretRefusedError: a secret key begins in it, or began at the end of the previous piece.
        """
        if contains_secret(self._tail + piece):
            raise SecretRefusedError(
                "a secret key was sent; it was deleted here, but treat it as compromised: make a new "
                "one, and send evaluation keys and ciphertexts only"
            )
        self._tail = (self._tail + piece)[-(HEAD_BYTES - 1) :]
