"""Messages between client and server: the ciphertexts of any number of samples.

A header has the number of samples and of ciphertexts, the SHA-256 of their program and when it was compiled.
Each ciphertext is an object of the byte format, preceded by its length. Numbers are little-endian.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from keywright.errors.model import MessageError
from keywright.model.folder.identity import Identity

MAGIC, OLD_MAGIC = b"KWSAMPL2", b"KWSAMPL1"
HEADER = struct.Struct("<8sII32sQ")
LENGTH = struct.Struct("<Q")
MAX_SAMPLES = 1 << 24


@dataclass(frozen=True)
class Message:
    """Ciphertexts of samples.

    Attributes:
        samples: number of samples; None for a single one without a batch axis.
        objects: bytes of the ciphertexts, batch by batch.
        identity: of the program that they are for, or come from.
    """

    samples: int | None
    objects: Sequence[bytes]
    identity: Identity

    @property
    def count(self) -> int:
        """Number of samples."""
        return 1 if self.samples is None else self.samples

    def batches(self, batch: int, ciphertexts: int) -> list[tuple[int, Sequence[bytes]]]:
        """Return the samples and the ciphertexts of each batch of a program.

        Args:
            batch: samples that share ciphertexts.
            ciphertexts: number per batch.

        Raises:
            MessageError: the number of ciphertexts is wrong.
        """
        batches = -(-self.count // batch)
        if len(self.objects) != batches * ciphertexts:
            raise MessageError(
                f"the message has {len(self.objects)} ciphertexts of {self.count} samples, but the "
                f"program takes {ciphertexts} for every {batch}; encrypt them for this program"
            )
        return [
            (
                min(batch, self.count - number * batch),
                self.objects[number * ciphertexts : (number + 1) * ciphertexts],
            )
            for number in range(batches)
        ]

    def to_bytes(self) -> bytes:
        """Return the message as bytes."""
        parts = [
            HEADER.pack(
                MAGIC,
                self.samples or 0,
                len(self.objects),
                self.identity.program,
                self.identity.created,
            )
        ]
        for data in self.objects:
            parts += [LENGTH.pack(len(data)), data]
        return b"".join(parts)

    @staticmethod
    def from_bytes(data: bytes) -> "Message":
        """Read a message that `to_bytes` wrote.

        Raises:
            MessageError: the bytes are malformed.
        """
        if data[: len(OLD_MAGIC)] == OLD_MAGIC:
            raise MessageError(
                "the message is of an older release, without the identity of its program; make it again with "
                "this release"
            )
        if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
            raise MessageError("these bytes are not a message of ciphertexts; make one with client.encrypt")
        _, samples, count, program, created = HEADER.unpack_from(data)
        if samples > MAX_SAMPLES:
            raise MessageError(f"the message has {samples} samples; at most {MAX_SAMPLES} are read")
        objects, place = [], HEADER.size
        for index in range(count):
            if place + LENGTH.size > len(data):
                raise MessageError(f"the message ends after {index} of {count} ciphertexts; send it whole")
            (length,) = LENGTH.unpack_from(data, place)
            place += LENGTH.size
            if length > len(data) - place:
                raise MessageError(f"the message ends within ciphertext {index} of {count}; send it whole")
            objects.append(data[place : place + length])
            place += length
        if place != len(data):
            raise MessageError(
                f"{len(data) - place} bytes follow the last of {count} ciphertexts; send the message alone"
            )
        return Message(samples or None, objects, Identity(program, created))
