"""Every client against a server that chooses its security: weak parameters, terabytes of keys, redirects.

The cases come from the manifest itself: every value of its JSON is replaced by values that it cannot have, so
a new field without a check fails here. A client that this machine cannot run is skipped, with what is
missing.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import zlib
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors import KeywrightError, SecurityError
from keywright.errors.engine import FormatError
from keywright.errors.network import OutOfRangeError
from keywright.errors.service import LimitError, OtherModelError, StorageError
from keywright.model import Entry as ModelEntry
from keywright.model import Manifest, Model
from keywright.model.served.demands import KEY_BYTES, MESSAGE_BYTES, Demands, require_address, require_message
from keywright.program.operands.normalisation import Normalisation
from tests.serve import network
from tests.serve.hostile import (
    Answer,
    Entry,
    Honest,
    Place,
    answer,
    called_secure,
    changes,
    encoded,
    hostile,
    places,
    refused,
)
from tests.serve.http.test_c_client import build_ask
from tests.serve.network import INPUTS, make_full, make_thin

ROOT = Path(__file__).parents[4]
WORKER = ROOT / "target" / "web" / "client" / "dist" / "worker.js"
THIN = make_thin().manifest
ENTRY: Entry = json.loads(THIN.encoded)


@dataclass(frozen=True)
class Refusal:
    """Why a client ended: the code of its kind, None if it did not refuse, and its sentence."""

    code: str | None
    text: str


class Client(Protocol):
    """A client as a program.

    Attributes:
        name: for people.
        weak, demand: codes of its refusals of weak parameters and of too many keys.
        ignored: fields that it does not read, whose values can therefore not harm it.
    """

    name: str
    weak: str
    demand: str
    ignored: frozenset[str]

    def ask(self, url: str, count: int = 1, insecure: bool = False, **limits: int) -> list[Refusal]:
        """Ask a server ``count`` times for a session, up to the upload of keys."""


class InPython:
    name, weak, demand, ignored = "python", "SecurityError", "LimitError", frozenset[str]()

    def ask(self, url: str, count: int = 1, insecure: bool = False, **limits: Any) -> list[Refusal]:
        return [self._once(url, insecure=insecure, **limits) for _ in range(count)]

    def _once(self, url: str, **accepted: Any) -> Refusal:
        try:
            with RemoteModel(url, **accepted).session() as session:
                session.upload_keys()
        except KeywrightError as error:
            return Refusal(type(error).__name__, str(error))
        return Refusal(None, "")


class InC:
    """The program of crates/capi/examples/ask.c, which ends with status 1 after any refusal."""

    name, weak, demand = "c", "1", "1"
    ignored = frozenset(
        {"format", "name", "program", "key_bytes", "scale", "input_level", "output_level", "log_n"}
        | {"modulus", "insecure", "shape", "labels"}
    )

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._sample = folder / "sample.txt"
        self._sample.write_text(" ".join(["0.5"] * INPUTS))

    def ask(self, url: str, count: int = 1, insecure: bool = False, **limits: int) -> list[Refusal]:
        options = ["--insecure"] if insecure else []
        for name, value in limits.items():
            options += [f"--{name.replace('_', '-')}", str(value)]
        answers = []
        for number in range(count):
            owner = self._folder / f"owner-{len(list(self._folder.iterdir()))}-{number}"
            command = [str(self._program), *options, url, str(owner), str(self._sample)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1), done
            answers.append(Refusal(str(done.returncode) if done.returncode else None, done.stderr))
        return answers


class InNode:
    """The browser's client, its worker in Node."""

    name, weak, demand = "web", "insecure", "demand"
    ignored = frozenset({"scale", "program"})

    def ask(self, url: str, count: int = 1, insecure: bool = False, **limits: int) -> list[Refusal]:
        names = {"key_bytes": "keyBytes", "key_count": "keyCount"}
        demands = json.dumps({"insecure": insecure} | {names[name]: limits[name] for name in limits})
        command = ["node", str(ROOT / "web" / "tests" / "ask.mjs"), url, demands, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [Refusal(line["code"], line["message"]) for line in lines]


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_ask(tmp_path_factory.mktemp("c") / "ask")


@pytest.fixture(params=["python", "c", "web"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    if request.param == "python":
        return InPython()
    if request.param == "c":
        return InC(request.getfixturevalue("c_program"), tmp_path)
    if shutil.which("node") is None or not WORKER.is_file():
        pytest.skip("the browser's client needs node, and what `make web` builds")
    return InNode()


@cache
def weak_thin() -> Model:
    """A model whose secrets have one coefficient that is not zero: a server tries all of them."""
    bits = network.Q_BITS
    parameters = kw.Parameters.from_bits(10, bits, [50, 50, 50], 45, insecure=True, secret_weight=1)
    plan = kw.BootstrapperPlan(parameters, **network.ENTRY)
    return replace(make_thin(), parameters=parameters, entry=ModelEntry(plan, network.ENTRY))


def test_an_honest_server_gets_the_keys(client: Client) -> None:
    """The control: what the other tests refuse is refused for its own reason."""
    with hostile(Honest(THIN.encoded, total=THIN.keys.size)) as seen:
        (answer,) = client.ask(seen.url, insecure=True)
        assert seen.sent >= THIN.keys.size, answer


@pytest.mark.parametrize("model", [make_thin, weak_thin])
def test_parameters_below_128_bits_are_refused_before_a_key_exists(client: Client, model: Any) -> None:
    with hostile(Honest(model().manifest.encoded)) as seen:
        (answer,) = client.ask(seen.url)
        assert answer.code == client.weak, answer
        assert "128 bits" in answer.text
        assert {method for method, *_ in seen.requests} == {"GET"} or client.name == "c"
        assert seen.sent == 0


def test_the_author_of_a_folder_does_not_choose_what_its_clients_are_secure_with(tmp_path: Path) -> None:
    """`keywright.load` is for one's own models, and clients of folders of others were made by it, too."""
    weak_thin().save(tmp_path / "model")
    loaded = kw.load(tmp_path / "model")
    for make in (loaded.client, partial(kw.load_client, tmp_path / "model")):
        with pytest.raises(SecurityError, match="less than 128 bits"):
            make()
    for client in (loaded.client(insecure=True), weak_thin().client()):
        assert client.parameters.insecure


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_parameters_that_only_say_that_they_are_checked_cannot_be_read() -> None:
    """The switch is no claim: without it the bound is checked, and where there is none they are refused."""
    for model in (make_thin(), weak_thin()):
        assert kw.Parameters.from_bytes(model.manifest.format.parameters, insecure=True).insecure
        forged, client = (
            called_secure(model.manifest.format.parameters),
            called_secure(model.manifest.format.client),
        )
        for read, data in ((kw.Parameters.from_bytes, forged), (kw.thin.Parameters.from_bytes, client)):
            with pytest.raises(SecurityError):
                read(data)
    # What the forgery rests on: parameters within the bound, which have the switch without need.
    bits = ([50, 40, 40], [40], 40)
    checked, switched = kw.Parameters.from_bits(13, *bits), kw.Parameters.from_bits(13, *bits, insecure=True)
    assert called_secure(switched.to_bytes()) == checked.to_bytes()
    with pytest.raises(SecurityError, match="switch the check"):
        Demands().require_secure(switched)
    Demands().require_secure(checked)


@pytest.mark.parametrize("forged", [("parameters", "client"), ("client",), ("parameters",), ()])
def test_a_manifest_that_calls_weak_parameters_secure_is_refused(
    client: Client, forged: tuple[str, ...]
) -> None:
    """In a ring where one prime is within the bound, so that a thin client's own part can pass."""
    model = make_thin(log_n=11)
    assert kw.thin.Parameters.from_bytes(called_secure(model.manifest.format.client)).capacity > 0
    entry: Entry = json.loads(model.manifest.encoded) | {"insecure": False}
    entry |= {name: text(called_secure(getattr(model.manifest.format, name))) for name in forged}
    entry["key_set"] = text(called_secure(model.manifest.keys.head))
    for manifest in (entry, entry | {"key_set": text(model.manifest.keys.head)}):
        with hostile(Honest(encoded(manifest), total=model.manifest.keys.size)) as seen:
            (answer,) = client.ask(seen.url)
            assert answer.code is not None
            assert seen.sent == 0


def test_more_keys_than_the_limits_are_refused_with_both_numbers(client: Client) -> None:
    for limits in ({"key_bytes": THIN.keys.size - 1}, {"key_count": len(THIN.specs) - 1}):
        (most,) = limits.values()
        with hostile(Honest(THIN.encoded, total=THIN.keys.size)) as seen:
            (answer,) = client.ask(seen.url, insecure=True, **limits)
            assert answer.code == client.demand, answer
            assert str(most) in answer.text
            assert str(most + 1) in answer.text
            assert seen.sent == 0
    exact = {"key_bytes": THIN.keys.size, "key_count": len(THIN.specs)}
    with hostile(Honest(THIN.encoded, total=THIN.keys.size)) as seen:
        client.ask(seen.url, insecure=True, **exact)
        assert seen.sent >= THIN.keys.size


def test_terabytes_are_refused_before_a_key_exists(client: Client) -> None:
    if "key_bytes" in client.ignored:
        pytest.skip("this client counts the bytes itself, from the list of keys")
    for size in (9_600_000_000_000, 1 << 48):
        with hostile(Honest(encoded(ENTRY | {"key_bytes": size}))) as seen:
            (answer,) = client.ask(seen.url, insecure=True)
            assert answer.code == client.demand
            assert str(size) in answer.text
            assert len(seen.requests) == 1


@pytest.mark.parametrize("place", list(places(ENTRY)), ids=lambda place: ".".join(map(str, place)))
def test_no_field_of_a_manifest_takes_a_value_that_it_cannot_have(client: Client, place: Place) -> None:
    ignored = not client.ignored.isdisjoint(map(str, place))
    # Of a field that the client does not read, one value shows that it ends.
    wrong = list(changes(ENTRY, place))[: 1 if ignored else None]
    with hostile(Honest(*(manifest for _, manifest in wrong), THIN.encoded)) as seen:
        answers = client.ask(seen.url, len(wrong), insecure=True, key_bytes=THIN.keys.size)
        assert len(answers) == len(wrong)
        if not ignored:
            for (value, _), refusal in zip(wrong, answers, strict=True):
                assert refusal.code is not None, f"{value!r:.60} is accepted"
            assert seen.sent == 0


def test_values_that_share_places_are_refused(client: Client) -> None:
    """A manifest of two kilobytes let a client allocate 24 GiB for one sample."""
    inputs = ENTRY["input"]
    shared = {"start": [0] * len(inputs["start"]), "repeat": inputs["size"], "stride": 1}
    with hostile(Honest(encoded(ENTRY | {"input": inputs | shared}))) as seen:
        (answer,) = client.ask(seen.url, insecure=True)
        assert answer.code is not None
        assert "places" in answer.text
        assert seen.sent == 0


def test_samples_of_many_axes_are_refused() -> None:
    inputs = ENTRY["input"]
    for axes, too_many in ((31, False), (32, True), (1000, True)):
        shape = [*inputs["shape"], *[1] * (axes - len(inputs["shape"]))]
        data = encoded(ENTRY | {"input": inputs | {"shape": shape}})
        if too_many:
            with pytest.raises(FormatError, match="axes"):
                Manifest.read(data)
        else:
            assert len(Manifest.read(data).features(np.zeros((2, *shape)))[0].shape) == axes + 1


def stretched(count: int) -> bytes:
    """A manifest of many digits, within the longest that is read."""
    return THIN.encoded[:-1] + b', "more": [' + b"[]," * count + b"[]]}"


ENDLESS: dict[str, tuple[Answer, bytes]] = {
    "a body without a length": (lambda *_: b"HTTP/1.1 200 x\r\n\r\n", b"x" * 65536),
    "chunks": (
        lambda *_: b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + b"x" * 65536 + b"\r\n",
    ),
    "a terabyte": (lambda *_: b"HTTP/1.1 200 x\r\nContent-Length: 1099511627776\r\n\r\n", b"x" * 65536),
    "headers": (lambda *_: b"HTTP/1.1 200 x\r\n", b"X-More: " + b"x" * 1000 + b"\r\n"),
    "one header": (lambda *_: b"HTTP/1.1 200 x\r\nX-More: ", b"x" * 65536),
    "interim answers": (lambda *_: b"", b"HTTP/1.1 100 x\r\nX-More: x\r\n\r\n"),
    "nothing but a list": (lambda *_: answer(200, b"[" * 100_000), b""),
    "another field": (lambda *_: answer(200, stretched(1_000_000)), b""),
}
"""Answers to the first request, and what follows them until the client goes."""


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_answers_are_cut(client: Client, name: str) -> None:
    reply, endless = ENDLESS[name]
    if client.name == "web" and name == "interim answers":
        pytest.skip("node's fetch reads them for ever; no browser is run here")
    if client.name == "c" and name == "another field":
        pytest.skip("this client reads the fields that it knows")
    with hostile(reply, endless) as seen:
        (answer,) = client.ask(seen.url, insecure=True)
        assert answer.code is not None
        assert seen.sent == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(client: Client, status: int) -> None:
    """Neither for the manifest nor for the keys."""
    with hostile(Honest(THIN.encoded)) as other:

        def away(method: str, path: str, length: int) -> bytes:
            return answer(status, b"{}", f"Location: {other.url}{path}\r\n")

        def late(method: str, path: str, length: int) -> bytes:
            keys = path.startswith("/v1/keys")
            return away(method, path, length) if keys else Honest(THIN.encoded)(method, path, length)

        for reply in (away, late):
            with hostile(reply) as seen:
                (outcome,) = client.ask(seen.url, insecure=True)
                assert outcome.code is not None
                assert seen.sent == 0
        assert other.requests == []


def test_another_manifest_than_the_pinned_one_is_refused() -> None:
    """A smaller ring, for example: the hash is that of all bytes."""
    for manifest in (weak_thin().manifest.encoded, encoded(ENTRY | {"name": "other"})):
        with hostile(Honest(manifest)) as seen:
            with pytest.raises(OtherModelError, match="is expected"):
                RemoteModel(seen.url, pinned=THIN.hash, insecure=True)
            assert len(seen.requests) == 1


def test_a_successor_is_judged_as_its_predecessor_was() -> None:
    more = encoded(ENTRY | {"key_bytes": THIN.keys.size + 1})
    with hostile(Honest(THIN.encoded, more)) as seen:
        remote = RemoteModel(seen.url, insecure=True, key_bytes=THIN.keys.size)
        with pytest.raises(LimitError, check=lambda error: error.code == "demand"):
            remote.refresh()
        assert remote.manifest == THIN


SUCCESSORS = ("range", "divisor", "normalisation", "batch", "packing", "places")


@cache
def _successors() -> dict[str, bytes]:
    """Manifests that differ in what a client checks of its samples, or does to them."""
    low, high = THIN.input.range or (-1.0, 1.0)
    half, places = {"input_range": [low / 2, high / 2]}, ENTRY["input"]
    return {
        "range": encoded(ENTRY | half),
        "divisor": encoded(ENTRY | {"divisor": 2 * THIN.input.scale}),
        "normalisation": replace(
            THIN, input=replace(THIN.input, normalisation=Normalisation(np.zeros(1), np.full(1, 0.25)))
        ).encoded,
        "batch": make_thin(batch=2).manifest.encoded,
        "packing": make_full().manifest.encoded,
        "places": encoded(ENTRY | {"input": places | {"start": places["start"][::-1]}}),
    }


@pytest.mark.parametrize("name", SUCCESSORS)
def test_a_successor_does_not_ask_whether_a_waiting_sample_is_in_its_range(name: str) -> None:
    """A server retires the model while a sample waits, and looks at what the client sends next: it must not
    depend on the sample."""
    successor, traces = _successors()[name], []
    assert set(_successors()) == set(SUCCESSORS)
    low, high = THIN.input.range or (-1.0, 1.0)
    for sample in (np.full(INPUTS, 0.0), np.full(INPUTS, low), np.full(INPUTS, high)):
        honest = Honest(THIN.encoded, successor, total=THIN.keys.size)

        def reply(method: str, path: str, length: int, honest: Honest = honest) -> bytes:
            return refused("retired", 410) if "/jobs" in path else honest(method, path, length)

        with hostile(reply) as seen:
            session = RemoteModel(seen.url, insecure=True).session()
            session.upload_keys()
            with pytest.raises(OtherModelError, match="connect again"):
                session.infer(sample)
            assert session.manifest == session.remote.manifest == THIN
            calls = [(method, path, len(body)) for method, path, body in seen.requests]
            traces.append(calls[next(i for i, call in enumerate(calls) if "/jobs" in call[1]) :])
            session.close()
    assert traces[0] == traces[1] == traces[2]


def test_a_session_checks_samples_by_its_own_model() -> None:
    """Whatever its remote model has become: a wider range would show the server which sample stops it."""
    low, high = THIN.input.range or (-1.0, 1.0)
    narrow = encoded(ENTRY | {"input_range": [low / 2, high / 2]})
    with hostile(Honest(narrow, THIN.encoded, total=THIN.keys.size)) as seen:
        remote = RemoteModel(seen.url, insecure=True)
        session = remote.session()
        remote.refresh()
        assert (remote.manifest.input.range, session.manifest.encoded) == (THIN.input.range, narrow)
        before = len(seen.requests)
        with pytest.raises(OutOfRangeError):
            session.infer(np.full(INPUTS, 0.9 * high))
        assert len(seen.requests) == before
        session.close()


def test_a_thin_client_accepts_every_number_of_the_models_range() -> None:
    """Numbers that end below 1 would be refused one by one, after others were sent."""
    parts = kw.thin.Parameters.from_bytes(THIN.format.client, insecure=True)
    data = bytearray(THIN.format.client)
    place = THIN.format.client.index(parts.maximum.to_bytes(8, "little"))
    data[place : place + 8] = (parts.maximum // 2).to_bytes(8, "little")
    end = 44 + int.from_bytes(data[32:36], "little")
    data[end : end + 4] = zlib.crc32(data[:end]).to_bytes(4, "little")
    data[-4:] = zlib.crc32(data[:end] + data[end + 4 : -4]).to_bytes(4, "little")
    assert kw.thin.Parameters.from_bytes(bytes(data), insecure=True).maximum < 1 << parts.fraction_bits
    honest = Honest(replace(THIN, format=replace(THIN.format, client=bytes(data))).encoded)
    with (
        hostile(honest) as seen,
        pytest.raises(FormatError, match="numbers end at", check=lambda error: error.code == "manifest"),
    ):
        RemoteModel(seen.url, insecure=True)


def test_a_server_that_understates_its_keys_is_refused() -> None:
    with hostile(Honest(encoded(ENTRY | {"key_bytes": 1}))) as seen:
        with pytest.raises(LimitError, match="bytes of keys", check=lambda error: error.code == "demand"):
            RemoteModel(seen.url, insecure=True, key_bytes=THIN.keys.size // 2)
        assert len(seen.requests) == 1


def writing(foreign: str, manifest: Manifest, via: str = "") -> Answer:
    """A server that asks for keys at another address."""
    honest = Honest(manifest.encoded, total=manifest.keys.size)

    def reply(method: str, path: str, length: int) -> bytes:
        if path.startswith("/elsewhere"):
            return answer(307, b"", f"Location: {foreign}\r\n")
        if "/direct" in path and method == "POST":
            return answer(201, encoded({"url": via or foreign}))
        if "/direct" in path:
            return honest(method, path.replace("/direct", "/parts"), manifest.keys.size)
        return honest(method, path, length)

    return reply


def test_keys_go_to_no_address_that_the_client_does_not_allow() -> None:
    def taken(method: str, path: str, length: int) -> bytes:
        return answer(200, b"")

    with hostile(taken) as foreign:
        with hostile(writing(f"{foreign.url}/x?y=1", THIN)) as seen:
            with RemoteModel(seen.url, insecure=True).session() as session:
                session.upload_keys()
            assert foreign.requests == []
            assert seen.sent >= THIN.keys.size
        host = urlsplit(foreign.url).netloc
        with hostile(writing(f"{foreign.url}/x?y=1", THIN)) as seen:
            with RemoteModel(seen.url, insecure=True, direct=[host]).session() as session:
                session.upload_keys()
            assert seen.sent == 0
        assert {(method, path) for method, path, _ in foreign.requests} == {("PUT", "/x?y=1")}
        assert foreign.sent == THIN.keys.size


def test_an_address_of_the_server_that_redirects_is_not_followed() -> None:
    with hostile(Honest(THIN.encoded)) as foreign:
        honest = Honest(THIN.encoded, total=THIN.keys.size)
        own: list[str] = []

        def reply(method: str, path: str, length: int) -> bytes:
            if path.startswith("/elsewhere"):
                return answer(307, b"", f"Location: {foreign.url}/x\r\n")
            if "/direct" in path:
                return answer(201, encoded({"url": f"{own[0]}/elsewhere"}))
            return honest(method, path, length)

        with hostile(reply) as seen:
            own.append(seen.url)
            with RemoteModel(seen.url, insecure=True).session() as session:
                session.upload_keys()
        assert foreign.requests == []


def test_addresses_are_compared_by_scheme_host_and_port() -> None:
    own = urlsplit("http://keys.example:8700/base")
    for url in ("http://keys.example:8700/x", "HTTP://KEYS.example:8700/y?z"):
        require_address(urlsplit(url), own, ())
    for url in (
        "http://keys.example/x",
        "https://keys.example:8700/x",
        "http://keys.example:8700@other.example/x",
        "http://keys.example.other.example:8700/x",
        "http://keys.example:8701/x",
        "http://keys.example:99999/x",
        "http://[::1]:8700/x",
        "ftp://keys.example:8700/x",
        "file:///etc/passwd",
        "//keys.example:8700/x",
        "keys.example:8700/x",
        "",
    ):
        with pytest.raises(StorageError, check=lambda error: error.code == "foreign_address"):
            require_address(urlsplit(url), own, ())
    secure = urlsplit("https://keys.example")
    require_address(urlsplit("https://keys.example:443/x"), secure, ())
    require_address(urlsplit("https://store.example/x"), secure, ["Store.example"])
    require_address(urlsplit("https://store.example:9000/x"), secure, ["store.example:9000"])
    for url in ("http://keys.example/x", "http://store.example/x", "https://store.example:9000/x"):
        with pytest.raises(StorageError, check=lambda error: error.code == "foreign_address"):
            require_address(urlsplit(url), secure, ["store.example"])


def test_an_address_that_is_none_is_refused() -> None:
    with hostile(Honest(THIN.encoded)) as seen:
        remote = RemoteModel(seen.url, insecure=True)
        for url in ("http://[", "http://[::1", f"http://{'x' * 70_000}"):
            with pytest.raises(StorageError):
                remote.write(url, b"keys")
        assert seen.sent == 0


def test_limits_are_above_zero_and_messages_have_one() -> None:
    for make in (partial(Demands, key_bytes=0), partial(Demands, key_count=0)):
        with pytest.raises(kw.errors.ParameterError, match="allows no key"):
            make()
    assert Demands().key_bytes == KEY_BYTES
    require_message("a request", MESSAGE_BYTES)
    with pytest.raises(LimitError, match=str(MESSAGE_BYTES + 1), check=lambda error: error.code == "demand"):
        require_message("a request", MESSAGE_BYTES + 1)
