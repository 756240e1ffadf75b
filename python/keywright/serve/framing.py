"""Several objects in one message: each is preceded by its length, 4 bytes, little-endian."""

import struct
from collections.abc import Sequence

from .errors import BadRequestError


def join(objects: Sequence[bytes]) -> bytes:
    """One message of several objects."""
    return b"".join(struct.pack("<I", len(data)) + data for data in objects)


def split(message: bytes, count: int) -> list[bytes]:
    """The objects of a message.

    Raises:
        BadRequestError: there are not ``count`` of them, or bytes are missing or left over.
    """
    objects, place = [], 0
    for index in range(count):
        if place + 4 > len(message):
            raise BadRequestError(f"{count} ciphertexts are needed, and the message ends after {index}")
        (length,) = struct.unpack_from("<I", message, place)
        place += 4 + length
        if place > len(message):
            raise BadRequestError(f"ciphertext {index} has {length} bytes, and the message ends before")
        objects.append(message[place - length : place])
    if place != len(message):
        raise BadRequestError(f"{len(message) - place} bytes follow the {count} ciphertexts that are needed")
    return objects
