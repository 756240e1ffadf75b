"""Files of a model and of its keys: names in a folder."""

import os
import stat
import warnings
from collections.abc import Sequence
from pathlib import Path

from keywright.errors.model import FolderError, SecretFileWarning

PARAMETERS = "parameters.kw"
SECRET_KEY = "secret.kw"
PUBLIC_KEY = "public.kw"
EVALUATION_KEYS = "keys.kw"
MASTER_KEYS = "masters.kw"
PROGRAM = "program.kwp"
PLAN = "plan.json"
DESCRIPTION = "model.json"

KEYS = (SECRET_KEY, PUBLIC_KEY, EVALUATION_KEYS, MASTER_KEYS)
"""Files of keys."""

MODEL = (PARAMETERS, PROGRAM, PLAN, DESCRIPTION)
"""Files of a model."""


def require_files(folder: Path, names: Sequence[str], origin: str) -> None:
    """Check that a folder has all files.

    Args:
        origin: name of such a folder in messages, and how to make it.

    Raises:
        FolderError: names the missing files.
    """
    missing = [name for name in names if not has_file(folder, name)]
    if missing == [PROGRAM]:
        raise FolderError(
            f"{folder} holds keys without a model, which are used from Python "
            f'(docs/tutorials/planning.md, "Without a model"); for a model name the {origin}'
        )
    keyless = not any(has_file(folder, name) for name in KEYS)
    if missing and keyless and all(has_file(folder, name) for name in MODEL):
        raise FolderError(
            f"{folder} is a compiled model without keys; make the folders of its client and its server with "
            f"keywright keygen {folder} --out KEYS"
        )
    if missing:
        raise FolderError(f"{folder} lacks {', '.join(missing)}; name the {origin}")


def require_no_secret(folder: Path) -> None:
    """Check that the folder of a server holds no secret key.

    Raises:
        FolderError: it does.
    """
    if has_file(folder, SECRET_KEY):
        raise FolderError(
            f"{folder} holds {SECRET_KEY}, the client's secret key, which no server may have; name the "
            "server folder of keywright keygen, or the model's folder",
            code="secret",
        )


def has_file(folder: Path, name: str) -> bool:
    """Return whether a folder has a file.

    Raises:
        FolderError: there is something else of that name: a pipe, for example, would be waited for.
    """
    path = folder / name
    if path.is_file():
        return True
    if path.exists():
        raise FolderError(f"{path} is not a regular file; remove it, or name another folder", code="place")
    return False


def warn_of_readers(path: Path) -> None:
    """Warn if other users can read or write a secret key."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        warnings.warn(
            f"{path} has mode {mode:03o}, so other users may read the secret key or replace it; chmod 600 "
            "it, and make new keys if others have access to this machine",
            SecretFileWarning,
            stacklevel=3,
        )
