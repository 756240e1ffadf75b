"""The tables of a service: models, key sets, jobs and usage of tenants.

The same statements run on SQLite and PostgreSQL. The schema has a version; each of `MIGRATIONS` leads to the
next version. A database of a later release is refused.
"""

import secrets
from abc import ABC, abstractmethod

from keywright.errors.service import ConfigurationError

Row = dict[str, object]

MIGRATIONS: tuple[str, ...] = (
    """
    create table service (name text primary key, value text not null);
    create table models (model text primary key, name text not null, configuration text not null);
    create table key_sets (
        key_set text primary key, tenant text not null, model text not null, configuration text not null,
        made double precision not null, digest text not null);
    create table jobs (
        job text primary key, owner text not null, model text not null, priority bigint not null,
        state text not null, attempts bigint not null, total bigint not null,
        seconds double precision not null, error text, number bigint not null, tenant text not null);
    create table used (
        tenant text not null, day text not null, seconds double precision not null,
        primary key (tenant, day))
    """,
    """
    alter table key_sets add column holder text not null default '';
    alter table jobs add column holder text not null default ''
    """,
)
"""The statements that create each version from the previous one, starting from an empty database."""


class Records(ABC):
    """The tables of a service. Every completed call survives a crash of the machine.

    Every call raises `OSError` if the database fails. ``?`` stands for a value in a statement.
    """

    @abstractmethod
    def _do(self, statement: str, *values: object, again: bool = True) -> list[Row]:
        """Run a statement and return its rows. After a broken connection it is run ``again``, unless running
        twice is wrong."""

    @abstractmethod
    def close(self) -> None:
        """Release the database."""

    def migrate(self) -> None:
        """Migrate the schema to the version of this release.

        Raises:
            ConfigurationError: a later release wrote it.
        """
        self._do("create table if not exists schema_version (version bigint not null)")
        rows = self._do("select version from schema_version")
        version = int(str(rows[0]["version"])) if rows else 0
        if version > len(MIGRATIONS):
            raise ConfigurationError(
                f"the database has version {version}, but this release knows only {len(MIGRATIONS)}; use "
                "the release that wrote it, or a later one",
                code="state_folder",
            )
        for number, statements in enumerate(MIGRATIONS[version:], version + 1):
            self._do("begin", again=False)
            try:
                for statement in statements.split(";"):
                    self._do(statement, again=False)
                self._do("delete from schema_version", again=False)
                self._do("insert into schema_version values (?)", number, again=False)
                self._do("commit", again=False)
            except OSError:
                self._do("rollback", again=False)
                raise

    def identity(self) -> str:
        """Return the name of this database, created with it: 32 hexadecimal digits."""
        self._do(
            "insert into service values ('identity', ?) on conflict (name) do nothing", secrets.token_hex(16)
        )
        return str(self._do("select value from service where name = 'identity'")[0]["value"])

    def models(self) -> list[Row]:
        """Return all recorded models."""
        return self._do("select model, name, configuration from models")

    def note_model(self, model: str, name: str, configuration: str) -> None:
        """Record that a model is served."""
        self._do(
            "insert into models values (?, ?, ?) on conflict (model) do update set name = excluded.name, "
            "configuration = excluded.configuration",
            model,
            name,
            configuration,
        )

    def key_sets(self) -> list[Row]:
        """Return all key sets, the oldest first."""
        return self._do("select * from key_sets order by made, key_set")

    def add_key_set(self, row: Row) -> None:
        """Record a key set."""
        self._add("key_sets", "key_set", row)

    def set_digest(self, key_set: str, digest: str) -> None:
        """Record that a key set is complete, with its SHA-256."""
        self._do("update key_sets set digest = ? where key_set = ?", digest, key_set)

    def delete_key_set(self, key_set: str) -> None:
        """Delete a key set."""
        self._do("delete from key_sets where key_set = ?", key_set)

    def jobs(self) -> list[Row]:
        """Return all jobs in order of arrival."""
        return self._do("select * from jobs order by number")

    def add_job(self, row: Row) -> None:
        """Record a job."""
        self._add("jobs", "job", row)

    def set_job(self, job: str, **row: object) -> None:
        """Update a job."""
        changes = ", ".join(f"{name} = ?" for name in row)
        self._do(f"update jobs set {changes} where job = ?", *row.values(), job)

    def delete_job(self, job: str) -> None:
        """Delete a job."""
        self._do("delete from jobs where job = ?", job)

    def use(self, tenant: str, day: str, seconds: float) -> None:
        """Add processor seconds to a tenant's usage of a day."""
        self._do(
            "insert into used values (?, ?, ?) on conflict (tenant, day) "
            "do update set seconds = used.seconds + excluded.seconds",
            tenant,
            day,
            seconds,
            again=False,
        )

    def used(self, day: str) -> dict[str, float]:
        """Return the processor seconds of a day, by tenant."""
        rows = self._do("select tenant, seconds from used where day = ?", day)
        return {str(row["tenant"]): float(str(row["seconds"])) for row in rows}

    def forget_used(self, begin: str, day: str) -> None:
        """Delete the seconds of other days whose names begin in a way."""
        self._do("delete from used where day <> ? and substr(tenant, 1, ?) = ?", day, len(begin), begin)

    def _add(self, table: str, key: str, row: Row) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self._do(
            f"insert into {table} ({names}) values ({marks}) on conflict ({key}) do nothing", *row.values()
        )
