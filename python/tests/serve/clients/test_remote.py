"""A client and a server in one test: results, and servers that misbehave."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.client import RemoteModel, key_upload
from keywright.client import exchange as exchange_module
from keywright.client.key_upload import PART_BYTES
from keywright.client.remote import PROGRESS
from keywright.errors import MissingKeyError, OutOfRangeError, ServeError, WorkerEndedError
from keywright.errors.engine import FormatError
from keywright.errors.model import FolderError
from keywright.errors.service import (
    BadRequestError,
    BusyError,
    OtherModelError,
    RetiredError,
    UnknownJobError,
    UnreachableError,
)
from keywright.model import Model
from keywright.model.exchange.interface import FRACTION_BITS
from keywright.model.served import framing
from keywright.model.served.manifest import MAX_BYTES, Manifest
from keywright.runtime import run_clear, simulate
from keywright.serve import Server, Service
from keywright.serve.http.app import MAX_PART
from keywright.serve.workers.workers import Worker
from onnx import helper
from tests.serve.clients.test_server_answers import answering
from tests.serve.network import INPUTS, WORKERS, listening, make_full, make_thin, network
from tests.serve.storage.storage_servers import Place

Sample = np.ndarray[Any, np.dtype[np.float64]]
BROWSER = Path(__file__).parents[4] / "web" / "client" / "src"


def browser_bytes(file: str, name: str) -> int:
    """Return a size that the browser client states."""
    stated = re.search(rf"\bconst {name} = (\d+) << (\d+);", (BROWSER / file).read_text(encoding="utf-8"))
    assert stated is not None, (file, name)
    return int(stated[1]) << int(stated[2])


def test_no_client_sends_longer_pieces_than_the_server_takes() -> None:
    assert PART_BYTES <= MAX_PART
    assert browser_bytes("server.ts", "PIECE") <= MAX_PART


def test_all_clients_read_equally_long_manifests() -> None:
    assert (
        browser_bytes("worker.ts", "MAX_MANIFEST") == browser_bytes("manifest.ts", "MAX_BYTES") == MAX_BYTES
    )


def test_a_thin_client_gets_the_answer_and_the_server_nothing(
    server: Server, thin: Model, sample: Sample
) -> None:
    steps: list[tuple[int, int]] = []
    with RemoteModel(server.url, thin.manifest.hash, insecure=True).session() as session:
        session.upload_keys(lambda done, total: steps.append((done, total)))
        assert steps[-1] == (session.manifest.keys.size, session.manifest.keys.size)
        values = session.infer(sample)
        seen = session.seen()
    assert np.abs(values - run_clear(thin.program, sample)).max() < 1e-3
    assert seen["secret_keys"] == 0
    assert [sight["what"] for sight in seen["objects"]] == [  # type: ignore[attr-defined]
        "a set of switching keys",
        "a compact CKKS ciphertext",
        "a compact CKKS ciphertext",
    ]
    # What a thin client sends is a header, a seed and the coefficients of its numbers modulo one prime.
    q, slots = session.parameters.q[0], session.manifest.input.places.size
    assert seen["objects"][1]["size"] - slots * q.bit_length() // 8 < 256  # type: ignore[index]
    with pytest.raises(ServeError, match="identifier"):
        session.seen()


def test_errors_of_thin_clients_are_predicted(server: Server, thin: Model) -> None:
    """Their ciphertexts enter through a bootstrap, and answers are multiples of 2^-24."""
    model = thin
    samples = np.random.default_rng(8).uniform(-1, 1, (4, INPUTS))
    with RemoteModel(server.url, model.manifest.hash, insecure=True).session() as session:
        session.upload_keys()
        values = np.asarray([session.infer(sample) for sample in samples])
    errors = np.abs(values - run_clear(model.program, samples))
    predicted = simulate(
        model.program, model.execution, samples, entry=model.entry_index, step=2.0**-FRACTION_BITS
    )
    assert predicted.mean_error / 4 <= errors.mean() <= predicted.mean_error * 4
    assert errors.max() <= predicted.worst_error * 4
    alone = simulate(model.program, model.execution, samples)
    assert alone.worst_error < predicted.worst_error / 4


def test_a_full_client_sends_slots(tmp_path: Path, sample: Sample) -> None:
    model = make_full()
    service = Service(model, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        values = session.infer(sample)
        assert np.abs(values - run_clear(model.program, sample)).max() < 1e-6
    service.close()


@pytest.mark.parametrize("make", [make_thin, make_full])
def test_samples_of_a_client_share_ciphertexts(tmp_path: Path, make: Callable[..., Model]) -> None:
    model = make(batch=4)
    service = Service(model, tmp_path, workers=WORKERS)
    samples = np.random.default_rng(5).uniform(-1, 1, (7, INPUTS))
    steps: list[tuple[int, int]] = []
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        assert session.manifest.input.places.batch == 4
        session.upload_keys()
        values = session.infer(samples, lambda done, total: steps.append((done, total)))
        # The keys, and for each of two jobs the message and the answer.
        assert len(session.seen()["objects"]) == 5  # type: ignore[arg-type]
        alone = session.infer(samples[6])
        for wrong in (samples[:0], samples[:, :15], samples[0, :15], samples[None]):
            with pytest.raises(BadRequestError, match="samples of shape"):
                session.infer(wrong)
    service.close()
    expected = run_clear(model.program, samples)
    assert values.shape == expected.shape
    assert np.abs(values - expected).max() < 1e-3
    assert np.abs(alone - expected[6]).max() < 1e-3
    assert steps == sorted(steps)
    assert all(total == 2 * PROGRESS for _, total in steps)


def test_an_upload_resumes_after_an_outage_of_the_server(
    tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_upload, "PART_BYTES", 1 << 18)
    first = Service(make_thin(), tmp_path, workers=WORKERS)
    with listening(first) as server:
        port = server.server_address[1]
        session = RemoteModel(server.url, insecure=True).session()
        with pytest.raises(KeyboardInterrupt):
            session.upload_keys(stop_after(1))
    first.close()
    with pytest.raises(UnreachableError):
        session.upload_keys()
    second = Service(make_thin(), tmp_path, workers=WORKERS)
    with listening(second, port):
        received: list[int] = []
        session.upload_keys(lambda done, total: received.append(done))
        assert received[0] >= 2 << 18
        assert np.isfinite(session.infer(sample)).all()
        session.close()
    second.close()


def test_a_closed_session_leaves_nothing(tmp_path: Path, sample: Sample) -> None:
    """A second folder stayed for ever, with up to 32 GiB of keys; now none is made."""
    service = Service(make_thin(), tmp_path, workers=WORKERS)
    with listening(service) as server:
        session = RemoteModel(server.url, insecure=True).session()
        assert np.isfinite(session.infer(sample)).all()
        assert session._key_file.exists()
        session.close()
        with pytest.raises(MissingKeyError, match="closed"):
            session.infer(sample)
        assert not session._folder.exists()
    service.close()


def test_a_request_is_repeated_after_a_restart(
    tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the request and the poll, and between the poll and the answer."""
    with ExitStack() as stack:
        first = Service(make_thin(), tmp_path, workers=WORKERS)
        running = stack.enter_context(listening(first))
        port = running.server_address[1]
        remote = RemoteModel(running.url, insecure=True)
        session = remote.session()
        session.upload_keys()
        expected = session.infer(sample)
        exchange, services, paths = remote.exchange, [first], list[str]()

        def restart() -> None:
            stack.pop_all().close()
            services.pop().close()
            services.append(Service(make_thin(), tmp_path, workers=WORKERS))
            stack.enter_context(listening(services[0], port))

        def interrupted(method: str, path: str, body: bytes | None = None, **named: Any) -> tuple[int, bytes]:
            paths.append(path)
            if len(paths) == 2 or (path.endswith("/result") and restarts[0] > 1):
                restarts[0] -= 1
                restart()
            return exchange(method, path, body, **named)

        restarts = [3]
        monkeypatch.setattr(remote, "exchange", interrupted)
        # The request does not wait for the answer.
        monkeypatch.setattr(exchange_module, "WAIT_S", 0)
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        assert restarts == [1]
        # Accepted work is evaluated, even without its client.
        assert sum("/jobs?" in path for path in paths) == 1

        def always(method: str, path: str, body: bytes | None = None, **named: Any) -> tuple[int, bytes]:
            if path.startswith("/v1/jobs"):
                raise UnknownJobError("gone")
            return exchange(method, path, body, **named)

        monkeypatch.setattr(remote, "exchange", always)
        with pytest.raises(UnknownJobError):
            session.infer(sample)
        monkeypatch.undo()
        session.close()
        stack.close()
        services[0].close()


