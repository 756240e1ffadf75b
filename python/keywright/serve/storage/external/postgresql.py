"""Records in PostgreSQL, by pg8000."""

import contextlib
import os
import ssl
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

import pg8000.dbapi

from keywright.errors.service import ConfigurationError
from keywright.serve.storage.records import Records, Row

LOCK = 0x6B6579_77726967
"""Key of the advisory lock that the one server of a database holds: ``keywrig``."""

TIMEOUT_S = 30.0
TLS = {"disable": None, "require": False, "verify-full": True}
"""Values of ``sslmode``: whether TLS is used, and whether the server's name is checked."""

PAUSE_S = 5.0
"""How long calls fail at once after the database could not be reached: they would wait one after the other,
with all threads of the service."""

BROKEN = ("08", "57P")
"""Prefixes of the error codes after which a connection is unusable."""


class PostgresqlRecords(Records):
    """A database for one service, locked as long as this connection lives.

    Args:
        address: ``postgresql://USER@HOST:PORT/NAME``, with ``?sslmode=`` ``verify-full`` (the default),
            ``require`` or ``disable``. The password is taken from the environment's ``PGPASSWORD``.

    Raises:
        ConfigurationError: the address is malformed, another server uses the database, or a later release
            wrote it.
        OSError: the database does not answer, or the password is wrong.
    """

    def __init__(self, address: str) -> None:
        parts, query = urlsplit(address), parse_qs(urlsplit(address).query)
        mode = query.pop("sslmode", ["verify-full"])[-1]
        name = parts.path.removeprefix("/")
        if parts.scheme != "postgresql" or not parts.hostname or not name or mode not in TLS or query:
            raise ConfigurationError(
                "the address of a database must be postgresql://USER@HOST:PORT/NAME, with "
                "?sslmode=verify-full, require or disable",
                code="state_folder",
            )
        if parts.password is not None:
            raise ConfigurationError(
                "the database's address contains a password; set PGPASSWORD instead", code="state_folder"
            )
        checked = TLS[mode]
        context = None if checked is None else ssl.create_default_context()
        if context is not None and not checked:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._where = {
            "user": unquote(parts.username or "keywright"),
            "host": parts.hostname,
            "port": parts.port or 5432,
            "database": unquote(name),
            "ssl_context": context,
        }
        self._lock = threading.RLock()
        self._failed, self._failure = -PAUSE_S, ""
        self._connection = self._connect()
        try:
            self.migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock and close the connection: the server notices its end some time later."""
        with self._lock, contextlib.suppress(pg8000.dbapi.Error, OSError):
            self._connection.cursor().execute(f"select pg_advisory_unlock({LOCK})")
            self._connection.close()

    def _connect(self) -> pg8000.dbapi.Connection:
        try:
            connection = pg8000.dbapi.connect(
                **self._where,
                password=os.environ.get("PGPASSWORD"),
                timeout=TIMEOUT_S,
                application_name="keywright",
            )
        except pg8000.dbapi.Error as error:
            raise OSError(f"the database of the service: {_reason(error)}") from error
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(f"select pg_try_advisory_lock({LOCK})")
        if not cursor.fetchall()[0][0]:
            connection.close()
            raise ConfigurationError(
                f"the database {self._where['database']} is served by another process; name another one, or "
                "end that process",
                code="state_folder",
            )
        return connection

    def _do(self, statement: str, *values: object, again: bool = True) -> list[Row]:
        with self._lock:
            if time.monotonic() - self._failed < PAUSE_S:
                raise OSError(self._failure)
            try:
                return self._ask(statement, values)
            except (pg8000.dbapi.Error, OSError) as error:
                if not _broken(error):
                    raise OSError(f"the database of the service: {_reason(error)}") from error
                self.close()
                try:
                    self._connection = self._connect()
                except (ConfigurationError, OSError) as failure:
                    self._failed, self._failure = time.monotonic(), str(failure)
                    raise OSError(self._failure) from error
                if not again:
                    raise OSError(f"the database of the service: {_reason(error)}") from error
                return self._do(statement, *values, again=False)

    def _ask(self, statement: str, values: tuple[object, ...]) -> list[Row]:
        cursor = self._connection.cursor()
        cursor.execute(statement.replace("?", "%s"), values)
        if cursor.description is None:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _broken(error: Exception) -> bool:
    """Whether the connection is unusable."""
    fields = error.args[0] if error.args else None
    if isinstance(fields, dict):
        return str(fields.get("C", "")).startswith(BROKEN)
    return isinstance(error, pg8000.dbapi.InterfaceError | OSError)


def _reason(error: Exception) -> str:
    """Return the message of an error without its parameters."""
    fields = error.args[0] if error.args else error
    return str(fields.get("M", fields)) if isinstance(fields, dict) else str(fields)
