"""Ends that other processes see: a forked child has a copy of its parent's objects, and may not end the
originals."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


def remove(folder: Path, process: int) -> None:
    """Delete a folder, unless this is a forked copy of the process that made it."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder(place: Path | None = None, prefix: str = "keywright.") -> Iterator[Path]:
    """Yield a folder for the owner alone, which the process that made it deletes at the end, or when it ends
    itself.

    Args:
        place: folder that it is in; the system's for temporary files by default.
        prefix: beginning of its name.
    """
    folder = Path(tempfile.mkdtemp(dir=place, prefix=prefix))
    end = partial(remove, folder, os.getpid())
    atexit.register(end)
    try:
        yield folder
    finally:
        atexit.unregister(end)
        end()
