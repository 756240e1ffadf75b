"""Several objects in one message, each preceded by its length in 4 bytes, little-endian."""

import struct
from collections.abc import Sequence

from keywright.errors.service import BadRequestError

MODEL = "Keywright-Model"
"""The header field of an answer with the hash of its model: a request names it in its address."""


def join(objects: Sequence[bytes]) -> bytes:
    """Join objects into one message."""
    return b"".join(struct.pack("<I", len(data)) + data for data in objects)


def split(message: bytes, count: int) -> list[bytes]:
    """Split a message into its objects.

    Raises:
        BadRequestError: there are not ``count`` objects, or bytes are missing or left over.
    """
    objects, place = [], 0
    for index in range(count):
        if place + 4 > len(message):
            raise BadRequestError(f"{count} ciphertexts are needed, and the message ends after {index}")
        (length,) = struct.unpack_from("<I", message, place)
        place += 4 + length
        if place > len(message):
            raise BadRequestError(
                f"ciphertext {index} has {length} bytes, and the message ends before its end"
            )
        objects.append(message[place - length : place])
    if place != len(message):
        raise BadRequestError(f"{len(message) - place} bytes follow the {count} ciphertexts that are needed")
    return objects
