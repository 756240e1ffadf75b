"""What a service remembers beside bytes: models and jobs, in SQLite."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

NAME = "service.db"

SCHEMA = """
create table if not exists models (
    model text primary key, name text not null, configuration text not null);
create table if not exists jobs (
    job text primary key, owner text not null, model text not null, priority integer not null,
    state text not null, attempts integer not null, total integer not null, seconds real not null,
    error text, number integer not null, tenant text not null);
"""

Row = dict[str, Any]


class Database:
    """The database of a folder of state. What a call has written is on the disk when it returns.

    Every call raises `OSError` where the disk fails.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(folder / NAME, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("pragma synchronous = full")
        self._connection.executescript(SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def models(self) -> list[Row]:
        """Those that were noted."""
        return self._do("select model, name, configuration from models")

    def note_model(self, model: str, name: str, configuration: str) -> None:
        """Note that a model is served."""
        self._do("insert or replace into models values (?, ?, ?)", model, name, configuration)

    def jobs(self) -> list[Row]:
        """All jobs, in the order in which they came."""
        return self._do("select * from jobs order by number")

    def add_job(self, row: Row) -> None:
        """Note a job."""
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        self._do(f"insert into jobs ({names}) values ({marks})", *row.values())

    def set_job(self, job: str, **row: object) -> None:
        """Change a job."""
        changes = ", ".join(f"{name} = ?" for name in row)
        self._do(f"update jobs set {changes} where job = ?", *row.values(), job)

    def delete_job(self, job: str) -> None:
        """Forget a job."""
        self._do("delete from jobs where job = ?", job)

    def _do(self, statement: str, *values: object) -> list[Row]:
        with self._lock:
            try:
                return [dict(row) for row in self._connection.execute(statement, values)]
            except sqlite3.Error as error:
                raise OSError(f"the database of the service: {error}") from error
