"""The server's part: an index of vectors in the clear, and its answers to encrypted queries."""

import json
import secrets
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright import bfv
from keywright._core import EvaluationKeys, SearchIndex
from keywright._reading.arrays import read_array, read_file
from keywright._reading.records import read_object, refusing, whole
from keywright.errors import (
    FormatError,
    KeywrightError,
    SearchError,
)

from .directory import HEADER, MAX_PLACES, Directory, runs_of
from .messages import IDENTITY_BYTES, AnswerPart, read_query
from .quantisation import CHUNK, DEFAULT_LEVELS, Metric, Quantisation, as_vectors, norms_of

FORMAT = "keywright-search-index-1"
MAX_ARRAY_HEADER = 4096 + 16


class Index:
    """Vectors in the clear, in integers of 16 bits, and answers to encrypted queries.

    Thread safety: any number of threads may use one at the same time.

    Args:
        quantisation: how it rounds vectors, for all its life.
    """

    def __init__(self, quantisation: Quantisation) -> None:
        self.quantisation = quantisation
        self._identity = secrets.token_bytes(IDENTITY_BYTES)
        self._revision = 0
        self._engine = SearchIndex(quantisation.parameters, quantisation.dimension, quantisation.max_norm2)
        self._ids = np.zeros(0, dtype=np.int64)
        self._live = np.zeros(0, dtype=np.bool_)
        # Positions in `_ids`, in the order of ids; made again after a change.
        self._order: NDArray[np.int64] | None = None
        self._lock = RLock()

    @classmethod
    def of(
        cls,
        vectors: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        metric: Metric = "cosine",
        levels: int = DEFAULT_LEVELS,
        radius: float | None = None,
    ) -> "Index":
        """Make an index of vectors.

        Args:
            vectors: (vectors, dimension).
            ids: int64, one for each; 0, 1, 2, ... by default.
            metric: as for `Quantisation`.
            levels: as for `Quantisation`.
            radius: as for `Quantisation`. By default the largest norm of the vectors, and for distances one
                and a half times the largest distance from their mean.

        Raises:
            SearchError: as for `add`.
            ParameterError: as for `Quantisation`.

        Warns:
            UserWarning: rounding hides the differences of most vectors.
        """
        array = as_vectors(vectors)
        dimension = array.shape[-1] if array.ndim else 0
        centre = None
        if metric == "euclidean" and array.ndim == 2 and len(array):
            centre = array.mean(axis=0, dtype=np.float64)
        if radius is None:
            radius = 1.0 if metric == "cosine" else _radius(array, centre)
            radius *= 1.5 if metric == "euclidean" else 1.0
        index = cls(Quantisation(dimension, metric, levels, radius, centre))
        index.add(range(len(array)) if ids is None else ids, array)
        coarse = index.quantisation.coarseness(array) if len(array) > 1 else 0.0
        if coarse > 1:
            warnings.warn(
                f"rounding changes scores by {coarse:.3g} times the distance of most vectors from their "
                "middle, so they can hardly be told apart: a few vectors are far larger, or all are far from "
                "0; leave those out, subtract the mean, or pass levels= or radius=",
                stacklevel=2,
            )
        return index

    def __len__(self) -> int:
        """Number of vectors."""
        return int(np.count_nonzero(self._live))

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the vectors, by place."""
        with self._lock:
            ids: NDArray[np.int64] = self._ids[self._live]
            return ids

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors in memory."""
        return self._engine.bytes

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
            new = self._new_ids(ids, len(array) if array.ndim else 0)
            free = np.flatnonzero(~self._live)[: len(new)]
            end = len(self._ids)
            places = np.r_[free, np.arange(end, end + len(new) - len(free))].astype(np.int64)
            start = 0
            for rows, addends in self.quantisation.vectors(array):
                self._engine.write(places[start : start + len(rows)], rows, addends)
                start += len(rows)
            grown = len(places) - len(free)
            self._ids = np.r_[self._ids, np.zeros(grown, dtype=np.int64)]
            self._live = np.r_[self._live, np.zeros(grown, dtype=np.bool_)]
            self._ids[places], self._live[places] = new, True
            self._changed()

    def delete(self, ids: ArrayLike | Sequence[int]) -> None:
        """Delete vectors, and overwrite them with zeros. Nothing is deleted if an id is not there.

        Raises:
            SearchError: an id is not there, or occurs twice.
        """
        with self._lock:
            places = self._places(_ids_of(ids))
            for start in range(0, len(places), CHUNK):
                part = places[start : start + CHUNK]
                zeros = np.zeros((len(part), self.quantisation.dimension), dtype=np.int16)
                self._engine.write(part, zeros, np.zeros(0, dtype=np.int64))
            self._live[places] = False
            self._changed()

    def directory(self) -> bytes:
        """Return what clients need, as bytes: rounding, ids and revision. It is public to all of them."""
        with self._lock:
            runs = runs_of(self._ids, self._live)
            return Directory(self._identity, self._revision, self.quantisation, runs).to_bytes()

    @property
    def parameters(self) -> bfv.Parameters:
        """The parameters of queries and keys."""
        return self.quantisation.parameters

    def answer(self, query: bytes, keys: bytes | EvaluationKeys) -> bytes:
        """Answer a query with the encrypted score of every vector.

        Args:
            query: data of `Client.query`.
            keys: of that client, from `Client.keys`.

        Raises:
            FormatError: the bytes are not a query or not keys.
            SearchError: there is no vector.
            MissingKeyError, MismatchError: the keys are not those for this query and
                index.
        """
        tag, ciphertext = read_query(query)
        parameters = self.parameters
        loaded = keys if isinstance(keys, EvaluationKeys) else EvaluationKeys.from_bytes(keys, parameters)
        sent = bfv.SeededCiphertext.from_bytes(ciphertext, parameters)
        with self._lock:
            if not self._live.any():
                raise SearchError("the index has no vectors; add some first")
            revision = self._revision
            scores = self._engine.answer(sent, loaded)
        return AnswerPart(tag, self._identity, revision, scores.to_bytes()).to_bytes()

    def save(self, folder: str | Path) -> None:
        """Write the index to a new folder: the rounded vectors, their ids, and a description in JSON.

        Raises:
            FileExistsError: the folder exists.
        """
        folder = Path(folder)
        folder.mkdir()
        with self._lock:
            places = np.arange(len(self._ids))
            with (folder / "vectors.npy").open("wb") as file:
                shape = (len(places), self.quantisation.dimension)
                header = {"descr": "<i2", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for start in range(0, len(places), CHUNK):
                    file.write(self._engine.read(places[start : start + CHUNK]).astype("<i2").tobytes())
            np.save(folder / "ids.npy", self._ids)
            np.save(folder / "live.npy", self._live)
            description = {
                "format": FORMAT,
                "index": self._identity.hex(),
                "revision": self._revision,
                **self.quantisation.to_json(),
            }
        (folder / "index.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "Index":
        """Read the folder of `save`.

        Raises:
            FormatError: a file is damaged, or does not fit the others.
            FileNotFoundError: a file is missing.
        """
        folder = Path(folder)
        text = read_file(folder / "index.json", HEADER.bytes)
        with refusing(f"{folder}, a search index", FormatError):
            fields = read_object(text, FORMAT, HEADER)
            try:
                index = cls(Quantisation.from_json(fields))
            except KeywrightError as error:
                raise ValueError(str(error)) from None
            index._identity = bytes.fromhex(fields["index"])
            index._revision = whole(fields["revision"], "revision")
            if len(index._identity) != IDENTITY_BYTES:
                raise ValueError(f"its identity has {len(index._identity)} bytes, not {IDENTITY_BYTES}")
            index._fill(folder)
        return index

    def _fill(self, folder: Path) -> None:
        """Read the arrays of a folder into an empty index."""
        dimension = self.quantisation.dimension

        def array(name: str, most: int, size: int, dtype: str) -> NDArray[Any]:
            data = read_file(folder / name, most * size + MAX_ARRAY_HEADER)
            loaded = read_array(data, most)
            if loaded.dtype != np.dtype(dtype):
                raise ValueError(f"{name} has the type {loaded.dtype}, not {dtype}")
            return loaded

        ids = array("ids.npy", MAX_PLACES, 8, "int64")
        live = array("live.npy", ids.size, 1, "bool")
        vectors = array("vectors.npy", ids.size * dimension, 2, "int16")
        if ids.ndim != 1 or live.shape != ids.shape or vectors.shape != (len(ids), dimension):
            raise ValueError(f"its arrays have the shapes {ids.shape}, {live.shape} and {vectors.shape}")
        if len(np.unique(ids[live])) != np.count_nonzero(live):
            raise ValueError("an id occurs twice")
        for start in range(0, len(ids), CHUNK):
            rows = np.ascontiguousarray(vectors[start : start + CHUNK])
            places = np.arange(start, start + len(rows))
            try:
                self._engine.write(places, rows, self.quantisation.addends(rows))
            except KeywrightError as error:
                raise ValueError(str(error)) from None
        self._ids, self._live = ids.copy(), live.astype(np.bool_)

    def _changed(self) -> None:
        self._revision += 1
        self._order = None

    def _new_ids(self, ids: ArrayLike | Sequence[int], count: int) -> NDArray[np.int64]:
        """Return ids that are not in the index, one for each vector."""
        new = _ids_of(ids)
        if len(new) != count:
            raise SearchError(
                f"there are {len(new)} ids for {count} vectors; pass one for each", id=None, code="id"
            )
        _refuse_repeated(new)
        known = np.isin(new, self._ids[self._live])
        if known.any():
            first = int(new[known][0])
            raise SearchError(f"id {first} is in the index already; delete it first", id=first, code="id")
        return new

    def _places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of ids."""
        _refuse_repeated(ids)
        if self._order is None:
            live = np.flatnonzero(self._live)
            self._order = live[np.argsort(self._ids[live], kind="stable")]
        order = self._order
        result = np.searchsorted(self._ids[order], ids)
        there = result < len(order)
        there[there] = self._ids[order[result[there]]] == ids[there]
        if not there.all():
            first = int(ids[~there][0])
            raise SearchError(f"id {first} is not in the index", id=first, code="id")
        places: NDArray[np.int64] = order[result]
        return places


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


def _ids_of(ids: ArrayLike | Sequence[int]) -> NDArray[np.int64]:
    array = np.asarray(ids)
    if array.ndim == 1 and not array.size:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array > np.iinfo(np.int64).max).any():
        raise SearchError(
            f"ids have the type {array.dtype} and the shape {array.shape}; pass a list of 64-bit integers",
            id=None,
            code="id",
        )
    return array.astype(np.int64)


def _refuse_repeated(ids: NDArray[np.int64]) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        first = int(values[counts > 1][0])
        raise SearchError(f"id {first} occurs twice; pass each once", id=first, code="id")
