"""Ends that other processes see: a forked child has a copy of its parent's objects, and may not end the
originals."""

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self


class OfOneProcess:
    """Base of classes whose objects end in the process that made them alone: their end deletes files, ends
    processes, or tells a server."""

    _maker: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        new = super().__new__(cls)
        new._maker = os.getpid()
        return new

    @property
    def _copied(self) -> bool:
        """Whether this is the copy of a forked process."""
        return self._maker != os.getpid()


def unforked_lock() -> threading.Lock:
    """Return a lock of a module, which no process is forked with while a thread holds it: that thread, which
    would release it, is not in the child."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def remove(path: Path, process: int) -> None:
    """Delete a file or folder, unless this is a forked copy of the process that made it."""
    if process != os.getpid():
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def removing(path: Path) -> Iterator[Path]:
    """Yield a new file or folder, which the process that made it deletes at the end of the block, or when it
    ends itself."""
    end = partial(remove, path, os.getpid())
    atexit.register(end)
    try:
        yield path
    finally:
        atexit.unregister(end)
        end()


def temporary_folder() -> AbstractContextManager[Path]:
    """Make a folder for the owner alone, among the system's temporary ones, for a block like `removing`."""
    return removing(Path(tempfile.mkdtemp(prefix="keywright.")))
