"""Bytes by name: the interface of an object store, and object names that separate tenants."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from .incoming_file import IncomingFile


class Objects(Protocol):
    """A store of bytes by name. Names are relative paths that cannot leave the store.

    Every written byte survives a killed process; bytes of `put` and `keep` also survive a crash of the
    machine. Every call raises `OSError` if the store fails, `FileNotFoundError` if there is no such object.

    Attributes:
        buffer_bytes: preferred size of a write.
        part_bytes: approximate maximum size of an object that `append` extends.
    """

    buffer_bytes: int
    part_bytes: int

    def put(self, name: str, data: bytes) -> None:
        """Write an object atomically."""

    def append(self, name: str, at: int, data: bytes) -> None:
        """Truncate an object to ``at`` bytes and append to it. With ``at`` 0 a missing object is created."""

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Return bytes of an object, fewer if it ends earlier; all of them without a length."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of the objects whose names begin with the prefix."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete the objects that exist."""

    def copy(self, name: str, to: str) -> None:
        """Copy an object to another name within the storage."""

    def sign(self, name: str, seconds: int, length: int) -> str | None:
        """Return an address under which anybody may PUT an object of ``length`` for ``seconds``; None if
        there is none."""

    def keep(self, names: Sequence[str]) -> list[str]:
        """Make several objects, which form one byte string in order, survive a crash of the machine, and
        return their new names."""

    def file(self, names: Sequence[str]) -> AbstractContextManager[Path]:
        """Return several objects, concatenated, as a file that exists within the context."""

    def incoming(
        self, names: Sequence[str], sizes: Sequence[int], order: Sequence[int]
    ) -> AbstractContextManager[Path | IncomingFile]:
        """Return the same, or the file while the objects are fetched: objects of known sizes, fetched in an
        order of their numbers. If they cannot be fetched, an error of the block becomes the `OSError`."""

    def forget(self, names: Sequence[str]) -> bool:
        """Drop a local copy of such a file. Returns whether there was one."""

    def output_path(self, name: str) -> Path:
        """Return the path where another process writes an object as a file; `adopt` it then."""

    def adopt(self, name: str) -> None:
        """Take over an object that was written to `output_path`."""

    def close(self) -> None:
        """Release all resources."""


def tenant_digest(tenant: str) -> str:
    """Return the part of a name that identifies the tenant: 32 hexadecimal digits, which are never a path."""
    return hashlib.sha256(b"keywright tenant " + tenant.encode()).hexdigest()[:32]
