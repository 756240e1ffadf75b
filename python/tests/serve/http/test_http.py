"""The service over sockets: browsers, and misuse."""

from __future__ import annotations

import ast
import contextlib
import http.client
import json
import socket
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keywright as kw
import pytest
from keywright._units import format_bytes
from keywright.errors.service import BadRequestError
from keywright.model import Model
from keywright.serve import Server, Service, load_page
from keywright.serve.http import admin, connections, upload_headers
from keywright.serve.http import app as app_module
from keywright.serve.http.app import MAX_PART
from keywright.serve.http.request_checks import SINGLE
from keywright.serve.jobs.job import Job
from keywright.serve.service import ServiceLimits
from keywright.serve.tenants.accounts import Accounts, add
from tests.serve.network import WORKERS, listening


def ask(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any, Mapping[str, str]]:
    """Return status, JSON and headers of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    try:
        # The same identifier for all: equal requests get equal answers.
        connection.request(method, path, body, {"X-Request-Id": "asked", **(headers or {})})
        response = connection.getresponse()
        data = response.read()
        kind = response.getheader("Content-Type")
        return (
            response.status,
            json.loads(data) if data and kind in ("application/json", "application/problem+json") else data,
            {name.lower(): value for name, value in response.headers.items()},
        )
    finally:
        connection.close()


def raw(server: Server, request: bytes, *, ends: bool = False) -> bytes:
    """Return the first bytes of the answer to arbitrary bytes; nothing may follow."""
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(request)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        return connection.recv(1 << 16)


def wait(until: Callable[[], bool]) -> None:
    """Wait for what the server does after its answer, or before."""
    while not until():
        time.sleep(0.01)


def test_answers_wait_for_no_acknowledgement(server: Server) -> None:
    """A client acknowledges the header of an answer after 40 ms; the body must not wait for that."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    times = []
    for _ in range(41):
        start = time.perf_counter()
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        times.append(time.perf_counter() - start)
    connection.close()
    assert statistics.median(times) < 0.03


def test_the_manifest_and_the_page_are_served(server: Server, thin: Model) -> None:
    status, manifest, headers = ask(server, "GET", "/v1/model")
    assert status == 200
    assert manifest == json.loads(thin.manifest.encoded)
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    status, page, _ = ask(server, "GET", "/")
    assert (status, page) == (200, b"<p>page</p>")


def test_without_a_page_a_browser_gets_a_description(thin: Model, tmp_path: Path) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with (
        contextlib.closing(Service(thin, tmp_path / "state", workers=WORKERS)) as service,
        listening(service, page=None) as server,
    ):
        status, page, headers = ask(server, "GET", "/", headers=browser)
        assert status == 200
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert thin.manifest.hash.encode() in page
        assert format_bytes(thin.manifest.keys.size).encode() in page
        assert f"RemoteModel(&quot;http://127.0.0.1:{server.server_address[1]}&quot;)".encode() in page
        for headers in ({}, {"Accept": "application/json"}):
            status, reply, _ = ask(server, "GET", "/", headers=headers)
            assert (status, reply["error"]["type"]) == (404, "no_such_path")
        assert ask(server, "GET", "/other", headers=browser)[0] == 404