def test_an_evaluation_is_repeated_after_its_worker_is_killed(
    thin: Model, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, deaths = Worker.order, [1, 2]

    def deadly(worker: Worker, *arguments: Any, **entry: object) -> Any:
        def kill() -> None:
            if deaths and worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)

        try:
            return order(worker, None, kill if entry["do"] == "evaluate" else None, **entry)
        except WorkerEndedError:
            deaths.pop()
            raise

    events: list[str] = []
    service = Service(thin, tmp_path, on_event=events.append, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        monkeypatch.setattr(Worker, "order", deadly)
        # A worker may have written all of its answer before it is killed.
        values = session.infer(sample)
        for _ in range(100):
            if not deaths:
                break
            values = session.infer(sample)
    service.close()
    assert deaths == []
    assert sum("attempt" in line for line in events) == 2
    assert np.abs(values - run_clear(thin.program, sample)).max() < 1e-3


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b2J", "a\nb", "\u202egnp"])
def test_text_of_a_manifest_is_printable(thin: Model, text: str) -> None:
    entry = json.loads(thin.manifest.encoded)
    for changed in (entry | {"name": text}, entry | {"labels": [text, "b", "c", "d"]}):
        with pytest.raises(FormatError, match="printable", check=lambda error: error.code == "manifest"):
            Manifest.read(json.dumps(changed).encode())
    for named in ({"name": text}, {"labels": (text, "b", "c", "d")}):
        with pytest.raises(FolderError, match="printable", check=lambda error: error.code == "model_folder"):
            replace(thin, **named)


def test_clients_follow_a_model_to_its_next_version(tmp_path: Path, sample: Sample) -> None:
    """It keeps its keys if the model accepts them, and makes new ones otherwise."""
    old, same = make_thin(batch=1), make_thin(batch=1, seed=4)
    full = make_full()
    other = Model(old.name, full.program, full.parameters)
    first = Service(old, tmp_path, workers=WORKERS)
    with listening(first) as server, ExitStack() as stack:
        port = server.server_address[1]
        session = stack.enter_context(RemoteModel(server.url, insecure=True).session())
        pinned = stack.enter_context(RemoteModel(server.url, old.manifest.hash, insecure=True).session())
        for each in (session, pinned):
            assert np.abs(each.infer(sample) - run_clear(old.program, sample)).max() < 1e-3
        identifier = session._identifier
        stack.pop_all()
    first.close()
    second = Service([same, make_full()], tmp_path, workers=WORKERS)
    with listening(second, port) as server:
        assert np.abs(session.infer(sample) - run_clear(same.program, sample)).max() < 1e-3
        assert session._identifier == identifier
        with pytest.raises(RetiredError) as retired:
            pinned.infer(sample)
        assert retired.value.successor == same.manifest.hash
        # The second model, beside the first.
        hashes = [str(entry["model"]) for entry in session.remote.ask("GET", "/v1/models")["models"]]  # type: ignore[attr-defined]
        assert hashes == list(second.catalog.models)
        with RemoteModel(server.url, hashes[1], insecure=True).session() as beside:
            assert np.abs(beside.infer(sample) - run_clear(full.program, sample)).max() < 1e-6
    second.close()
    third = Service(other, tmp_path, workers=WORKERS)
    with listening(third, port) as server:
        # Its inputs are others: samples of the waiting call were not checked against them.
        with pytest.raises(OtherModelError, match="differs in its packing"):
            session.infer(sample)
        session.close()
        with RemoteModel(server.url, insecure=True).session() as anew:
            assert np.abs(anew.infer(sample) - run_clear(full.program, sample)).max() < 1e-6
        pinned.close()
    third.close()


def test_an_abandoned_evaluation_is_dropped(server: Server, service: Service, sample: Sample) -> None:
    with RemoteModel(server.url, insecure=True).session() as session, WORKERS.one():
        session.upload_keys()
        message = framing.join(session._encrypt(sample[None]))
        path = f"/v1/keys/{session._identifier}/jobs"
        job, urgent = (
            session.remote.send("POST", f"{path}{query}", message) for query in ("", "?priority=9")
        )
        for entry in (job, urgent):
            assert session.remote.ask("DELETE", f"/v1/jobs/{entry['job']}") == {"deleted": True}
            with pytest.raises(UnknownJobError):
                session.remote.ask("GET", f"/v1/jobs/{entry['job']}")
        for query in ("?priority=10", "?priority=x", "?priority="):
            with pytest.raises(BadRequestError, match="priority"):
                session.remote.send("POST", f"{path}{query}", message)
        with pytest.raises(OtherModelError):
            session.remote.send("POST", f"{path}?model={'0' * 64}", message)


def test_a_request_is_repeated_after_a_broken_connection(
    server: Server, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, failed = RemoteModel(server.url, insecure=True), set[str]()
    with remote.session() as session:
        session.upload_keys()
        exchange = remote.exchange

        def breaking(method: str, path: str, body: bytes | None = None, **named: Any) -> tuple[int, bytes]:
            answer = exchange(method, path, body, **named)
            if method + path not in failed:
                failed.add(method + path)
                # It came to the server, and its answer did not come back.
                raise UnreachableError("the connection broke")
            return answer

        monkeypatch.setattr(remote, "exchange", breaking)
        monkeypatch.setattr(exchange_module, "WAIT_S", 0)
        assert np.isfinite(session.infer(sample)).all()
        assert len(failed) == 3
        monkeypatch.setattr(exchange_module, "WAIT_S", 1)
        failed.clear()
        assert np.isfinite(session.infer(sample)).all()
        assert len(failed) == 1
        monkeypatch.setattr(remote, "exchange", lambda *given, **named: breaking("GET", "/v1/jobs/0"))
        with pytest.raises(ServeError, match="identifier"):
            session.infer(sample)
        monkeypatch.undo()


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nda", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"]
)
def test_a_dropped_connection_is_not_an_answer(answer: bytes) -> None:
    """Four of six kills during an evaluation were reported as answers that are not HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drop() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=drop)
        thread.start()
        # What `_persist` tries again.
        with pytest.raises(UnreachableError):
            RemoteModel(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


def test_a_truncated_answer_has_its_own_code() -> None:
    with (
        answering(lambda method, path: (200, b"x" * 100, 1000)) as url,
        pytest.raises(UnreachableError, match="100 bytes of 1000") as caught,
    ):
        RemoteModel(url)
    assert caught.value.code == "truncated"


def test_retry_after_of_the_server_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("keywright.client.exchange.time.sleep", slept.append)

    def refusing(times: int, error: ServeError) -> Callable[[], str]:
        left = [times]

        def request() -> str:
            left[0] -= 1
            if left[0] >= 0:
                raise error
            return "done"

        return request

    # Longer than it would be tried without that, and not more often.
    assert exchange_module.persist(refusing(20, BusyError("later", retry_after=7))) == "done"
    assert len(slept) == 20
    assert all(7.0 <= pause <= 7.0 * 1.25 for pause in slept)
    slept.clear()
    # A client does not wait for ever.
    with pytest.raises(BusyError):
        exchange_module.persist(refusing(1, BusyError("later", retry_after=100_000)))
    assert slept == []
    with pytest.raises(BusyError):
        exchange_module.persist(refusing(100, BusyError("later")))
    assert 5 < sum(slept) < 30
    slept.clear()
    assert exchange_module.persist(refusing(5, UnreachableError("gone"))) == "done"
    assert slept == sorted(slept)


def stop_after(calls: int) -> Callable[[int, int], None]:
    left = [calls]

    def progress(done: int, total: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return progress


def test_samples_of_the_wrong_shape_or_size_are_refused(server: Server) -> None:
    session = RemoteModel(server.url, insecure=True).session()
    for values in (np.zeros(15), np.zeros((4, 4)), np.full(16, np.nan)):
        with pytest.raises(BadRequestError):
            session.infer(values)
    with pytest.raises(OutOfRangeError, match=r"from -1 to 1, .*gives 1\.01"):
        session.infer(np.full(16, 1.01))
    session.close()


def test_samples_out_of_range_are_refused_before_keys_are_made(tmp_path: Path, sample: Sample) -> None:
    """By the manifest, or, if the client has it, by the program."""
    source = network()
    source.graph.node[1].CopyFrom(helper.make_node("Tanh", ["h"], ["s"], "squash"))
    typical = np.random.default_rng(5).uniform(-1, 1, (60, INPUTS))
    parameters = kw.Parameters.from_bits(11, [55, *[45] * 5], [50, 50], 45, insecure=True)
    fit = compiler.Fit(calibration=typical, activations={"tanh": "chebyshev:7"})
    program = compiler.compile_program(source, compiler.Target(slots=parameters.max_slots, levels=5), fit)
    service = Service(Model("squash", program, parameters), tmp_path / "state", workers=WORKERS)
    with listening(service) as server:
        stranger, owner = (
            RemoteModel(server.url, insecure=True),
            RemoteModel(server.url, program=program, insecure=True),
        )
        assert stranger.manifest.input.range == program.input.range is not None
        low, high = program.input.range
        assert -2 < low < -1
        assert 1 < high < 2
        for remote in (stranger, owner):
            assert remote.check(typical[0]).shape == (INPUTS,)
        with pytest.raises(OutOfRangeError, match="the model's input takes values"):
            stranger.check(100 * typical)
        with pytest.raises(OutOfRangeError, match="Tanh at 'squash' takes values"):
            owner.check(100 * typical)
        # One large input alone leaves the inputs' range and none of the program's.
        peak = np.zeros(INPUTS)
        peak[0] = 1.5 * high
        with pytest.raises(OutOfRangeError):
            stranger.check(peak)
        assert owner.check(peak).max() > high
        for remote in (stranger, owner):
            assert remote.check(100 * typical, force=True).shape == typical.shape
        with pytest.raises(OtherModelError, match="has the program"):
            RemoteModel(server.url, program=make_full().program, insecure=True)
    service.close()


def test_a_pinned_model_must_be_the_served_one(server: Server) -> None:
    with pytest.raises(OtherModelError, match="is served"):
        RemoteModel(server.url, "0" * 64, insecure=True)
    for url in ("ftp://127.0.0.1", "127.0.0.1", ""):
        with pytest.raises(UnreachableError, match="address"):
            RemoteModel(url, insecure=True)


def test_keys_for_a_model_that_was_replaced_are_refused(tmp_path: Path) -> None:
    old = Service(make_thin("old"), tmp_path / "old", workers=WORKERS)
    with listening(old) as server:
        port = server.server_address[1]
        session = RemoteModel(server.url, insecure=True).session()
    old.close()
    new = Service(make_thin("new"), tmp_path / "new", workers=WORKERS)
    with listening(new, port):
        with pytest.raises(OtherModelError) as other:
            session.upload_keys()
        assert other.value.expected == new.model.hash
        session.close()
    new.close()


def test_the_command_serves_until_a_signal(place: Place, tmp_path: Path, sample: Sample) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    make_thin().write(folder)
    command = [sys.executable, "-m", "keywright.cli", "serve", str(folder), "--port", "0", "--json"]
    state = ["--state", str(tmp_path / "state")]
    for flag, address in (("--objects", place.objects), ("--records", place.records)):
        state += [] if address is None else [flag, address]
    with subprocess.Popen([*command, *state], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        entry = json.loads(process.stdout.readline())
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", entry["url"])
        session = RemoteModel(entry["url"], entry["model"], insecure=True).session()
        session.upload_keys()
        message = framing.join(session._encrypt(sample[None]))
        job = session.remote.send("POST", f"/v1/keys/{session._identifier}/jobs", message)
        process.kill()
        process.wait()
    with subprocess.Popen([*command, *state], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        # Killed and started again: the keys are still there.
        session.remote = RemoteModel(url, insecure=True)
        expected = run_clear(make_thin().program, sample)
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        # The next process evaluated what the killed one had accepted.
        answer = session.remote.request("GET", f"/v1/jobs/{job['job']}/result")
        assert np.abs(session._decrypt(answer, 1)[0] - expected).max() < 1e-3
        session.close()
        process.terminate()
        assert process.wait() == 0
    left = Place(tmp_path / "state", place.objects, place.records)
    left.open()
    assert left.held("keys/") == left.held("jobs/") == set()
    left.close()
