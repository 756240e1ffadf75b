"""Indices and clients of tests."""

import base64
import json
from typing import Any

import numpy as np
from keywright import search
from keywright.search.directory import HEAD
from numpy.typing import NDArray

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
