"""The folder of a service's state, with a format marker and a lock.

``state.json`` identifies the folder and its format. The serving process holds a lock on ``lock``; the
operating system releases it when the process ends for any reason.
"""

import json
import os
import secrets
import weakref
from pathlib import Path

from keywright._files import private, replace, try_lock
from keywright._reading.documents import Limits, object_of
from keywright.errors.service import ConfigurationError

FORM, LOCK = "state.json", "lock"
FORMAT = "keywright-state-3"
LIMITS = Limits(4096, 64)

OPERATOR_KEY = "operator.key"
"""The file with the key of the operator's page, for a server without accounts."""


class StateFolder:
    """A folder that this process serves from.

    Args:
        folder: created if it is missing.

    Raises:
        ConfigurationError: another process serves it, or it holds something else.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._unlock = weakref.finalize(self, os.close, self._lock)
        try:
            self._take()
            self._own()
        except BaseException:
            self._unlock()
            raise

    def _take(self) -> None:
        try:
            try_lock(self._lock)
        except OSError as error:
            raise ConfigurationError(
                f"{self.folder} is served by another process; name another folder, or end that process",
                code="state_folder",
            ) from error

    def _own(self) -> None:
        path = self.folder / FORM
        if not path.exists():
            if (self.folder / "owner.json").exists():
                raise ConfigurationError(
                    f"{self.folder} has an earlier format; name another folder, clients will upload their "
                    "keys again",
                    code="state_folder",
                )
            replace(path, json.dumps({"format": FORMAT}).encode())
            return
        entry = object_of(path, LIMITS)
        if entry.get("format") != FORMAT:
            raise ConfigurationError(
                f"{path} has a format that this release does not know; name another folder",
                code="state_folder",
            )

    def close(self) -> None:
        """Release the folder."""
        self._unlock()


def operator_key(state: Path) -> str:
    """Return the key of the page, which only the owner of the state can read; it is made if it is missing."""
    path = state / OPERATOR_KEY
    private(path)
    key = path.read_text(encoding="ascii").strip()
    if not key:
        key = secrets.token_urlsafe(32)
        replace(path, f"{key}\n".encode("ascii"))
    return key
