"""Bytes and tables in a folder, and on S3 and PostgreSQL servers: both behave equally."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, ConfigurationError, UploadError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.storage import objects as objects_module
from keywright.serve.storage import open_storage, records
from keywright.serve.storage.records import MIGRATIONS
from keywright.serve.storage.sqlite import NAME
from keywright.serve.uploads.part_writer import PartWriter
from keywright.serve.uploads.uploaded import LEAST_PART, MAX_RUNS
from tests.serve.network import WORKERS, listening
from tests.serve.storage.storage_servers import Place
from tests.serve.storage.test_key_sets import Store, receive

Sample = np.ndarray[Any, np.dtype[np.float64]]
NAMES = ("keys/a/b/000", "keys/a/b/111", "jobs/a/c.answer")


def test_objects_are_written_lengthened_cut_and_read(place: Place) -> None:
    store = place.open().objects
    first, second, other = NAMES
    store.append(first, 0, b"0123456789")
    store.append(first, 4, b"abc")
    assert store.read(first) == b"0123abc"
    assert store.read(first, 2, 3) == b"23a"
    assert store.read(first, 5, 100) == b"bc"
    assert store.read(first, 7, 100) == b""
    store.append(first, 6, b"")
    store.put(other, b"whole")
    store.put(other, b"anew")
    store.append(second, 0, b"xy")
    assert store.sizes("keys/a/") == {first: 6, second: 2}
    assert store.sizes("keys/a/b/1") == {second: 2}
    assert store.sizes("nothing/") == {}
    kept = store.keep([first, second])
    with store.file(kept) as path:
        assert path.read_bytes() == b"0123abxy"
    store.delete([*NAMES, "keys/none"])
    assert store.sizes("keys/") == store.sizes("jobs/") == {}
    for name in (first, "keys/none"):
        with pytest.raises(FileNotFoundError):
            store.read(name)


def test_another_process_writes_an_object_as_a_file(place: Place) -> None:
    store, name = place.open().objects, NAMES[2]
    store.output_path(name).write_bytes(bytes(100_000))
    store.adopt(name)
    assert store.read(name) == bytes(100_000)
    assert store.sizes("jobs/") == {name: 100_000}


def test_object_names_reveal_no_tenant_and_form_no_path(tmp_path: Path) -> None:
    for tenant in ("", "..", "clinic-a", "a/b", "\0", "https://issuer.example/|user"):
        tenant_digest = objects_module.tenant_digest(tenant)
        assert len(tenant_digest) == 32
        assert set(tenant_digest) <= set("0123456789abcdef")
    assert objects_module.tenant_digest("a") != objects_module.tenant_digest("b")


def test_objects_of_another_database_are_left_alone(place: Place, tmp_path: Path) -> None:
    """Two servers that named one bucket would once have deleted each other's keys as unknown."""
    storage = place.open()
    storage.objects.put(NAMES[0], b"kept")
    other = tmp_path / "other"
    other.mkdir()
    stranger = Place(other, place.objects)
    if place.objects is None:
        place.close()
        (tmp_path / NAME).rename(other / NAME)
        stranger = Place(tmp_path)
    with pytest.raises(
        ConfigurationError,
        match="belong to another database",
        check=lambda error: error.code == "state_folder",
    ):
        stranger.open()
    if place.objects is not None:
        assert storage.objects.read(NAMES[0]) == b"kept"


