"""Key sets on the disk: pieces, restarts, eviction, and ownership."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import keywright as kw
import pytest
from keywright._core import HEAD_BYTES
from keywright.errors import WorkerEndedError
from keywright.errors.service import (
    BusyError,
    ConfigurationError,
    EvaluationError,
    InvalidObjectError,
    LimitError,
    OtherModelError,
    RetiredError,
    SecretRefusedError,
    UnknownKeysError,
    UploadError,
)
from keywright.model import Model
from keywright.serve.configurations import Catalog, Configuration
from keywright.serve.served.model import ServedModel
from keywright.serve.storage.state_folder import StateFolder
from keywright.serve.uploads import eviction
from keywright.serve.uploads.admission import Admission
from keywright.serve.uploads.part_writer import PartWriter
from keywright.serve.uploads.secret_scanner import SecretScanner
from keywright.serve.uploads.upload_store import UploadStore
from keywright.serve.uploads.uploaded import STALLED_S, UploadedKeys
from keywright.serve.workers import worker
from keywright.serve.workers.worker import Engine
from tests.serve.network import WORKERS, make_thin
from tests.serve.storage.storage_servers import Place


class Store(UploadStore):
    """A store that has its storage alone."""

    def __init__(self, place: Place, *models: Model, capacity: int = 16, expiry: float = 3600.0) -> None:
        storage = place.open()
        self.catalog, self.first = Catalog(models, storage.records), models[0].manifest.hash
        super().__init__(
            storage, self.catalog, WORKERS, admission=Admission(capacity=capacity, expiry=expiry)
        )

    def make(self) -> UploadedKeys:
        """An empty set of the first model."""
        return self.create(self.first)

    def read(self, uploaded: UploadedKeys) -> bytes:
        """Return all bytes of a set."""
        with self.file(uploaded) as path:
            return path.read_bytes()

    def is_there(self, uploaded: UploadedKeys) -> bool:
        """Whether any bytes of a set are stored."""
        rows = [row for row in self._records.key_sets() if row["key_set"] == uploaded.identifier]
        return bool(rows) or any(uploaded.identifier in name for name in self.objects.sizes("keys/"))


def receive(store: UploadStore, uploaded: UploadedKeys, offset: int, length: int, data: bytes) -> None:
    """Receive a piece of ``length`` bytes, of which only ``data`` arrives."""
    piece = PartWriter(store, uploaded, offset, length)
    try:
        for start in range(0, len(data), 1 << 20):
            piece.append(data[start : start + (1 << 20)])
        piece.finish()
    finally:
        piece.close()


def test_an_upload_in_pieces_is_resumed_by_another_process(thin: Model, key_file: Path, place: Place) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    assert len(data) == thin.manifest.keys.size
    upload = store.make()
    receive(store, upload, 0, 1000, data[:1000])
    # The connection breaks: the received bytes are kept.
    receive(store, upload, 1000, 5000, data[1000:3000])
    assert upload.received == 3000
    with pytest.raises(UploadError, check=lambda error: error.code == "keys_incomplete") as incomplete:
        store.require_ready(upload)
    assert (incomplete.value.received, incomplete.value.expected) == (3000, len(data))
    for offset in (0, 2999, 3001):
        with pytest.raises(UploadError, check=lambda error: error.code == "wrong_offset") as wrong:
            receive(store, upload, offset, 1, b"x")
        assert wrong.value.received == 3000

    after = Store(place, thin)
    resumed = after.get(upload.identifier)
    assert resumed.received == 3000
    receive(after, resumed, 3000, len(data) - 3000, data[3000:])
    assert resumed.ready
    assert after.read(resumed) == data

    again = Store(place, thin)
    kept = again.get(upload.identifier)
    assert (kept.ready, kept.digest, kept.start) == (True, resumed.digest, upload.start)
    again.delete(kept, "client")
    with pytest.raises(UnknownKeysError):
        again.get(upload.identifier)
    assert not again.is_there(kept)
    assert place.held("keys/") == set()


def test_a_process_that_ends_while_it_checks_asks_for_the_last_byte_again(
    thin: Model, key_file: Path, place: Place
) -> None:
    data, before = key_file.read_bytes(), Store(place, thin)
    upload = before.make()
    before.objects.append(upload.name(0), 0, data)
    after = Store(place, thin)
    resumed = after.get(upload.identifier)
    assert (resumed.received, resumed.ready) == (len(data) - 1, False)
    receive(after, resumed, len(data) - 1, 1, data[-1:])
    assert resumed.ready


def test_a_checker_that_is_killed_asks_for_the_last_byte_again(
    thin: Model, key_file: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()

    def killed(keys: str, path: Path, parameters: kw.Parameters) -> str:
        raise WorkerEndedError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(WORKERS, "check", killed)
        with pytest.raises(BusyError, match="last byte"):
            receive(store, upload, 0, len(data), data)
    assert (upload.received, upload.ready) == (len(data) - 1, False)
    receive(store, upload, len(data) - 1, 1, data[-1:])
    assert upload.ready


def test_a_set_that_is_deleted_while_it_is_checked_is_unknown(
    thin: Model, key_file: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are gone for that reason: the disk is not full."""
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()

    def check(keys: str, path: Path, parameters: kw.Parameters) -> str:
        store.delete(upload, "room")
        raise FileNotFoundError(path)

    with monkeypatch.context() as patched:
        patched.setattr(WORKERS, "check", check)
        with pytest.raises(UnknownKeysError, match="meanwhile"):
            receive(store, upload, 0, len(data), data)


