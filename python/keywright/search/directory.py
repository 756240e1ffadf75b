"""The public facts about an index: its rounding, the id at each place, and its revision."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.documents import Limits
from keywright._reading.records import read_object, refusing, whole
from keywright.errors import FormatError, KeywrightError

from .messages import IDENTITY_BYTES, MAX_SHARDS
from .quantisation import Quantisation

FORMAT = "keywright-search-1"
MAGIC = b"KWSDIRS1"
HEAD = struct.Struct("<8sIQ")
"""Magic, bytes of the header in JSON, number of runs."""
HEADER = Limits(1 << 20, 1 << 16)
MAX_PLACES = 1 << 26


@dataclass(frozen=True, eq=False)
class Directory:
    """Places and ids of one index at one revision.

    Attributes:
        index: random identity of the index, 16 bytes.
        revision: number of changes of the index.
        quantisation: how vectors are rounded.
        runs: int64, (runs, 2): the first of successive ids and their number, which is negative for places of
            deleted vectors.
    """

    index: bytes
    revision: int
    quantisation: Quantisation
    runs: NDArray[np.int64]

    @property
    def places(self) -> int:
        """Number of places."""
        return int(np.abs(self.runs[:, 1]).sum())

    @property
    def vectors(self) -> int:
        """Number of vectors."""
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

    def to_bytes(self) -> bytes:
        """Return the directory as bytes; the bytes of shards are concatenated."""
        header = {
            "format": FORMAT,
            "index": self.index.hex(),
            "revision": self.revision,
            **self.quantisation.to_json(),
        }
        text = json.dumps(header).encode()
        return HEAD.pack(MAGIC, len(text), len(self.runs)) + text + self.runs.astype("<i8").tobytes()


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
        start += HEAD.size
        if header > HEADER.bytes or header + 16 * runs > len(data) - start:
            raise ValueError("its lengths do not fit")
        fields = read_object(data[start : start + header], FORMAT, HEADER)
        start += header
        pairs = np.frombuffer(data, "<i8", 2 * runs, start).reshape(runs, 2).astype(np.int64)
        start += 16 * runs
        places += _places(pairs)
        if places > MAX_PLACES:
            raise ValueError(f"it has more than {MAX_PLACES} places")
        index = bytes.fromhex(fields["index"])
        if len(index) != IDENTITY_BYTES:
            raise ValueError(f"the identity has {len(index)} bytes, not {IDENTITY_BYTES}")
        yield Directory(index, whole(fields["revision"], "revision"), _quantisation(fields), pairs)
        if start == len(data):
            return
    raise ValueError(f"it has more than {MAX_SHARDS} shards")


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


def _places(runs: NDArray[np.int64]) -> int:
    """Return the number of places of runs.

    Raises:
        ValueError: a run has none, or all have too many.
    """
    counts = np.abs(runs[:, 1].astype(np.float64))
    if not counts.all() or counts.sum() > MAX_PLACES:
        raise ValueError(
            f"it has {counts.sum():g} places, or a run without any; at most {MAX_PLACES} are read"
        )
    return int(counts.sum())
