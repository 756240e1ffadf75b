"""Keys that clients write to the object storage themselves, at addresses that the server gives."""

from __future__ import annotations

import contextlib
import os
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel, key_upload
from keywright.errors.service import (
    InvalidObjectError,
    LimitError,
    SecretRefusedError,
    StorageError,
    UploadError,
)
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.tenants.quotas import Quota, Quotas
from keywright.serve.uploads import direct
from tests.serve.http.test_http import ask
from tests.serve.network import INPUTS, WORKERS, listening
from tests.serve.storage.storage_servers import Place

NOBODY = "127.0.0.1:9"
SERVERS = pytest.mark.parametrize("place", ["servers"], indirect=True)


def serving(thin: Model, place: Place, quotas: Quotas | None = None) -> Service:
    return Service(
        thin,
        place.folder,
        workers=WORKERS,
        quotas=quotas,
        addresses=place.addresses,
    )


def client_of(server: Server, direct: bool = True) -> RemoteModel:
    """A client that knows the address of the storage."""
    storage = urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc
    return RemoteModel(server.url, direct=[storage, NOBODY] if direct else False, insecure=True)


def write(url: object, data: bytes) -> None:
    """What a client does with an address."""
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(str(url), data=data, method="PUT", headers=headers)
    urllib.request.urlopen(request).close()


def taken(service: Service, identifier: str, offset: int) -> dict[str, object]:
    """Take over a part."""
    with contextlib.closing(service.take_part(identifier, offset)) as writer:
        return service.end_part(writer)


def sent(service: Service, identifier: str, data: bytes) -> dict[str, object]:
    """What is said of a set after all of it was written so."""
    said: dict[str, object] = {}
    for begin in range(0, len(data), 1 << 20):
        part = data[begin : begin + (1 << 20)]
        write(service.grant_part(identifier, begin, len(part))["url"], part)
        said = taken(service, identifier, begin)
    return said


def begun(service: Service) -> str:
    return str(service.create_keys({"model": service.model.hash})["keys"])


