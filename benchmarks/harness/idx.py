"""MNIST's files: arrays of bytes with a header."""

from __future__ import annotations

import gzip
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in a gzipped idx file of bytes.

    Raises:
        SystemExit: the file is missing, is no such file, or has another length than its header says.
    """
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise SystemExit(f"{path}: {error}; name the folder of MNIST's files") from error
    if len(data) < 4 or data[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        raise SystemExit(f"{path} is not an idx file of bytes")
    head = 4 + 4 * data[3]
    shape = np.frombuffer(data[4:head], ">u4").tolist() if len(data) >= head else []
    if len(shape) != data[3] or len(data) != head + prod(shape):
        raise SystemExit(f"{path} has {len(data)} bytes, which its header does not say")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)
