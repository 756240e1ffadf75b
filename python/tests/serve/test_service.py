"""Models, manifests, key sets and evaluations, without HTTP."""

from __future__ import annotations

import base64
import errno
import gc
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import nn
from keywright._core import HEAD_BYTES
from keywright.nn.run.checking import run_clear
from keywright.serve import Manifest, Model, ModelRunner, Service, framing, upload_store
from keywright.serve.errors import (
    BadRequestError,
    BusyError,
    InvalidObjectError,
    KeysIncompleteError,
    ManifestError,
    ModelFolderError,
    OtherModelError,
    SecretRefusedError,
    ServeError,
    StateFolderError,
    TooLargeError,
    UnknownJobError,
    UnknownKeysError,
    WrongOffsetError,
)
from keywright.serve.jobs import Job, Worker
from keywright.serve.model import ANSWER_GROWTH, FRACTION_BITS
from keywright.serve.upload_store import SecretScanner, UploadedKeys, UploadStore
from onnx import helper
from tests.serve.network import make_full, network

Sample = np.ndarray[Any, np.dtype[np.float64]]


def receive(store: UploadStore, uploaded: UploadedKeys, offset: int, length: int, data: bytes) -> None:
    """A piece of so many bytes, of which these come."""
    piece = store.begin(uploaded, offset, length)
    try:
        for start in range(0, len(data), 1 << 20):
            piece.append(data[start : start + (1 << 20)])
        piece.finish()
    finally:
        piece.close()


@pytest.mark.parametrize("kind", ["thin", "full"])
def test_what_comes_back_is_what_the_network_gives_in_clear(
    kind: str, sample: Sample, request: pytest.FixtureRequest
) -> None:
    model: Model = request.getfixturevalue(kind)
    manifest = model.manifest
    secret = kw.SecretKey.generate(model.parameters, bytes(32))
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=model.specs, relinearization=False)
    decryptor = kw.Decryptor(secret)
    packed = manifest.input.pack(sample[None])[0]
    runner = ModelRunner(model)
    client, one = None, 1
    if model.client is None:
        uploads = [decryptor.encrypt(packed, manifest.input.size, manifest.input_level).to_bytes()]
    else:
        # Every form that a thin client sends.
        client = kw.Client.from_secret_bytes(secret.to_bytes(), model.client)
        sender = kw.ClientEncryptor(client.public_key(), model.client)
        one = 2**model.client.fraction_bits
        numbers = np.rint(packed * one).astype(np.int64)
        uploads = [client.encrypt(numbers), client.encrypt(numbers, dropped=1)]
        uploads += [sender.encrypt(numbers), sender.encrypt(numbers, dropped=(2, 1))]
        assert sorted(map(len, uploads)) == [len(uploads[i]) for i in (1, 0, 3, 2)]
    for data in uploads:
        steps: list[int] = []

        def step(steps: list[int] = steps) -> None:
            steps.append(1)

        (result,) = runner.run(keys, [model.read_input(data)], step)
        assert len(steps) == model.steps
        answer = model.write_output(result)
        if client is None:
            found = decryptor.decrypt(kw.Ciphertext.from_bytes(answer, model.parameters))
        else:
            found = client.decrypt(answer) / one
            assert len(answer) < len(result.to_bytes())
        values = manifest.output.unpack(found[None], 1)[0] * manifest.factor
        error = np.abs(values - run_clear(model.program, sample)).max()
        bound = result.error_bound * manifest.factor
        if model.client is not None:
            # Numbers are rounded to units; the network, of rows of norm 1 and squares, doubles its input.
            bound = bound * ANSWER_GROWTH + (1 + manifest.factor / 2) / 2**FRACTION_BITS
        assert error <= bound < 1e-3


