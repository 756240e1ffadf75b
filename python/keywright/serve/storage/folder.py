"""Objects as files of a folder."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

PENDING = ".part"
"""What a name ends in as long as the object is being written."""


class FolderObjects:
    """Objects in a folder, of which names are the paths; see `Objects`.

    Args:
        folder: made if it is missing.
    """

    buffer_bytes = 1 << 20
    part_bytes = 1 << 62

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        # Nobody deletes a folder that somebody is about to write to.
        self._folders = threading.Lock()

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        path = self._folder / name
        temporary = path.with_name(path.name + PENDING)
        try:
            with self._create(temporary) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            # On a disk that is full, half a file takes the place of something.
            temporary.unlink(missing_ok=True)
            raise
        _settle(path.parent)

    def append(self, name: str, at: int, data: bytes) -> None:
        """Cut an object, and lengthen it."""
        path = self._folder / name
        with self._create(path) if at == 0 else path.open("r+b") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object."""
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Files whose paths begin so; links are none."""
        root = self._folder / prefix.rpartition("/")[0]
        found = {}
        for path in root.rglob("*"):
            name = path.relative_to(self._folder).as_posix()
            if name.startswith(prefix) and path.is_file() and not path.is_symlink():
                found[name] = path.stat().st_size
        return found

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, and their folders where nothing else is in them."""
        with self._folders:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    for parent in list(PurePosixPath(name).parents)[:-2]:
                        (self._folder / parent).rmdir()

    def keep(self, names: Sequence[str]) -> list[str]:
        """Have several files as the first of them, on the disk. A process that ends meanwhile leaves one that
        has the beginning of the next one, too."""
        first = self._folder / names[0]
        with first.open("r+b") as whole:
            for name in names[1:]:
                with (self._folder / name).open("rb") as part:
                    whole.seek(0, os.SEEK_END)
                    shutil.copyfileobj(part, whole, self.buffer_bytes)
                whole.flush()
                os.fsync(whole.fileno())
                self.delete([name])
            os.fsync(whole.fileno())
        _settle(first.parent)
        return [names[0]]

    @contextlib.contextmanager
    def file(self, names: Sequence[str]) -> Iterator[Path]:
        """The file of an object, after `keep`."""
        (name,) = names
        yield self._folder / name

    def forget(self, names: Sequence[str]) -> bool:
        """Nothing: there are no copies."""
        return False

    def made(self, name: str) -> Path:
        """The file of an object."""
        path = self._folder / name
        with self._folders:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def adopt(self, name: str) -> None:
        """Nothing: it is where it belongs."""

    def close(self) -> None:
        """Nothing is held."""

    def _create(self, path: Path) -> BinaryIO:
        with self._folders:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return path.open("wb")


def _settle(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    if os.name == "posix":
        held = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)
