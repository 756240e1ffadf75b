"""Replaces files that a user names: atomically, and never a device or a pipe, which are written through."""

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from keywright._processes import remove, removing
from keywright.errors.model import FolderError

CHUNK_BYTES = 1 << 20

PARTIAL = ".partial"
"""Suffix of a file or folder that is being written beside the one that it replaces. A process that was killed
leaves it; the next one that writes the same path removes it. Locks tell what is still being written, so that
leftovers stay on Windows and on file systems without `flock`."""

NAME_BYTES = 200
"""Bytes of a name that its temporary file has in its own, which would otherwise become too long."""

LOCK_S = 120.0
"""How long the lock of a file is waited for: that of a stopped process stays for ever."""

LOCK_PAUSE_S = 0.01

WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which name no file."""


def is_special(path: Path) -> bool:
    """Whether a path leads to something other than a regular file or a folder, such as a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def end_of(path: Path) -> Path:
    """Return the path at the end of links. The way into an open folder (`_inside`) stays one.

    Raises:
        OSError: they form a loop, or go through a file.
    """
    if not path.is_symlink():
        return path.absolute()
    try:
        return Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        return Path(os.path.realpath(path))


def place_for(path: Path) -> Path:
    """Return the folder for a temporary file that `put` moves to a path; errors as `end_of`."""
    return Path(tempfile.gettempdir()) if is_special(path) else end_of(path).parent


def put(temporary: Path, file: BinaryIO, path: Path) -> None:
    """Move an open file to a path once it is on the disk. A file there is replaced atomically, at the end of
    its links. A pipe or a character device gets the contents and stays.

    Raises:
        OSError: it cannot be written, or is a block device or a socket.
    """
    if is_special(path):
        mode = path.stat().st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            raise OSError(f"{path} is neither a file, a pipe nor a character device; name another path")
        file.seek(0)
        with path.open("wb", buffering=0) as target:
            shutil.copyfileobj(file, target)
        return
    file.flush()
    os.fsync(file.fileno())
    if sys.platform == "win32":
        # There, an open file cannot be moved.
        file.close()
    target_path = end_of(path)
    temporary.replace(target_path)
    settle(target_path.parent)


@contextmanager
def _partial(path: Path, *, folder: bool = False, sweeps: bool = True) -> Iterator[tuple[Path, int | None]]:
    """Yield the place where the contents of a path are written, a file or a folder for the owner alone, and
    its handle, which the block closes; folders have none on Windows. It is removed when the block ends, if it
    has not been moved, or when this process ends. What killed processes have left for the path is removed
    first.

    In a folder where others may rename files, they can put a link under the name of the place: what is
    written goes through the handle.

    Args:
        path: that the contents are for.
        folder: whether it is a folder.
        sweeps: whether leftovers are looked for, among all names of the folder.

    Raises:
        OSError: it cannot be written; it names the path.
    """
    with _naming(path):
        if sweeps:
            sweep(path)
        new, handle = _create(place_for(path), _prefix(path), folder)
    with removing(new), _naming(path, new, _inside(new, handle)):
        yield new, handle


@contextmanager
def _partial_folder(path: Path, *, sweeps: bool = True) -> Iterator[tuple[Path, Path]]:
    """Yield a folder as `_partial`, and the way to the files in it."""
    with _partial(path, folder=True, sweeps=sweeps) as (new, handle):
        try:
            yield new, _inside(new, handle)
        finally:
            if handle is not None:
                os.close(handle)


def _inside(folder: Path, handle: int | None) -> Path:
    """Return the way into an open folder, which on Linux does not depend on what has its name."""
    way = Path(f"/proc/self/fd/{handle}")
    return way if way.is_dir() else folder


@contextmanager
def replacing(path: Path, *, sweeps: bool = True) -> Iterator[BinaryIO]:
    """Yield a file, which its owner alone can read, that `put` moves to a path when the block ends. It is
    removed if the block fails.

    Raises:
        OSError: it cannot be written; the file of before stays.
    """
    process = os.getpid()
    with _partial(path, sweeps=sweeps) as (temporary, handle):
        assert handle is not None
        with os.fdopen(handle, "w+b") as file:
            try:
                yield file
            finally:
                if process != os.getpid():
                    # What a forked process has in its buffer is this one's to write.
                    with Path(os.devnull).open("wb") as nothing:
                        os.dup2(nothing.fileno(), file.fileno())
            if process == os.getpid():
                put(temporary, file, path)


