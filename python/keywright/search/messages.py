"""Queries, answers and encrypted vectors as bytes. Numbers are little-endian.

    query    magic, tag (16), a seeded BFV ciphertext
    vectors  magic, identity of the index (16), revision (16), first place (4), number of vectors (4) and of
    ciphertexts (4), ids (8 each), seeded BFV ciphertexts of equal length, CRC-32 of all (4)
    answer   for each shard: magic, tag (16), identity of the index (16), revision (16), length (8), an
    encrypted answer

The tag is random. It connects an answer to its query, so that a client with several queries cannot mix them
up.

A revision belongs to one history of an index. A number of changes does not: an index that is restored from an
old folder, and changed again, has as many as before. After encrypted vectors it is a digest of their bytes,
which state the revision before, so that their owner knows it, too; after other changes it is random.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright._reading.sealed import CHECKSUM_BYTES, checked, require_checked
from keywright.errors import FormatError
from keywright.values.refusals import NoArray

TAG_BYTES = IDENTITY_BYTES = 16
QUERY = struct.Struct("<8s16s")
VECTORS = struct.Struct("<8s16s16sIII")
ANSWER = struct.Struct("<8s16s16s16sQ")
QUERY_MAGIC, VECTORS_MAGIC, ANSWER_MAGIC = b"KWSQURY1", b"KWSVECT3", b"KWSANSW2"
MAX_SHARDS = 1024


def query_to_bytes(tag: bytes, ciphertext: bytes) -> bytes:
    """Return a query as bytes."""
    return QUERY.pack(QUERY_MAGIC, tag) + ciphertext


def query_ciphertext(data: bytes) -> bytes:
    """Return the ciphertext of a query, for an index that returns no tag."""
    return data[QUERY.size :]


def read_query(data: bytes) -> tuple[bytes, bytes]:
    """Return tag and ciphertext of a query.

    Raises:
        FormatError: the bytes are not a query.
    """
    if len(data) < QUERY.size or data[:8] != QUERY_MAGIC:
        raise FormatError(
            f"these {len(data)} bytes are not a query of a search; send the data of Client.query",
            code="foreign",
            found=data[:8],
            expected=QUERY_MAGIC,
        )
    return data[8 : QUERY.size], data[QUERY.size :]


@dataclass(frozen=True, eq=False)
class EncryptedVectors(NoArray):
    """Vectors that their owner encrypted, for the end of one block of an index.

    Attributes:
        index: identity of the index.
        revision: of the index to which they are added.
        place: of the first of them, in the index.
        ids: int64, one for each vector.
        ciphertexts: of the components, and of what is added to the scores of distances.
    """

    index: bytes
    revision: bytes
    place: int
    ids: NDArray[np.int64]
    ciphertexts: Sequence[bytes]

    def to_bytes(self) -> bytes:
        counts = self.place, len(self.ids), len(self.ciphertexts)
        head = VECTORS.pack(VECTORS_MAGIC, self.index, self.revision, *counts)
        return checked(head, self.ids.astype("<i8").tobytes(), *self.ciphertexts)


def revision_after(vectors: bytes) -> bytes:
    """Return the revision of an index to which the bytes of `EncryptedVectors` have been added."""
    return hashlib.sha256(vectors).digest()[:IDENTITY_BYTES]


def read_vectors(data: bytes, ciphertexts: int) -> EncryptedVectors:
    """Read the bytes of `EncryptedVectors`.

    Args:
        ciphertexts: their number.

    Raises:
        FormatError: they are something else.
    """
    head = data[: VECTORS.size]
    if len(head) == VECTORS.size and head[:8] == VECTORS_MAGIC:
        require_checked(data)
        _, index, revision, place, vectors, count = VECTORS.unpack(head)
        start = VECTORS.size + 8 * vectors
        length, rest = divmod(max(len(data) - CHECKSUM_BYTES - start, 0), ciphertexts)
        if count == ciphertexts and length and not rest:
            ids = np.frombuffer(data, "<i8", vectors, VECTORS.size).astype(np.int64)
            parts = [data[start + k * length : start + (k + 1) * length] for k in range(count)]
            return EncryptedVectors(index, revision, place, ids, parts)
    raise FormatError(
        f"these {len(data)} bytes are not encrypted vectors for this index; send what Client.encrypt yields",
        code="foreign",
        found=head[:8],
        expected=VECTORS_MAGIC,
    )


@dataclass(frozen=True)
class AnswerPart:
    """The answer of one index to a query.

    Attributes:
        tag: of the query.
        index: identity of the index.
        revision: of the index.
        scores: a `SearchAnswer` as bytes.
    """

    tag: bytes
    index: bytes
    revision: bytes
    scores: bytes

    def to_bytes(self) -> bytes:
        """Return the part as bytes; the bytes of shards are concatenated."""
        head = ANSWER.pack(ANSWER_MAGIC, self.tag, self.index, self.revision, len(self.scores))
        return head + self.scores


def read_answer(data: bytes) -> Iterator[AnswerPart]:
    """Return the parts of an answer, one for each shard.

    Raises:
        FormatError: the bytes are not an answer.
    """
    start = 0
    for _ in range(MAX_SHARDS):
        head = data[start : start + ANSWER.size]
        if len(head) < ANSWER.size or head[:8] != ANSWER_MAGIC:
            break
        _, tag, index, revision, length = ANSWER.unpack(head)
        start += ANSWER.size
        if length > len(data) - start:
            break
        yield AnswerPart(tag, index, revision, data[start : start + length])
        start += length
        if start == len(data):
            return
    raise FormatError(
        f"these {len(data)} bytes are not an answer of a search, from byte {start} on; fetch them again",
        code="format",
    )
