"""Bytes by name: what a store of objects does, and names by which tenants have nothing of each other."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Objects(Protocol):
    """A store of bytes by names, which are paths without anything that leads elsewhere.

    What a call has written is there after the process was killed; of `put` and `keep` also after the machine
    was. Every call raises `OSError` where the store fails, `FileNotFoundError` where there is no such object.

    Attributes:
        buffer_bytes: how many bytes are best written at once.
        part_bytes: of an object that `append` lengthens, at most about so many.
    """

    buffer_bytes: int
    part_bytes: int

    def put(self, name: str, data: bytes) -> None:
        """Write an object that is either there and whole, or not there."""

    def append(self, name: str, at: int, data: bytes) -> None:
        """Cut an object to ``at`` bytes and lengthen it. With 0 it is made if it is missing."""

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object, fewer where it ends before; all without a length."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """The objects whose names begin so, and their bytes."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects, those that are there."""

    def keep(self, names: Sequence[str]) -> list[str]:
        """Have what several objects are, one after the other, outlive the machine. Returns the names under
        which it is from now on."""

    def file(self, names: Sequence[str]) -> AbstractContextManager[Path]:
        """What several objects are, one after the other, as a file, which stays within the context."""

    def forget(self, names: Sequence[str]) -> bool:
        """Let go of a copy of such a file that is nearer than the objects. Returns whether there was one."""

    def made(self, name: str) -> Path:
        """Where another process writes an object as a file; `adopt` it then."""

    def adopt(self, name: str) -> None:
        """Take over the object that was written to `made`."""

    def close(self) -> None:
        """Let go of what is held."""


def drawer(tenant: str) -> str:
    """The part of a name that says whose an object is: 32 hexadecimal digits, which lead nowhere else,
    whatever a tenant is called."""
    return hashlib.sha256(b"keywright tenant " + tenant.encode()).hexdigest()[:32]
