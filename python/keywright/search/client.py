"""The client's part: keys, encrypted queries, and the best of the decrypted scores."""

import secrets
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright import bfv
from keywright._copies import Unpicklable
from keywright._core import KeyGenerator, SearchAnswer, SearchIndex, SecretKey
from keywright._units import quantity
from keywright.errors import FormatError, ParameterError, SearchError
from keywright.thin import Client as ThinClient
from keywright.values.refusals import NoArray

from .directory import Directory, read_directories, repeated_id
from .messages import TAG_BYTES, AnswerPart, EncryptedVectors, query_to_bytes, read_answer, revision_after
from .quantisation import ENCRYPTED_LEVEL, LOG_N, Metric, Quantisation, as_vectors, is_whole

BLOCK = 1 << LOG_N
"""Vectors of a full block."""

HEADER_BYTES = 4096
"""Most bytes of an answer to a thin client, or of one to others, besides its packed coefficients."""


class SecretHolder:
    """A secret key of the engine, and what a client computes with it."""

    def __init__(self, quantisation: Quantisation, secret: SecretKey | None) -> None:
        self.secret = SecretKey.generate(quantisation.parameters) if secret is None else secret
        self._quantisation, self._encryptor = quantisation, bfv.Decryptor(self.secret)

    def keys(self) -> bytes:
        """Make the keys of queries."""
        specs = self._quantisation.key_specs
        return KeyGenerator(self.secret).evaluation_keys(relinearization=False, specs=specs).to_bytes()

    def encrypt(self, integers: NDArray[np.int64]) -> bytes:
        """Encrypt the integers of a query."""
        values = SearchIndex.query_values(self._quantisation.parameters, integers)
        return self._encryptor.encrypt(values, packing="coefficients").to_bytes()

    def decrypt(self, answer: bytes, places: int) -> NDArray[np.int64] | None:
        """Decrypt the score of each place, centred; None if the answer has another number."""
        encrypted = SearchAnswer.from_bytes(answer, self._quantisation.parameters)
        return encrypted.decrypt(self.secret) if encrypted.rows == places else None


class ThinHolder(SecretHolder):
    """The same for a thin client. Its answers have an object for each block of places."""

    def __init__(self, quantisation: Quantisation, secret: SecretKey | None) -> None:
        parameters = quantisation.client_parameters
        super().__init__(quantisation, secret)
        self._client = ThinClient.from_secret(self.secret, parameters)

    def encrypt(self, integers: NDArray[np.int64]) -> bytes:
        return self._client.encrypt(integers, dropped=0)

    def decrypt(self, answer: bytes, places: int) -> NDArray[np.int64] | None:
        starts = range(0, places, BLOCK)
        size, rest = divmod(len(answer), max(1, len(starts)))
        if rest:
            return None
        scores = np.zeros(places, dtype=np.int64)
        for k, start in enumerate(starts):
            block = answer[k * size : (k + 1) * size]
            count = min(BLOCK, places - start)
            scores[start : start + count] = self._client.decrypt(block, count)
        return scores