def test_places_are_slots(thin: Model) -> None:
    values = np.arange(1, 17, dtype=np.float64)
    places = thin.manifest.input
    assert thin.client is not None
    assert places.size == thin.program.slots == thin.client.capacity
    assert places.pack(values[None])[0].tolist() == thin.program.input_layout.pack(values)[0].tolist()
    assert places.unpack(places.pack(values[None]), 1).tolist() == [values.tolist()]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_places_of_several_samples_are_slots(count: int) -> None:
    model = make_full(batch=4)
    values = np.random.default_rng(1).normal(size=(count, 16))
    places = model.manifest.input
    assert places.batch == model.manifest.output.batch == 4
    packed = places.pack(values)
    assert packed.tolist() == model.program.pack(values).tolist()
    assert places.unpack(packed, count).tolist() == values.tolist()


def test_a_folder_is_the_model_that_was_saved(thin: Model, full: Model, tmp_path: Path) -> None:
    for model in (thin, full):
        folder = tmp_path / model.name
        folder.mkdir()
        model.save(folder)
        loaded = Model.load(folder)
        assert loaded.manifest.hash == model.manifest.hash
        assert loaded.execution.plan == model.execution.plan
        # A folder of an earlier release has none: it is planned again.
        (folder / "plan.json").unlink()
        assert Model.load(folder).manifest.hash == model.manifest.hash
        description = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(description | {"name": "other"}))
        assert Model.load(folder).manifest.hash != model.manifest.hash


def test_the_plan_of_another_model_is_refused(thin: Model, full: Model, tmp_path: Path) -> None:
    for model in (thin, full):
        (tmp_path / model.name).mkdir()
        model.save(tmp_path / model.name)
    (tmp_path / thin.name / "plan.json").replace(tmp_path / full.name / "plan.json")
    with pytest.raises(kw.PlanMismatchError):
        _ = Model.load(tmp_path / full.name).specs


def test_folders_that_are_no_models_are_refused(thin: Model, full: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"parameters\.kw"):
        Model.load(tmp_path)
    thin.save(tmp_path)
    description = json.loads((tmp_path / "model.json").read_text())
    for entry in (
        {"version": 4},
        {"entry": {"slots_to_coeffs": 2}},
        {"entry": {"preset": kw.bootstrap_presets()[0]}},
        {"labels": ["one"]},
        {"entry": 3},
    ):
        (tmp_path / "model.json").write_text(json.dumps(description | entry))
        with pytest.raises(ModelFolderError):
            Model.load(tmp_path)
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(ModelFolderError, match="description"):
        Model.load(tmp_path)
    with pytest.raises(ModelFolderError, match="level"):
        Model("x", full.program, thin.parameters, (), thin.entry)


def test_a_manifest_tells_clients_what_the_model_does_behind_its_outputs() -> None:
    model = network()
    model.graph.node[-1].output[0] = "scores"
    model.graph.node.append(helper.make_node("Softmax", ["scores"], ["y"], axis=-1))
    parameters = make_full().parameters
    program = nn.compile(model, nn.Target(slots=parameters.max_slots, levels=3))
    data = Model("labelled", program, parameters).manifest.encoded
    read, outputs = Manifest.read(data), np.asarray([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, -1.0]])
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(read.answers(outputs)["y"], shares, atol=2**-20)
    with pytest.raises(ManifestError, match="outputs have shape"):
        read.answers(outputs[0])
    entry = json.loads(data)
    part = entry["client_part"]
    for change in ({"shape": [1, 5]}, {"shape": [1, -4]}, {"model": "AAAA"}, {"model": 5}):
        with pytest.raises(ManifestError, match="client's part"):
            Manifest.read(json.dumps(entry | {"client_part": part | change}).encode())


