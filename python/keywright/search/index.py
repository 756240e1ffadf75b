"""The server's part: what answers encrypted queries, and an index of vectors in the clear."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright import bfv
from keywright._copies import Unpicklable
from keywright._core import EncryptedSearchIndex, EvaluationKeys, SearchIndex, inspect
from keywright._files import new_folder
from keywright._reading.records import refusing
from keywright._reading.sealed import SealedFolder
from keywright._units import quantity
from keywright.errors import FormatError, KeywrightError, ParameterError

from .directory import Places, load_array
from .messages import AnswerPart, read_query
from .quantisation import CHUNK, COARSE, DEFAULT_LEVELS, Metric, Quantisation, as_vectors, norms_of

Engine = TypeVar("Engine", SearchIndex, EncryptedSearchIndex)

EncryptedQuery = bfv.SeededCiphertext | bfv.Ciphertext
"""The encrypted vector of a query; the second of a thin client."""

COMPACT = "a compact CKKS ciphertext"
"""What `inspect` calls the form in which thin clients send it."""


class VectorIndex(Unpicklable, ABC, Generic[Engine], elsewhere="save() it, and load it in the other process"):
    """What indices of vectors in the clear and of encrypted ones share.

    Args:
        quantisation: how vectors are rounded.

    Raises:
        ParameterError: the quantisation is for the other kind.
        TypeError: something else, such as vectors.
    """

    FORMAT: ClassVar[str]
    _KIND: ClassVar[str]

    def __init__(self, quantisation: Quantisation) -> None:
        if not isinstance(quantisation, Quantisation):
            raise TypeError(
                f"an index begins empty, with a Quantisation, not with {type(quantisation).__name__}; "
                "Index.of makes one of vectors"
            )
        self._engine: Engine = self._empty(quantisation)
        self.quantisation, self._places, self._lock = quantisation, Places(), RLock()

    @staticmethod
    @abstractmethod
    def _empty(quantisation: Quantisation) -> Any:
        """Return an engine without vectors."""

    def __len__(self) -> int:
        """Number of vectors."""
        return len(self._places)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({quantity(len(self), 'vector')}, {self.quantisation})"

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the vectors, by place."""
        with self._lock:
            ids: NDArray[np.int64] = self._places.ids[self._places.live]
            return ids

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors in memory."""
        return self._engine.bytes

    @property
    def parameters(self) -> bfv.Parameters:
        """The parameters of queries and keys, and of encrypted vectors."""
        return self.quantisation.parameters

    def directory(self) -> bytes:
        """Return what clients need, as bytes: rounding, ids and revision. It is public to all of them."""
        with self._lock:
            return self._places.directory(self.quantisation).to_bytes()

    def answer(self, query: bytes, keys: bytes | EvaluationKeys) -> bytes:
        """Answer a query with the encrypted score of every vector.

        Args:
            query: data of `Client.query`.
            keys: of that client, from `Client.keys`.

        Raises:
            FormatError: the bytes are not a query or not keys.
            SearchError: there is no vector.
            MissingKeyError, MismatchError: the keys are not those for this query and index.
        """
        tag, ciphertext = read_query(query)
        sent, parameters = self.read(ciphertext), self.parameters
        loaded = keys if isinstance(keys, EvaluationKeys) else EvaluationKeys.from_bytes(keys, parameters)
        with self._lock:
            revision, scores = self._places.revision, self.scores(sent, loaded)
        return AnswerPart(tag, self._places.identity, revision, scores).to_bytes()

    def read(self, ciphertext: bytes) -> EncryptedQuery:
        """Read the encrypted vector of a query.

        Raises:
            FormatError: the bytes are something else.
            MismatchError: it belongs to other parameters.
        """
        return bfv.SeededCiphertext.from_bytes(ciphertext, self.parameters)

    def scores(self, query: EncryptedQuery, keys: EvaluationKeys) -> bytes:
        """Return the encrypted score of every vector for the encrypted vector of a query, without the parts
        of `answer` by which a client of several shards tells them apart; errors as for `answer`."""
        with self._lock:
            self._places.require_vectors()
            return self._scores(query, keys)

    def _scores(self, query: Any, keys: EvaluationKeys) -> bytes:
        return bytes(self._engine.answer(query, keys).to_bytes())

    @contextmanager
    def _growing(self) -> Iterator[None]:
        """Give the rows that a block has written places without a vector, if it is interrupted."""
        try:
            yield
        except BaseException:
            written = np.arange(len(self._places.ids), self._engine.rows)
            if len(written):
                self._places.take(written, written)
                self._places.release(written)
            raise

    def save(self, folder: str | Path) -> None:
        """Write the index to a new folder: its vectors, their ids, and a description in JSON, which has the
        SHA-256 of each file.

        Raises:
            FolderError: the folder exists.
        """
        with new_folder(Path(folder)) as place, self._lock:
            self._write(place)
            self._places.save(place, self.quantisation, self.FORMAT)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the folder of `save`.

        Raises:
            FormatError: a file is damaged, which its code ``checksum`` says, or does not fit the others.
            MismatchError: encrypted vectors have different owners.
            FileNotFoundError: a file is missing.
        """
        folder = Path(folder)
        with refusing(f"{folder}, {cls._KIND}", FormatError):
            places, quantisation, sealed = Places.load(folder, cls.FORMAT)
            index = cls(quantisation)
            index._fill(sealed, len(places.ids))
            index._places = places
        return index

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the vectors."""

    @abstractmethod
    def _fill(self, sealed: SealedFolder, count: int) -> None:
        """Read the vectors of a folder into an empty index."""


class Index(
    VectorIndex[SearchIndex], elsewhere="save() it, and load it in the other process with Index.load"
):
    """Vectors in the clear, in integers of 16 bits, and answers to encrypted queries.

    Thread safety: any number of threads may use one at the same time.

    Args:
        quantisation: how it rounds vectors, for all its life.

    Raises:
        ParameterError: the quantisation is for encrypted vectors.
    """

    FORMAT, _KIND = "keywright-search-index-3", "a search index"

    @staticmethod
    def _empty(quantisation: Quantisation) -> SearchIndex:
        if quantisation.encrypted:
            raise ParameterError(
                "this quantisation is for encrypted vectors; use EncryptedIndex, or leave out encrypted=True",
                what="encrypted",
                value=True,
            )
        return SearchIndex(quantisation.parameters, quantisation.dimension, quantisation.max_norm2)

    def read(self, ciphertext: bytes) -> EncryptedQuery:
        """Read the encrypted vector of a query, also of a thin client if the index is for them; errors as for
        `EncryptedIndex.read`."""
        if self.quantisation.thin and inspect(ciphertext)["kind"] == COMPACT:
            return self._engine.read_query(ciphertext, self.quantisation.client_parameters)
        return super().read(ciphertext)

    def _scores(self, query: Any, keys: EvaluationKeys) -> bytes:
        if isinstance(query, bfv.Ciphertext):
            return self._engine.answer_thin(query, keys, self.quantisation.client_parameters)
        return super()._scores(query, keys)

    @classmethod
    def of(
        cls,
        vectors: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        metric: Metric = "cosine",
        levels: int = DEFAULT_LEVELS,
        radius: float | None = None,
        thin: bool = False,
    ) -> "Index":
        """Make an index of vectors.

        Args:
            vectors: (vectors, dimension).
            ids: int64, one for each; 0, 1, 2, ... by default.
            metric: as for `Quantisation`.
            levels: as for `Quantisation`.
            radius: as for `Quantisation`. By default the largest norm of the vectors, and for distances one
                and a half times the largest distance from their mean.
            thin: as for `Quantisation`.

        Raises:
            SearchError: as for `add`.
            ParameterError: as for `Quantisation`.

        Warns:
            UserWarning: rounding loses a tenth of the vectors or more among their neighbours.
        """
        array = as_vectors(vectors)
        dimension = array.shape[-1] if array.ndim else 0
        centre = None
        if metric == "euclidean" and array.ndim == 2 and len(array):
            with np.errstate(over="ignore", invalid="ignore"):
                centre = array.mean(axis=0, dtype=np.float64)
            if not np.isfinite(centre).all():
                centre = None  # `add` and the radius name what is not finite.
        if radius is None:
            radius = 1.0 if metric == "cosine" else _radius(array, centre)
            radius *= 1.5 if metric == "euclidean" else 1.0
        index = cls(Quantisation(dimension, metric, levels, radius, centre, thin=thin))
        index.add(range(len(array)) if ids is None else ids, array)
        coarse = index.quantisation.coarseness(array)
        if coarse >= COARSE:
            warnings.warn(
                f"{coarse:.0%} of the vectors can hardly be told apart from the nearest other one, because "
                "rounding changes the square of its distance by that much or more: some vectors are far "
                "larger, all are far from 0, or many are close together; scale them alike, subtract the "
                "mean, or pass more levels=",
                stacklevel=2,
            )
        return index

    def add(self, ids: ArrayLike | Sequence[int], vectors: ArrayLike) -> None:
        """Add vectors. Places of deleted ones are used first. Nothing is added if anything is refused.

        Args:
            ids: int64, one for each vector.
            vectors: (vectors, dimension).

        Raises:
            SearchError: a vector has another length, a number that is not finite, norm 0 for cosines, or a
                norm above the radius.
            SearchError: an id is there already or occurs twice, or there is not one for each vector.
        """
        array = as_vectors(vectors)
        with self._lock:
            new = self._places.new_ids(ids, len(array) if array.ndim else 0)
            places = self._places.free(len(new))
            start = 0
            with self._growing():
                for rows, addends in self.quantisation.vectors(array):
                    self._engine.write(places[start : start + len(rows)], rows, addends)
                    start += len(rows)
                self._places.take(places, new)

    def delete(self, ids: ArrayLike | Sequence[int]) -> None:
        """Delete vectors, and overwrite them with zeros. Nothing is deleted if an id is not there.

        Raises:
            SearchError: an id is not there, or occurs twice.
        """
        with self._lock:
            places = self._places.of(ids)
            # Before they are zeros, of which no score is right.
            self._places.release(places)
            for start in range(0, len(places), CHUNK):
                part = places[start : start + CHUNK]
                zeros = np.zeros((len(part), self.quantisation.dimension), dtype=np.int16)
                self._engine.write(part, zeros, np.zeros(0, dtype=np.int64))

    def _write(self, folder: Path) -> None:
        places = np.arange(len(self._places.ids))
        with (folder / "vectors.npy").open("wb") as file:
            shape = (len(places), self.quantisation.dimension)
            header = {"descr": "<i2", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, len(places), CHUNK):
                part = places[start : start + CHUNK]
                # Zeros also of vectors whose deletion was interrupted.
                rows = self._engine.read(part) * self._places.live[part, None]
                file.write(rows.astype("<i2").tobytes())

    def _fill(self, sealed: SealedFolder, count: int) -> None:
        dimension = self.quantisation.dimension
        vectors = load_array(sealed, "vectors.npy", count * dimension, "int16")
        if vectors.shape != (count, dimension):
            raise ValueError(f"its vectors have the shape {vectors.shape}, with {count} ids")
        for start in range(0, count, CHUNK):
            rows = np.ascontiguousarray(vectors[start : start + CHUNK])
            try:
                self._engine.write(np.arange(start, start + len(rows)), rows, self.quantisation.addends(rows))
            except KeywrightError as error:
                raise ValueError(str(error)) from None


def _radius(array: NDArray[np.generic], centre: NDArray[np.float64] | None) -> float:
    """Return the largest norm, or distance from a centre, of vectors; 1 for arrays that `add` refuses."""
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        return 1.0
    largest = 0.0
    for start in range(0, len(array), CHUNK):
        rows = array[start : start + CHUNK].astype(np.float64)
        if not np.isfinite(rows).all():
            return 1.0
        largest = max(largest, float(norms_of(rows if centre is None else rows - centre).max(initial=0.0)))
    # Above rounding: the largest vector fits.
    return largest * (1 + 1e-9) if largest else 1.0