def test_a_set_that_was_deleted_before_its_turn_is_not_checked(
    thin: Model, key_file: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()
    keep = store.objects.keep

    def late(names: list[str]) -> list[str]:
        kept = keep(names)
        store.delete(upload, "client")
        return kept

    with monkeypatch.context() as patched:
        # Whatever the worker is asked for is a failure of this test.
        patched.setattr(WORKERS, "check", None)
        writer = PartWriter(store, upload, 0, len(data))
        writer.append(data)
        store.delete(upload, "client")
        with pytest.raises(UnknownKeysError, match="meanwhile"):
            writer.finish()
        writer.close()
    upload = store.make()
    with monkeypatch.context() as patched:
        patched.setattr(store.objects, "keep", late)
        with pytest.raises(UnknownKeysError, match="meanwhile"):
            receive(store, upload, 0, len(data), data)


def test_a_check_ends_when_its_set_is_deleted(
    thin: Model, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more of it is read; another set is checked meanwhile as ever."""
    read, engine = list[int](), Engine(io.BytesIO(), None)
    parameters = base64.b64encode(thin.parameters.to_bytes()).decode()
    order = {"job": "a", "path": str(key_file), "parameters": parameters}

    def digest_of(path: Path, on_chunk: Callable[[], object]) -> str:
        on_chunk()
        read.append(1)
        engine.cancelled = "a"
        on_chunk()
        raise AssertionError("the next megabyte is read")

    monkeypatch.setattr(worker, "digest_of", digest_of)
    with pytest.raises(EvaluationError) as refused:
        engine.do_check(order)
    assert (refused.value.code, read) == ("cancelled", [1])
    with pytest.raises(EvaluationError):
        engine.do_check(order | {"path": "not read"})
    monkeypatch.undo()
    assert (
        engine.do_check(order | {"job": "b"})["digest"] == hashlib.sha256(key_file.read_bytes()).hexdigest()
    )


def test_the_check_of_a_deleted_set_is_cancelled(
    thin: Model, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[str]()

    class Checker:
        def order(self, **order: object) -> dict[str, object]:
            for keys in ("another", str(order["job"])):
                WORKERS.forget(keys)
            return {"digest": "d"}

        cancel = staticmethod(told.append)

    monkeypatch.setattr(WORKERS, "_checker", Checker())
    assert WORKERS.check("own", key_file, thin.parameters) == "d"
    WORKERS.forget("own")
    assert told == ["own"]


def test_a_full_disk_loses_no_stored_byte(
    thin: Model, key_file: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    upload = store.make()
    receive(store, upload, 0, 5000, data[:5000])
    piece = PartWriter(store, upload, 5000, len(data) - 5000)
    piece.append(data[5000:20_000])

    cut = store.objects.append

    def full(name: str, at: int, data: bytes) -> None:
        # As if the last write never reached the disk.
        cut(name, 9000, b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store.objects, "append", full)
        with pytest.raises(OSError, match="No space"):
            piece.append(data[20_000:])
    piece.close()
    assert upload.received == 9000
    receive(store, upload, upload.received, len(data) - upload.received, data[upload.received :])
    assert upload.ready


def test_a_configuration_is_the_keys_and_not_the_model(thin: Model, full: Model) -> None:
    other = make_thin("other")
    assert other.manifest.hash != thin.manifest.hash
    first, second, third = (Configuration.of(ServedModel(each)).identifier for each in (thin, other, full))
    assert first == second != third


def test_keys_of_a_model_that_is_not_served_stay_until_it_is(
    thin: Model, full: Model, key_file: Path, place: Place
) -> None:
    """A second model started on one folder once deleted the first one's keys."""
    first = Store(place, thin)
    upload = first.make()
    receive(first, upload, 0, 1000, key_file.read_bytes()[:1000])
    before = first.objects.sizes("keys/")
    foreign = Store(place, full, expiry=1e-9)
    foreign.expire()
    assert foreign.retired() == 1
    with pytest.raises(RetiredError) as retired:
        foreign.get(upload.identifier)
    assert (retired.value.found, retired.value.successor) == (upload.configuration.identifier, "")
    assert foreign.objects.sizes("keys/") == before
    assert Store(place, thin).get(upload.identifier).received == 1000


def test_a_retired_model_names_its_successor(thin: Model, full: Model, place: Place) -> None:
    old = Store(place, thin)
    new = Model(thin.name, full.program, full.parameters)
    catalog = Store(place, new).catalog
    configuration = old.catalog.of(thin.manifest.hash).identifier
    for ask, retired_name in ((catalog.model, thin.manifest.hash), (catalog.configuration, configuration)):
        with pytest.raises(RetiredError) as retired:
            ask(retired_name)
        error = retired.value
        assert (error.found, error.successor) == (retired_name, new.manifest.hash)
        assert error.configuration == catalog.of(new.manifest.hash).identifier
        with pytest.raises(OtherModelError):
            ask("0" * 64)


def test_a_folder_of_state_is_served_by_one_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from keywright.serve.storage.state_folder import StateFolder;"
        "folder = StateFolder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(
            ConfigurationError, match="another process", check=lambda error: error.code == "state_folder"
        ):
            StateFolder(tmp_path)
        # However it ends.
        other.kill()
        other.wait()
    folder = StateFolder(tmp_path)
    with pytest.raises(
        ConfigurationError, match="another process", check=lambda error: error.code == "state_folder"
    ):
        StateFolder(tmp_path)
    folder.close()
    for form in (b"", b"{", b"[]", b'{"format": "other"}', b"[" * 4000, bytes(5000)):
        (tmp_path / "state.json").write_bytes(form)
        with pytest.raises(
            ConfigurationError, match="form", check=lambda error: error.code == "state_folder"
        ):
            StateFolder(tmp_path)
    (tmp_path / "state.json").unlink()
    (tmp_path / "owner.json").write_text("{}")
    with pytest.raises(
        ConfigurationError, match="earlier form", check=lambda error: error.code == "state_folder"
    ):
        StateFolder(tmp_path)


def test_foreign_objects_are_not_deleted(thin: Model, place: Place) -> None:
    """Foreign objects stay; half-made or half-deleted objects of a process are removed."""
    store = Store(place, thin)
    too_long, own = store.make(), store.make()
    store.objects.append(too_long.name(0), 0, bytes(thin.manifest.keys.size + 1))
    store.objects.put("keys/letter.txt", b"kept")
    store.objects.put(f"keys/{'b' * 32}/notes", b"kept")
    store.objects.put(f"keys/{'a' * 32}/{'b' * 32}/{0:012x}", b"left by a process that deleted it")
    after = Store(place, thin)
    assert [after.get(own.identifier).received, len(after)] == [0, 1]
    assert place.held("keys/") == {"letter.txt", "notes"}


def test_a_step_of_the_clock_deletes_nothing(
    thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(place, thin, expiry=3600)
    upload = store.make()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert store.expire() == []
    after = Store(place, thin, expiry=3600)
    assert after.expire() == []
    after.get(upload.identifier).used -= 3601
    assert [each.identifier for each in after.expire()] == [upload.identifier]


def test_keys_that_are_not_the_models_are_refused(thin: Model, key_file: Path, place: Place) -> None:
    data, store = key_file.read_bytes(), Store(place, thin)
    fewer = kw.keys.set_head(thin.specs[1:])
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    for wrong in (fewer, bytes(100), bytes(damaged)):
        upload = store.make()
        with pytest.raises(InvalidObjectError):
            receive(store, upload, 0, len(wrong), wrong)
        with pytest.raises(UnknownKeysError):
            store.get(upload.identifier)
    upload = store.make()
    with pytest.raises(LimitError, check=lambda error: error.code == "too_large") as large:
        receive(store, upload, 0, len(data) + 1, data)
    assert large.value.maximum == len(data)
    assert upload.received == 0


def test_anything_that_looks_like_a_secret_key_is_refused(thin: Model, key_file: Path, place: Place) -> None:
    secret = kw.SecretKey.generate(thin.parameters).to_bytes()
    data, store = key_file.read_bytes(), Store(place, thin)
    start = data[:50_000]
    # Wherever it begins, and wherever the pieces are cut.
    for cut in range(1, HEAD_BYTES):
        upload = store.make()
        receive(store, upload, 0, len(start) + cut, start + secret[:cut])
        with pytest.raises(SecretRefusedError, match="make a new one"):
            receive(store, upload, upload.received, len(secret) - cut, secret[cut:])
        assert not store.is_there(upload)
    SecretScanner().scan(data)


def test_the_number_of_key_sets_is_bounded(thin: Model, key_file: Path, place: Place) -> None:
    data, store = key_file.read_bytes(), Store(place, thin, capacity=2, expiry=3600)
    first, second, third = (store.make() for _ in range(3))
    for upload in (first, second):
        receive(store, upload, 0, 1000, data[:1000])
    with pytest.raises(BusyError, match="2 key sets"):
        PartWriter(store, third, 0, 1000)
    # Started uploads continue.
    receive(store, second, 1000, 10, data[1000:1010])
    first.used -= 3601
    receive(store, third, 0, 1000, data[:1000])
    with pytest.raises(UnknownKeysError):
        store.get(first.identifier)
    # A stalled upload is evicted.
    fourth = store.make()
    second.moved -= STALLED_S + 1
    receive(store, second, 1010, 10, data[1010:1020])
    receive(store, fourth, 0, 1000, data[:1000])
    with pytest.raises(UnknownKeysError):
        store.get(second.identifier)
    # A set that is being received is in use, and so is one with a requested evaluation.
    third.used = fourth.used = fourth.used - 3601
    piece = PartWriter(store, third, 1000, 10)
    assert store.expire() == [fourth]
    piece.close()
    third.used -= 3601
    store.touch(third.identifier)
    assert store.expire() == []
    third.used -= 3601
    assert store.expire() == [third]
    assert not store.is_there(third)


def test_uploads_without_bytes_block_nobody(
    thin: Model, key_file: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "MAX_EMPTY", 16)
    data, store = key_file.read_bytes(), Store(place, thin, capacity=2)
    upload = store.make()
    receive(store, upload, 0, 10, data[:10])
    many = [store.make() for _ in range(40)]
    assert len(store) == 17
    for gone in many[:24]:
        assert not store.is_there(gone)
    receive(store, upload, 10, len(data) - 10, data[10:])
    assert upload.ready
    receive(store, many[-1], 0, len(data), data)
    assert many[-1].ready
    digests = {row["key_set"]: row["digest"] for row in store._records.key_sets()}
    assert digests[upload.identifier] == upload.digest == hashlib.sha256(data).hexdigest()
