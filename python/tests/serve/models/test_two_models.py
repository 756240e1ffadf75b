"""Two versions of a model in one call: an answer is read by the manifest for which its message was made."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Container
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel, Session, SpotChecks
from keywright.errors.service import OtherModelError, RetiredError
from keywright.model.exchange.encryption import Encryption
from keywright.model.served import framing
from keywright.model.served.framing import MODEL
from keywright.model.served.manifest import Manifest
from keywright.program.client.last_steps import ClientPart
from keywright.program.operands.normalisation import Normalisation
from keywright.serve import Service
from tests.serve.hostile import Honest, answer, hostile
from tests.serve.network import INPUTS, OUTPUTS, WORKERS, listening, make_full, make_thin

BEFORE = make_full().manifest
PLACES = BEFORE.output.places
SAMPLES = np.zeros((4, INPUTS))


@cache
def _outputs() -> dict[str, tuple[Any, bool]]:
    """Another value of each field of an output, and whether a session follows a model that has it."""
    part = object.__new__(ClientPart)
    vars(part).update(shape=(OUTPUTS,), data=b"another")
    return {
        "places": (replace(PLACES, start=PLACES.start[::-1]), True),
        "level": (BEFORE.output.level + 1, True),
        "labels": (("a", "b", "c", "d"), False),
        "scale": (BEFORE.output.scale * 2048, True),
        "normalisation": (Normalisation(np.arange(4.0), np.arange(1.0, 5.0)), True),
        "image": ((0.0, 1.0), True),
        "client_part": (part, False),
    }


CASES = [*(field.name for field in fields(BEFORE.output)), "shape"]


def successor(name: str) -> tuple[Manifest, bool]:
    """A manifest with another output, and whether a session follows it."""
    if name == "shape":
        places = replace(PLACES, shape=(OUTPUTS - 1,), start=PLACES.start[1:])
        return replace(BEFORE, output=replace(BEFORE.output, places=places)), False
    value, followed = _outputs()[name]
    return replace(BEFORE, name="next", output=replace(BEFORE.output, **{name: value})), followed


class Server:
    """A session whose server answers each model with its own numbers, and retires the first one.

    Args:
        after: the manifest of the successor.
        upgrades: numbers of the answers during which another thread follows the model.
        refuses: numbers of the requests that meet a retired model.
    """

    def __init__(self, after: Manifest, upgrades: Container[int] = (), refuses: Container[int] = ()) -> None:
        self.models, self.after, self.asked = list[str](), after, 0
        self.upgrades, self.refuses = upgrades, refuses
        remote = object.__new__(RemoteModel)
        remote.manifest, remote.program, remote.joins = BEFORE, None, False
        remote.evaluate = self.evaluate  # type: ignore[assignment, method-assign]
        remote._fetch = lambda: after  # type: ignore[method-assign]
        remote._set_manifest = lambda manifest: setattr(remote, "manifest", manifest)  # type: ignore[method-assign]
        self.session = Session(remote)
        self.session._identifier, self.session._complete = "keys", True
        self.session._drop_keys = lambda: None  # type: ignore[method-assign]

    def evaluate(self, path: str, message: bytes, *rest: Any, model: str) -> bytes:
        number, self.asked = self.asked, self.asked + 1
        if number in self.refuses:
            raise RetiredError("retired")
        if number in self.upgrades:
            self.session._switch_model()
        self.models.append(model)
        framing.split(message, BEFORE.input.places.ciphertexts)
        return numbers(self.session, model == BEFORE.hash)


def numbers(session: Session, first: bool) -> bytes:
    """The ciphertext of an answer, with other numbers from the first model than from the next."""
    slots = (np.arange(PLACES.size) % 7 + 1.0) / (8.0 if first else -8.0)
    encrypted = session._encryption._decryptor.encrypt(slots, PLACES.size, 0)
    return framing.join([bytes(encrypted.expand().to_bytes())])


def rows(manifest: Manifest, first: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What a session of one manifest reads of such answers."""
    one = Server(manifest).session
    reader = Encryption(manifest, one.parameters, one._secret)
    objects = framing.split(numbers(one, first), 1)
    return np.concatenate([reader.decrypt(objects, 1) for _ in SAMPLES])


