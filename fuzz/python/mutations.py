"""Mutations that know a format: libFuzzer changes bytes, and dependent fields such as checksums are
recomputed."""

import base64
import binascii
import copy
import io
import json
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import onnx
from google.protobuf import json_format
from keywright._reading.sealed import CHECKSUM_BYTES, checked, with_digest

Change = Callable[[bytes, int], bytes]
"""libFuzzer's mutation: maps bytes to bytes, up to a maximum size."""
Mutation = Callable[[bytes, int, int, Change], bytes]
"""A mutation of an input: bytes, maximum size, a seed, libFuzzer's mutation."""

PNG = b"\x89PNG\r\n\x1a\n"
ANYTHING: list[Any] = [
    -1,
    0,
    1,
    2,
    63,
    255,
    1 << 31,
    (1 << 31) - 1,
    1 << 63,
    (1 << 63) - 1,
    10**30,
    -(10**30),
]
ANYTHING += [
    float("nan"),
    float("inf"),
    1e308,
    5e-324,
    -0.0,
    0.5,
    1.0,
    True,
    False,
    None,
    "",
    "x",
    [],
    [[]],
    {},
]
ROOM = 64
DEEPEST = 12
LEAST_BASE64 = 16


def mutate_plain(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate bytes without a structure."""
    return change(data, most)


def mutate_json(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate JSON, a fifth of the time as bytes."""
    draw = random.Random(seed)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return change(data, most)
    if draw.random() < 0.2:
        return change(data, most)
    for _ in range(draw.choice((1, 1, 2, 3))):
        document = _mutate_node(document, draw, change)
    return json.dumps(document).encode()[:most]


def mutate_checked(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate bytes that end with a checksum, a fifth of the time with that."""
    if random.Random(seed).random() < 0.2:
        return change(data, most)
    return checked(change(data[:-CHECKSUM_BYTES], most - CHECKSUM_BYTES))


def mutate_sealed(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate JSON that has a digest, and state the new one where JSON is left."""
    changed = mutate_json(data, most, seed, change)
    try:
        document = with_digest(json.loads(changed))
    except (ValueError, TypeError, RecursionError):
        return changed
    return json.dumps(document).encode()[:most]


def mutate_zip(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate an archive: one of its entries, a fifth of the time the archive's bytes."""
    draw = random.Random(seed)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {info.filename: archive.read(info) for info in archive.infolist() if _small(info)}
    except Exception:  # noqa: BLE001 (whatever zipfile raises for damaged data)
        return change(data, most)
    if not entries or draw.random() < 0.2:
        return change(data, most)
    name = draw.choice([*entries, *[name for name in entries if name.endswith(".json")] * len(entries)])
    if draw.random() < 0.05:
        del entries[name]
    elif name.endswith(".json"):
        entries[name] = mutate_json(entries[name], 4 * most, draw.getrandbits(32), change)
    else:
        entries[name] = change(entries[name], len(entries[name]) + ROOM)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, contents in entries.items():
            # A fixed time: the same input makes the same bytes.
            archive.writestr(zipfile.ZipInfo(entry), contents, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def mutate_onnx(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate a model as the JSON of its protobuf message, a third of the time as bytes."""
    draw = random.Random(seed)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
        if draw.random() < 0.35:
            return change(data, most)
        document = json_format.MessageToDict(model, preserving_proto_field_name=True)
        for _ in range(draw.choice((1, 1, 2, 3))):
            document = _mutate_node(document, draw, change)
        changed: bytes = json_format.ParseDict(document, onnx.ModelProto()).SerializeToString()
        return changed[:most]
    except Exception:  # noqa: BLE001 (no message, or none with these values)
        return change(data, most)


def mutate_png(data: bytes, most: int, seed: int, change: Change) -> bytes:
    """Mutate an image; a PNG's chunks get their checksums."""
    data = change(data, most)
    if not data.startswith(PNG) or seed % 8 == 0:
        return data
    parts, place = [PNG], len(PNG)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        chunk = data[place + 4 : place + 8 + length]
        parts += [data[place : place + 4], chunk, struct.pack(">I", zlib.crc32(chunk))]
        place += 12 + length
    return b"".join(parts)[:most]


def _small(info: zipfile.ZipInfo) -> bool:
    return info.file_size < 1 << 20


def _mutate_node(document: Any, draw: random.Random, change: Change) -> Any:
    """Change a document at one place. Places are drawn from the root down, so that none is rare."""
    if draw.random() < 0.02 or not isinstance(document, dict | list) or not document:
        return _another(document, document, draw, change)
    parent = document
    for _ in range(DEEPEST):
        key = draw.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        child = parent[key]
        if not isinstance(child, dict | list) or not child or draw.random() < 0.15:
            break
        parent = child
    else:
        return document
    kind = draw.random()
    if kind < 0.08:
        del parent[key]
    elif kind < 0.16 and isinstance(parent, list):
        parent.insert(draw.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
    else:
        parent[key] = _another(parent[key], document, draw, change)
    return document


def _another(value: Any, document: Any, draw: random.Random, change: Change) -> Any:
    """Return a replacement for a value: a similar one, one from elsewhere in the document, or anything."""
    kind = draw.random()
    if kind < 0.3:
        return copy.deepcopy(draw.choice(ANYTHING))
    if kind < 0.45:
        return copy.deepcopy(_anywhere(document, draw))
    if isinstance(value, bool) or value is None:
        return draw.choice((True, False, None))
    if isinstance(value, int):
        return draw.choice((value + 1, value - 1, 2 * value, value // 2, -value, value + draw.randrange(64)))
    if isinstance(value, float):
        return draw.choice(
            (value / 2, 2 * value, -value, value + draw.random(), value * 1e30, float(int(draw.random() * 9)))
        )
    if isinstance(value, str):
        return _another_text(value, draw, change)
    return copy.deepcopy(_anywhere(document, draw))


def _another_text(value: str, draw: random.Random, change: Change) -> str:
    """Return text with other bytes; base64 stays base64."""
    try:
        inside = base64.b64decode(value, validate=True) if len(value) >= LEAST_BASE64 else b""
    except (binascii.Error, ValueError):
        inside = b""
    if inside and draw.random() < 0.9:
        return base64.b64encode(
            mutate_onnx(inside, len(inside) + ROOM, draw.getrandbits(32), change)
        ).decode()
    return change(value.encode(errors="replace"), len(value) + ROOM).decode(errors="replace")


def _anywhere(document: Any, draw: random.Random) -> Any:
    """Return a part of a document."""
    part = document
    while isinstance(part, dict | list) and part and draw.random() < 0.9:
        part = draw.choice(list(part.values()) if isinstance(part, dict) else part)
    return part


warnings.filterwarnings("ignore", "Duplicate name", module="zipfile")
