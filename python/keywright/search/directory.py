"""What a client must know of an index: its rounding, the id at each place, and its revision."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.records import read_object, refusing, whole
from keywright.errors import FormatError, KeywrightError

from .messages import IDENTITY_BYTES, MAX_SHARDS
from .quantisation import Quantisation

FORMAT = "keywright-search-1"
MAGIC = b"KWSDIRS1"
HEAD = struct.Struct("<8sIQ")
"""Magic, bytes of the header in JSON, number of runs."""
MAX_HEADER_BYTES = 1 << 20
MAX_PLACES = 1 << 26


@dataclass(frozen=True, eq=False)
class Directory:
    """Places and ids of one index at one revision.

    Attributes:
        index: random identity of the index, 16 bytes.
        revision: number of changes of the index.
        quantisation: how vectors are rounded.
        ids: int64, the id at each place.
        live: whether a place has a vector: False once it is deleted.
    """

    index: bytes
    revision: int
    quantisation: Quantisation
    ids: NDArray[np.int64]
    live: NDArray[np.bool_]

    def to_bytes(self) -> bytes:
        """Return the directory as bytes; those of shards are joined."""
        header = {
            "format": FORMAT,
            "index": self.index.hex(),
            "revision": self.revision,
            **self.quantisation.to_json(),
        }
        text = json.dumps(header).encode()
        runs = _runs(self.ids, self.live)
        return HEAD.pack(MAGIC, len(text), len(runs)) + text + runs.astype("<i8").tobytes()


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
        if header > MAX_HEADER_BYTES or header + 16 * runs > len(data) - start:
            raise ValueError("its lengths do not fit")
        fields = read_object(data[start : start + header].decode(), FORMAT, MAX_HEADER_BYTES)
        start += header
        ids, live = _expanded(np.frombuffer(data, "<i8", 2 * runs, start).reshape(runs, 2))
        start += 16 * runs
        places += len(ids)
        if places > MAX_PLACES:
            raise ValueError(f"it has more than {MAX_PLACES} places")
        index = bytes.fromhex(fields["index"])
        if len(index) != IDENTITY_BYTES:
            raise ValueError(f"the identity has {len(index)} bytes, not {IDENTITY_BYTES}")
        yield Directory(index, whole(fields["revision"], "revision"), _quantisation(fields), ids, live)
        if start == len(data):
            return
    raise ValueError(f"it has more than {MAX_SHARDS} shards")


def _quantisation(fields: Mapping[str, Any]) -> Quantisation:
    try:
        return Quantisation.from_json(fields)
    except KeywrightError as error:
        raise ValueError(str(error)) from None


def _runs(ids: NDArray[np.int64], live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return runs of successive ids: the first and their number, negative for places without a vector."""
    if not len(ids):
        return np.zeros((0, 2), dtype=np.int64)
    # Ids wrap around like the differences.
    starts = np.flatnonzero(np.r_[True, (np.diff(ids) != 1) | (live[1:] != live[:-1])])
    counts = np.diff(np.r_[starts, len(ids)])
    return np.stack([ids[starts], np.where(live[starts], counts, -counts)], axis=1)


def _expanded(runs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return ids and live places of runs."""
    first, signed = runs[:, 0], runs[:, 1]
    if (np.abs(signed.astype(np.float64)) > MAX_PLACES).any() or (signed == 0).any():
        raise ValueError("a run of ids has no length, or a larger one than an index")
    counts = np.abs(signed)
    if counts.sum() > MAX_PLACES:
        raise ValueError(f"it has {counts.sum()} places; at most {MAX_PLACES} are read")
    starts = np.cumsum(counts) - counts
    ids = np.repeat(first - starts, counts) + np.arange(counts.sum())
    return ids, np.repeat(signed > 0, counts)