def test_a_schema_migrates_version_by_version(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = place.open().records
    before.note_model("m", "name", "c")
    name = before.identity()
    with monkeypatch.context() as patched:
        patched.setattr(records, "MIGRATIONS", (*MIGRATIONS, "create table spoons (n bigint); nonsense"))
        with pytest.raises(OSError, match="nonsense"):
            place.open()
        # A failed migration leaves nothing behind.
        spoons = "create table spoons (n bigint); insert into spoons values (7)"
        patched.setattr(records, "MIGRATIONS", (*MIGRATIONS, spoons))
        after = place.open().records
        assert after._do("select n from spoons") == [{"n": 7}]
        assert [row["model"] for row in after.models()] == ["m"]
        assert after.identity() == name
        assert place.open().records._do("select n from spoons") == [{"n": 7}]
    with pytest.raises(
        ConfigurationError,
        match=f"knows only {len(MIGRATIONS)}",
        check=lambda error: error.code == "state_folder",
    ):
        place.open()


def test_seconds_of_a_day_add_up(place: Place) -> None:
    records = place.open().records
    for tenant, seconds in (("a", 1.5), ("b", 0.25), ("a", 2.25)):
        records.use(tenant, "2026-11-23", seconds)
    records.use("a", "2026-11-24", 1e-3)
    assert records.used("2026-11-23") == {"a": 3.75, "b": 0.25}
    assert place.open().records.used("2026-11-24") == {"a": 1e-3}


def test_a_failing_database_is_an_os_error(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.close()
    with pytest.raises(OSError, match="database"):
        storage.records.models()
    (tmp_path / NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(OSError, match="database"):
        open_storage(tmp_path)
    assert not issubclass(sqlite3.Error, OSError)


@pytest.mark.parametrize(
    ("objects", "records"),
    [
        ("s3://", None),
        ("s3://key:secret@bucket", None),
        ("http://bucket", None),
        (None, "postgresql://host"),
        (None, "postgresql://user:secret@host/name"),
        (None, "postgresql://user@host/name?sslmode=prefer"),
        (None, "mysql://user@host/name"),
    ],
)
def test_addresses_that_are_none_are_refused_without_their_secrets(
    tmp_path: Path, objects: str | None, records: str | None
) -> None:
    pytest.importorskip("obstore")
    pytest.importorskip("pg8000")
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "state_folder") as refused:
        open_storage(tmp_path, objects, records)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("place", ["servers"], indirect=True)
def test_a_database_is_served_by_one_process_and_connects_again(place: Place) -> None:
    first = place.open()
    with pytest.raises(
        ConfigurationError,
        match="served by another process",
        check=lambda error: error.code == "state_folder",
    ):
        open_storage(place.folder / "other", None, place.records)
    first.records.note_model("m", "n", "c")
    # As when the database restarts, or a firewall drops the connection.
    first.records._connection._usock.close()  # type: ignore[attr-defined]
    assert [row["model"] for row in first.records.models()] == ["m"]
    with pytest.raises(
        ConfigurationError,
        match="served by another process",
        check=lambda error: error.code == "state_folder",
    ):
        open_storage(place.folder / "other", None, place.records)


def test_parts_arrive_in_any_order_and_in_parallel(thin: Model, key_file: Path, place: Place) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload, size = store.make(), len(data) // 7 + 1
    errors: list[Exception] = []

    def send(begin: int) -> None:
        try:
            piece = PartWriter(store, upload, begin, min(size, len(data) - begin), anywhere=True)
            try:
                for at in range(begin, min(begin + size, len(data)), 1 << 16):
                    piece.append(data[at : min(at + (1 << 16), begin + size)])
                piece.finish()
            finally:
                piece.close()
        except Exception as error:  # noqa: BLE001 - threads swallow them
            errors.append(error)

    threads = [threading.Thread(target=send, args=(begin,)) for begin in reversed(range(0, len(data), size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (upload.received, upload.missing, upload.ready) == (len(data), [], True)
    assert store.read(upload) == data
    assert upload.digest == hashlib.sha256(data).hexdigest()
    after = Store(place, thin)
    assert after.read(after.get(upload.identifier)) == data


def test_gaps_are_known_after_a_restart_and_no_byte_is_sent_twice(
    thin: Model, key_file: Path, place: Place
) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload, end = store.make(), len(data)

    def part(into: Store, begin: int, to: int) -> None:
        piece = PartWriter(into, into.get(upload.identifier), begin, to - begin, anywhere=True)
        try:
            piece.append(data[begin:to])
            piece.finish()
        finally:
            piece.close()

    part(store, 5000, 9000)
    part(store, end - 10, end)
    assert (upload.received, upload.stored) == (0, 4010)
    after = Store(place, thin)
    resumed = after.get(upload.identifier)
    assert resumed.missing == [(0, 5000), (9000, end - 10)]
    for begin, to in ((4999, 5001), (5000, 5001), (8999, 9001), (0, end)):
        with pytest.raises(
            UploadError, match="some of them have arrived", check=lambda error: error.code == "wrong_offset"
        ):
            PartWriter(after, resumed, begin, to - begin, anywhere=True)
    held = PartWriter(after, resumed, 10_000, 1000, anywhere=True)
    for begin, to in ((10_000, 10_001), (9000, 10_001), (10_999, 11_001)):
        with pytest.raises(
            UploadError, match="another request sends", check=lambda error: error.code == "wrong_offset"
        ):
            PartWriter(after, resumed, begin, to - begin, anywhere=True)
    held.close()
    part(after, 0, 5000)
    assert resumed.received == 9000
    part(after, 9000, end - 10)
    assert resumed.ready
    assert after.read(resumed) == data


def test_the_number_of_gaps_is_bounded(thin: Model, key_file: Path, place: Place) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()
    for number in range(1, MAX_RUNS + 1):
        piece = PartWriter(store, upload, 100 * number, 1, anywhere=True)
        piece.append(data[100 * number : 100 * number + 1])
        piece.close()
    with pytest.raises(BusyError, match="gaps"):
        PartWriter(store, upload, 100 * number + 100, 1, anywhere=True)
    receive(store, upload, 0, 100, data[:100])


def test_parts_that_arrive_backwards_are_no_object_a_byte(thin: Model, key_file: Path, place: Place) -> None:
    """They leave no gaps, but each is an object, which every request looks at."""
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()

    def part(begin: int, end: int) -> None:
        piece = PartWriter(store, upload, begin, end - begin, anywhere=True)
        piece.append(data[begin:end])
        piece.close()

    for number in range(MAX_RUNS):
        part(len(data) - number - 1, len(data) - number)
    left = len(data) - MAX_RUNS
    with pytest.raises(UploadError, match="at least"):
        part(left - 1, left)
    assert len(upload.parts) == MAX_RUNS
    part(left - LEAST_PART, left)  # a long one is worth an object
    part(0, left - LEAST_PART)
    assert upload.whole


def test_a_process_killed_while_joining_parts_loses_no_byte(
    thin: Model, key_file: Path, tmp_path: Path
) -> None:
    """Of the folder alone: there parts become one file."""
    place, data = Place(tmp_path), key_file.read_bytes()
    store = Store(place, thin)
    upload, half = store.make(), len(data) // 2
    store.objects.append(upload.name(half), 0, data[half:])
    # The first object already contains a third of the second.
    store.objects.append(upload.name(0), 0, data[: half + half // 3])
    after = Store(place, thin)
    resumed = after.get(upload.identifier)
    assert (resumed.received, resumed.ready) == (len(data) - 1, False)
    receive(after, resumed, len(data) - 1, 1, data[-1:])
    assert after.read(resumed) == data
    place.close()


@pytest.mark.parametrize("place", ["servers"], indirect=True)
def test_a_damaged_copy_is_fetched_again_and_damaged_objects_are_noticed(
    thin: Model, key_file: Path, place: Place
) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()
    receive(store, upload, 0, len(data), data)
    with store.file(upload) as path:
        path.write_bytes(b"damaged")
    assert not store.intact(upload)
    assert store.fetch_again(upload)
    assert store.intact(upload)
    assert not any((place.folder / "keys").glob("**/*"))
    store.objects.put(upload.name(0), b"x" + data[1:])
    assert store.fetch_again(upload)
    assert not store.intact(upload)


@pytest.mark.parametrize("place", ["servers"], indirect=True)
def test_answers_are_right_with_servers_also_after_a_restart(
    thin: Model, place: Place, sample: Sample
) -> None:
    expected = run_clear(thin.program, sample)
    first = Service(
        thin,
        place.folder,
        workers=WORKERS,
        addresses=place.addresses,
    )
    with listening(first) as server:
        session = RemoteModel(server.url, insecure=True).session()
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
    first.close()
    for name in ("keys", "jobs", NAME):
        assert not (place.folder / name).exists()
    after = Service(
        thin,
        place.folder,
        workers=WORKERS,
        addresses=place.addresses,
    )
    with listening(after) as server:
        session.remote = RemoteModel(server.url, insecure=True)
        before = after.store.complete()
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        # With the keys that were there.
        assert after.store.complete() == before
        assert len(before) == 1
        session.close()
        assert after.store.objects.sizes("keys/") == after.store.objects.sizes("jobs/") == {}
    after.close()


def test_a_database_that_does_not_answer_is_asked_once_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call waited for its own half minutes, one after the other, and all threads of requests with it."""
    pytest.importorskip("pg8000")
    from keywright.serve.storage.external.postgresql import PostgresqlRecords

    asked: list[str] = []

    def fail(what: str) -> Callable[..., Any]:
        def call(*_: object) -> None:
            asked.append(what)
            raise OSError("the database does not answer")

        return call

    for name in ("_connect", "migrate"):
        monkeypatch.setattr(PostgresqlRecords, name, MagicMock())
    records = PostgresqlRecords("postgresql://user@host/name")
    for name in ("_connect", "_ask"):
        monkeypatch.setattr(PostgresqlRecords, name, fail(name))
    for _ in range(5):
        with pytest.raises(OSError, match="does not answer"):
            records.used("2026-11-29")
    assert asked == ["_ask", "_connect"]
    monkeypatch.setattr(records, "_failed", -60.0)
    monkeypatch.setattr(PostgresqlRecords, "_ask", lambda *_: [{"tenant": "a", "seconds": 1.0}])
    assert records.used("2026-11-29") == {"a": 1.0}
