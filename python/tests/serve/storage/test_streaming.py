"""Key sets that are read while they are fetched from object storage."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import keywright as kw
import numpy as np
import pytest
from keywright._core import EvaluationKeys
from keywright._files import digest_of
from keywright.client import RemoteModel, key_upload
from keywright.client.remote import Session
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.served.model import ServedModel
from keywright.serve.storage.external.copies import Copies
from keywright.serve.storage.incoming_file import IncomingFile
from keywright.serve.uploads.upload_store import order_of_parts
from keywright.serve.uploads.uploaded import UploadedKeys
from keywright.serve.workers.worker import KeyLoading
from keywright.serve.workers.workers import Worker
from tests.serve.network import WORKERS, listening
from tests.serve.storage.storage_servers import Place

Sample = np.ndarray[Any, np.dtype[np.float64]]
SERVERS = pytest.mark.parametrize("place", ["servers"], indirect=True)
OBJECTS = {"a": b"A" * 10, "b": b"B" * 20, "c": b"C" * 5}
SIZES, ALL = [10, 20, 5], b"".join(OBJECTS.values())


class Slow:
    """Objects that are brought when they are let go."""

    def __init__(self) -> None:
        self.go = {name: threading.Event() for name in OBJECTS}
        self.asked: list[str] = []
        self.failing = ""

    def __call__(self, name: str, file: BinaryIO) -> int:
        self.asked.append(name)
        self.go[name].wait()
        if name == self.failing:
            raise OSError("away")
        return file.write(OBJECTS[name])


def other_process(model_of_server: IncomingFile) -> IncomingFile:
    return IncomingFile.from_json(json.loads(json.dumps(model_of_server.to_json())))


def test_a_copy_is_read_while_it_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright.serve.storage.external.copies.FETCHES", 1)
    slow = Slow()
    copies = Copies(tmp_path / "copies", 1 << 30, slow)
    with copies.hold(list(OBJECTS), lambda: SIZES, [2, 0, 1]) as copy:
        incoming = other_process(copy.incoming)
        assert incoming.path.stat().st_size == 35
        assert incoming.path.stat().st_mode & 0o077 == 0
        slow.go["c"].set()
        incoming.wait(30, 35)
        assert incoming.path.read_bytes()[30:] == b"CCCCC"
        assert not copy.ended.is_set()
        # Somebody else waits for all of it, and fetches nothing again.
        with copies.hold(list(OBJECTS), lambda: SIZES) as same:
            assert same is copy
            for event in slow.go.values():
                event.set()
            assert same.wait().read_bytes() == ALL
        incoming.wait(5, 15)
        incoming.wait(0, 35)
        incoming.wait(0, 1000)
    assert slow.asked == ["c", "a", "b"]
    assert copies.forget(list(OBJECTS))
    assert not copies.forget(list(OBJECTS))
    assert list((tmp_path / "copies").iterdir()) == []
    copies.close()


@pytest.mark.parametrize("failing", ["b", "short"])
def test_a_failed_fetch_is_an_error_for_all_readers_and_is_retried(failing: str, tmp_path: Path) -> None:
    slow = Slow()
    slow.failing = failing
    for event in slow.go.values():
        event.set()
    sizes = [10, 20, 5] if failing == "b" else [10, 21, 5]
    copies = Copies(tmp_path / "copies", 1 << 30, slow)
    with copies.hold(list(OBJECTS), lambda: sizes) as copy:
        with pytest.raises(OSError, match="away" if failing == "b" else "an object has 20 bytes"):
            copy.wait()
        # It opens the marks before or after they are deleted.
        with pytest.raises(OSError, match=r"could not be fetched|No such file"):
            other_process(copy.incoming).wait(0, 35)
    slow.failing = ""
    with copies.hold(list(OBJECTS), lambda: SIZES) as copy:
        assert copy.wait().read_bytes() == ALL
    copies.close()


def test_a_process_that_waits_is_told_that_nothing_will_come(tmp_path: Path) -> None:
    slow = Slow()
    slow.failing = "b"
    copies = Copies(tmp_path / "copies", 1 << 30, slow)
    failed: list[str] = []
    with copies.hold(list(OBJECTS), lambda: SIZES) as copy:

        def wait() -> None:
            try:
                other_process(copy.incoming).wait(0, 35)
            except OSError as error:
                failed.append(str(error))

        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        slow.go["b"].set()
        waiting.join()
    assert failed == ["the keys could not be fetched from the object storage"]
    for event in slow.go.values():
        event.set()
    copies.close()


def test_copies_in_use_and_those_that_are_fetched_stay(tmp_path: Path) -> None:
    slow = Slow()
    for name in "ab":
        slow.go[name].set()
    copies = Copies(tmp_path / "copies", 25, slow)
    with copies.hold(["a"], lambda: [10]) as first:
        with copies.hold(["b"], lambda: [20]) as second:
            assert first.wait().exists()
            assert second.wait().exists()
        with copies.hold(["c"], lambda: [5]) as third:
            # The second is dropped, the first is in use.
            assert not second.incoming.path.exists()
            assert first.incoming.path.exists()
        with copies.hold(["b"], lambda: [20]) as second:
            assert third.incoming.path.exists()
            slow.go["c"].set()
            assert third.wait().read_bytes() == b"CCCCC"
            assert second.wait().read_bytes() == b"B" * 20
    copies.close()


@pytest.fixture
def served(
    thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Service, Session, UploadedKeys]]:
    """A service with a complete set of several objects, and no copy of it."""
    service = Service(
        thin,
        place.folder,
        workers=WORKERS,
        addresses=place.addresses,
    )
    monkeypatch.setattr(key_upload, "PART_BYTES", 1 << 19)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        uploaded = service.store.get(str(session._identifier))
        assert len(uploaded.parts) > 4
        make_cold(service, uploaded)
        yield service, session, uploaded
    service.close()


def make_cold(service: Service, uploaded: UploadedKeys) -> None:
    WORKERS.forget(uploaded.identifier)
    assert service.store.fetch_again(uploaded)


def brought(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str, meanwhile: Callable[[], object]
) -> list[str]:
    """Call something before an object is brought; returns the names of those that are."""
    objects: Any = service.store.objects
    bring, ranges = objects._copies._bring, []

    def other(each: str, file: BinaryIO) -> int:
        if each == name:
            meanwhile()
        ranges.append(each)
        return int(bring(each, file))

    monkeypatch.setattr(objects._copies, "_bring", other)
    return ranges


def test_an_evaluation_begins_before_its_keys_are_fetched(
    full: Model, tmp_path: Path, sample: Sample
) -> None:
    """Steps are done with the first keys while the part that is used last is held back."""
    secret = kw.SecretKey.generate(full.parameters, bytes(range(32)))
    path = tmp_path / "keys.kw"
    kw.KeyGenerator(secret).save_evaluation_keys(path, full.specs)
    data, count = path.read_bytes(), 32
    size = -(-len(data) // count)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    order = order_of_parts(range(0, len(data), size), full.key_places)
    held_back, stepped = order[-1], threading.Event()

    def bring(name: str, file: BinaryIO) -> int:
        if int(name) == held_back:
            stepped.wait()
        return file.write(pieces[int(name)])

    encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
    (row,) = full.manifest.input.places.pack(sample[np.newaxis])
    level = full.manifest.input.level
    inputs = [encryptor.encrypt(row, slots=full.program.slots, level=level)]
    copies = Copies(tmp_path / "copies", 1 << 30, bring)
    taken: list[int] = []
    with copies.hold([str(number) for number in range(count)], lambda: list(map(len, pieces)), order) as copy:
        entry = {
            "path": str(copy.incoming.path),
            "digest": digest_of(path),
            "incoming": copy.incoming.to_json(),
        }
        loading = KeyLoading(entry, ServedModel(full), lambda descriptor, _: taken.append(os.dup(descriptor)))
        results = full.runner().run(full.execution.follow(loading.keys), inputs, on_step=stepped.set)
        loading.wait()
    whole = EvaluationKeys.load(path, full.parameters)
    expected = full.runner().run(full.execution.follow(whole), inputs)
    assert [each.to_bytes() for each in results] == [each.to_bytes() for each in expected]
    with os.fdopen(taken[0], "rb"):
        kept = EvaluationKeys.open_shared(taken[0], full.parameters)
        again = full.runner().run(full.execution.follow(kept), inputs)
    assert [each.to_bytes() for each in again] == [each.to_bytes() for each in expected]
    copies.close()


@SERVERS
def test_a_cold_set_of_object_storage_is_streamed_and_kept(
    thin: Model,
    served: tuple[Service, Session, UploadedKeys],
    sample: Sample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, session, uploaded = served
    orders: list[dict[str, Any]] = []
    write = Worker._write

    def note(worker: Worker, order: Any, bodies: Sequence[bytes] = ()) -> None:
        orders.append(order)
        write(worker, order, bodies)

    monkeypatch.setattr(Worker, "_write", note)
    ranges = brought(service, monkeypatch, "", lambda: None)
    for _ in range(2):
        assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
    cold, warm = [order for order in orders if order["do"] == "evaluate"]
    assert cold["incoming"]["ends"][-1] == thin.manifest.keys.size
    assert not cold["shared"]
    assert warm["shared"]
    assert "incoming" not in warm
    assert sorted(ranges) == sorted(uploaded.names)


@SERVERS
def test_storage_that_fails_once_loses_nothing(
    thin: Model,
    served: tuple[Service, Session, UploadedKeys],
    sample: Sample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, session, uploaded = served
    failures: list[int] = []

    def fail_once() -> None:
        if not failures:
            failures.append(1)
            raise OSError("the object storage: away")

    ranges = brought(service, monkeypatch, uploaded.names[2], fail_once)
    assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
    assert failures == [1]
    assert ranges.count(uploaded.names[2]) == 1
    assert session._identifier == uploaded.identifier


@SERVERS
@pytest.mark.parametrize("damage", ["copy", "object", "missing"])
def test_damaged_bytes_never_give_an_answer(
    damage: str,
    thin: Model,
    served: tuple[Service, Session, UploadedKeys],
    sample: Sample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, session, uploaded = served
    name = uploaded.names[2]
    objects: Any = service.store.objects
    if damage == "missing":
        objects.delete([name])
    elif damage == "object":
        data = bytearray(objects.read(name))
        data[len(data) // 2] ^= 1
        objects.put(name, bytes(data))
    else:
        bring = objects._copies._bring
        count: list[int] = []

        def wrong_once(each: str, file: BinaryIO) -> int:
            if each != name or count:
                return int(bring(each, file))
            count.append(1)
            return file.write(bytes(uploaded.parts[sorted(uploaded.parts)[2]]))

        monkeypatch.setattr(objects._copies, "_bring", wrong_once)
    assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
    # A damaged copy is fetched again. A damaged set is asked for again.
    assert (session._identifier == uploaded.identifier) == (damage == "copy")
