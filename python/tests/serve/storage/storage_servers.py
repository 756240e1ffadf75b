"""A PostgreSQL and an S3 server for tests, and storage of a service in both forms."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from keywright.serve.service import StorageAddresses
from keywright.serve.storage import Storage, open_storage

POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""Debian's folder of its programs, which is not on the usual path."""

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "keywright",
    "AWS_SECRET_ACCESS_KEY": "a secret of tests",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "PGPASSWORD": "another secret of tests",
}
"""Environment of the servers and of their clients."""


@dataclass
class Servers:
    """Addresses of running servers.

    Attributes:
        endpoint: of the S3 server.
        database: address of a database of PostgreSQL, without its name.
    """

    endpoint: str
    database: str


@dataclass
class Place:
    """Storage of a service in a test. One process at a time has it open.

    Attributes:
        folder: of its state.
        objects, records: addresses, None for the folder.
    """

    folder: Path
    objects: str | None = None
    records: str | None = None
    _open: list[Storage] = field(default_factory=list)

    @property
    def addresses(self) -> StorageAddresses:
        """The addresses for a service in its folder."""
        return StorageAddresses(objects=self.objects, records=self.records)

    def open(self) -> Storage:
        """Open it, as the next process does."""
        self.close()
        self._open.append(open_storage(self.folder, self.objects, self.records))
        return self._open[-1]

    def held(self, prefix: str) -> set[str]:
        """Return the last parts of the names of its objects."""
        return {name.rpartition("/")[2] for name in self._open[-1].objects.sizes(prefix)}

    def close(self) -> None:
        """Close it, as at the end of a process."""
        while self._open:
            self._open.pop().close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None, "the server has ended"
            time.sleep(0.05)


def _user() -> str | None:
    """Return the user for PostgreSQL, which root must not run."""
    if os.geteuid() != 0:
        return None
    import pwd  # Not on Windows, where there are no such users.

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a PostgreSQL server; yields its address without the name of a database."""
    if not POSTGRESQL:
        pytest.skip("there is no PostgreSQL: Debian has it in the package postgresql")
    pytest.importorskip("pg8000", reason="pip install 'keywright[storage]'")
    programs, user, port = POSTGRESQL[-1], _user(), free_port()
    # Outside pytest's folders, which only the user of the tests can read.
    with tempfile.TemporaryDirectory(prefix="keywright.postgresql.") as data_folder:
        folder = Path(data_folder)
        secret, data = folder / "secret", folder / "data"
        secret.write_text(ENVIRONMENT["PGPASSWORD"])
        if user is not None:
            for path in (folder, secret):
                shutil.chown(path, user)
        form = ["-D", str(data), "-U", "keywright", "-A", "scram-sha-256", "-N", f"--pwfile={secret}"]
        subprocess.run([str(programs / "initdb"), *form], check=True, capture_output=True, user=user, cwd="/")
        # Nothing is kept. Without -F and the immediate end, all databases would be written to the disk.
        options = ["-F", "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""]
        with subprocess.Popen(
            [str(programs / "postgres"), *options], stderr=subprocess.DEVNULL, user=user, cwd="/"
        ) as process:
            try:
                _await(port, process)
                yield f"postgresql://keywright@127.0.0.1:{port}"
            finally:
                process.send_signal(signal.SIGQUIT)


@contextmanager
def s3() -> Iterator[str]:
    """Run an S3 server of moto, which keeps objects in memory; yields its address."""
    for package in ("moto", "obstore"):
        pytest.importorskip(package, reason="pip install 'keywright[storage]' 'moto[s3]' flask-cors")
    port = free_port()
    arguments = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@contextmanager
def servers() -> Iterator[Servers]:
    """Both."""
    with postgresql() as database, s3() as endpoint:
        yield Servers(endpoint, database)


def own_place(running: Servers, folder: Path, name: str) -> Place:
    """Return a separate bucket and database; the environment must have `ENVIRONMENT` and the endpoint."""
    import pg8000.dbapi

    request = urllib.request.Request(f"{running.endpoint}/{name}", method="PUT", data=b"")
    urllib.request.urlopen(request).close()
    host, _, port = running.database.rpartition("@")[2].partition(":")
    connection = pg8000.dbapi.connect(
        "keywright", host=host, port=int(port), database="postgres", password=ENVIRONMENT["PGPASSWORD"]
    )
    connection.autocommit = True
    connection.cursor().execute(f'create database "{name}"')
    connection.close()
    return Place(folder, f"s3://{name}/service", f"{running.database}/{name}?sslmode=disable")
