"""Models, manifests, key sets and evaluations, without HTTP."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright._reading.sealed import with_digest
from keywright.errors import ParameterError
from keywright.errors.engine import EncodeError, FormatError
from keywright.errors.model import FolderError
from keywright.errors.service import (
    BadRequestError,
    InvalidObjectError,
    OtherModelError,
    SecretRefusedError,
    UnknownJobError,
    UnknownKeysError,
)
from keywright.model import Manifest, Model
from keywright.model.exchange.interface import FRACTION_BITS
from keywright.model.exchange.requests import ANSWER_GROWTH
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.jobs.job import Job
from keywright.serve.service import ServiceLimits
from onnx import helper
from tests.serve.network import WORKERS, make_full, network, submit

Sample = np.ndarray[Any, np.dtype[np.float64]]


@pytest.mark.parametrize("name", ["capacity", "connections"])
@pytest.mark.parametrize("count", [0, -1])
def test_a_service_has_room_for_one(name: str, count: int) -> None:
    with pytest.raises(ParameterError, match=f"{name} is {count}; use at least 1") as error:
        ServiceLimits(**{name: count})
    assert error.value.what == name


@pytest.mark.parametrize("kind", ["thin", "full"])
def test_answers_equal_the_network_in_the_clear(
    kind: str, sample: Sample, request: pytest.FixtureRequest
) -> None:
    model: Model = request.getfixturevalue(kind)
    manifest = model.manifest
    secret = kw.SecretKey.generate(model.parameters, bytes(32))
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=model.specs, relinearization=False)
    decryptor = kw.Decryptor(secret)
    packed = manifest.input.places.pack(sample[None])[0]
    runner = model.runner()
    client, one = None, 1
    if model.client_parameters is None:
        uploads = [decryptor.encrypt(packed, manifest.input.places.size, manifest.input.level).to_bytes()]
    else:
        # Every form that a thin client sends.
        client = kw.thin.Client.from_secret_bytes(secret.to_bytes(), model.client_parameters)
        sender = kw.thin.Encryptor(client.public_key(), model.client_parameters)
        one = 2**model.client_parameters.fraction_bits
        numbers = np.rint(packed * one).astype(np.int64)
        uploads = [client.encrypt(numbers), client.encrypt(numbers, dropped=1)]
        uploads += [sender.encrypt(numbers), sender.encrypt(numbers, dropped=(2, 1))]
        assert sorted(map(len, uploads)) == [len(uploads[i]) for i in (1, 0, 3, 2)]
    for data in uploads:
        steps: list[int] = []

        def step(steps: list[int] = steps) -> None:
            steps.append(1)

        (result,) = runner.run(model.execution.follow(keys), [model.requests.read(data)], on_step=step)
        assert len(steps) == model.steps
        answer = model.requests.write(result)
        if client is None:
            outputs = decryptor.decrypt(kw.Ciphertext.from_bytes(answer, model.parameters))
        else:
            outputs = client.decrypt(answer) / one
            assert len(answer) < len(result.to_bytes())
        values = manifest.output.places.unpack(outputs[None], 1)[0] * manifest.output.scale
        error = np.abs(values - run_clear(model.program, sample)).max()
        bound = result.error_bound * manifest.output.scale
        if model.client_parameters is not None:
            # Numbers are rounded to units; the network, of rows of norm 1 and squares, doubles its input.
            bound = bound * ANSWER_GROWTH + (1 + manifest.output.scale / 2) / 2**FRACTION_BITS
        assert error <= bound < 1e-3


def test_places_are_slots(thin: Model) -> None:
    values = np.arange(1, 17, dtype=np.float64)
    places = thin.manifest.input.places
    assert thin.client_parameters is not None
    assert places.size == thin.program.slots == thin.client_parameters.capacity
    assert places.pack(values[None])[0].tolist() == thin.program.input.layout.pack(values)[0].tolist()
    assert places.unpack(places.pack(values[None]), 1).tolist() == [values.tolist()]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_places_of_several_samples_are_slots(count: int) -> None:
    model = make_full(batch=4)
    values = np.random.default_rng(1).normal(size=(count, 16))
    places = model.manifest.input.places
    assert places.batch == model.manifest.output.places.batch == 4
    packed = places.pack(values)
    assert packed.tolist() == model.program.pack(values).tolist()
    assert places.unpack(packed, count).tolist() == values.tolist()


def test_a_folder_is_the_model_that_was_saved(thin: Model, full: Model, tmp_path: Path) -> None:
    for model in (thin, full):
        folder = tmp_path / model.name
        folder.mkdir()
        model.write(folder)
        loaded = Model.load(folder)
        assert loaded.manifest.hash == model.manifest.hash
        assert loaded.execution.plan == model.execution.plan
        description = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(with_digest(description | {"name": "other"})))
        assert Model.load(folder).manifest.hash != model.manifest.hash


def test_the_plan_of_another_model_is_refused(thin: Model, full: Model, tmp_path: Path) -> None:
    for model in (thin, full):
        (tmp_path / model.name).mkdir()
        model.write(tmp_path / model.name)
    (tmp_path / thin.name / "plan.json").replace(tmp_path / full.name / "plan.json")
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "plan"):
        _ = Model.load(tmp_path / full.name).specs


def test_folders_without_a_model_are_refused(thin: Model, full: Model, tmp_path: Path) -> None:
    with pytest.raises(
        FolderError, match=r"parameters\.kw", check=lambda error: error.code == "model_folder"
    ):
        Model.load(tmp_path)
    thin.write(tmp_path)
    plan = (tmp_path / "plan.json").read_bytes()
    (tmp_path / "plan.json").unlink()
    with pytest.raises(
        FolderError, match=r"lacks plan\.json", check=lambda error: error.code == "model_folder"
    ):
        Model.load(tmp_path)
    (tmp_path / "plan.json").write_bytes(plan)
    description = json.loads((tmp_path / "model.json").read_text())
    for entry in (
        {"version": 4},
        {"entry": {"slots_to_coeffs": 2}},
        {"entry": {"preset": kw.BootstrapperPlan.presets()[0]}},
        {"labels": ["one"]},
        {"entry": 3},
    ):
        (tmp_path / "model.json").write_text(json.dumps(with_digest(description | entry)))
        with pytest.raises(FolderError, check=lambda error: error.code == "model_folder"):
            Model.load(tmp_path)
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(FolderError, match="description", check=lambda error: error.code == "model_folder"):
        Model.load(tmp_path)
    with pytest.raises(FolderError, match="level", check=lambda error: error.code == "model_folder"):
        Model("x", full.program, thin.parameters, (), thin.entry)


def test_a_manifest_tells_clients_what_the_model_does_behind_its_outputs() -> None:
    model = network()
    model.graph.node[-1].output[0] = "scores"
    model.graph.node.append(helper.make_node("Softmax", ["scores"], ["y"], axis=-1))
    parameters = make_full().parameters
    program = compiler.compile_program(model, compiler.Target(slots=parameters.max_slots, levels=3))
    data = Model("labelled", program, parameters).manifest.encoded
    read, outputs = Manifest.read(data), np.asarray([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, -1.0]])
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(read.answers(outputs)["y"], shares, atol=2**-20)
    with pytest.raises(EncodeError, match="results have shape", check=lambda error: error.code == "samples"):
        read.answers(outputs[0, :3])
    np.testing.assert_array_equal(read.answers(outputs[0])["y"], read.answers(outputs[:1])["y"][0])
    entry = json.loads(data)
    part = entry["client_part"]
    for change in ({"shape": [1, 5]}, {"shape": [1, -4]}, {"model": "AAAA"}, {"model": 5}):
        with pytest.raises(FormatError, match="client's part", check=lambda error: error.code == "manifest"):
            Manifest.read(json.dumps(entry | {"client_part": part | change}).encode())


def test_a_manifest_round_trips_and_changed_bytes_are_refused(thin: Model) -> None:
    data = thin.manifest.encoded
    assert Manifest.read(data) == thin.manifest
    entry = json.loads(data)
    other = kw.thin.Parameters(make_full().parameters, scale=1 << 20, fraction_bits=10)
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
        with pytest.raises(FormatError, check=lambda error: error.code == "manifest"):
            Manifest.read(json.dumps(entry | change).encode())
    for garbage in (b"", b"\xff", b"[]", b"{}", b"[" * 100_000, data[:-1], data + b" "):
        with pytest.raises(FormatError, check=lambda error: error.code == "manifest"):
            Manifest.read(garbage)


def upload(service: Service, data: bytes) -> str:
    opening = service.create_keys({"model": service.model.hash})
    identifier = str(opening["keys"])
    piece = service.begin_part(identifier, 0, len(data))
    piece.append(data)
    assert service.end_part(piece)["ready"]
    piece.close()
    return identifier


def test_unused_keys_expire_with_all_data_of_their_client(
    thin: Model, key_file: Path, tmp_path: Path
) -> None:
    events: list[str] = []
    service = Service(
        thin, tmp_path, on_event=events.append, workers=WORKERS, limits=ServiceLimits(expiry=3600)
    )
    identifier = upload(service, key_file.read_bytes())
    service.expire()
    assert service.seen(identifier)["objects"]
    service.store.get(identifier).used -= 3601
    service.expire()
    assert list((tmp_path / "keys").iterdir()) == []
    assert events[-1] == "unused keys expired and were deleted"
    for ask in (service.seen, service.keys):
        with pytest.raises(UnknownKeysError):
            ask(identifier)
    service.close()


@pytest.mark.parametrize("how", ["deleted", "expired"])
def test_deleted_keys_leave_no_data_of_their_client(
    how: str, thin: Model, sample: Sample, tmp_path: Path
) -> None:
    """Its jobs, their answers, its keys on disk and in memory; those of another client stay."""
    service = Service(thin, tmp_path / "state", workers=WORKERS)
    assert thin.client_parameters is not None
    replies = []
    for seed in range(2):
        secret = kw.SecretKey.generate(thin.parameters, bytes([seed] * 32))
        kw.KeyGenerator(secret).save_evaluation_keys(tmp_path / "keys.kw", thin.specs)
        identifier = upload(service, (tmp_path / "keys.kw").read_bytes())
        client = kw.thin.Client.from_secret_bytes(secret.to_bytes(), thin.client_parameters)
        numbers = np.rint(
            thin.manifest.input.places.pack(sample[None])[0] * 2**thin.client_parameters.fraction_bits
        )
        message = framing.join([client.encrypt(numbers.astype(np.int64))])
        jobs = [str(submit(service, identifier, message).identifier) for _ in range(2)]
        for job in jobs:
            while service.evaluations.job(job).state in ("waiting", "running"):
                time.sleep(0.01)
            assert len(service.evaluations.result(job)) > 100
        replies.append((identifier, service.store.get(identifier), jobs))
    (gone, uploaded, jobs), (stays, other, others) = replies
    before = WORKERS.keys.size
    if how == "deleted":
        service.delete_keys(gone)
    else:
        uploaded.used -= 3601
        service.expire()
    for job in jobs:
        for ask in (service.evaluations.job, service.evaluations.result):
            with pytest.raises(UnknownJobError):
                ask(job)
    with pytest.raises(UnknownKeysError):
        service.seen(gone)
    # They are not in memory either.
    assert WORKERS.keys.size == before - thin.resident_key_bytes
    assert gone not in WORKERS.keys
    assert stays in WORKERS.keys
    assert list(service.store.objects.sizes("keys/")) == other.names
    assert all(len(service.evaluations.result(job)) > 100 for job in others)
    assert service.seen(stays)["objects"]
    service.close()


def test_a_secret_key_among_ciphertexts_is_refused(service: Service, thin: Model, key_file: Path) -> None:
    secret = kw.SecretKey.generate(thin.parameters).to_bytes()
    with pytest.raises(SecretRefusedError):
        submit(service, upload(service, key_file.read_bytes()), framing.join([b"x" * 77 + secret]))


def result(service: Service, job: Job) -> bytes:
    """Return the answer of a job when it has ended, or raise what it failed with."""
    ended = threading.Event()
    with service.jobs.watched(job, ended.set):
        assert job.state in ("done", "failed") or ended.wait()
    return service.jobs.fetch(job.identifier)


def test_malformed_requests_are_refused(service: Service, key_file: Path, thin: Model, full: Model) -> None:
    for request in ({}, {"model": 3}, {"model": service.model.hash, "secret": "x"}):
        with pytest.raises(BadRequestError):
            service.create_keys(request)
    with pytest.raises(OtherModelError) as other:
        service.create_keys({"model": full.manifest.hash})
    assert (other.value.found, other.value.expected) == (full.manifest.hash, service.model.hash)
    identifier = upload(service, key_file.read_bytes())
    for message in (b"", b"\0\0\0", framing.join([]), framing.join([b"x", b"y"]), b"\xff\xff\xff\xffx"):
        with pytest.raises(BadRequestError):
            submit(service, identifier, message)
    secret = kw.SecretKey.generate(thin.parameters)
    ours, theirs = kw.Decryptor(secret), kw.Decryptor(kw.SecretKey.generate(full.parameters))
    assert thin.client_parameters is not None
    foreign = kw.thin.Parameters(
        thin.parameters,
        scale=thin.client_parameters.scale,
        fraction_bits=20,
        slots=8,
        values="real",
    )
    compact = kw.thin.Client.from_secret_bytes(secret.to_bytes(), foreign).encrypt([1, 2, 3], dropped=0)
    objects = [
        b"x",
        compact,
        compact[:-1],
        ours.encrypt_coefficients([0.5], 0).to_bytes()[:-1],
        ours.encrypt_coefficients([0.5], 1).to_bytes(),
        ours.encrypt([0.5], 512, 0).to_bytes(),
        theirs.encrypt_coefficients([0.5], 0).to_bytes(),
        kw.KeyGenerator(secret).public_key().to_bytes(),
        kw.keys.set_head(list(kw.KeyGenerator(secret).evaluation_keys(rotations=[1], level=0))),
    ]
    for data in objects:
        with pytest.raises(InvalidObjectError):
            result(service, submit(service, identifier, framing.join([data])))
    with pytest.raises(UnknownKeysError):
        submit(service, "0" * 32, framing.join([b"x"]))
