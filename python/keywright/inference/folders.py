"""The files of a model and of its keys: their names in a folder, folders and files that appear whole."""

import atexit
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .errors import FolderError, SecretFileWarning

PARAMETERS = "parameters.kw"
SECRET_KEY = "secret.kw"
PUBLIC_KEY = "public.kw"
EVALUATION_KEYS = "keys.kw"
MASTER_KEYS = "masters.kw"
PROGRAM = "program.kwp"
PLAN = "plan.json"


def require_files(folder: Path, names: Sequence[str], origin: str) -> None:
    """Refuse a folder that lacks files.

    Args:
        origin: what such a folder is called, and what makes it.

    Raises:
        FolderError: naming the files.
    """
    missing = [name for name in names if not (folder / name).is_file()]
    if missing == [PROGRAM]:
        raise FolderError(
            f"{folder} holds keys without a model, which are used from Python "
            '(docs/tutorials/planning.md, "Without a model"); for a model name the '
            f"{origin}"
        )
    if missing:
        raise FolderError(f"{folder} holds no {', '.join(missing)}; name the {origin}")


def warn_of_readers(path: Path) -> None:
    """Warn of a secret that others than its owner may read, or write."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        warnings.warn(
            f"{path} has mode {mode:03o}: others than its owner may read the secret or replace it; chmod 600 "
            "it, and make new keys if others have access to this machine",
            SecretFileWarning,
            stacklevel=3,
        )


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that becomes ``path`` when the block ends, and disappears if it fails.

    Raises:
        FolderError: ``path`` exists.
    """
    if path.exists():
        raise FolderError(f"{path} exists; remove it or name another folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    remove = partial(shutil.rmtree, temporary, ignore_errors=True)
    atexit.register(remove)
    try:
        yield temporary
        try:
            temporary.rename(path)
        except OSError as error:
            # Something else made it meanwhile.
            if path.exists():
                raise FolderError(f"{path} exists by now; remove it or name another folder") from error
            raise
    except BaseException:
        remove()
        raise
    finally:
        atexit.unregister(remove)


def require_place(path: Path) -> None:
    """Refuse a file that cannot be written, before there is anything to write.

    Raises:
        FolderError: it is a folder, its folder does not exist, or that must not be written into.
    """
    if path.is_dir():
        raise FolderError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FolderError(f"{path}: there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise FolderError(f"{path}: the folder {path.parent} must not be written into; name another one")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write that replaces ``path`` when the block ends, and disappears if it fails.

    Raises:
        FolderError: as of `require_place`.
    """
    require_place(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        temporary.replace(path)
