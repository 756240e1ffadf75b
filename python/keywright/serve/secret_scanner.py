"""What no upload may hold: secret keys, wherever pieces are cut."""

from keywright._core import HEAD_BYTES, contains_secret

from .errors import SecretRefusedError


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
