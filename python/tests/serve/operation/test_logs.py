"""Logs: machine-readable lines, their requests, and nothing that grants access."""

from __future__ import annotations

import io
import json
import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Server, Service, logs
from keywright.serve.tenants.accounts import Accounts, add
from tests.serve.http.test_http import ask, raw, wait
from tests.serve.network import WORKERS, listening
from tests.serve.tenants.test_accounts import bearer


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Return the stream of JSON lines during a test."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:]
    logs.log_json(stream)
    yield stream
    root.handlers[:] = before
    logs.LOGGER.setLevel(logging.NOTSET)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """Every line is a JSON object."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_whatever_is_logged(stream: io.StringIO) -> None:
    logs.log_event("two\nlines \x1b[31m and \u2028 é")
    with logs.on_behalf("r1"):
        logs.log_event("Traceback (most recent call last):\n  ...")
        logs.log_request("GET", "/v1/model", 200, 0, 10, 0.5)
    try:
        raise ValueError("x\ny")
    except ValueError:
        logging.getLogger("another").exception("%d things", 3)
    written_lines = lines(stream)
    assert stream.getvalue().isascii()
    assert "\x1b" not in stream.getvalue()
    assert [entry["level"] for entry in written_lines] == ["info", "error", "info", "error"]
    assert [entry.get("request") for entry in written_lines] == [None, "r1", "r1", None]
    fields = {"method": "GET", "path": "/v1/model", "status": 200, "received_bytes": 0, "sent_bytes": 10}
    assert fields.items() <= written_lines[2].items()
    assert written_lines[3]["message"] == "3 things"
    assert "ValueError" in written_lines[3]["traceback"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a-request_1.x:2", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        ("a b", False),
        ('"}', False),
        ("\xff", False),
    ],
)
def test_a_request_keeps_its_identifier(server: Server, sent: str, kept: bool) -> None:
    for path, status in (("/health", 200), ("/v1/nothing", 404)):
        opening, reply, headers = ask(server, "GET", path, headers={"X-Request-Id": sent})
        identifier = headers["x-request-id"]
        assert opening == status
        assert (identifier == sent) == kept
        assert logs.IDENTIFIER.fullmatch(identifier)
        if status == 404:
            assert reply["instance"] == f"urn:keywright:request:{identifier}"
    two = [ask(server, "GET", "/health", headers={"X-Request-Id": ""})[2]["x-request-id"] for _ in range(2)]
    assert two[0] != two[1]
    # Refusals before anything is routed have one, too.
    assert ask(server, "GET", "/health", headers={"Host": "x"})[2]["x-request-id"] == "asked"


def test_nothing_secret_is_logged(
    thin: Model,
    tmp_path: Path,
    sample: np.ndarray[Any, np.dtype[np.float64]],
    stream: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No part of a client's headers, paths or bodies is logged, valid or not, even after an unexpected
    error."""
    path = tmp_path / "accounts.json"
    key, marker = add(path, "own"), secrets.token_hex(16)
    service = Service(
        thin,
        tmp_path / "state",
        workers=WORKERS,
        accounts=Accounts.load(path),
        on_event=logs.log_event,
    )
    with listening(service) as server:
        server.app.on_request = logs.log_request
        session = RemoteModel(server.url, key=key, insecure=True).session()
        session.infer(sample)
        keys = str(session._identifier)
        message = framing.join(session._encrypt(sample[None]))
        job = ask(server, "POST", f"/v1/keys/{keys}/jobs", message, {**bearer(key), "X-Request-Id": "one"})[1]
        wait(lambda: any(e.get("request") == "one" and "evaluated" in e["message"] for e in lines(stream)))
        for headers in (
            {"Authorization": f"Bearer {marker}"},
            {"Cookie": marker},
            {"X-Request-Id": "{" + marker},
        ):
            ask(server, "GET", f"/v1/keys/{keys}", headers=headers)
        for body in (marker.encode(), json.dumps({"model": marker}).encode()):
            ask(server, "POST", "/v1/keys", body, bearer(key))
            ask(server, "POST", f"/v1/keys/{keys}/jobs?model={marker}", body, bearer(key))
            ask(server, "PUT", f"/v1/keys/{keys}/parts?offset={marker}", body, bearer(key))
        ask(server, "GET", f"/v1/jobs/{job['job']}/result", headers=bearer(key))
        ask(server, marker.upper(), f"/{marker}/{marker}")
        raw(server, f"GET /{marker} HTTP/1.1\r\nHost: {marker}\r\n\r\n".encode())
        raw(server, f"{marker}\r\n\r\n".encode())

        def unforeseen(*arguments: object, **named: object) -> object:
            raise RuntimeError("planted")

        with monkeypatch.context() as patched:
            patched.setattr(service.evaluations, "take", unforeseen)
            assert ask(server, "POST", f"/v1/keys/{keys}/jobs", message, bearer(key))[0] == 500
        session.close()
    service.close()
    written_lines, text = lines(stream), stream.getvalue()
    assert any("planted" in entry["message"] for entry in written_lines)
    requests = [entry for entry in written_lines if entry["message"] == "request"]
    assert {entry["status"] for entry in requests} >= {200, 201, 202, 400, 401, 404, 500}
    assert any(entry["received_bytes"] == len(message) for entry in requests)
    for secret in (
        key,
        keys,
        str(job["job"]),
        marker,
        message[100:120].hex(),
        session._secret.to_bytes()[64:72].hex(),
    ):
        assert secret not in text
        assert secret[: len(secret) // 2 + 1] not in text
    for event in written_lines:
        assert "Bearer" not in event["message"]
