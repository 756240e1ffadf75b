"""The folder of a service's state: it has an owner, the model, and a lock, of the process that serves it.

``owner.json`` names the model whose key sets are here. Another model is refused: it could use none of them,
and would have to delete what a client has uploaded. ``lock`` is locked as long as a process serves the
folder; the system unlocks it when that process ends, however it does.
"""

import json
import os
import sys
import weakref
from pathlib import Path

from .errors import StateFolderError

OWNER, LOCK = "owner.json", "lock"
FORMAT = "keywright-state-1"
NAMES = frozenset((OWNER, LOCK))
MAX_OWNER_BYTES = 4096

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StateFolder:
    """A folder that this process serves a model from.

    Args:
        folder: made if it is missing.
        model: hash of the model's manifest.

    Raises:
        StateFolderError: another process serves it, or it holds the state of another model.
    """

    def __init__(self, folder: Path, model: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._unlock = weakref.finalize(self, os.close, self._lock)
        try:
            self._take()
            self._own(model)
        except BaseException:
            self._unlock()
            raise

    def _take(self) -> None:
        try:
            _try_lock(self._lock)
        except OSError as error:
            raise StateFolderError(
                f"{self.folder} is served by another process; name another folder, or end that process"
            ) from error

    def _own(self, model: str) -> None:
        path = self.folder / OWNER
        if not path.exists():
            temporary = self.folder / f".{OWNER}.{os.getpid()}"
            temporary.write_text(json.dumps({"format": FORMAT, "model": model}), encoding="utf-8")
            temporary.replace(path)
            return
        found: object = None
        if path.is_file() and path.stat().st_size <= MAX_OWNER_BYTES:
            try:
                found = json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise StateFolderError(f"{path} does not say whose state it is; name another folder")
        if found.get("model") != model:
            raise StateFolderError(
                f"{self.folder} holds keys of clients of model {str(found.get('model'))[:64]}, and {model} "
                "is to be served; name another folder, or delete that one if its model is served no more"
            )

    def close(self) -> None:
        """Let another process serve the folder."""
        self._unlock()