class Client(
    Unpicklable,
    elsewhere="store secret.to_bytes(), and make one of the directory and this secret elsewhere",
):
    """Makes queries of an index, or of shards of one, and reads the answers. For an `EncryptedIndex`, it
    encrypts the vectors, too. The secret key never leaves it.

    Thread safety: any number of threads may use one at the same time.

    Args:
        directory: from `Index.directory` or `Shards.directory`.
        secret: a secret key of an earlier client of this index; a new key by default.
        thin: encrypt and decrypt as a thin client does, with one prime, for an index made with ``thin=True``.

    Raises:
        FormatError: the bytes are not a directory, or the shards differ in how they round vectors, or share
            an id.
        MismatchError: the secret belongs to other parameters.
        ParameterError: the index is not for thin clients.
    """

    def __init__(self, directory: bytes, secret: SecretKey | None = None, *, thin: bool = False) -> None:
        self._directories = _shards(directory)
        self.quantisation: Quantisation = self._directories[0].quantisation
        self._holder = (ThinHolder if thin else SecretHolder)(self.quantisation, secret)

    @property
    def secret(self) -> SecretKey:
        """The secret key: its owner stores it."""
        return self._holder.secret

    def __len__(self) -> int:
        """Number of vectors of the index."""
        return sum(directory.vectors for directory in self._directories)

    def __repr__(self) -> str:
        return f"Client({quantity(len(self), 'vector')}, {self.quantisation})"

    def update(self, directory: bytes) -> None:
        """Take the directory of the index after a change. Keys stay valid.

        Raises:
            FormatError: the bytes are not a directory of an index that rounds vectors in the same way.
        """
        directories = _shards(directory)
        if directories[0].quantisation != self.quantisation:
            raise FormatError(
                "this directory is of an index that rounds vectors in another way; make a Client of it",
                code="field",
            )
        self._directories = directories

    def keys(self) -> bytes:
        """Make the keys that a server needs for this client's queries. It may keep them for all queries."""
        return self._holder.keys()

    def encrypt(self, ids: ArrayLike | Sequence[int], vectors: ArrayLike) -> Iterator[bytes]:
        """Encrypt vectors for an `EncryptedIndex`. Add all that this yields, in this order, then call
        `update`. Lengths depend only on the number of vectors, and each message has at most 8192 of them:
        add many vectors at a time, because a message is as long for one of them.

        Args:
            ids: int64, one for each vector. The server can read them.
            vectors: (vectors, dimension).

        Yields:
            Bytes for `EncryptedIndex.add`.

        Raises:
            ParameterError: the index has vectors in the clear, or is one of several shards.
            SearchError: as for `Index.add`.
        """
        if not self.quantisation.encrypted or len(self._directories) > 1:
            what = "several shards" if len(self._directories) > 1 else "vectors in the clear"
            raise ParameterError(
                f"this client's directory is of {what}; vectors are encrypted for one EncryptedIndex: make a "
                "Client of its directory and this client's secret",
                what="directory",
                value=what,
            )
        array, directory = as_vectors(vectors), self._directories[0]
        new = directory.new_ids(ids, len(array) if array.ndim else 0)
        quantised = list(self.quantisation.vectors(array))
        return self._messages(directory, new, quantised)

    def _messages(
        self,
        directory: Directory,
        ids: NDArray[np.int64],
        quantised: Sequence[tuple[NDArray[np.int16], NDArray[np.int64]]],
    ) -> Iterator[bytes]:
        """Yield a message for each block that vectors are in."""
        if not len(ids):
            return
        rows = np.concatenate([rows for rows, _ in quantised])
        addends = np.concatenate([addends for _, addends in quantised])
        columns = [rows, addends[:, None]] if len(addends) else [rows]
        start, revision, encryptor = 0, directory.revision, bfv.Decryptor(self.secret)
        while start < len(ids):
            place = directory.places + start
            end = min(start + BLOCK - place % BLOCK, len(ids))
            ciphertexts = []
            for column in np.concatenate([part[start:end].T for part in columns], dtype=np.int64):
                values = np.r_[np.zeros(place % BLOCK, dtype=np.int64), column]
                sent = encryptor.encrypt(values, packing="coefficients", level=ENCRYPTED_LEVEL)
                ciphertexts.append(sent.to_bytes())
            message = EncryptedVectors(directory.index, revision, place, ids[start:end], ciphertexts)
            yield (data := message.to_bytes())
            start, revision = end, revision_after(data)

    def query(self, vector: ArrayLike) -> "Query":
        """Encrypt a vector. The number of bytes depends only on the index.

        Args:
            vector: (dimension,).

        Raises:
            SearchError: it has another length, a number that is not finite, norm 0 for cosines and inner
                products, or for distances is farther from the centre than the radius.
            SearchError: the index has no vectors.
        """
        if not len(self):
            raise SearchError("the index has no vectors; add some first")
        integers, factor = self.quantisation.query(vector)
        tag = secrets.token_bytes(TAG_BYTES)
        data = query_to_bytes(tag, self._holder.encrypt(integers))
        return Query(self._holder, self._directories, tag, data, factor)