def test_a_manifest_survives_its_bytes_and_nothing_else_does(thin: Model) -> None:
    data = thin.manifest.encoded
    assert Manifest.read(data) == thin.manifest
    entry = json.loads(data)
    other = kw.ClientParameters(make_full().parameters, scale=1 << 20, fraction_bits=10)
    changes: list[dict[str, Any]] = [
        {"format": "x"},
        {"version": 1},
        {"packing": "bits"},
        {"client": "AAAA"},
        {"client": ""},
        {"client": entry["client"][:-8]},
        {"client": base64.b64encode(other.to_bytes()).decode()},
        {"parameters": "AAAA"},
        {"parameters": 3},
        {"key_bytes": -1},
        {"key_bytes": 1.5},
        {"scale": "-1"},
        {"scale": 2.0},
        {"factor": 0.0},
        {"divisor": 0.0},
        {"divisor": 3.0},
        {"divisor": 0.5},
        {"input_range": None},
        {"input_range": [0.0]},
        {"input_range": [0, 1]},
        {"input_range": [1.0, 1.0]},
        {"input_range": [-1.0, 1.5]},
        {"input_range": [-1.0, float("inf")]},
        {"factor": float("1e999")},
        {"labels": 3},
        {"labels": [3]},
        {"input": []},
        {"input": entry["input"] | {"start": [0]}},
        {"input": entry["input"] | {"size": 1 << 17}},
        {"input": entry["input"] | {"repeat": 1 << 16}},
        {"input": entry["input"] | {"shape": [1 << 23, 1 << 23]}},
        {"output": entry["output"] | {"start": [-1] * 4}},
        {"output": entry["output"] | {"start": [1 << 10] * 4}},
        {"input_level": 99},
        {"modulus": "5"},
        {"name": "x" * 201},
    ]
    for change in changes:
        with pytest.raises(ManifestError):
            Manifest.read(json.dumps(entry | change).encode())
    for garbage in (b"", b"\xff", b"[]", b"{}", b"[" * 100_000, data[:-1], data + b" "):
        with pytest.raises(ManifestError):
            Manifest.read(garbage)


def test_an_upload_in_pieces_is_resumed_by_another_process(
    thin: Model, key_file: Path, tmp_path: Path
) -> None:
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin)
    assert len(data) == thin.manifest.key_bytes
    made = store.create()
    receive(store, made, 0, 1000, data[:1000])
    # The connection breaks: what has come is kept.
    receive(store, made, 1000, 5000, data[1000:3000])
    assert made.received == 3000
    with pytest.raises(KeysIncompleteError) as incomplete:
        store.keys(made)
    assert (incomplete.value.received, incomplete.value.expected) == (3000, len(data))
    for offset in (0, 2999, 3001):
        with pytest.raises(WrongOffsetError) as wrong:
            receive(store, made, offset, 1, b"x")
        assert wrong.value.received == 3000

    store.close()
    after = UploadStore(tmp_path, thin)
    found = after.get(made.identifier)
    assert found.received == 3000
    receive(after, found, 3000, len(data) - 3000, data[3000:])
    assert found.ready
    assert list(after.keys(found)) == list(kw.EvaluationKeys.load(key_file, thin.parameters))

    after.close()
    again = UploadStore(tmp_path, thin)
    assert again.get(made.identifier).ready
    assert len(again.keys(again.get(made.identifier))) == len(thin.specs)
    again.delete(again.get(made.identifier))
    with pytest.raises(UnknownKeysError):
        again.get(made.identifier)
    assert folders(tmp_path) == []


def test_a_process_that_ends_while_it_checks_asks_for_the_last_byte_again(
    thin: Model, key_file: Path, tmp_path: Path
) -> None:
    data = key_file.read_bytes()
    before = UploadStore(tmp_path, thin)
    made = before.create()
    before.close()
    (made.folder / "keys.part").write_bytes(data)
    after = UploadStore(tmp_path, thin)
    found = after.get(made.identifier)
    assert (found.received, found.ready) == (len(data) - 1, False)
    receive(after, found, len(data) - 1, 1, data[-1:])
    assert found.ready
    after.close()
    # Whoever is asked afterwards still knows what is here.
    service = Service(thin, tmp_path)
    seen = service.seen(made.identifier)["objects"]
    assert isinstance(seen, list)
    assert [(sight["what"], sight["size"]) for sight in seen] == [("a set of switching keys", len(data))]
    service.close()


