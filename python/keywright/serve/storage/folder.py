"""Objects as files of a folder."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from keywright._files import replacing, settle

from .incoming_file import IncomingFile


class FolderObjects:
    """Objects in a folder, with names as paths; see `Objects`.

    Args:
        folder: created if it is missing.
    """

    buffer_bytes = 1 << 20
    part_bytes = 1 << 62

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        # An earlier release let others list them, and names of key sets grant access without accounts.
        for path in (folder / "keys", folder / "jobs"):
            if path.is_dir():
                path.chmod(0o700)
        # This prevents the deletion of a folder that another thread is about to write to.
        self._folders = threading.Lock()

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        path = self._folder / name
        with contextlib.ExitStack() as stack:
            with self._folders:
                _make(path.parent)
                file = stack.enter_context(replacing(path, sweeps=False))
            file.write(data)

    def append(self, name: str, at: int, data: bytes) -> None:
        """Truncate an object, then append to it."""
        path = self._folder / name
        with self._create(path) if at == 0 else path.open("r+b") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of files whose paths begin with the prefix; links are skipped."""
        root = self._folder / prefix.rpartition("/")[0]
        sizes = {}
        for path in root.rglob("*"):
            name = path.relative_to(self._folder).as_posix()
            if name.startswith(prefix) and path.is_file() and not path.is_symlink():
                sizes[name] = path.stat().st_size
        return sizes

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, and their folders if they are then empty."""
        with self._folders:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    for parent in list(PurePosixPath(name).parents)[:-2]:
                        (self._folder / parent).rmdir()

    def copy(self, name: str, to: str) -> None:
        """Copy a file."""
        with self._create(self._folder / to) as file, (self._folder / name).open("rb") as source:
            shutil.copyfileobj(source, file, self.buffer_bytes)

    def sign(self, name: str, seconds: int, length: int) -> str | None:
        """Return None: nobody else writes to the folder."""
        return None

    def keep(self, names: Sequence[str]) -> list[str]:
        """Append all files to the first and sync it. A process that ends meanwhile leaves a first file that
        already contains the beginning of the next."""
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
        settle(first.parent)
        return [names[0]]

    @contextlib.contextmanager
    def file(self, names: Sequence[str]) -> Iterator[Path]:
        """Return the file of an object, after `keep`."""
        (name,) = names
        yield self._folder / name

    @contextlib.contextmanager
    def incoming(
        self, names: Sequence[str], sizes: Sequence[int], order: Sequence[int]
    ) -> Iterator[Path | IncomingFile]:
        """Return the file of an object, which is always complete."""
        with self.file(names) as path:
            yield path

    def forget(self, names: Sequence[str]) -> bool:
        """Do nothing: there are no copies."""
        return False

    def output_path(self, name: str) -> Path:
        """Return the file of an object."""
        path = self._folder / name
        with self._folders:
            _make(path.parent)
        return path

    def adopt(self, name: str) -> None:
        """Do nothing: the file is already in place."""

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _create(self, path: Path) -> BinaryIO:
        with self._folders:
            _make(path.parent)
            return open(path, "wb", opener=_open_private)


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _make(folder: Path) -> None:
    """Make a folder, and those that it is in, for the owner alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