@SERVERS
def test_keys_go_to_the_storage_and_not_through_the_server(
    thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_upload, "PART_BYTES", 1 << 19)
    sizes: list[tuple[str, int]] = []

    def note(method: str, path: str, status: int, received: int, *rest: object) -> None:
        sizes.append((method, received))

    service = serving(thin, place)
    sample = np.random.default_rng(1).uniform(-1, 1, INPUTS)
    with listening(service) as server, client_of(server).session() as session:
        server.app.on_request = note
        session.upload_keys()
        # Less than a part came to the server, of all requests together.
        assert sum(received for _, received in sizes) < 1 << 12
        assert sizes.count(("PUT", 0)) == -(-thin.manifest.keys.size // (1 << 19))
        assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
        objects = service.store.objects
        assert objects.sizes(direct.PREFIX) == {}
        assert sum(objects.sizes("keys/").values()) == thin.manifest.keys.size
    service.close()


@SERVERS
def test_unreachable_storage_is_bypassed(thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    service = serving(thin, place)
    monkeypatch.setattr(
        service.store.objects, "sign", lambda name, seconds, length: f"http://{NOBODY}/nobody"
    )
    with listening(service) as server, client_of(server).session() as session:
        session.upload_keys()
        assert np.isfinite(session.infer(np.zeros(INPUTS))).all()
    service.close()


@SERVERS
def test_a_client_can_switch_direct_uploads_off(
    thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serving(thin, place)
    with listening(service) as server:
        remote = client_of(server, direct=False)
        written = service.store.objects.sizes
        copied: list[str] = []
        monkeypatch.setattr(service.store.objects, "copy", lambda name, to: copied.append(to))
        with remote.session() as session:
            session.upload_keys()
            assert sum(written("keys/").values()) == thin.manifest.keys.size
        assert copied == []
    service.close()


def test_a_folder_gives_no_addresses(thin: Model, tmp_path: Path) -> None:
    service = Service(thin, tmp_path, workers=WORKERS)
    with pytest.raises(
        StorageError, match="send them to this server", check=lambda error: error.code == "no_direct_uploads"
    ):
        service.grant_part(begun(service), 0, 1 << 20)
    service.close()


@SERVERS
def test_directly_written_parts_are_checked(thin: Model, place: Place, key_file: Path) -> None:
    data, service = key_file.read_bytes(), serving(thin, place)
    said = sent(service, begun(service), data)
    assert said["ready"] is True
    # A residue is another.
    spoiled = bytearray(data)
    spoiled[len(data) // 2] ^= 1
    with pytest.raises(InvalidObjectError):
        sent(service, begun(service), bytes(spoiled))
    # The head of others.
    with pytest.raises(InvalidObjectError, match="head differs"):
        sent(service, begun(service), data[:40] + b"\xff" + data[41:])
    # A secret key, across two parts.
    secret = kw.SecretKey.generate(thin.parameters).to_bytes()
    place_of = (1 << 20) - 20
    hiding = data[:place_of] + secret + data[place_of + len(secret) :]
    with pytest.raises(SecretRefusedError):
        sent(service, begun(service), hiding[: len(data)])
    assert service.store.counts(ready=True)[0] == 1
    assert service.store.counts(ready=False)[0] == 0
    service.close()


@SERVERS
def test_parts_have_the_granted_length(thin: Model, place: Place, key_file: Path) -> None:
    data, service = key_file.read_bytes(), serving(thin, place)
    keys = begun(service)
    for length in (0, direct.PART_BYTES + 1):
        with pytest.raises(LimitError, check=lambda error: error.code == "too_large"):
            service.grant_part(keys, 0, length)
    for wrong in (data[:999], data[:1001]):
        write(service.grant_part(keys, 0, 1000)["url"], wrong)
        with pytest.raises(
            UploadError, match="1000 at byte 0", check=lambda error: error.code == "wrong_offset"
        ):
            taken(service, keys, 0)
    service.grant_part(keys, 0, 1000)
    with pytest.raises(
        UploadError, match="0 bytes were written", check=lambda error: error.code == "wrong_offset"
    ):
        taken(service, keys, 0)
    with pytest.raises(
        UploadError, match="no part is expected", check=lambda error: error.code == "wrong_offset"
    ):
        taken(service, keys, 0)
    assert service.keys(keys)["received"] == 0
    assert service.store.objects.sizes("") == service.store.objects.sizes("storage.json")
    # An address that was used is of no use: what is written there later counts for nothing.
    url = service.grant_part(keys, 0, 1000)["url"]
    write(url, data[:1000])
    assert taken(service, keys, 0)["received"] == 1000
    write(url, b"x" * 5000)
    (held,) = service.store.objects.sizes("keys/").values()
    assert held == 1000
    service.direct._swept = -1e9
    service.direct.sweep()
    assert service.store.objects.sizes(direct.PREFIX) == {}
    service.close()


@SERVERS
def test_grants_end(thin: Model, place: Place) -> None:
    service = serving(thin, place)
    keys = begun(service)
    url = service.grant_part(keys, 0, 1000)["url"]
    assert service.store.get(keys).busy()
    write(service.grant_part(keys, 0, 1000)["url"], b"x" * 1000)
    service.direct._grants[keys, 0].until = 0.0
    service.expire()
    assert not service.store.get(keys).busy()
    with pytest.raises(
        UploadError, match="no part is expected", check=lambda error: error.code == "wrong_offset"
    ):
        taken(service, keys, 0)
    # What was written with an address of before is gone with the next look, and with the next start.
    write(url, b"x" * 1000)
    service.close()
    again = serving(thin, place)
    assert again.store.objects.sizes(direct.PREFIX) == {}
    # A set that is deleted takes its grants along.
    again.grant_part(keys, 0, 1000)
    again.delete_keys(keys)
    assert again.direct._grants == {}
    again.close()


@SERVERS
def test_addresses_are_signed_for_their_length(
    thin: Model, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: addresses for 100 bytes took 60 MiB each, 692 MB under a quota of 10 MB."""
    service = serving(thin, place)
    keys = begun(service)
    url = str(service.grant_part(keys, 0, 100)["url"])
    assert "X-Amz-SignedHeaders=content-length%3Bhost" in url
    # This storage does not check that. What is longer is deleted with the next look, and the grant with it.
    write(service.grant_part(keys, 200, 100)["url"], b"x" * 100)
    write(url, b"x" * 1000)
    monkeypatch.setattr(direct, "SWEEP_S", 0.0)
    service.expire()
    assert list(service.store.objects.sizes(direct.PREFIX).values()) == [100]
    with pytest.raises(
        UploadError, match="no part is expected", check=lambda error: error.code == "wrong_offset"
    ):
        taken(service, keys, 0)
    assert taken(service, keys, 200)["missing"] == [[0, 200], [300, thin.manifest.keys.size]]
    service.close()


@SERVERS
def test_quotas_hold(thin: Model, place: Place) -> None:
    service = serving(thin, place, Quotas(Quota(bytes=thin.manifest.keys.size * 3 // 2)))
    first, second = begun(service), begun(service)
    service.grant_part(first, 0, 1000)
    with pytest.raises(LimitError, check=lambda error: error.code == "quota_bytes"):
        service.grant_part(second, 0, 1000)
    service.close()


@SERVERS
def test_over_http_it_is_as_described(thin: Model, place: Place, key_file: Path) -> None:
    service = serving(thin, place)
    with listening(service) as server:
        keys = begun(service)
        path = f"/v1/keys/{keys}/direct"
        status, opening, _ = ask(server, "POST", f"{path}?offset=0&length=100", b"")
        assert (status, opening["offset"], opening["length"], opening["method"]) == (201, 0, 100, "PUT")
        write(opening["url"], key_file.read_bytes()[:100])
        status, entry, _ = ask(server, "PUT", f"{path}?offset=0", b"")
        assert (status, entry["received"]) == (200, 100)
        assert ask(server, "POST", f"{path}?offset=0", b"")[0] == 400
        assert ask(server, "POST", f"{path}?offset=50&length=100", b"")[1]["error"]["type"] == "wrong_offset"
        assert ask(server, "POST", f"/v1/keys/{'0' * 32}/direct?offset=0&length=1", b"")[0] == 404
    service.close()
