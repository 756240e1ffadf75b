"""The audit log: which tenant uploaded, used and deleted which key set, as append-only lines of JSON.

A line has ``time`` (RFC 3339, UTC), ``action``, ``tenant``, ``key_set``, the ``request`` that caused it, and
the action's own fields. A key set is named by the SHA-256 of its identifier, because without accounts the
identifier itself grants access. The log holds no part of keys, inputs or answers.

| action | when | fields |
|---|---|---|
| begin | the first byte of a set is about to come | model, configuration, bytes |
| complete | a set is complete and has been checked | digest, SHA-256 of the set |
| use | an evaluation is accepted | model, job (SHA-256 of its identifier), bytes of the message |
| cancel | a client drops an evaluation | job |
| delete | a set is deleted with all its data | why: client, expired, room, refused, damaged |
"""

import hashlib
import json
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

from keywright.serve.logs import request_identifier

NAME = "audit.jsonl"
MAX_BYTES = 64 << 20
"""Size in bytes after which a file is renamed, with the time in its name."""

MAX_FILES = 64
"""How many renamed files are kept; the oldest is deleted for the next."""


class Audit:
    """An audit file.

    Args:
        path: created if it is missing.
        most: size in bytes after which the file is rotated.
        kept: how many full files are kept.
    """

    def __init__(self, path: Path, most: int = MAX_BYTES, kept: int = MAX_FILES) -> None:
        self._path, self._most, self._kept, self._lock = path, most, kept, threading.Lock()
        self._file = -1
        path.parent.mkdir(parents=True, exist_ok=True)

    def note(self, action: str, tenant: str, key_set: str, **more: str | int) -> None:
        """Add a line. It is on the disk when this returns.

        Raises:
            OSError: the disk fails.
        """
        now = datetime.now(UTC)
        entry: dict[str, str | int] = {
            "time": now.isoformat(timespec="milliseconds"),
            "action": action,
            "tenant": tenant,
            "key_set": alias(key_set),
            "request": request_identifier(),
        }
        line = json.dumps(entry | more).encode() + b"\n"
        with self._lock:
            file, before = self._open(len(line), now)
            if os.write(file, line) != len(line):
                # Half a line would spoil the next one.
                os.ftruncate(file, before)
                raise OSError("the disk of the audit is full")
            os.fsync(file)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _renamed(self) -> list[tuple[str, int, Path]]:
        """Return time, number and path of the full files, the oldest first."""
        form = re.compile(
            rf"{re.escape(self._path.stem)}-(\d{{8}}T\d{{6}}Z)-(\d+){re.escape(self._path.suffix)}"
        )
        matches = [(form.fullmatch(path.name), path) for path in self._path.parent.iterdir()]
        return sorted((match[1], int(match[2]), path) for match, path in matches if match is not None)

    def _open(self, more: int, now: datetime) -> tuple[int, int]:
        """Return a file with room for more bytes, and its size."""
        try:
            there: os.stat_result | None = self._path.stat()
        except FileNotFoundError:
            there = None
        if there is not None and there.st_size + more > self._most:
            full, moment = self._renamed(), f"{now:%Y%m%dT%H%M%SZ}"
            number = 1 + max((number for at, number, _ in full if at == moment), default=-1)
            aside = self._path.with_name(f"{self._path.stem}-{moment}-{number}{self._path.suffix}")
            # Windows renames no file that is open.
            self._close()
            self._path.rename(aside)
            for _, _, old in full[: max(0, len(full) + 1 - self._kept)]:
                old.unlink(missing_ok=True)
            there = None
        # An operator may have taken the file away.
        if self._file < 0 or there is None or there.st_ino != os.fstat(self._file).st_ino:
            self._close()
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            there = os.fstat(self._file)
            _settle(self._path.parent)
        return self._file, there.st_size


def _settle(folder: Path) -> None:
    """Synchronise the names in a folder with the disk."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def alias(identifier: str) -> str:
    """Return the name of an identifier in the log: its SHA-256, in hexadecimal."""
    return hashlib.sha256(identifier.encode()).hexdigest()