def test_every_field_of_an_output_has_a_case() -> None:
    assert {*_outputs(), "shape"} == {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_read_by_the_manifest_of_its_message(name: str) -> None:
    after, followed = successor(name)
    server = Server(after, upgrades={0})
    if not followed:
        with pytest.raises(OtherModelError, match="connect again"):
            server.session._switch_model()
        assert server.session.manifest is server.session.remote.manifest is BEFORE
        return
    (result,) = server.session.infer(SAMPLES[:1])
    assert server.session.manifest is after
    assert np.abs(result - rows(BEFORE, first=True)[0]).max() < 1e-6


@pytest.mark.parametrize("how", ["upgrades", "refuses"])
@pytest.mark.parametrize("checks", [None, SpotChecks(2, 1e-5)])
@pytest.mark.parametrize("number", range(4))
def test_the_rows_of_a_call_are_of_one_model(how: str, checks: SpotChecks | None, number: int) -> None:
    """Whenever the model is replaced; spot checks take no successor for a server that lies."""
    after, _ = successor("scale")
    server = Server(after, **{how: {number}})
    result = server.session.infer(SAMPLES, checks=checks)
    sent = len(SAMPLES) + (0 if checks is None else checks.count)
    (model,) = set(server.models[-sent:])
    old = model == BEFORE.hash
    assert np.abs(result - rows(BEFORE if old else after, first=old)).max() < 1e-2
    assert server.asked <= 2 * sent + 1


def test_a_model_that_is_replaced_again_and_again_ends_the_call() -> None:
    server = Server(BEFORE, refuses=set(range(1, 1000, 2)))
    server.session.remote._fetch = lambda: replace(BEFORE)  # type: ignore[method-assign]
    with pytest.raises(RetiredError):
        server.session.infer(SAMPLES)
    assert server.asked < 100


@pytest.mark.parametrize("stated", ["", f"{MODEL}: {'0' * 64}\r\n", f"{MODEL}: \x1b[2J\r\n"])
@pytest.mark.parametrize("waited", [True, False])
def test_an_answer_of_another_model_is_refused(stated: str, waited: bool) -> None:
    honest = Honest(BEFORE.encoded, total=BEFORE.keys.size)

    def reply(method: str, path: str, length: int) -> bytes:
        job = {"job": "ab" * 16, "state": "done", "done": 1, "total": 1}
        if "/v1/jobs" in path or (waited and "/jobs" in path):
            return answer(200, b"", stated)
        return answer(202, json.dumps(job).encode()) if "/jobs" in path else honest(method, path, length)

    with hostile(reply) as seen, RemoteModel(seen.url, insecure=True).session() as session:
        with pytest.raises(OtherModelError, match="ask again") as refused:
            session.infer(SAMPLES[0])
        assert (refused.value.expected, str(refused.value).isprintable()) == (BEFORE.hash, True)


def test_every_answer_of_a_service_names_its_model(tmp_path: Path) -> None:
    """Held, waited for, fetched, and fetched after a restart with the next version."""
    old, new = make_thin(batch=1), make_thin(batch=1, seed=4)

    def read(url: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(urllib.request.Request(url, body)) as reply:
            return reply.headers[MODEL], reply.read()

    first = Service(old, tmp_path, workers=WORKERS)
    with listening(first) as server:
        port, session = server.server_address[1], RemoteModel(server.url, insecure=True).session()
        session.upload_keys()
        message = framing.join(session._encrypt(SAMPLES[:1]))
        jobs = f"{server.url}/v1/keys/{session._identifier}/jobs?model={old.manifest.hash}"
        assert read(f"{jobs}&wait=30", message)[0] == old.manifest.hash
        first.evaluations.holds = lambda size: False  # type: ignore[method-assign]
        assert read(f"{jobs}&wait=30", message)[0] == old.manifest.hash
        job = json.loads(read(jobs, message)[1])["job"]
        read(f"{server.url}/v1/jobs/{job}?wait=30")
        result = f"/v1/jobs/{job}/result"
        model, stored = read(server.url + result)
        assert model == old.manifest.hash
    first.close()
    second = Service(new, tmp_path, workers=WORKERS)
    with listening(second, port) as server:
        assert read(server.url + result) == (old.manifest.hash, stored)
        session.close()
    second.close()
