"""Queries and answers as bytes. Numbers are little-endian.

    query    magic, tag (16), a seeded BFV ciphertext
    answer   for each shard: magic, tag (16), identity of the index (16), revision (8), length (8), an
    encrypted answer

The tag is random. It connects an answer to its query, so that a client with several queries cannot mix them
up.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from keywright.errors import AnswerError, FormatError

TAG_BYTES = IDENTITY_BYTES = 16
QUERY = struct.Struct("<8s16s")
ANSWER = struct.Struct("<8s16s16sQQ")
QUERY_MAGIC, ANSWER_MAGIC = b"KWSQURY1", b"KWSANSW1"
MAX_SHARDS = 1024


def query_to_bytes(tag: bytes, ciphertext: bytes) -> bytes:
    """Return a query as bytes."""
    return QUERY.pack(QUERY_MAGIC, tag) + ciphertext


def read_query(data: bytes) -> tuple[bytes, bytes]:
    """Return tag and ciphertext of a query.

    Raises:
        FormatError: the bytes are not a query.
    """
    if len(data) < QUERY.size or data[:8] != QUERY_MAGIC:
        raise FormatError(
            f"these {len(data)} bytes are not a query of a search; send the data of Client.query",
            reason="foreign",
            found=data[:8],
            expected=QUERY_MAGIC,
        )
    return data[8 : QUERY.size], data[QUERY.size :]


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
    revision: int
    scores: bytes

    def to_bytes(self) -> bytes:
        """Return the part as bytes; the bytes of shards are concatenated."""
        head = ANSWER.pack(ANSWER_MAGIC, self.tag, self.index, self.revision, len(self.scores))
        return head + self.scores


def read_answer(data: bytes) -> Iterator[AnswerPart]:
    """Return the parts of an answer, one for each shard.

    Raises:
        AnswerError: the bytes are not an answer.
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
    raise AnswerError(
        f"these {len(data)} bytes are not an answer of a search, from byte {start} on; fetch them again",
        reason="format",
    )