def test_a_disk_that_is_full_loses_nothing_that_was_kept(
    thin: Model, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin)
    made = store.create()
    receive(store, made, 0, 5000, data[:5000])
    piece = store.begin(made, 5000, len(data) - 5000)
    piece.append(data[5000:20_000])

    def full(path: Path, *arguments: object, **named: object) -> object:
        # As if what was written last never came to be on the disk.
        os.truncate(path, 9000)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(OSError, match="No space"):
            piece.append(data[20_000:])
    piece.close()
    assert made.received == 9000
    receive(store, made, made.received, len(data) - made.received, data[made.received :])
    assert made.ready


def test_evaluations_that_wait_are_dropped_at_the_end() -> None:
    worker, begun, go = Worker(), threading.Event(), threading.Event()

    def slow(job: Job) -> list[bytes]:
        begun.set()
        go.wait(20)
        return [b"x"]

    first = worker.submit("a", 1, slow)
    assert begun.wait(20)
    rest = [worker.submit("a", 1, slow) for _ in range(8)]
    with pytest.raises(BusyError, match="8 evaluations"):
        worker.submit("a", 1, slow)
    threading.Timer(0.1, go.set).start()
    worker.close()
    assert first.state == "done"
    assert {job.state for job in rest} == {"waiting"}


def ended(worker: Worker, job: Job) -> Job:
    """A job after it has been done."""
    for _ in range(2000):
        if job.state in ("done", "failed"):
            return job
        time.sleep(0.01)
    raise AssertionError(job.state)


def test_nothing_that_is_raised_ends_the_worker() -> None:
    def broken(job: Job) -> list[bytes]:
        raise ZeroDivisionError("something nobody thought of")

    def refused(job: Job) -> list[bytes]:
        raise UnknownKeysError("gone")

    def watch(job: Job) -> None:
        seen.append(job)
        raise AssertionError("whoever watches fails, too")

    seen: list[Job] = []
    worker = Worker(on_end=watch)
    failed = ended(worker, worker.submit("a", 1, broken))
    assert failed.unforeseen is not None
    assert "something nobody thought of" in failed.unforeseen
    with pytest.raises(ServeError, match="nobody foresaw") as error:
        worker.result(failed.identifier)
    assert "thought of" not in str(error.value)
    with pytest.raises(UnknownKeysError, match="gone"):
        worker.result(ended(worker, worker.submit("a", 1, refused)).identifier)
    done = ended(worker, worker.submit("a", 1, lambda job: [b"x"]))
    assert worker.result(done.identifier) == [b"x"]
    worker.close()
    assert [job.state for job in seen] == ["failed", "failed", "done"]


@pytest.mark.parametrize("fails", [None, UnknownKeysError, MemoryError, ZeroDivisionError])
def test_jobs_that_ended_keep_no_inputs(fails: type[Exception] | None) -> None:
    class Inputs:
        """Something that can be watched."""

    def make() -> tuple[Callable[[Job], list[bytes]], weakref.ref[Inputs]]:
        inputs = Inputs()

        def work(job: Job) -> list[bytes]:
            held = inputs
            if fails is not None:
                raise fails(f"{type(held).__name__} cannot be used")
            return [b"x"]

        return work, weakref.ref(inputs)

    worker = Worker()
    work, watched = make()
    job = worker.submit("a", 1, work)
    del work
    ended(worker, job)
    worker.close()
    gc.collect()
    assert worker.get(job.identifier) is job
    assert watched() is None


def test_only_the_jobs_of_one_client_are_dropped() -> None:
    worker, begun, go = Worker(), threading.Event(), threading.Event()

    def slow(job: Job) -> list[bytes]:
        begun.set()
        go.wait(20)
        return [b"late"]

    before = [ended(worker, worker.submit(owner, 1, lambda job: [b"x"])) for owner in "ab"]
    running = worker.submit("a", 1, slow)
    assert begun.wait(20)
    waiting = [worker.submit(owner, 1, lambda job: [b"y"]) for owner in "ab"]
    worker.forget("a")
    for job in (before[0], running, waiting[0]):
        with pytest.raises(UnknownJobError):
            worker.result(job.identifier)
    assert worker.result(before[1].identifier) == [b"x"]
    go.set()
    assert worker.result(ended(worker, waiting[1]).identifier) == [b"y"]
    worker.close()
    # Neither the answer of the one that ran, nor the work of the one that waited.
    for job in (running, waiting[0]):
        with pytest.raises(UnknownJobError):
            worker.get(job.identifier)
    assert waiting[0].state == "waiting"


