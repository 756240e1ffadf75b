"""What a tenant can learn about another whose identifiers it knows: nothing."""

from __future__ import annotations

import http.client
import json
import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from keywright.errors.service import BusyError, RetiredError, UnknownJobError, UnknownKeysError
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.jobs.job import Job
from keywright.serve.storage.objects import tenant_digest
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.uploads.part_writer import PartWriter
from tests.serve.http.test_openapi import operations
from tests.serve.network import WORKERS, listening
from tests.serve.storage.storage_servers import Place
from tests.serve.storage.test_key_sets import Store, receive

NEVER = "0" * 32


class Tenants:
    """A service with keys and evaluations of tenant a, asked by tenant b."""

    def __init__(self, service: Service, server: Server, keys: Mapping[str, str], data: bytes) -> None:
        self.service, self.server, self.keys = service, server, keys
        model = service.model.hash
        sets = [service.store.create(model, "a") for _ in range(3)]
        for upload, size in zip(sets[1:], (1000, len(data)), strict=True):
            receive(service.store, upload, 0, size, data[:size])
        self.sets = [upload.identifier for upload in sets]
        steps = service.model.steps
        jobs = [
            service.jobs.add(Job(secrets.token_hex(16), self.sets[2], model, 0, steps, "a"), b"message")
            for _ in range(3)
        ]
        self.jobs = [job.identifier for job in jobs]
        self.objects = list(service.store.objects.sizes(""))

    def ask(
        self, method: str, path: str, body: bytes | None, who: str = "b", **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """Return an answer without its request and time."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_address[1])
        try:
            own = {"Authorization": f"Bearer {self.keys[who]}", "X-Request-Id": "same", **headers}
            connection.request(method, path, body, own)
            response = connection.getresponse()
            data = response.read()
            told = {name.lower(): value for name, value in response.headers.items()}
            told.pop("date", None)
            return response.status, data, told
        finally:
            connection.close()


@pytest.fixture
def tenants(
    thin: Model, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tenants]:
    """Evaluations wait: no worker takes them."""
    path = tmp_path / "accounts"
    keys = {name: add(path, name) for name in ("a", "b")}
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=Accounts.load(path))
    monkeypatch.setattr(service.jobs, "take", lambda: None)
    service.evaluations.dispatcher.close()
    with listening(service) as server:
        yield Tenants(service, server, keys, key_file.read_bytes())
    service.close()


BODIES: tuple[tuple[bytes, dict[str, str]], ...] = (
    (b"", {}),
    (b"x" * 100, {}),
    (b"x" * 100, {"Content-Type": "application/partial-upload", "Upload-Offset": "0"}),
    (b"{}", {"Content-Type": "application/json", "Upload-Complete": "?0"}),
)


def test_every_identifier_of_another_is_as_unknown_as_none(tenants: Tenants) -> None:
    """Every call, several bodies, every set and evaluation in every state: the same answer byte by byte."""
    asked = 0
    for method, name in operations():
        for mark, own in (("{keys}", tenants.sets), ("{job}", tenants.jobs)):
            for identifier in own if mark in name else ():
                for body, headers in BODIES:
                    for query in ("", "?offset=1000"):
                        real, never = (
                            tenants.ask(method, name.replace(mark, each) + query, body, **headers)
                            for each in (identifier, NEVER)
                        )
                        assert real == never, (method, name, query)
                        assert real[0] in (400, 404, 413), (method, name, real)
                        asked += 1
    assert asked > 250
    # And none of it has changed.
    for identifier, received in zip(tenants.sets[:2], (0, 1000), strict=True):
        status, data, _ = tenants.ask("GET", f"/v1/keys/{identifier}", None, "a")
        assert (status, json.loads(data)["received"]) == (200, received)
    assert json.loads(tenants.ask("GET", f"/v1/keys/{tenants.sets[2]}", None, "a")[1])["ready"]
    assert [tenants.service.jobs.get(job).state for job in tenants.jobs] == ["waiting"] * 3


def test_object_names_and_path_traversal_are_unknown(tenants: Tenants) -> None:
    """Object names, parent folders, other cases, other encodings, prefixes, and random changes."""
    chance = random.Random(5)
    (whole,) = [name for name in tenants.objects if tenants.sets[2] in name]
    tries = [
        *tenants.objects,
        whole,
        f"../{tenant_digest('a')}/{tenants.sets[2]}",
        f"{tenant_digest('a')}/{tenants.sets[2]}",
        tenants.sets[2].upper(),
        tenants.sets[2] + "\0",
        tenants.sets[2] + " ",
        tenants.sets[2][:31],
        tenants.sets[2] + "0",
        "*",
        "%",
        "' or '1'='1",
    ]
    for _ in range(100):
        place = chance.randrange(32)
        tries.append(
            tenants.sets[2][:place] + chance.choice("0123456789abcdef") + tenants.sets[2][place + 1 :]
        )
    for each in tries:
        for path in (f"/v1/keys/{quote(each, safe='')}", f"/v1/jobs/{quote(each, safe='')}/result"):
            assert tenants.ask("GET", path, None)[0] == 404, each


def test_counts_exclude_other_tenants(tenants: Tenants) -> None:
    status, data, _ = tenants.ask("GET", "/v1/keys", None)
    assert (status, json.loads(data)) == (200, {"keys": []})
    assert tenants.ask("GET", "/metrics", None)[0] == 403
    assert tenants.ask("GET", "/admin", None)[0] == 403
    assert len(json.loads(tenants.ask("GET", "/v1/keys", None, "a")[1])["keys"]) == 3


def test_key_sets_of_a_tenant_take_no_room_of_another(thin: Model, key_file: Path, place: Place) -> None:
    """The capacity once revealed the number of all sets, and evicted sets of others."""
    data, store = key_file.read_bytes(), Store(place, thin, capacity=2)
    own = [store.create(store.first, "a") for _ in range(2)]
    for upload in own:
        receive(store, upload, 0, 1000, data[:1000])
        upload.moved -= 1000.0
    for _ in range(2):
        receive(store, store.create(store.first, "b"), 0, 1000, data[:1000])
    with pytest.raises(BusyError):
        PartWriter(store, store.create(store.first, "b"), 0, 1000)
    assert [store.get(upload.identifier, "a").received for upload in own] == [1000, 1000]


def test_keys_of_a_retired_configuration_are_unknown_to_others(
    thin: Model, full: Model, place: Place
) -> None:
    """The answer 410 once revealed that such keys exist."""
    upload = Store(place, thin).create(thin.manifest.hash, "a")
    after = Store(place, full)
    with pytest.raises(RetiredError):
        after.get(upload.identifier, "a")
    for tenant in ("b", ""):
        with pytest.raises(UnknownKeysError) as refused:
            after.get(upload.identifier, tenant)
        with pytest.raises(UnknownKeysError) as never:
            after.get(NEVER, tenant)
        assert str(refused.value) == str(never.value)


def test_an_answer_takes_as_long_for_what_another_has_as_for_nothing(tenants: Tenants) -> None:
    """Both take microseconds: medians of many calls differ by less than a factor of three."""

    def seconds(ask: Callable[[str, str], object], identifier: str, kind: type[Exception]) -> float:
        start = time.perf_counter()
        with pytest.raises(kind):
            ask(identifier, "b")
        return time.perf_counter() - start

    cases: tuple[tuple[Callable[..., Any], str, type[Exception]], ...] = (
        (tenants.service.keys, tenants.sets[2], UnknownKeysError),
        (tenants.service.seen, tenants.sets[2], UnknownKeysError),
        (tenants.service.evaluations.job, tenants.jobs[0], UnknownJobError),
        (tenants.service.evaluations.result, tenants.jobs[0], UnknownJobError),
    )
    for ask, own, kind in cases:
        # Alternate, so that other load affects both equally.
        pairs = [(seconds(ask, own, kind), seconds(ask, NEVER, kind)) for _ in range(400)]
        real, never = (statistics.median(each) for each in zip(*pairs, strict=True))
        assert 1 / 3 < real / never < 3, (ask, real, never)