class Query(NoArray, Unpicklable, elsewhere="send its data, and read the answer where the query was made"):
    """One encrypted vector, and how to read the answer to it.

    Thread safety: any number of threads may use one at the same time.

    Attributes:
        data: bytes for the server.
        tag: 16 random bytes that the answer repeats.
    """

    _computed = "send its data to a server, and read the answer with top() or scores()"

    def __init__(
        self, holder: SecretHolder, directories: Sequence[Directory], tag: bytes, data: bytes, factor: float
    ) -> None:
        self.data = data
        self._holder, self._directories = holder, directories
        self.tag, self._factor = tag, factor

    @property
    def shards(self) -> list[tuple[bytes, bytes, int]]:
        """Identity, revision and number of places of each shard of the index."""
        return [(each.index, each.revision, each.places) for each in self._directories]

    def answer_bytes(self, places: int) -> int:
        """Return the most bytes of the answer of an index with so many places: two coefficients for each
        place of its blocks, with less than the bits of the first prime."""
        width = self._directories[0].quantisation.parameters.q[0].bit_length() - 2 - LOG_N
        return -(-places // BLOCK) * (2 * BLOCK * width // 8 + HEADER_BYTES)

    @property
    def metric(self) -> Metric:
        """The metric of the scores."""
        return self._directories[0].quantisation.metric

    def scores(self, answer: bytes | list[AnswerPart]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Decrypt the answer of an index.

        Args:
            answer: bytes from the server, or their parts.

        Returns:
            The ids of all vectors, and the score of each: a cosine, an inner product, or a distance.

        Raises:
            FormatError: the bytes are not an answer to this query, or the index has changed since
                `Client.update`.
            MismatchError: the answer is under another secret key.
        """
        ids, integers = self._decrypted(answer)
        return ids, self._directories[0].quantisation.scores(integers, self._factor)

    def top(self, answer: bytes | list[AnswerPart], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best of the scores, best first: the largest, or the smallest distances.

        Args:
            answer: bytes from the server, or their parts.
            k: number of results.

        Returns:
            (k,) ids and (k,) scores. Equal scores are in the order of their places.

        Raises:
            SearchError: k is below 1, or above the number of vectors.
            FormatError, MismatchError: as for `scores`.
        """
        self.require_count(k)
        ids, integers = self._decrypted(answer)
        scores = self._directories[0].quantisation.scores(integers, self._factor)
        ranks = scores if self.metric == "euclidean" else -integers
        best = nearest(ranks, k)
        return ids[best], scores[best]

    def require_count(self, k: int) -> None:
        """Refuse a number of results that the index does not have; raises `SearchError`."""
        vectors = sum(directory.vectors for directory in self._directories)
        if not is_whole(k, 1, vectors):
            raise SearchError(
                f"k={k!r} is not an integer from 1 to {vectors}, the number of vectors of the index",
                k=k,
                vectors=vectors,
                code="count",
            )

    def _decrypted(self, answer: bytes | list[AnswerPart]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        known = {directory.index: directory for directory in self._directories}
        ids, scores = [], []
        for part in answer if isinstance(answer, list) else read_answer(answer):
            if part.tag != self.tag:
                raise FormatError("this answers another query; read it with that one", code="query")
            directory = known.pop(part.index, None)
            if directory is None:
                raise FormatError(
                    "this is an answer of another index, or has a shard twice; ask that of the directory",
                    code="index",
                )
            current = part.revision == directory.revision
            integers = self._holder.decrypt(part.scores, directory.places) if current else None
            if integers is None:
                raise FormatError(
                    f"the index is at revision {part.revision.hex()}, and the directory at "
                    f"{directory.revision.hex()}; give Client.update the new directory, and query again",
                    code="revision",
                )
            ids.append(directory.ids[directory.live])
            scores.append(integers[directory.live])
        missing = [directory for directory in known.values() if directory.vectors]
        if missing:
            raise FormatError(
                f"{len(missing)} of {len(self._directories)} shards have not answered; ask them, too",
                code="index",
            )
        return np.concatenate(ids), np.concatenate(scores)


def _shards(data: bytes) -> list[Directory]:
    directories = read_directories(data)
    first = directories[0].quantisation
    if any(directory.quantisation != first for directory in directories):
        raise FormatError(
            "the shards round vectors in different ways; make all of them with one Quantisation",
            code="field",
        )
    if len({directory.index for directory in directories}) < len(directories):
        raise FormatError("a shard occurs twice; name each once", code="field")
    runs = [directory.runs for directory in directories]
    twice = repeated_id(runs[0] if len(runs) == 1 else np.concatenate(runs))
    if twice is not None:
        raise FormatError(
            f"id {twice} occurs twice, so a result would not say which vector it is; give the vectors of "
            "all shards ids of their own",
            code="field",
        )
    return directories


def nearest(ranks: NDArray[np.generic], k: int) -> NDArray[np.int64]:
    """Return the places of the k smallest numbers, smallest first, equal ones in their order."""
    limit = np.partition(ranks, k - 1)[k - 1]
    candidates = np.flatnonzero(ranks <= limit)
    best: NDArray[np.int64] = candidates[np.argsort(ranks[candidates], kind="stable")[:k]]
    return best
