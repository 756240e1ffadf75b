"""Opens the storage of a service by address."""

import json
from dataclasses import dataclass
from pathlib import Path

from keywright._reading.documents import Limits, read_json
from keywright.errors import PackageMissingError
from keywright.errors.service import ConfigurationError

from .folder import FolderObjects
from .objects import Objects
from .records import Records
from .sqlite import SqliteRecords

MARK, LIMITS = "storage.json", Limits(4096, 64)
"""The object that names the database that a store of objects belongs to, and what it may hold."""


@dataclass(frozen=True)
class Storage:
    """Bytes and tables of one service.

    Attributes:
        objects: the bytes.
        records: the tables.
    """

    objects: Objects
    records: Records

    def close(self) -> None:
        """Release both."""
        self.records.close()
        self.objects.close()


def open_storage(folder: Path, objects: str | None = None, records: str | None = None) -> Storage:
    """Open the storage of a service.

    Args:
        folder: folder of its state, whose lock is held.
        objects: ``s3://BUCKET/PREFIX``; by default the folder.
        records: ``postgresql://USER@HOST:PORT/NAME``; by default SQLite in the folder.

    Raises:
        PackageMissingError: a package is not installed.
        ConfigurationError: an address is malformed, or these objects belong to another database.
        OSError: the storage does not answer.
    """
    tables = _records(folder, records)
    try:
        store = _objects(folder, objects)
        _require_pair(store, tables)
    except BaseException:
        tables.close()
        raise
    return Storage(store, tables)


def _records(folder: Path, address: str | None) -> Records:
    if address is None:
        return SqliteRecords(folder)
    try:
        from keywright.serve.storage.external.postgresql import PostgresqlRecords
    except ModuleNotFoundError as error:
        raise PackageMissingError(str(error.name), "storage") from error
    return PostgresqlRecords(address)


def _objects(folder: Path, address: str | None) -> Objects:
    if address is None:
        return FolderObjects(folder)
    try:
        from keywright.serve.storage.external.s3 import S3Objects
    except ModuleNotFoundError as error:
        raise PackageMissingError(str(error.name), "storage") from error
    return S3Objects(address, folder / "copies")


def _require_pair(objects: Objects, records: Records) -> None:
    """Check that objects and database belong together: objects that the database does not know are deleted at
    the start."""
    name = records.identity()
    if objects.sizes(MARK).get(MARK) is None:
        objects.put(MARK, json.dumps({"records": name}).encode())
    try:
        marked = read_json(objects.read(MARK, 0, LIMITS.bytes), LIMITS).get("records")
    except (ValueError, AttributeError):
        marked = None
    if marked != name:
        raise ConfigurationError(
            "the objects belong to another database than the one that is named; name their database, or "
            "another bucket, prefix or folder",
            code="state_folder",
        )
