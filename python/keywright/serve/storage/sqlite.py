"""Records in a file, by SQLite."""

import sqlite3
import threading
from pathlib import Path

from keywright._files import private

from .records import Records, Row

NAME = "service.db"


class SqliteRecords(Records):
    """The database in a state folder.

    Args:
        folder: folder of the file, which is created if it is missing.

    Raises:
        ConfigurationError: a later release wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        # Its companions, with the last changes, get its mode; an earlier release let others read them.
        private(folder / NAME)
        for companion in (f"{NAME}-wal", f"{NAME}-shm"):
            if (folder / companion).exists():
                private(folder / companion)
        self._connection = sqlite3.connect(folder / NAME, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        try:
            # A commit is one write to the end of a file, synced when it returns.
            self._do("pragma journal_mode = wal")
            self._do("pragma synchronous = full")
            self.migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _do(self, statement: str, *values: object, again: bool = True) -> list[Row]:
        with self._lock:
            try:
                return [dict(row) for row in self._connection.execute(statement, values)]
            except sqlite3.Error as error:
                raise OSError(f"the database of the service: {error}") from error
