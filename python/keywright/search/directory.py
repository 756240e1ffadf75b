"""The public facts about an index: its rounding, the id at each place, and its revision. `Directory` is what
clients know of them, `Places` what an index has."""

import json
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._reading.arrays import read_array
from keywright._reading.documents import Limits
from keywright._reading.records import read_object, refusing
from keywright._reading.sealed import CHECKSUM_BYTES, SealedFolder, checked, require_checked, seal
from keywright._units import quantity
from keywright.errors import FormatError, KeywrightError, SearchError

from .messages import IDENTITY_BYTES, MAX_SHARDS
from .quantisation import Quantisation

FORMAT = "keywright-search-3"
MAGIC = b"KWSDIRS3"
HEAD = struct.Struct("<8sIQ")
"""Magic, bytes of the header in JSON, number of runs. The header, the runs and a CRC-32 of all follow."""
HEADER = Limits(1 << 20, 1 << 16)
DESCRIPTION = "index.json"
"""Document of a saved index."""
MAX_PLACES = 1 << 26
MAX_ARRAY_HEADER = 4096 + 16


@dataclass(frozen=True, eq=False)
class Directory:
    """Places and ids of one index at one revision.

    Attributes:
        index: random identity of the index, 16 bytes.
        revision: 16 bytes, new after every change of the index.
        quantisation: how vectors are rounded.
        runs: int64, (runs, 2): the first of successive ids and their number, which is negative for places of
            deleted vectors.
    """

    index: bytes
    revision: bytes
    quantisation: Quantisation
    runs: NDArray[np.int64]

    @property
    def places(self) -> int:
        return int(np.abs(self.runs[:, 1]).sum())

    @property
    def vectors(self) -> int:
        return int(self.runs[:, 1].clip(min=0).sum())

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """The id at each place. A short directory can have many ids: read them when an answer has as many
        scores."""
        counts = np.abs(self.runs[:, 1])
        starts = np.cumsum(counts) - counts
        ids: NDArray[np.int64] = np.repeat(self.runs[:, 0] - starts, counts) + np.arange(self.places)
        return ids

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """Whether a place has a vector."""
        return np.repeat(self.runs[:, 1] > 0, np.abs(self.runs[:, 1]))

    def new_ids(self, ids: ArrayLike | Sequence[int], count: int) -> NDArray[np.int64]:
        """Return ids that are not in the index; errors as for `Places.new_ids`. Memory grows with the given
        ids and the directory's bytes, not with the places that it states."""
        return _new_ids(ids, count, self._known)

    def _known(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each id is one of a vector. No id is in two runs of vectors."""
        starts, counts = _live_runs(self.runs)
        if not len(starts):
            return np.zeros(len(ids), dtype=np.bool_)
        order, values = np.argsort(starts), ids.view(np.uint64)
        # Below the first start, the last run may wrap around.
        run = order[np.searchsorted(starts[order], values, side="right") - 1]
        return np.asarray(values - starts[run] < counts[run])

    def to_bytes(self) -> bytes:
        """Return the directory as bytes; the bytes of shards are concatenated."""
        header = {
            "format": FORMAT,
            "index": self.index.hex(),
            "revision": self.revision.hex(),
            **self.quantisation.to_json(),
            **self.quantisation.thin_fields,
        }
        text = json.dumps(header).encode()
        head = HEAD.pack(MAGIC, len(text), len(self.runs))
        return checked(head, text, self.runs.astype("<i8").tobytes())


def read_directories(data: bytes) -> list[Directory]:
    """Read the directories of all shards.

    Raises:
        FormatError: the bytes are not directories.
    """
    with refusing("the directory of a search index", FormatError):
        return list(_directories(data))


def _directories(data: bytes) -> Iterator[Directory]:
    start, places = 0, 0
    for _ in range(MAX_SHARDS):
        if len(data) - start < HEAD.size:
            raise ValueError(f"it has {len(data) - start} bytes, less than a header")
        magic, header, runs = HEAD.unpack_from(data, start)
        if magic != MAGIC:
            raise ValueError(f"it begins with {magic!r}")
        end = start + HEAD.size + header + 16 * runs + CHECKSUM_BYTES
        if header > HEADER.bytes or end > len(data):
            raise ValueError("its lengths do not fit")
        require_checked(memoryview(data)[start:end])
        start += HEAD.size
        fields = read_object(data[start : start + header], FORMAT, HEADER)
        start += header
        pairs = np.frombuffer(data, "<i8", 2 * runs, start).reshape(runs, 2).astype(np.int64, copy=False)
        start = end
        places += _places(pairs)
        if places > MAX_PLACES:
            raise ValueError(f"it has more than {MAX_PLACES} places")
        quantisation = _quantisation(fields)
        if not quantisation.thin_fields.items() <= fields.items():
            raise ValueError("what it states for thin clients does not belong to its own quantisation")
        yield Directory(_identity(fields, "index"), _identity(fields, "revision"), quantisation, pairs)
        if start == len(data):
            return
    raise ValueError(f"it has more than {MAX_SHARDS} shards")


def _identity(fields: Mapping[str, Any], name: str) -> bytes:
    identity = bytes.fromhex(fields[name])
    if len(identity) != IDENTITY_BYTES:
        raise ValueError(f"{name} has {len(identity)} bytes, not {IDENTITY_BYTES}")
    return identity


def _quantisation(fields: Mapping[str, Any]) -> Quantisation:
    try:
        return Quantisation.from_json(fields)
    except KeywrightError as error:
        raise ValueError(str(error)) from None


def runs_of(ids: NDArray[np.int64], live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return runs of successive ids: the first and their number, negative for places without a vector."""
    if not len(ids):
        return np.zeros((0, 2), dtype=np.int64)
    # Ids wrap around like the differences.
    starts = np.flatnonzero(np.r_[True, (np.diff(ids) != 1) | (live[1:] != live[:-1])])
    counts = np.diff(np.r_[starts, len(ids)])
    return np.stack([ids[starts], np.where(live[starts], counts, -counts)], axis=1)


def repeated_id(runs: NDArray[np.int64]) -> int | None:
    """Return an id that occurs twice among the live ids of runs, or None."""
    starts, counts = _live_runs(runs)
    if len(starts) < 2:
        return None
    order = np.argsort(starts, kind="stable")
    starts, counts = starts[order], counts[order]
    following = np.roll(starts, -1)
    overlapping = np.flatnonzero(following - starts < counts)
    return int(following.view(np.int64)[overlapping[0]]) if len(overlapping) else None


def _live_runs(runs: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return first ids and lengths of the runs that have vectors, modulo 2^64, because runs wrap around."""
    live = runs[:, 1] > 0
    return runs[live, 0].view(np.uint64), runs[live, 1].view(np.uint64)


def _places(runs: NDArray[np.int64]) -> int:
    """Return the number of places of runs.

    Raises:
        ValueError: a run has none, or all have too many.
    """
    counts = np.fabs(runs[:, 1])
    if not counts.all() or counts.sum() > MAX_PLACES:
        raise ValueError(
            f"it has {counts.sum():g} places, or a run without any; at most {MAX_PLACES} are read"
        )
    return int(counts.sum())


class Places:
    """The id at each place of an index, and its revision. The caller holds a lock.

    Attributes:
        identity: random identity of the index, 16 bytes.
        revision: 16 bytes, new after every change, so that no other history of the index has them.
        ids: int64, one for each place; meaningless where no vector is.
        live: whether a place has a vector.
    """

    def __init__(self) -> None:
        self.identity = secrets.token_bytes(IDENTITY_BYTES)
        self.revision = secrets.token_bytes(IDENTITY_BYTES)
        self.ids = np.zeros(0, dtype=np.int64)
        self.live = np.zeros(0, dtype=np.bool_)
        # Places in the order of ids; made again after a change.
        self._order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Number of vectors."""
        return int(np.count_nonzero(self.live))

    def require_vectors(self) -> None:
        """Refuse an index without vectors; raises `SearchError`."""
        if not len(self):
            raise SearchError("the index has no vectors; add some first")

    def directory(self, quantisation: Quantisation) -> Directory:
        """Return the directory of the index."""
        return Directory(self.identity, self.revision, quantisation, runs_of(self.ids, self.live))

    def new_ids(self, ids: ArrayLike | Sequence[int], count: int) -> NDArray[np.int64]:
        """Return ids that are not in the index, one for each vector.

        Raises:
            SearchError: an id is there or occurs twice, or their number is another.
        """
        return _new_ids(ids, count, lambda new: np.isin(new, self.ids[self.live]))

    def free(self, count: int) -> NDArray[np.int64]:
        """Return places for vectors: those of deleted ones first, then the end."""
        free = np.flatnonzero(~self.live)[:count]
        end = len(self.ids)
        places: NDArray[np.int64] = np.r_[free, np.arange(end, end + count - len(free))].astype(np.int64)
        return places

    def take(self, places: NDArray[np.int64], ids: NDArray[np.int64], revision: bytes | None = None) -> None:
        """Give ids to places, of which some are at the end. The revision after it is random by default."""
        grown = np.count_nonzero(places >= len(self.ids))
        self.ids = np.r_[self.ids, np.zeros(grown, dtype=np.int64)]
        self.live = np.r_[self.live, np.zeros(grown, dtype=np.bool_)]
        self.ids[places], self.live[places] = ids, True
        self._changed(revision)

    def release(self, places: NDArray[np.int64]) -> None:
        """Leave places without a vector."""
        self.live[places] = False
        self._changed()

    def _changed(self, revision: bytes | None = None) -> None:
        self.revision = secrets.token_bytes(IDENTITY_BYTES) if revision is None else revision
        self._order = None

    def of(self, ids: ArrayLike | Sequence[int]) -> NDArray[np.int64]:
        """Return the places of ids.

        Raises:
            SearchError: an id is not there, or occurs twice.
        """
        named = _ids_of(ids)
        _refuse_repeated(named)
        if self._order is None:
            live = np.flatnonzero(self.live)
            self._order = live[np.argsort(self.ids[live], kind="stable")]
        order = self._order
        result = np.searchsorted(self.ids[order], named)
        there = result < len(order)
        there[there] = self.ids[order[result[there]]] == named[there]
        if not there.all():
            first = int(named[~there][0])
            raise SearchError(f"id {first} is not in the index", id=first, code="id")
        places: NDArray[np.int64] = order[result]
        return places

    def save(self, folder: Path, quantisation: Quantisation, description: str) -> None:
        """Write ids, and ``index.json`` with the format `description`, into a folder that has the vectors."""
        np.save(folder / "ids.npy", self.ids)
        np.save(folder / "live.npy", self.live)
        fields = {
            "format": description,
            "index": self.identity.hex(),
            "revision": self.revision.hex(),
            **quantisation.to_json(),
        }
        seal(folder, DESCRIPTION, fields)

    @classmethod
    def load(cls, folder: Path, description: str) -> tuple["Places", Quantisation, SealedFolder]:
        """Read the files of `save`. Those of the vectors can be read from the folder that it returns.

        Raises:
            FormatError, ValueError, KeyError: they are damaged.
            FileNotFoundError: one is missing.
        """
        places, sealed = cls(), SealedFolder(folder, DESCRIPTION, description, HEADER)
        quantisation = _quantisation(sealed.fields)
        places.identity, places.revision = (_identity(sealed.fields, name) for name in ("index", "revision"))
        places.ids = load_array(sealed, "ids.npy", MAX_PLACES, "int64").copy()
        places.live = load_array(sealed, "live.npy", places.ids.size, "bool").copy()
        if places.ids.ndim != 1 or places.live.shape != places.ids.shape:
            raise ValueError(f"its arrays have the shapes {places.ids.shape} and {places.live.shape}")
        if len(np.unique(places.ids[places.live])) != len(places):
            raise ValueError("an id occurs twice")
        return places, quantisation, sealed


def load_array(sealed: SealedFolder, name: str, most: int, dtype: str) -> NDArray[Any]:
    """Read an array of a folder, of at most so many elements.

    Raises:
        FormatError, ValueError: it is damaged, larger, or of another type.
        FileNotFoundError: it is missing.
    """
    loaded = read_array(sealed.read(name, most * np.dtype(dtype).itemsize + MAX_ARRAY_HEADER), most)
    if loaded.dtype != np.dtype(dtype):
        raise ValueError(f"{name} has the type {loaded.dtype}, not {dtype}")
    return loaded


def _new_ids(
    ids: ArrayLike | Sequence[int],
    count: int,
    known: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
) -> NDArray[np.int64]:
    new = _ids_of(ids)
    if len(new) != count:
        raise SearchError(
            f"{quantity(len(new), 'id')} given for {quantity(count, 'vector')}; pass one for each",
            id=None,
            code="id",
        )
    _refuse_repeated(new)
    there = known(new)
    if there.any():
        first = int(new[there][0])
        raise SearchError(f"id {first} is in the index already; delete it first", id=first, code="id")
    return new


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