def folders(state: Path) -> list[Path]:
    """What a folder of state holds beside its owner and its lock."""
    return sorted(path for path in state.iterdir() if path.name not in ("owner.json", "lock"))


def test_a_folder_of_state_is_of_one_model(thin: Model, full: Model, tmp_path: Path) -> None:
    store = UploadStore(tmp_path, thin)
    made = store.create()
    store.close()
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    with pytest.raises(StateFolderError, match=thin.manifest.hash):
        Service(full, tmp_path)
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before
    after = UploadStore(tmp_path, thin)
    assert after.get(made.identifier).received == 0
    after.close()
    for owner in (b"", b"{", b"[]", b'{"format": "other"}', b"[" * 4000, bytes(5000)):
        (tmp_path / "owner.json").write_bytes(owner)
        with pytest.raises(StateFolderError, match="whose state"):
            UploadStore(tmp_path, thin)


def test_a_folder_of_state_is_served_by_one_process(thin: Model, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from keywright.serve.state_folder import StateFolder;"
        "folder = StateFolder(Path(sys.argv[1]), sys.argv[2]); print('held', flush=True); sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path), thin.manifest.hash]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StateFolderError, match="another process"):
            UploadStore(tmp_path, thin)
        # However it ends.
        other.kill()
        other.wait()
    store = UploadStore(tmp_path, thin)
    with pytest.raises(StateFolderError, match="another process"):
        UploadStore(tmp_path, thin)
    store.close()


def test_whatever_is_no_set_of_the_model_stays(thin: Model, full: Model, tmp_path: Path) -> None:
    """Sets of another model, files and folders of somebody else; what a process left half made goes."""
    foreign = tmp_path / ("a" * 32)
    foreign.mkdir(parents=True)
    (foreign / "set.json").write_text(json.dumps({"model": full.manifest.hash}))
    (foreign / "keys.part").write_bytes(b"x")
    other = tmp_path / ("b" * 32)
    other.mkdir()
    (other / "letter.txt").write_text("kept")
    unreadable = tmp_path / ("c" * 32)
    unreadable.mkdir()
    (unreadable / "set.json").write_text("kept")
    (tmp_path / "notes.txt").write_text("kept")
    begun, too_long = tmp_path / ("d" * 32), tmp_path / ("e" * 32)
    begun.mkdir()
    too_long.mkdir()
    (too_long / "set.json").write_text(json.dumps({"model": thin.manifest.hash}))
    (too_long / "keys.part").write_bytes(bytes(thin.manifest.key_bytes + 1))
    store = UploadStore(tmp_path, thin)
    assert len(store) == 0
    store.close()
    assert folders(tmp_path) == [foreign, other, unreadable, tmp_path / "notes.txt"]


def test_a_step_of_the_clock_deletes_nothing(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = UploadStore(tmp_path, thin, expiry=3600)
    made = store.create()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert store.expire() == []
    store.close()
    os.utime(made.folder, (now - 7200, now - 7200))
    after = UploadStore(tmp_path, thin, expiry=3600)
    assert after.expire() == []
    after.get(made.identifier).used -= 3601
    assert after.expire() == [made.identifier]
    after.close()


def test_keys_that_are_not_the_models_are_refused(thin: Model, key_file: Path, tmp_path: Path) -> None:
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin)
    fewer = kw.key_set_head(thin.specs[1:])
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    for wrong in (fewer, bytes(100), bytes(damaged)):
        made = store.create()
        with pytest.raises(InvalidObjectError):
            receive(store, made, 0, len(wrong), wrong)
        with pytest.raises(UnknownKeysError):
            store.get(made.identifier)
    made = store.create()
    with pytest.raises(TooLargeError) as large:
        receive(store, made, 0, len(data) + 1, data)
    assert large.value.maximum == len(data)
    assert made.received == 0


def test_anything_that_looks_like_a_secret_key_is_refused(
    thin: Model, service: Service, key_file: Path, tmp_path: Path
) -> None:
    secret = kw.SecretKey.generate(thin.parameters).to_bytes()
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin)
    start = data[:50_000]
    # Wherever it begins, and wherever the pieces are cut.
    for cut in range(1, HEAD_BYTES):
        made = store.create()
        receive(store, made, 0, len(start) + cut, start + secret[:cut])
        with pytest.raises(SecretRefusedError, match="make a new one"):
            receive(store, made, made.received, len(secret) - cut, secret[cut:])
        assert not made.folder.exists()
    scanner = SecretScanner()
    scanner.look(data)
    with pytest.raises(SecretRefusedError):
        service.submit(upload(service, data), framing.join([b"x" * 77 + secret]))


