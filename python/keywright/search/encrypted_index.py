"""The server's part, if its vectors are encrypted: it learns neither vectors nor queries nor scores."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from keywright import bfv
from keywright._core import EncryptedSearchIndex
from keywright._reading.sealed import SealedFolder
from keywright.errors import FormatError, ParameterError
from keywright.values.refusals import NoArray

from .index import VectorIndex
from .messages import read_vectors, revision_after
from .quantisation import ENCRYPTED_LEVEL, LOG_N, Quantisation

HEADER_BYTES = 4096
"""More than the header of a ciphertext."""

BLOCK = 1 << LOG_N
"""Vectors of a full block."""


class EncryptedIndex(
    NoArray,
    VectorIndex[EncryptedSearchIndex],
    elsewhere="save() it, and load it in the other process with EncryptedIndex.load",
):
    """Vectors that their owner encrypted, and answers to queries of this owner.

    The server learns ids, the number of vectors, and `quantisation`. Only the client whose secret key
    encrypted the vectors can query them.

    Thread safety: any number of threads may use one at the same time.

    Args:
        quantisation: how the owner rounds vectors, with ``encrypted=True``.

    Raises:
        ParameterError: the quantisation is for vectors in the clear.
    """

    FORMAT, _KIND = "keywright-search-encrypted-3", "an encrypted search index"

    @staticmethod
    def _empty(quantisation: Quantisation) -> EncryptedSearchIndex:
        if not quantisation.encrypted:
            raise ParameterError(
                "this quantisation is for vectors in the clear; pass Quantisation(..., encrypted=True)",
                what="encrypted",
                value=False,
            )
        return EncryptedSearchIndex(quantisation.parameters, quantisation.dimension, ENCRYPTED_LEVEL)

    def add(self, vectors: bytes) -> None:
        """Add encrypted vectors. Nothing is added if anything is refused.

        Args:
            vectors: what `Client.encrypt` yields, in its order.

        Raises:
            FormatError: the bytes are not encrypted vectors of this index, or the index has changed since.
            SearchError: an id is there already or occurs twice.
            MismatchError: another secret key encrypted them.
        """
        ciphertexts = self.quantisation.dimension + (self.quantisation.metric == "euclidean")
        message = read_vectors(vectors, ciphertexts)
        parameters = self.parameters
        if message.index != self._places.identity:
            raise FormatError(
                "these vectors were encrypted for another index; make the Client of this index's directory",
                code="index",
            )
        read = bfv.SeededCiphertext.from_bytes
        expanded = [read(part, parameters).expand() for part in message.ciphertexts]
        with self._lock:
            revision, end = self._places.revision, len(self._places.ids)
            if (message.revision, message.place) != (revision, end):
                raise FormatError(
                    f"the vectors are for place {message.place} and revision {message.revision.hex()} of the "
                    f"index, which is at place {end} and revision {revision.hex()}: it was changed or "
                    "restored since; give Client.update its directory, and encrypt again",
                    code="revision",
                )
            ids = self._places.new_ids(message.ids, len(message.ids))
            with self._growing():
                self._engine.append(len(ids), expanded)
                self._places.take(np.arange(end, end + len(ids)), ids, revision_after(vectors))

    def delete(self, ids: ArrayLike | Sequence[int]) -> None:
        """Delete vectors: clients no longer get their scores. Their places stay in use, with ciphertexts that
        only their owner can read. Nothing is deleted if an id is not there.

        Raises:
            SearchError: an id is not there, or occurs twice.
        """
        with self._lock:
            self._places.release(self._places.of(ids))

    def _write(self, folder: Path) -> None:
        for block in range(-(-self._engine.rows // BLOCK)):
            with (folder / f"block-{block}.bin").open("wb") as file:
                for ciphertext in self._engine.read(block):
                    file.write(ciphertext.to_bytes())

    def _fill(self, sealed: SealedFolder, count: int) -> None:
        ciphertexts = self.quantisation.dimension + (self.quantisation.metric == "euclidean")
        parameters = self.parameters
        longest = 16 * parameters.n * len(parameters.q) + HEADER_BYTES
        for start in range(0, count, BLOCK):
            pieces = sealed.pieces(f"block-{start // BLOCK}.bin", ciphertexts, longest)
            block = [bfv.Ciphertext.from_bytes(piece, parameters) for piece in pieces]
            self._engine.append(min(BLOCK, count - start), block)
