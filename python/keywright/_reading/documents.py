"""Reads JSON of other sides: what a document may hold is counted in its bytes before anything is allocated.

A list of three bytes takes eighty in memory, so the size of a document alone bounds nothing. Each class of
documents states its `Limits`; the peak is then below `Limits.peak`. No other module of the package parses a
nested text format.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import read_file

MAX_DIGITS = 1000
"""Maximum characters of a number: a modulus of 1,747 bits has 526 digits."""

STRUCTURE = ((b",[{", 1), (b"]}", 1), (b'"', 4))
"""Characters of which a document may hold a multiple of `Limits.values`: each value follows one of the first;
a value has two quotes, and its name has two more."""

_OPENING, _CLOSING, _QUOTE = b"[{", b"]}", b'"'
_OTHERS = bytes(set(range(256)) - set(_OPENING + _CLOSING + _QUOTE))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(_OPENING)], _STEPS[list(_CLOSING)] = 1, -1


@dataclass(frozen=True)
class Limits:
    """What a class of documents may hold.

    Attributes:
        bytes: maximum size; a quarter of it with other characters than those of ASCII, of which one makes
            Python take four bytes for each.
        values: maximum number of values: numbers, texts, lists, objects. Commas and opening brackets are
            counted, in texts too.
        depth: maximum depth of lists and objects in each other.
    """

    bytes: int
    values: int
    depth: int = 32

    @property
    def peak(self) -> int:
        """Upper bound of the memory in bytes that reading a document takes, without the document."""
        return 5 * self.bytes + 192 * self.values


OWN = Limits(1 << 31, 1 << 28)
"""Of text that this process, its own child or an object in its memory has made."""


def read_json(data: bytes | bytearray | str, limits: Limits) -> Any:
    """Read a JSON document in UTF-8, whose numbers are finite and have at most `MAX_DIGITS` characters, and
    whose objects name no member twice: readers differ in which of two they take.

    Raises:
        ValueError: it is not JSON, or exceeds the limits.
    """
    if len(data) > limits.bytes:
        raise ValueError(f"it has {len(data)} bytes; at most {limits.bytes} are read")
    data = data.encode() if isinstance(data, str) else bytes(data)
    if 4 * len(data) > limits.bytes and not data.isascii():
        raise ValueError(f"it has {len(data)} bytes beyond ASCII; at most {limits.bytes // 4} are read")
    for characters, share in STRUCTURE:
        count = _count(data, characters)
        if count > share * limits.values:
            raise ValueError(f"it has more than {limits.values} values, or {count} of {characters.decode()}")
    depth = _count(data, _OPENING)
    if depth > limits.depth and (depth := _depth(data)) > limits.depth:
        raise ValueError(f"its lists and objects are {depth} deep; at most {limits.depth} are read")
    try:
        text = data.decode()
        return json.loads(
            text,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_refuse,
            object_pairs_hook=_distinct,
        )
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None


def read_json_file(path: Path, limits: Limits) -> Any:
    """Read a regular file as `read_json`.

    Raises:
        ValueError: it is not JSON, exceeds the limits, or is not a regular file.
        OSError: it cannot be read.
    """
    return read_json(read_file(path, limits.bytes), limits)


def object_of(path: Path, limits: Limits) -> dict[str, Any]:
    """Return the JSON object of a file; an empty one if it holds none."""
    try:
        entry = read_json_file(path, limits)
    except (ValueError, FileNotFoundError):
        entry = None
    return entry if isinstance(entry, dict) else {}


def _count(data: bytes, characters: bytes) -> int:
    return sum(map(data.count, characters))


def _depth(data: bytes) -> int:
    """Return how deep the lists and objects of a document are in each other, without brackets in texts."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = np.frombuffer(data.translate(None, _OTHERS), np.uint8)
    # The parity of the quotes before a bracket; it survives that the sum wraps around.
    outside = np.cumsum(structure == _QUOTE[0], dtype=np.uint8) % 2 == 0
    return int(np.cumsum(_STEPS[structure[outside]], dtype=np.int32).max(initial=0))


def _whole(text: str) -> int:
    _require_short(text)
    return int(text)


def _finite(text: str) -> float:
    _require_short(text)
    value = float(text)
    if not math.isfinite(value):
        _refuse(text)
    return value


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(members)
    if len(entry) < len(members):
        (name, _), *_ = Counter(name for name, _ in members).most_common(1)
        raise ValueError(f"an object names {name[:40]!r} twice")
    return entry


def _require_short(text: str) -> None:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} characters; at most {MAX_DIGITS} are read")


def _refuse(text: str) -> None:
    raise ValueError(f"{text[:40]} is not a finite number")
