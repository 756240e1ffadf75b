"""Messages between client and server: the ciphertexts of any number of samples.

A header has the number of samples and of ciphertexts, the SHA-256 of their program and when it was compiled.
The body has the ciphertexts, each preceded by its length (`framing`). A CRC-32 of both follows. A request
over HTTP consists of the body alone, because its address names the model and thereby the program. Numbers are
little-endian.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from keywright._reading.sealed import CHECKSUM_BYTES, checked, require_checked
from keywright.errors.engine import FormatError
from keywright.errors.service import BadRequestError
from keywright.model.served import framing

from .identity import Identity

MAGIC = b"KWSAMPL4"
HEADER = struct.Struct("<8sII32sQ")
MAX_SAMPLES = 1 << 24


@dataclass(frozen=True)
class Message:
    """Ciphertexts of samples.

    Attributes:
        samples: number of samples; None for a single one without a batch axis.
        objects: bytes of the ciphertexts, batch by batch.
        identity: of the program for which they were encrypted, or from which they come.
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
            FormatError: the number of ciphertexts is wrong.
        """
        batches = -(-self.count // batch)
        if len(self.objects) != batches * ciphertexts:
            raise FormatError(
                f"the message has {len(self.objects)} ciphertexts of {self.count} samples, but the "
                f"program takes {ciphertexts} for every {batch}; encrypt them for this program",
                code="message",
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
        identity = self.identity
        head = HEADER.pack(MAGIC, self.samples or 0, len(self.objects), identity.program, identity.created)
        return checked(head, framing.join(self.objects))

    @staticmethod
    def from_bytes(data: bytes) -> "Message":
        """Read a message that `to_bytes` wrote.

        Raises:
            FormatError: the bytes are malformed.
        """
        if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
            raise FormatError(
                "these bytes are not a message of ciphertexts; make one with client.encrypt", code="message"
            )
        require_checked(data)
        _, samples, count, program, created = HEADER.unpack_from(data)
        if samples > MAX_SAMPLES:
            raise FormatError(
                f"the message has {samples} samples; at most {MAX_SAMPLES} are read", code="message"
            )
        try:
            objects = framing.split(data[HEADER.size : -CHECKSUM_BYTES], count)
        except BadRequestError as error:
            raise FormatError(f"{error}; send the message whole, and alone", code="message") from error
        return Message(samples or None, objects, Identity(program, created))