def replace(path: Path, data: bytes) -> None:
    """Write a whole file, as `replacing`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def _naming(path: Path, *own: Path) -> Iterator[None]:
    """Name a path in errors of the system that name its temporary files, or none."""
    try:
        yield
    except OSError as error:
        named = None if error.filename is None else Path(os.fsdecode(error.filename))
        ours = not own if named is None else not own or not {named, *named.parents}.isdisjoint(own)
        if not (ours or (error.errno in WRITE_ERRORS and named is None)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _prefix(path: Path) -> str:
    return f".{os.fsencode(path.name)[:NAME_BYTES].decode(errors='ignore')}."


def _create(place: Path, prefix: str, folder: bool) -> tuple[Path, int | None]:
    """Make a temporary file or folder, open, and lock it, which shows others that it is being written."""
    while True:
        if not folder:
            handle, name = tempfile.mkstemp(PARTIAL, prefix, place)
            new = Path(name)
        elif sys.platform == "win32":
            return Path(tempfile.mkdtemp(PARTIAL, prefix, place)), None
        else:
            new = Path(tempfile.mkdtemp(PARTIAL, prefix, place))
            try:
                handle = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue
        # Until it is locked, another process may take it for a leftover and remove it.
        if sys.platform == "win32" or not _locks(handle) or os.path.lexists(new):
            return new, handle
        os.close(handle)


def _locks(handle: int, *, waits: bool = True) -> bool:
    """Lock an open file, unless the file system has no locks, or another process has it and this one does not
    wait."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def sweep(path: Path) -> None:
    """Remove files and folders that killed processes have left for a path."""
    if sys.platform == "win32":
        return
    # Eight characters are those of `tempfile`.
    leftover = re.compile(re.escape(_prefix(path)) + "[a-z0-9_]{8}" + re.escape(PARTIAL))
    with suppress(OSError), os.scandir(place_for(path)) as entries:
        for entry in entries:
            # Opening a device may have an effect.
            ours = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            if not (ours and leftover.fullmatch(entry.name)):
                continue
            # Others sweep and write here, too.
            with suppress(OSError):
                handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if _locks(handle, waits=False):
                        remove(Path(entry.path), os.getpid())
                finally:
                    os.close(handle)


def require_new(path: Path) -> None:
    """Check early that a folder can be made, and remove what killed processes have left for it.

    Raises:
        FolderError: there is something of that name.
    """
    sweep(path)
    if os.path.lexists(path):
        raise FolderError(f"{path} already exists; remove it or name another folder", code="exists")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``path`` when the block ends and its files are on the disk. It is removed
    if the block fails.

    Raises:
        FolderError: ``path`` exists.
        OSError: it cannot be made, or a file in it not be written.
    """
    require_new(path)
    process = os.getpid()
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _partial_folder(path, sweeps=False) as (temporary, inside):
        yield inside
        if process != os.getpid():
            # A forked process has written nothing of it.
            return
        for folder, _, names in os.walk(inside):
            for name in names:
                with Path(folder, name).open("rb+") as file:
                    os.fsync(file.fileno())
            settle(Path(folder))
        # Another process may have created it meanwhile, even since it was looked for.
        require_new(path)
        try:
            temporary.rename(path)
        except OSError:
            require_new(path)
            raise
    settle(end_of(path).parent)


def require_place(path: Path) -> None:
    """Check early that a file can be written.

    Raises:
        FolderError: the path is a folder, or its parent is missing or not writable; or it is a pipe or a
            device that cannot be written.
    """
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise FolderError(f"{path} is not writable; name another path", code="place")
        return
    if path.is_dir():
        raise FolderError(f"{path} is a folder; name a file in it", code="place")
    if not path.parent.is_dir():
        raise FolderError(f"{path}: there is no folder {path.parent}; make it first", code="place")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise FolderError(f"{path}: the folder {path.parent} is not writable; name another one", code="place")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a file of the same name, which its owner alone can read, that replaces ``path`` when the block
    ends, and is removed if it fails. A pipe or a character device gets its contents (`put`).

    Raises:
        FolderError: as for `require_place`.
        OSError: it cannot be written; the file of before stays.
    """
    require_place(path)
    process = os.getpid()
    with _partial_folder(path) as (_, inside):
        temporary = inside / path.name
        private(temporary)
        yield temporary
        if process == os.getpid():
            with temporary.open("rb+") as file:
                put(temporary, file, path)


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
        # Names of a folder that cannot be read cannot be synced.
        with suppress(PermissionError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def try_lock(handle: int) -> None:
    """Lock an open file against other processes and threads.

    Raises:
        OSError: another one has it.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, ``.NAME.lock`` beside it, against other processes and threads. The
    umask says which users may open the lock, so that a group can share the folder.

    Raises:
        FolderError: another process holds it for `LOCK_S`; or there is a link of its name.
    """
    lock, end = path.with_name(f".{path.name}.lock"), time.monotonic() + LOCK_S
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if lock.is_symlink():
            raise FolderError(f"{lock} is a link, and locks follow none; remove it", code="place") from error
        raise
    with os.fdopen(handle, "a"):
        while True:
            try:
                try_lock(handle)
                break
            except (BlockingIOError, PermissionError) as error:
                if time.monotonic() >= end:
                    raise FolderError(
                        f"another process has locked {lock} for {LOCK_S:.0f} s; end it if it was stopped, or "
                        "try again",
                        code="locked",
                    ) from error
            time.sleep(LOCK_PAUSE_S)
        yield


def private(path: Path) -> None:
    """Have a file that only its owner can read and write; it is made if it is missing."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if os.name == "posix":
        path.chmod(0o600)
