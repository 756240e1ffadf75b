"""Uploads by draft-ietf-httpbis-resumable-upload-12, parallel parts, and memory of uploads."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from keywright.model import Model
from keywright.plan.memory.machine import resident_bytes
from keywright.serve import Server, Service
from tests.serve.http.test_http import ask, wait
from tests.serve.network import WORKERS, listening
from tests.serve.storage.storage_servers import Place

PARTIAL = {"Content-Type": "application/partial-upload"}
IANA = "https://iana.org/assignments/http-problem-types#"
MEMORY = 64 << 20


def patch(
    server: Server,
    path: str,
    offset: int,
    data: bytes,
    *,
    complete: bool | None = None,
    length: int | None = None,
) -> tuple[int, Any, Mapping[str, str]]:
    """Append to an upload."""
    headers = {**PARTIAL, "Upload-Offset": str(offset)}
    if length is not None:
        headers["Upload-Length"] = str(length)
    if complete is not None:
        headers["Upload-Complete"] = f"?{int(complete)}"
    return ask(server, "PATCH", path, data, headers)


def create(
    server: Server, data: bytes = b"", complete: str = "?0", length: int | None = None
) -> tuple[int, Any, Mapping[str, str]]:
    """Begin an upload."""
    headers = {"Upload-Complete": complete} | ({} if length is None else {"Upload-Length": str(length)})
    return ask(server, "POST", "/v1/keys", data, headers)


def head(server: Server, path: str) -> tuple[int, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    try:
        connection.request("HEAD", path)
        response = connection.getresponse()
        assert response.read() == b""
        return response.status, {name.lower(): value for name, value in response.headers.items()}
    finally:
        connection.close()


def test_an_upload_is_begun_asked_for_appended_to_and_complete(server: Server, key_file: Path) -> None:
    data = key_file.read_bytes()
    status, limits, headers = ask(server, "OPTIONS", "/v1/keys")
    assert (status, limits, headers["upload-limit"]) == (204, b"", f"max-size={len(data)}, max-age=3600")
    status, entry, headers = create(server, length=len(data))
    assert (status, headers["upload-offset"], headers["upload-complete"]) == (201, "0", "?0")
    path = headers["location"]
    assert path == f"/v1/keys/{entry['keys']}"
    assert headers["upload-limit"] == f"max-size={len(data)}, max-age=3600"

    status, entry, headers = patch(server, path, 0, data[:1000], complete=False)
    assert (status, headers["upload-offset"], headers["upload-complete"]) == (200, "1000", "?0")
    # Any offset: a number that is not a power of two, and one byte.
    for begin, end in ((1000, 54_321), (54_321, 54_322)):
        assert patch(server, path, begin, data[begin:end])[2]["upload-offset"] == str(end)
    status, headers = head(server, path)
    assert (status, headers["upload-offset"], headers["upload-complete"]) == (200, "54322", "?0")
    assert (headers["upload-length"], headers["cache-control"]) == (str(len(data)), "no-store")
    status, entry, headers = patch(server, path, 54_322, data[54_322:], complete=True)
    assert (status, entry["ready"], headers["upload-complete"]) == (200, True, "?1")
    digest = hashlib.sha256(data).digest()
    assert headers["repr-digest"] == f"sha-256=:{base64.b64encode(digest).decode()}:"
    assert entry["digest"] == digest.hex()
    # A client that missed the answer asks again, and appends nothing.
    assert head(server, path)[1]["upload-complete"] == "?1"
    assert patch(server, path, len(data), b"", complete=True)[2]["upload-complete"] == "?1"
    assert ask(server, "DELETE", path)[0] == 200
    assert head(server, path)[0] == 404


def test_an_upload_is_one_request_where_nothing_breaks(server: Server, key_file: Path) -> None:
    data = key_file.read_bytes()
    model = ask(server, "GET", "/v1/models")[1]["models"][0]["model"]
    headers = {"Upload-Complete": "?1"}
    status, entry, answered = ask(server, "POST", f"/v1/keys?model={model}", data, headers)
    assert (status, entry["ready"], answered["upload-complete"]) == (201, True, "?1")
    assert ask(server, "DELETE", answered["location"])[0] == 200
    status, reply, _ = ask(server, "POST", f"/v1/keys?model={'0' * 64}", data[:9], {"Upload-Complete": "?0"})
    assert (status, reply["error"]["type"]) == (409, "other_model")


def test_an_offset_that_is_not_the_uploads_is_told(server: Server, key_file: Path) -> None:
    path = create(server, key_file.read_bytes()[:32])[2]["location"]
    for offset in (0, 31, 33):
        status, reply, headers = patch(server, path, offset, b"x" * 4)
        assert (status, headers["upload-offset"], headers["upload-complete"]) == (409, "32", "?0")
        assert headers["content-type"] == "application/problem+json"
        assert reply["type"] == IANA + "mismatching-upload-offset"
        assert (reply["expected-offset"], reply["provided-offset"]) == (32, offset)
        assert reply["error"]["type"] == "wrong_offset"
    assert head(server, path)[1]["upload-offset"] == "32"


def test_a_length_that_is_not_that_of_the_keys_is_refused(server: Server, key_file: Path) -> None:
    data = key_file.read_bytes()
    path = create(server)[2]["location"]
    for status, reply, headers in (
        create(server, length=len(data) - 1),
        create(server, data[:100], "?1"),
        patch(server, path, 0, data[:100], complete=True),
        patch(server, path, 0, data[:100], length=1),
    ):
        assert (status, reply["type"]) == (400, IANA + "inconsistent-upload-length")
        assert headers["upload-complete"] == "?0"
    assert head(server, path)[1]["upload-offset"] == "0"
    status, reply, _ = patch(server, path, 0, data + b"x")
    assert (status, reply["error"]["type"]) == (413, "too_large")


@pytest.mark.parametrize(
    "headers",
    [
        {"Upload-Offset": "0"},
        {"Upload-Offset": "0", "Content-Type": "application/octet-stream"},
        PARTIAL,
        *(
            {**PARTIAL, "Upload-Offset": "0", name: wrong}
            for name in ("Upload-Offset", "Upload-Length", "Upload-Complete")
            for wrong in ("abc", "-1", "1.0", "9" * 16, "٣", "", "?2", "true", '"0"', "0 ;a", "0;A=1", "0, 0")
        ),
    ],
)
def test_malformed_fields_are_refused(server: Server, key_file: Path, headers: Mapping[str, str]) -> None:
    path = create(server)[2]["location"]
    encoded = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    status, reply, _ = ask(server, "PATCH", path, key_file.read_bytes()[:10], encoded)
    assert (status, reply["error"]["type"]) == (400, "bad_request")
    assert head(server, path)[1]["upload-offset"] == "0"
    status, reply, _ = create(server, b"x", "true")
    assert (status, reply["error"]["type"]) == (400, "bad_request")
    # Requests that have no use for a field take it no other way.
    wrong = {name: text for name, text in encoded.items() if name.startswith("Upload-") and text != "0"}
    for method, where in (("POST", "/v1/keys"), ("GET", "/v1/model"), ("PUT", f"{path}/parts?offset=0")):
        assert not wrong or ask(server, method, where, b"{}", wrong)[0] == 400


PARAMETERS = [
    "",
    ";a",
    "; a=1;b",
    ";a=1.5",
    ";*a=t/k:n",
    ';a="; \\"?1"',
    ";a=:aGk=:",
    ";a=@1;a=?0",
    ';a=%"%c3%bc"',
    "  ",
]
"""Parameters of RFC 9651, which every Item may have."""


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_parameters_of_fields_mean_nothing(server: Server, key_file: Path, parameters: str) -> None:
    path, data = create(server)[2]["location"], key_file.read_bytes()
    fields = {"Upload-Offset": "0", "Upload-Length": f"{len(data)}", "Upload-Complete": "?0"}
    headers = PARTIAL | {name: text + parameters for name, text in fields.items()}
    assert ask(server, "PATCH", path, data[:10], headers)[0] == 200
    assert head(server, path)[1]["upload-offset"] == "10"


def test_a_request_for_the_offset_takes_the_upload_over(
    server: Server, service: Service, key_file: Path
) -> None:
    """The client has noticed that its connection broke; the server has not."""
    data, path = key_file.read_bytes(), create(server)[2]["location"]
    uploaded = service.store.get(path.rpartition("/")[2])
    request = (
        f"PATCH {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/partial-upload\r\n"
        f"Upload-Offset: 0\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as stale:
        stale.sendall(request.encode() + data[: 3 << 19])
        wait(lambda: uploaded.received >= 1 << 20)
        begun = time.monotonic()
        offset = int(head(server, path)[1]["upload-offset"])
        assert time.monotonic() - begun < 5
        assert 1 << 20 <= offset <= 3 << 19
        assert patch(server, path, offset, data[offset : offset + 9])[2]["upload-offset"] == str(offset + 9)
        # Late bytes are not written.
        stale.sendall(data[3 << 19 :])
        assert stale.recv(1 << 16).startswith(b"HTTP/1.1 409")
    assert head(server, path)[1]["upload-offset"] == str(offset + 9)
    status, entry, _ = patch(server, path, offset + 9, data[offset + 9 :], complete=True)
    assert (status, entry["ready"]) == (200, True)


def test_parts_come_at_once_over_the_network(server: Server, key_file: Path) -> None:
    data, path = key_file.read_bytes(), create(server)[2]["location"]
    size, replies = len(data) // 5 + 1, list[tuple[int, Any]]()

    def send(begin: int) -> None:
        piece = data[begin : begin + size]
        replies.append(ask(server, "PUT", f"{path}/parts?offset={begin}", piece)[:2])

    status, entry, _ = ask(server, "PUT", f"{path}/parts?offset={size}", data[size : size + 100])
    assert (status, entry["missing"]) == (200, [[0, size], [size + 100, len(data)]])
    status, reply, _ = ask(server, "PUT", f"{path}/parts?offset={size - 1}", b"xx")
    assert (status, reply["error"]["type"]) == (409, "wrong_offset")
    threads = [threading.Thread(target=send, args=(begin,)) for begin in range(2 * size, len(data), size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [status for status, _ in replies] == [200] * len(threads)
    ask(server, "PUT", f"{path}/parts?offset={size + 100}", data[size + 100 : 2 * size])
    status, entry, _ = patch(server, path, 0, data[:size])
    assert (status, entry["ready"], entry["missing"]) == (200, True, [])
    assert ask(server, "DELETE", path)[0] == 200


class Watched:
    """Measures the peak resident memory of this process."""

    def __enter__(self) -> Watched:
        self.before = self.most = resident_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.005):
            self.most = max(self.most, resident_bytes())

    def __exit__(self, *arguments: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        """Bytes."""
        return self.most - self.before


def stream(start: bytes, total: int) -> Iterator[bytes]:
    """The head of a key set and zeros, made as they are sent."""
    yield start
    left, block = total - len(start), bytes(1 << 18)
    while left:
        yield block[:left]
        left -= min(left, len(block))


def test_an_upload_takes_little_memory_whatever_its_size(thin: Model, place: Place) -> None:
    """Four times the memory that it may take, or twice, which is as much as the test's S3 server can hold."""
    total = (4 if place.objects is None else 2) * MEMORY
    service = Service(
        thin,
        place.folder,
        workers=WORKERS,
        addresses=place.addresses,
    )
    with listening(service) as server:
        upload = service.store.get(create(server)[1]["keys"])
        upload.configuration = dataclasses.replace(upload.configuration, key_bytes=total + 1)
        headers = {**PARTIAL, "Upload-Offset": "0", "Content-Length": str(total)}
        with Watched() as watched:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
            body = stream(upload.configuration.key_set, total)
            connection.request("PATCH", f"/v1/keys/{upload.identifier}", body, headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert json.loads(response.read())["received"] == total
            connection.close()
        assert watched.growth < MEMORY, f"{watched.growth >> 20} MiB"
        held = sum(service.store.objects.sizes("keys/").values())
        assert held == total
        service.delete_keys(upload.identifier)
    service.close()


def test_the_watch_sees_memory_that_is_taken() -> None:
    with Watched() as watched:
        taken = bytearray(os.urandom(1 << 20) * 2 * (MEMORY >> 20))
        time.sleep(0.05)
    assert watched.growth > MEMORY
    del taken
