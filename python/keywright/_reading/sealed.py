"""Folders whose document states the SHA-256 of every other file, and one of its own fields: a changed bit is
found when the file is read, also where any bits are valid contents. Documents and messages alone have such a
digest, or a checksum, of their own."""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import NoReturn

from keywright._files import digest_of
from keywright.errors import FormatError

from .arrays import read_file, require_file
from .documents import Limits
from .records import read_object

FILES, OWN = "files", "digest"
"""Fields of the document: the SHA-256 of each file, and that of the other fields."""

CHECKSUM_BYTES = 4


def seal(folder: Path, document: str, fields: Mapping[str, object]) -> None:
    """Write the document of a folder that has all its other files."""
    stated = {**fields, FILES: {path.name: digest_of(path) for path in sorted(folder.iterdir())}}
    text = json.dumps(with_digest(stated), indent=1) + "\n"
    (folder / document).write_text(text, encoding="utf-8")


class SealedFolder:
    """The files that `seal` has seen. They are checked in the pass that reads them.

    Args:
        folder: that of `seal`.
        document: name of its document.
        form: format that the document states.
        limits: of the document.

    Raises:
        FormatError: the document is damaged.
        ValueError, KeyError: it is another one.
        FileNotFoundError: it is missing.

    Attributes:
        fields: of the document.
    """

    def __init__(self, folder: Path, document: str, form: str, limits: Limits) -> None:
        self.folder = folder
        self.fields = read_object(read_file(folder / document, limits.bytes), form, limits)
        if not is_whole(self.fields):
            self._refuse(document)
        self._digests = self.fields[FILES]
        if not isinstance(self._digests, dict):
            raise ValueError(f"its {FILES} are no JSON object")

    def read(self, name: str, most: int) -> bytes:
        """Return a file of at most so many bytes.

        Raises:
            FormatError: it is damaged or longer.
            FileNotFoundError: it is missing.
        """
        data = read_file(self.folder / name, most)
        self._require(name, hashlib.sha256(data).hexdigest())
        return data

    def pieces(self, name: str, count: int, most: int) -> Iterator[bytes]:
        """Yield a file in pieces of equal length, at most so many bytes each. It is checked after the last.

        Raises:
            FormatError: it is damaged.
            ValueError: its length does not divide into such pieces.
            FileNotFoundError: it is missing.
        """
        path, digest = self.folder / name, hashlib.sha256()
        require_file(path)
        length, rest = divmod(path.stat().st_size, count)
        if length > most:
            raise ValueError(f"{name} has more bytes than {count} ciphertexts")
        if not length or rest:
            raise ValueError(f"{name} does not have {count} ciphertexts of equal length")
        with path.open("rb") as file:
            for _ in range(count):
                digest.update(piece := file.read(length))
                yield piece
        self._require(name, digest.hexdigest())

    def _require(self, name: str, digest: str) -> None:
        if self._digests.get(name) != digest:
            self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        raise FormatError(
            f"{self.folder / name} is damaged: its SHA-256 is not the one that was stored when the folder "
            "was written; copy the folder again",
            code="checksum",
        )


def with_digest(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a document, with the SHA-256 of the others."""
    return {**fields, OWN: _digest(fields)}


def is_whole(fields: Mapping[str, object]) -> bool:
    """Whether the other fields have the SHA-256 of `with_digest`; raises `KeyError` without one."""
    return fields[OWN] == _digest(fields)


def require_whole(fields: Mapping[str, object]) -> None:
    """Refuse a document that has another SHA-256; raises `ValueError`, or `KeyError` if it has none."""
    if not is_whole(fields):
        raise ValueError("it is damaged: the SHA-256 of its fields is not the one that was stored")


def checked(*parts: bytes) -> bytes:
    """Return bytes joined, and their CRC-32, which is the checksum of the engine's objects, too."""
    checksum = reduce(lambda before, part: zlib.crc32(part, before), parts, 0)
    return b"".join([*parts, checksum.to_bytes(CHECKSUM_BYTES, "little")])


def require_checked(data: bytes | memoryview) -> None:
    """Refuse bytes that do not end with their CRC-32.

    Raises:
        FormatError: they are damaged, or incomplete.
    """
    if zlib.crc32(memoryview(data)[:-CHECKSUM_BYTES]) != int.from_bytes(data[-CHECKSUM_BYTES:], "little"):
        raise FormatError(
            "the bytes are damaged or incomplete: they do not end with their checksum; get them again",
            code="checksum",
        )


def _digest(fields: Mapping[str, object]) -> str:
    others = {name: fields[name] for name in fields if name != OWN}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
