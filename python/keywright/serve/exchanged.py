"""The objects that clients and the server exchange, as the server sees them."""

from dataclasses import dataclass
from typing import Literal

from keywright._core import inspect
from keywright.errors import KeywrightError
from keywright.errors.service import InvalidObjectError

Direction = Literal["received", "sent"]

SAMPLE_BYTES = 32
"""Bytes of the sample from the middle of an object."""


@dataclass(frozen=True)
class ExchangedObject:
    """An object that a client sent or received, as the server sees it.

    Attributes:
        direction: as the server sees it.
        what: the kind of object, from its header.
        size: its bytes.
        sample: a few bytes from its middle, in hexadecimal.
    """

    direction: Direction
    what: str
    size: int
    sample: str

    @staticmethod
    def of(direction: Direction, data: bytes) -> "ExchangedObject":
        """Describe bytes, as far as that is possible without keys.

        Raises:
            InvalidObjectError: they do not begin as an object of the library does, or they were received and
                are no ciphertext.
        """
        middle = len(data) // 2
        try:
            kind = str(inspect(data)["kind"])
        except KeywrightError as error:
            raise InvalidObjectError(f"a ciphertext cannot be read: {error}") from error
        if direction == "received" and not kind.endswith("ciphertext"):
            raise InvalidObjectError(
                f"expected a ciphertext, got {kind}; send a ciphertext of the model's parameters"
            )
        return ExchangedObject(direction, kind, len(data), data[middle : middle + SAMPLE_BYTES].hex())