def upload(service: Service, data: bytes) -> str:
    made = service.create_keys({"model": service.model.manifest.hash})
    identifier = str(made["keys"])
    receive(service.store, service.store.get(identifier), 0, len(data), data)
    service._saw_keys(service.store.get(identifier))
    return identifier


def test_there_is_room_for_so_many_key_sets(thin: Model, key_file: Path, tmp_path: Path) -> None:
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin, capacity=2, expiry=3600)
    first, second, third = (store.create() for _ in range(3))
    for made in (first, second):
        receive(store, made, 0, 1000, data[:1000])
    with pytest.raises(BusyError, match="2 key sets"):
        store.begin(third, 0, 1000)
    # Those that have begun go on.
    receive(store, second, 1000, 10, data[1000:1010])
    first.used -= 3601
    receive(store, third, 0, 1000, data[:1000])
    with pytest.raises(UnknownKeysError):
        store.get(first.identifier)
    # One that hardly moves makes room.
    fourth = store.create()
    second.moved -= upload_store.STALLED_S + 1
    receive(store, second, 1010, 10, data[1010:1020])
    receive(store, fourth, 0, 1000, data[:1000])
    with pytest.raises(UnknownKeysError):
        store.get(second.identifier)
    # One that is being received is in use, and so is one whose evaluation is asked for.
    third.used = fourth.used = fourth.used - 3601
    with third.lock:
        assert store.expire() == [fourth.identifier]
    third.used -= 3601
    store.touch(third.identifier)
    assert store.expire() == []
    third.used -= 3601
    assert store.expire() == [third.identifier]
    assert not third.folder.exists()


def test_uploads_without_a_byte_keep_nobody_out(
    thin: Model, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_store, "MAX_EMPTY", 16)
    data, store = key_file.read_bytes(), UploadStore(tmp_path, thin, capacity=2)
    made = store.create()
    receive(store, made, 0, 10, data[:10])
    many = [store.create() for _ in range(40)]
    assert len(store) == 17
    for gone in many[:24]:
        assert not gone.folder.exists()
    receive(store, made, 10, len(data) - 10, data[10:])
    assert made.ready
    receive(store, many[-1], 0, len(data), data)
    assert many[-1].ready


def test_keys_that_nobody_uses_are_deleted_with_all_of_their_owner(
    thin: Model, key_file: Path, tmp_path: Path
) -> None:
    events: list[str] = []
    service = Service(thin, tmp_path, expiry=3600, on_event=events.append)
    identifier = upload(service, key_file.read_bytes())
    service.expire()
    assert service.seen(identifier)["objects"]
    service.store.get(identifier).used -= 3601
    service.expire()
    assert folders(tmp_path) == []
    assert events[-1] == "keys that were not used any more are deleted"
    for ask in (service.seen, service.keys):
        with pytest.raises(UnknownKeysError):
            ask(identifier)
    service.close()


