"""The storage of a service by its addresses."""

import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import ServeError, StateFolderError
from .folder import FolderObjects
from .objects import Objects
from .records import Records
from .sqlite import SqliteRecords

MARK = "storage.json"
"""The object that says to which database a store of objects belongs."""


class StorageMissingError(ServeError, ImportError):
    """What a storage needs beside the package is not installed."""

    code = "storage_missing"

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[storage]'")


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
        """Let another process have both."""
        self.records.close()
        self.objects.close()


def open_storage(folder: Path, objects: str | None = None, records: str | None = None) -> Storage:
    """The storage of a service.

    Args:
        folder: of its state, of which a lock is held.
        objects: ``s3://BUCKET/PREFIX``; the folder if it is not given.
        records: ``postgresql://USER@HOST:PORT/NAME``; SQLite in the folder if it is not given.

    Raises:
        StorageMissingError: a package is not installed.
        StateFolderError: an address is none, or these objects belong to another database.
        OSError: nobody answers there.
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
        from .postgresql import PostgresqlRecords
    except ModuleNotFoundError as error:
        raise StorageMissingError(str(error.name)) from error
    return PostgresqlRecords(address)


def _objects(folder: Path, address: str | None) -> Objects:
    if address is None:
        return FolderObjects(folder)
    try:
        from .s3 import S3Objects
    except ModuleNotFoundError as error:
        raise StorageMissingError(str(error.name)) from error
    return S3Objects(address, folder / "copies")


def _require_pair(objects: Objects, records: Records) -> None:
    """Objects that no database knows are deleted at the start, so both must belong together."""
    name = records.identity()
    if objects.sizes(MARK).get(MARK) is None:
        objects.put(MARK, json.dumps({"records": name}).encode())
    try:
        found = json.loads(objects.read(MARK, 0, 4096)).get("records")
    except (ValueError, AttributeError):
        found = None
    if found != name:
        raise StateFolderError(
            "the objects belong to another database than the one that is named; name theirs, or another "
            "bucket, prefix or folder"
        )
