"""Replaces files that a user names: atomically, and never a device or a pipe, which are written through."""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20

PARTIAL = ".partial"
"""Suffix of a file that is being written beside the one that it replaces. A process that was killed leaves
it."""


def is_special(path: Path) -> bool:
    """Whether a path leads to something other than a regular file or a folder, such as a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def place_for(path: Path) -> Path:
    """Return the folder for a temporary file that `put` moves to a path."""
    return Path(tempfile.gettempdir()) if is_special(path) else path.resolve().parent


def put(temporary: Path, path: Path) -> None:
    """Move a file to a path. A file there is replaced atomically, at the end of its links. A pipe or a
    character device gets the contents and stays.

    Raises:
        OSError: it cannot be written, or is a block device or a socket.
    """
    if not is_special(path):
        temporary.replace(path.resolve())
        return
    mode = path.stat().st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise OSError(f"{path} is neither a file, a pipe nor a character device; name another path")
    with temporary.open("rb") as source, path.open("wb", buffering=0) as target:
        shutil.copyfileobj(source, target)
    temporary.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file, which its owner alone can read, that `put` moves to a path when the block ends. It is
    then on the disk. It is removed if the block fails.

    Raises:
        OSError: it cannot be written; the file of before stays.
    """
    handle, name = tempfile.mkstemp(dir=place_for(path), prefix=f".{path.name}.", suffix=PARTIAL)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        put(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if not is_special(path):
        settle(path.resolve().parent)


def replace(path: Path, data: bytes) -> None:
    """Write a whole file, as `replacing`."""
    with replacing(path) as file:
        file.write(data)


def digest_of(path: Path, on_chunk: Callable[[], object] = lambda: None) -> str:
    """SHA-256 of a file, in hexadecimal.

    Args:
        path: the file.
        on_chunk: called before each megabyte; what it raises ends the reading.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            on_chunk()
            digest.update(chunk)
    return digest.hexdigest()


def settle(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, ``.NAME.lock`` beside it, against other processes and threads."""
    with path.with_name(f".{path.name}.lock").open("a") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def private(path: Path) -> None:
    """Have a file that only its owner can read and write; it is made if it is missing."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if os.name == "posix":
        path.chmod(0o600)