@pytest.mark.parametrize("how", ["deleted", "expired"])
def test_nothing_of_a_client_is_kept_after_its_keys_are_gone(
    how: str, thin: Model, sample: Sample, tmp_path: Path
) -> None:
    """Its jobs, their answers, its keys on disk and in memory; those of another client stay."""
    service = Service(thin, tmp_path / "state")
    assert thin.client is not None
    made = []
    for seed in range(2):
        secret = kw.SecretKey.generate(thin.parameters, bytes([seed] * 32))
        kw.KeyGenerator(secret).save_evaluation_keys(tmp_path / "keys.kw", thin.specs)
        identifier = upload(service, (tmp_path / "keys.kw").read_bytes())
        client = kw.Client.from_secret_bytes(secret.to_bytes(), thin.client)
        numbers = np.rint(thin.manifest.input.pack(sample[None])[0] * 2**thin.client.fraction_bits)
        message = framing.join([client.encrypt(numbers.astype(np.int64))])
        jobs = [str(service.submit(identifier, message)["job"]) for _ in range(2)]
        for job in jobs:
            while service.job(job)["state"] in ("waiting", "running"):
                time.sleep(0.01)
            assert len(service.result(job)) > 100
        made.append((identifier, service.store.get(identifier), jobs))
    (gone, uploaded, jobs), (stays, other, others) = made
    if how == "deleted":
        service.delete_keys(gone)
    else:
        uploaded.used -= 3601
        service.expire()
    for job in jobs:
        for ask in (service.job, service.result):
            with pytest.raises(UnknownJobError):
                ask(job)
    with pytest.raises(UnknownKeysError):
        service.seen(gone)
    # Whoever still holds the set gets no keys from memory.
    with pytest.raises(UnknownKeysError):
        service.store.keys(uploaded)
    assert folders(tmp_path / "state") == [other.folder]
    assert all(len(service.result(job)) > 100 for job in others)
    assert len(service.store.keys(other)) == len(thin.specs)
    assert service.seen(stays)["objects"]
    service.close()


def test_requests_that_make_no_sense_are_refused(service: Service, key_file: Path, full: Model) -> None:
    for request in ({}, {"model": 3}, {"model": service.model.manifest.hash, "secret": "x"}):
        with pytest.raises(BadRequestError):
            service.create_keys(request)
    with pytest.raises(OtherModelError) as other:
        service.create_keys({"model": full.manifest.hash})
    assert (other.value.found, other.value.expected) == (full.manifest.hash, service.model.manifest.hash)
    identifier = upload(service, key_file.read_bytes())
    for message in (b"", b"\0\0\0", framing.join([]), framing.join([b"x", b"y"]), b"\xff\xff\xff\xffx"):
        with pytest.raises(BadRequestError):
            service.submit(identifier, message)
    secret = kw.SecretKey.generate(service.model.parameters)
    ours, theirs = kw.Decryptor(secret), kw.Decryptor(kw.SecretKey.generate(full.parameters))
    assert service.model.client is not None
    foreign = kw.ClientParameters(
        service.model.parameters, scale=service.model.client.scale, fraction_bits=20, slots=8, values="real"
    )
    compact = kw.Client.from_secret_bytes(secret.to_bytes(), foreign).encrypt([1, 2, 3], dropped=0)
    objects = [
        b"x",
        compact,
        compact[:-1],
        ours.encrypt_coefficients([0.5], 0).to_bytes()[:-1],
        ours.encrypt_coefficients([0.5], 1).to_bytes(),
        ours.encrypt([0.5], 512, 0).to_bytes(),
        theirs.encrypt_coefficients([0.5], 0).to_bytes(),
        kw.KeyGenerator(secret).public_key().to_bytes(),
    ]
    for data in objects:
        with pytest.raises(InvalidObjectError):
            service.submit(identifier, framing.join([data]))
    with pytest.raises(UnknownKeysError):
        service.submit("0" * 32, framing.join([b"x"]))
