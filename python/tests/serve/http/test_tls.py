"""TLS with a certificate that these tests make, and trusted proxies."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from keywright.client import RemoteModel
from keywright.errors.service import BadRequestError, ConfigurationError, UnreachableError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.http import connections
from keywright.serve.http.connection_slots import READS, Pace
from starlette.types import Receive, Scope, Send
from tests.serve.http.test_http import ask
from tests.serve.network import running


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a self-signed certificate of the loopback, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


def shown(server: Server, version: ssl.TLSVersion | None = None) -> bytes:
    """The certificate that a server shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version is not None:
        context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(server.server_address) as plain,
        context.wrap_socket(plain) as encrypted,
    ):
        certificate = encrypted.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


def test_a_client_infers_over_tls_and_trusts_no_other_certificate(
    thin: Model,
    service: Service,
    tmp_path: Path,
    sample: np.ndarray[Any, np.dtype[np.float64]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, other = make_certificate(tmp_path, "first"), make_certificate(tmp_path, "other")
    with running(Server(service, certificate=first)) as server:
        assert server.url == f"https://127.0.0.1:{server.server_address[1]}"
        for trusted in (None, other[0]):
            if trusted is not None:
                monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
            with pytest.raises(UnreachableError, match="certificate"):
                RemoteModel(server.url, insecure=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(first[0]))
        with RemoteModel(server.url, insecure=True).session() as session:
            assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
        # A client that speaks plain HTTP gets no answer, and the server continues.
        plain = http.client.HTTPConnection(*server.server_address)
        plain.request("GET", "/health")
        with pytest.raises((OSError, http.client.HTTPException)):
            plain.getresponse()
        plain.close()
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            pytest.warns(DeprecationWarning, match="TLSv1_1"),
        ):
            shown(server, ssl.TLSVersion.TLSv1_1)
        assert shown(server, ssl.TLSVersion.TLSv1_2) == shown(server, ssl.TLSVersion.TLSv1_3)


def test_a_certificate_is_renewed_and_an_invalid_one_is_ignored(service: Service, tmp_path: Path) -> None:
    first, other = make_certificate(tmp_path, "first"), make_certificate(tmp_path, "other")
    with running(Server(service, certificate=first)) as server:
        before = shown(server)
        own = [path.read_bytes() for path in first]
        for spoiled in (b"", own[0][:100], own[1], other[0].read_bytes()):
            first[0].write_bytes(spoiled)
            with pytest.raises(ConfigurationError, check=lambda error: error.code == "certificate"):
                server.renew()
            assert shown(server) == before
        for path, new in zip(first, other, strict=True):
            path.write_bytes(new.read_bytes())
        server.renew()
        assert shown(server) == ssl.PEM_cert_to_DER_cert(other[0].read_text()) != before
    first[1].write_bytes(own[1])
    for pair in (first, (tmp_path / "missing", other[1])):
        with pytest.raises(ConfigurationError, check=lambda error: error.code == "certificate"):
            Server(service, certificate=pair)


def test_only_named_proxies_forward_addresses(service: Service) -> None:
    """Headers of stated proxies are trusted only, and of these only their own entries."""
    forwarded = {"X-Forwarded-For": "127.0.0.1, 203.0.113.7", "X-Forwarded-Proto": "https"}
    for proxies, client, scheme in (
        ((), "127.0.0.1", "http"),
        (("10.0.0.0/8",), "127.0.0.1", "http"),
        (("127.0.0.1",), "203.0.113.7", "https"),
        (("127.0.0.0/8", "203.0.113.0/24"), "127.0.0.1", "https"),
    ):
        seen: list[tuple[str, str]] = []
        with running(Server(service, proxies=proxies)) as server:
            inner = server.app._app

            async def look(
                scope: Scope, receive: Receive, send: Send, seen: list[Any] = seen, inner: Any = inner
            ) -> None:
                if scope["type"] == "http":
                    seen.append((scope["client"][0], scope["scheme"]))
                await inner(scope, receive, send)

            server.app._app = look
            assert ask(server, "GET", "/health", headers=forwarded)[0] == 200
        assert seen == [(client, scheme)]
    for wrong in ("*", "", "proxy.example", "10.0.0.1/8"):
        with pytest.raises(BadRequestError):
            Server(service, proxies=(wrong,))


@pytest.fixture
def encrypted(service: Service, tmp_path: Path) -> Iterator[Server]:
    with running(Server(service, certificate=make_certificate(tmp_path, "records"))) as server:
        yield server


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets an entry for each read that counts."""
    reads: list[None] = []
    wait = Pace.wait

    def count(self: Pace, address: str) -> float:
        delay = wait(self, address)
        if self._times == READS and not delay:
            reads.append(None)
        return delay

    monkeypatch.setattr(Pace, "wait", count)
    return reads


def test_no_policy_chooses_the_loop(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are counted by protocols that only asyncio's own loop uses."""

    def foreign() -> asyncio.AbstractEventLoop:
        raise AssertionError("the loop of the policy was taken")

    monkeypatch.setattr(asyncio.events, "new_event_loop", foreign)
    with running(Server(service)) as server:
        assert ask(server, "GET", "/v1/health")[0] < 500


def test_records_count_as_reads(encrypted: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four connections that sent records of one byte stopped the server, and so did one that changed its
    keys again and again: whatever a record carries, it costs the event loop time. An address that was alone
    sent 700 such records in one read of each of 200 connections, and a newcomer waited for all of them."""
    reads, records = counted(monkeypatch), 4000
    with (
        socket.create_connection(encrypted.server_address) as plain,
        trusting().wrap_socket(plain) as connection,
    ):
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\na: ":
            connection.send(bytes([byte]))
        for _ in range(records):
            connection.send(b"x")
        connection.send(b"\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert len(reads) >= records


class OtherLoops(asyncio.DefaultEventLoopPolicy):
    """A policy of a process that has installed another event loop."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        raise AssertionError("the service runs in another loop")


def test_another_event_loop_of_the_process_is_not_used(service: Service, tmp_path: Path) -> None:
    """uvloop left records uncounted, without a word."""
    asyncio.set_event_loop_policy(OtherLoops())
    try:
        with running(Server(service, certificate=make_certificate(tmp_path, "records"))) as server:
            assert get_over_tls(server, "127.0.0.1").startswith(b"HTTP/1.1 200 ")
    finally:
        asyncio.set_event_loop_policy(None)


def test_reads_of_a_negotiation_count(encrypted: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch)
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    negotiation = trusting().wrap_bio(arriving, leaving)
    with pytest.raises(ssl.SSLWantReadError):
        negotiation.do_handshake()
    hello = leaving.read()
    with socket.create_connection(encrypted.server_address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(len(hello)):
            connection.send(hello[place : place + 1])
            time.sleep(0.001)
        assert connection.recv(1) == b"\x16"
    assert len(reads) > len(hello) / 4


def test_a_peer_that_reads_nothing_is_not_read(tmp_path: Path) -> None:
    """Each change of keys was answered and the answer kept in memory, as long as the connection stood."""
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = trusting().wrap_bio(arriving, leaving)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(*make_certificate(tmp_path, "own"))
    transport, connection = MagicMock(), MagicMock()
    transport.is_closing.return_value = False
    transport.write.side_effect = arriving.write

    def feed(tls: connections.EncryptedTransport) -> None:
        data = leaving.read()
        while data:
            place = tls.get_buffer(-1)
            count = min(len(place), len(data))
            place[:count], data = data[:count], data[count:]
            tls.buffer_updated(count)

    async def run() -> None:
        connection.loop = asyncio.get_running_loop()
        tls = connections.EncryptedTransport(connection, Pace(times=READS), own)
        tls.connection_made(transport)
        for _ in range(2):
            with contextlib.suppress(ssl.SSLWantReadError):
                peer.do_handshake()
            feed(tls)
        tls.pause_writing()
        transport.resume_reading.reset_mock()
        peer.write(b"x")
        place = tls.get_buffer(-1)
        head = leaving.read(len(place))
        place[: len(head)] = head
        tls.buffer_updated(len(head))
        assert transport.pause_reading.called
        assert not transport.resume_reading.called
        tls.resume_writing()
        await asyncio.sleep(0)
        assert transport.resume_reading.called
        feed(tls)
        connection.data_received.assert_called_once_with(b"x")

    asyncio.run(run())


def test_records_of_an_address_wait_while_others_are_served(
    encrypted: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a request that had to wait still arrives."""
    monkeypatch.setattr("keywright.serve.http.connection_slots.REQUESTS_A_SECOND", 8)
    monkeypatch.setattr("keywright.serve.http.connection_slots.BURST", 8)
    held: list[bool] = []
    hold = connections.Connection.hold

    def note(self: connections.Connection, *, on: bool) -> None:
        held.append(on)
        hold(self, on=on)

    monkeypatch.setattr(connections.Connection, "hold", note)
    assert get_over_tls(encrypted, "127.0.0.1").startswith(b"HTTP/1.1 200 ")
    assert get_over_tls(encrypted, "127.0.0.99", 150).startswith(b"HTTP/1.1 200 ")
    assert True in held
    assert held[-1] is False
    assert get_over_tls(encrypted, "127.0.0.1").startswith(b"HTTP/1.1 200 ")


def get_over_tls(server: Server, source: str, records: int = 0) -> bytes:
    """Return the answer to a request that has so many more records of one byte."""
    with (
        socket.create_connection(server.server_address, source_address=(source, 0)) as plain,
        trusting().wrap_socket(plain) as connection,
    ):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\na: ")
        for _ in range(records):
            connection.send(b"x")
        connection.sendall(b"\r\n\r\n")
        return connection.recv(1 << 16)