def test_the_list_of_models_states_the_time_of_an_evaluation(
    server: Server, service: Service, thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = ask(server, "GET", "/v1/models")[1]["models"]
    assert line["seconds"] == thin.predicted_seconds > 0
    job = Job("j", "k", thin.manifest.hash, 0, 1)
    job.seconds = 12.5
    service.evaluations.execution.durations.add(job)
    (line,) = ask(server, "GET", "/v1/models")[1]["models"]
    assert line["seconds"] == 12.5
    # A tenant learns nothing of the evaluations of others.
    path = tmp_path / "accounts.json"
    key = add(path, "tenant")
    monkeypatch.setattr(service, "accounts", Accounts.load(path))
    (line,) = ask(server, "GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})[1]["models"]
    assert line["seconds"] == thin.predicted_seconds


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/nothing", None, 404, "no_such_path"),
        ("GET", "/../pyproject.toml", None, 404, "no_such_path"),
        ("GET", "/%2e%2e/pyproject.toml", None, 404, "no_such_path"),
        ("POST", "/v1/model", b"", 405, "no_such_method"),
        ("TRACE", "/v1/models", None, 405, "no_such_method"),
        ("POST", "/v1/nothing", b"", 404, "no_such_path"),
        ("POST", "/v1/keys", b"", 400, "bad_request"),
        ("POST", "/v1/keys", b"[]", 400, "bad_request"),
        ("POST", "/v1/keys", b"[" * 4000, 400, "bad_request"),
        ("POST", "/v1/keys", b"\xff", 400, "bad_request"),
        ("POST", "/v1/keys", b'{"model": "\\ud800"}', 400, "bad_request"),
        ("POST", "/v1/keys", b"x" * 4097, 413, "too_large"),
        ("POST", "/v1/keys", b'{"model": "0"}', 409, "other_model"),
        ("GET", "/v1/keys/0", None, 404, "unknown_keys"),
        ("GET", "/v1/keys/" + "0" * 32, None, 404, "unknown_keys"),
        ("GET", "/v1/keys/..", None, 404, "unknown_keys"),
        ("PUT", "/v1/keys/0/parts", b"x", 400, "bad_request"),
        ("PUT", "/v1/keys/0/parts?offset=-1", b"x", 400, "bad_request"),
        ("PUT", "/v1/keys/0/parts?offset=0", b"x", 404, "unknown_keys"),
        ("DELETE", "/v1/keys/0", None, 404, "unknown_keys"),
        ("GET", "/v1/jobs/0", None, 404, "unknown_job"),
        ("GET", "/v1/jobs/0/result", None, 404, "unknown_job"),
    ],
)
def test_a_refusal_has_a_status_a_code_and_a_sentence(
    server: Server, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    opening, reply, headers = ask(server, method, path, body)
    assert (opening, reply["error"]["type"]) == (status, code)
    assert set(filter(None, headers.get("allow", "").split(", "))) == (
        {"GET", "HEAD"} if status == 405 else set()
    )
    assert len(reply["error"]["message"]) > 10


def test_lengths_are_checked_before_bytes(server: Server, thin: Model) -> None:
    """No body is sent: the header alone determines the answer."""
    host = b"Host: 127.0.0.1\r\n"
    start = b"PUT /v1/keys/0/parts?offset=0 HTTP/1.1\r\n" + host
    assert b"413" in raw(server, start + b"Content-Length: %d\r\n\r\n" % (MAX_PART + 1)).splitlines()[0]
    for lengths in (b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: " + b"9" * 30):
        assert b"400" in raw(server, start + lengths + b"\r\n\r\n").splitlines()[0]
    assert (
        b"400"
        in raw(server, start + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n").splitlines()[0]
    )
    post = b"POST /v1/keys/0/jobs HTTP/1.1\r\n" + host
    assert (
        b"413"
        in raw(server, post + b"Content-Length: %d\r\n\r\n" % (thin.requests.most_bytes + 1)).splitlines()[0]
    )
    assert b"400" in raw(server, b"\x16\x03\x01 garbage\r\n\r\n")


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_ambiguous_headers_are_refused(server: Server, name: bytes) -> None:
    """A proxy in front of this server could end such a request elsewhere, or send it to another host."""
    lines = b"%s: %s\r\n%s: %s\r\n" % (name, name, name.title(), name)
    request = b"POST /v1/keys/0/delete HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n"
    assert raw(server, request).startswith(b"HTTP/1.1 400 ")


def test_every_header_that_is_read_stands_once() -> None:
    """A new header that the service reads must be one of `SINGLE`, or a list."""
    constants = {name: getattr(upload_headers, name) for name in ("COMPLETE", "OFFSET", "LENGTH")}
    known = {name.decode() for name in SINGLE} | {"accept"} | set(admin.FORWARDED)
    for file in Path(connections.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("headers") | ast.Attribute(attr="headers"), attr="get"),
                    args=[ast.Constant(value=bytes() | str() as name), *_],
                ):
                    assert (name if isinstance(name, str) else name.decode()).lower() in known, file
    assert {name.lower() for name in constants.values()} <= known


@pytest.mark.parametrize("names", ["model=%s&model=%s", "a&a", "wait=1&w%%61it=2", "model=%s&=&=x"])
def test_a_query_that_names_something_twice_is_refused(server: Server, thin: Model, names: str) -> None:
    """A proxy could have read the other one."""
    query = names.replace("%s", thin.manifest.hash).replace("%%", "%")
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/keys"), ("DELETE", "/v1/keys/0")):
        status, reply, _ = ask(server, method, f"{path}?{query}")
        assert (status, reply["error"]["type"]) == (400, "bad_request")
        assert "twice" in reply["error"]["message"]


def is_problem(reply: bytes) -> bool:
    """Whether the only answer of a connection is a refusal of the form of RFC 9457."""
    head, _, body = reply.partition(b"\r\n\r\n")
    document = json.loads(body)
    status = int(head.split()[1])
    assert b"content-type: application/problem+json" in head.lower()
    assert document["status"] == status >= 400
    return bool(document["error"]["message"] == document["detail"] != "")


def test_bytes_after_a_refused_body_are_not_a_request(server: Server) -> None:
    """The unread bytes of a body would be parsed as a request, if the connection stayed open."""
    smuggled = b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\n\r\n"
    request = b"POST /v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(request + smuggled)
        answers = b""
        while data := connection.recv(1 << 16):
            answers += data
    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 70\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Host: localhost\r\nContent-Length: 5\r\n",
        b"Origin: http://a\r\nOrigin: http://b\r\nContent-Length: 5\r\n",
    ],
)
def test_a_request_smuggled_by_two_lengths_is_not_answered(server: Server, headers: bytes) -> None:
    """The attack: the request that one of two readings hides was answered, 12 of 12."""
    hidden = b"0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = b""
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(b"POST /v1/keys HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + hidden)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(1 << 16):
                reply += more
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in reply.lower()


def test_a_whole_request_is_answered_after_its_sender_has_ended(server: Server) -> None:
    answer = raw(server, b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\n\r\n", ends=True)
    assert answer.startswith(b"HTTP/1.1 200")


def test_half_sent_requests_disconnect_nobody(
    server: Server, key_file: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the maximum number of connections, others are still answered and uploads continue."""
    monkeypatch.setattr(server._slots, "most", 24)
    data, key_set = key_file.read_bytes(), service.store.create(service.model.hash)
    path = f"/v1/keys/{key_set.identifier}/parts?offset=0"
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 18}"
    with contextlib.ExitStack() as stack:

        def connect(start: bytes) -> socket.socket:
            address = ("127.0.0.1", server.server_address[1])
            connection = stack.enter_context(socket.create_connection(address))
            connection.sendall(start)
            return connection

        upload = connect(head.encode() + b"\r\n\r\n")
        wait(key_set.busy)
        upload.sendall(data[: 1 << 17])
        for _ in range(64):
            connect(b"GET /v1/model HTTP/1.1\r\nX: ")
        begun = time.monotonic()
        for _ in range(5):
            assert ask(server, "GET", "/v1/keys/" + key_set.identifier)[0] == 200
        assert time.monotonic() - begun < 10
        upload.sendall(data[1 << 17 : 1 << 18])
        assert upload.recv(1 << 16).startswith(b"HTTP/1.1 200")
    service.delete_keys(key_set.identifier)


def test_empty_uploads_block_nobody(service: Service, server: Server, key_file: Path) -> None:
    """The attack: sixteen requests without a byte of a key blocked all others for an hour."""
    request = json.dumps({"model": service.model.hash}).encode()
    for _ in range(service.store.admission.capacity + 1):
        assert ask(server, "POST", "/v1/keys", request)[0] == 201
    _, opening, _ = ask(server, "POST", "/v1/keys", request)
    path = f"/v1/keys/{opening['keys']}"
    assert ask(server, "PUT", f"{path}/parts?offset=0", key_file.read_bytes()[:1000])[1]["received"] == 1000
    assert ask(server, "DELETE", path)[0] == 200


def test_pages_of_other_sites_are_refused(server: Server) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        status, reply, _ = ask(server, "GET", "/v1/model", headers=headers)
        assert (status, reply["error"]["type"]) == (403, "wrong_host")
    # What is no address is nobody's.
    for origin in ("http://[", "http://]", "//[::1", "http://[x]", "", "http://\u00e9"):
        status, reply, _ = ask(server, "GET", "/v1/model", headers={"Origin": origin})
        assert (status, reply["error"]["type"]) == (403, "wrong_host")
    own = f"127.0.0.1:{server.server_address[1]}"
    assert ask(server, "GET", "/v1/model", headers={"Origin": f"http://{own}"})[0] == 200
    assert ask(server, "GET", "/v1/model", headers={"Host": "localhost"})[0] == 200


def test_addresses_that_are_none_are_refused(server: Server) -> None:
    seen: list[str] = []
    server.app.on_request = lambda method, path, *numbers: seen.append(path)
    try:
        for target in (b"http://[", b"//[", b"/\x1b[2J", b"/%1b%5B2J%C2%9b"):
            answer = raw(server, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answer.splitlines()[0].split()[1] in (b"400", b"404")
        for _ in range(1000):
            if "/%1B%5B2J%C2%9B" in seen:
                break
            time.sleep(0.01)
    finally:
        server.app.on_request = None
    # No control characters of terminals are logged.
    assert "/%1B%5B2J%C2%9B" in seen
    assert all(path.isprintable() and path.isascii() for path in seen)


def test_slow_connections_are_aborted_and_their_bytes_kept(
    server: Server, key_file: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(connections, "SLOWEST", 1 << 20)
    data, upload = key_file.read_bytes(), service.store.create(service.model.hash)
    path = f"/v1/keys/{upload.identifier}"
    head = (
        f"PUT {path}/parts?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 18}\r\n\r\n".encode()
    )
    for start, drip in (
        (b"GET /v1/model HTTP/1.1\r\nX: ", b"x" * 4000),
        (head + data[:1000], data[1000:5000]),
    ):
        with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
            connection.sendall(start)
            begun = time.monotonic()
            with contextlib.suppress(OSError):
                # Never silent for long, and never finished.
                for byte in drip:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.01)
            assert time.monotonic() - begun < 20
    # The received bytes are kept, and the rest may follow.
    assert 1000 < upload.received < 1 << 18
    status, state, _ = ask(
        server, "PUT", f"{path}/parts?offset={upload.received}", data[upload.received : upload.received + 9]
    )
    assert (status, state["received"]) == (200, upload.received)


def test_a_broken_connection_keeps_its_bytes(server: Server, key_file: Path, service: Service) -> None:
    data, model = key_file.read_bytes(), service.model.hash
    _, opening, _ = ask(server, "POST", "/v1/keys", json.dumps({"model": model}).encode())
    path = f"/v1/keys/{opening['keys']}"
    head = f"PUT {path}/parts?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 20}\r\n\r\n"
    raw(server, head.encode() + data[:70_000], ends=True)
    _, state, _ = ask(server, "GET", path)
    assert (state["keys"], state["received"], state["bytes"]) == (opening["keys"], 70_000, len(data))
    assert state["ready"] is False
    assert opening["from"] <= state["from"] < state["until"]
    status, reply, _ = ask(server, "PUT", f"{path}/parts?offset=0", data[:10])
    assert (status, reply["error"]["details"]["received"]) == (409, 70_000)
    status, reply, _ = ask(server, "POST", f"{path}/jobs", b"\1\0\0\0x")
    assert (status, reply["error"]["type"]) == (409, "keys_incomplete")
    offset = 70_000
    while offset < len(data):
        piece = data[offset : offset + (1 << 20)]
        status, state, _ = ask(server, "PUT", f"{path}/parts?offset={offset}", piece)
        assert status == 200
        offset += len(piece)
    assert state["ready"]
    status, seen, _ = ask(server, "GET", path + "/seen")
    assert [sight["what"] for sight in seen["objects"]] == ["a set of switching keys"]
    assert ask(server, "DELETE", path)[1] == {"deleted": True}
    assert ask(server, "GET", path)[0] == 404


def test_a_secret_key_is_refused_over_the_network(server: Server, thin: Model) -> None:
    _, opening, _ = ask(server, "POST", "/v1/keys", json.dumps({"model": thin.manifest.hash}).encode())
    secret = kw.SecretKey.generate(thin.parameters).to_bytes()
    status, reply, _ = ask(server, "PUT", f"/v1/keys/{opening['keys']}/parts?offset=0", secret)
    assert (status, reply["error"]["type"]) == (400, "secret_refused")
    assert ask(server, "GET", f"/v1/keys/{opening['keys']}")[0] == 404


def test_keys_are_deleted_when_the_page_closes_or_time_passes(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "EXPIRE_EVERY_S", 0.01)
    service = Service(thin, tmp_path, workers=WORKERS, limits=ServiceLimits(expiry=3600.0))
    with listening(service) as server:

        def create() -> str:
            _, opening, _ = ask(
                server, "POST", "/v1/keys", json.dumps({"model": thin.manifest.hash}).encode()
            )
            return str(opening["keys"])

        first, second = create(), create()
        # As navigator.sendBeacon sends it.
        assert ask(server, "POST", f"/v1/keys/{first}/delete", b"")[0] == 200
        assert ask(server, "GET", f"/v1/keys/{first}")[0] == 404
        assert ask(server, "POST", f"/v1/keys/{second}/delete", b"x")[1]["error"]["type"] == "too_large"
        assert ask(server, "GET", f"/v1/keys/{second}")[0] == 200
        service.store.get(second).used -= 3601.0
        wait(lambda: len(service.store) == 0)
        assert ask(server, "GET", f"/v1/keys/{second}")[1]["error"]["type"] == "unknown_keys"
    service.close()


def test_pages_are_read_once_and_completely(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=r"index\.html"):
        load_page(tmp_path)
    (tmp_path / "index.html").write_text("x")
    (tmp_path / ".hidden.html").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.wasm").write_bytes(b"\0asm")
    (tmp_path / "link.js").symlink_to(tmp_path / "notes.txt")
    assert set(load_page(tmp_path)) == {"/", "/index.html", "/a/m.wasm"}
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(BadRequestError, match="exceeds 16777216 bytes"):
        load_page(tmp_path)


def test_an_aborted_request_is_not_an_error_of_the_server(
    thin: Model, tmp_path: Path, key_file: Path
) -> None:
    events: list[str] = []
    service = Service(thin, tmp_path, workers=WORKERS, on_event=events.append)
    with listening(service) as server:
        upload = service.store.create(thin.manifest.hash)
        with contextlib.closing(service.begin_part(upload.identifier, 0, thin.manifest.keys.size)) as piece:
            piece.append(key_file.read_bytes())
            service.end_part(piece)
        events.clear()
        for path in (b"/v1/keys", f"/v1/keys/{upload.identifier}/jobs".encode()):
            whole = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf"
            with socket.create_connection(server.server_address) as connection:
                connection.sendall(whole)
        wait(lambda: 'requests_total{method="POST",status="400"} 2.0' in service.measure())
        assert 'status="500"' not in service.measure()
        assert events == []
    service.close()


@pytest.mark.parametrize("size", [70_000, 300_000, 2_000_000])
def test_a_header_that_is_too_long_is_answered(server: Server, size: int) -> None:
    """Also where the sender is still sending: a connection that was reset would have told it nothing."""
    begin = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(begin)
        for _ in range(size // 10_000):
            connection.sendall(b"x" * 10_000)
        connection.shutdown(socket.SHUT_WR)
        reply = b""
        while more := connection.recv(1 << 16):
            reply += more
    assert is_problem(reply)
    assert ask(server, "GET", "/health")[0] == 200


def test_malformed_requests_are_read_for_a_bounded_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REFUSED_S", 0.1)
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        reply = b""
        while more := connection.recv(1 << 16):
            reply += more
        assert reply.startswith(b"HTTP/1.1 400 ")

        def send() -> bool:
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * 1000)
                return False
            return True

        wait(send)
