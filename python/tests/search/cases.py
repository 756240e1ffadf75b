"""Indices and clients of tests."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from keywright import search
from keywright._reading.sealed import CHECKSUM_BYTES, FILES, OWN, checked, seal
from keywright.search.directory import DESCRIPTION, HEAD, MAGIC
from numpy.typing import ArrayLike, NDArray

METRICS: list[search.Metric] = ["cosine", "dot", "euclidean"]


def vectors(count: int, dimension: int, seed: int = 1) -> NDArray[np.float64]:
    """Return normal vectors."""
    return np.random.default_rng(seed).normal(size=(count, dimension))


def exact(metric: search.Metric, stored: NDArray[Any], query: NDArray[Any]) -> NDArray[np.float64]:
    """Return the scores of vectors that are not rounded."""
    if metric == "euclidean":
        return np.asarray(np.linalg.norm(stored - query, axis=1))
    products = np.asarray(stored @ query)
    if metric == "dot":
        return products
    return np.asarray(products / np.linalg.norm(stored, axis=1) / np.linalg.norm(query))


def rounded(quantisation: search.Quantisation, stored: NDArray[Any], query: NDArray[Any]) -> NDArray[Any]:
    """Return the scores of rounded vectors, by integers alone: an oracle."""
    rows = np.concatenate([rows for rows, _ in quantisation.vectors(stored)]).astype(np.int64)
    integers, factor = quantisation.query(query)
    unit = quantisation.radius / quantisation.levels
    if quantisation.metric == "euclidean":
        return np.asarray(np.sqrt(np.square(rows - integers // 2).sum(axis=1)) * unit)
    if quantisation.metric == "dot":
        return np.asarray((rows @ integers) * (unit * factor / quantisation.levels))
    return np.clip((rows @ integers) / quantisation.levels**2, -1, 1)


def thin_fields(directory: bytes) -> dict[str, bytes]:
    """Return what the directory of one index states for thin clients."""
    _, length, _ = HEAD.unpack_from(directory)
    header = json.loads(directory[HEAD.size : HEAD.size + length])
    return {name: base64.b64decode(header[name]) for name in ("client", "parameters", "key_set")}


def edited(directory: bytes, runs: ArrayLike | None = None, **fields: object) -> bytes:
    """Return the directory of one index with other runs or fields, as a hostile server sends it."""
    _, length, _ = HEAD.unpack_from(directory)
    header = json.loads(directory[HEAD.size : HEAD.size + length]) | fields
    text = json.dumps(header).encode()
    stored = directory[HEAD.size + length : -CHECKSUM_BYTES]
    rows = stored if runs is None else np.array(runs, dtype="<i8").tobytes()
    return checked(HEAD.pack(MAGIC, len(text), len(rows) // 16), text, rows)


def seal_again(folder: Path) -> None:
    """Seal what a folder now has, as the writer of a hostile one does."""
    path = folder / DESCRIPTION
    fields = json.loads(path.read_text())
    path.unlink()
    seal(folder, DESCRIPTION, {name: fields[name] for name in fields if name not in (FILES, OWN)})
