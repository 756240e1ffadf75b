"""The operator's page: its access, and its contents."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, InvalidObjectError
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Server, Service, Workers
from keywright.serve.evaluation.durations import KEPT, Durations, Record
from keywright.serve.http.admin import STYLE, render
from keywright.serve.jobs.job import Job
from keywright.serve.overview import (
    MachineLine,
    ModelLine,
    Overview,
    QueueLine,
    TenantLine,
    oldest_wait,
    tenant_lines,
)
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.uploads.part_writer import PartWriter
from tests.serve.http.test_http import ask, raw, wait
from tests.serve.network import WORKERS, listening, running
from tests.serve.tenants.test_accounts import bearer

Sample = np.ndarray[Any, np.dtype[np.float64]]


class Page(HTMLParser):
    """Tags with their attributes, and rows of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data

    def row(self, first: str) -> list[str]:
        (cells,) = [row for row in self.rows if row[0] == first]
        return cells


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"any:{password}".encode()).decode()}


def test_without_accounts_the_page_is_for_this_machine(server: Server, service: Service) -> None:
    own = basic(service.operator_key)
    status, page, headers = ask(server, "GET", "/admin", headers=own)
    assert status == 200
    assert ask(server, "GET", "/admin", headers=bearer(service.operator_key))[0] == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert ask(server, "GET", "/admin", headers={**own, name: "127.0.0.1"})[0] == 403
    port = server.server_address[1]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}"):
        assert ask(server, "GET", "/admin", headers={**own, "Host": host})[0] == 200
    server.app.names |= {"keywright.example"}
    assert ask(server, "GET", "/health", headers={"Host": "keywright.example"})[0] == 200
    assert ask(server, "GET", "/admin", headers={**own, "Host": "keywright.example"})[0] == 403
    assert b"<!doctype html>" in page
    sent = f"GET /admin HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {own['Authorization']}\r\n\r\n"
    assert b" 200 " in raw(server, sent.encode())


def test_a_silent_proxy_cannot_show_the_page(
    server: Server, service: Service, thin: Model, tmp_path: Path
) -> None:
    """One on this machine that sends no header of its own is a user of this machine to the server."""
    assert b" 401 " in raw(server, b"GET /admin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    for headers in ({}, basic(""), basic("x"), bearer(""), {"Authorization": "Basic ="}):
        status, reply, answered = ask(server, "GET", "/admin", headers=headers)
        assert (status, reply["error"]["type"]) == (401, "unauthorized")
        assert "operator.key" in reply["error"]["message"]
        assert answered["www-authenticate"].startswith("Basic realm=")
    # The key is the owner's alone, and stays.
    first = Service(thin, tmp_path, workers=WORKERS)
    key, file = first.operator_key, tmp_path / "operator.key"
    assert len(key) >= 43
    assert file.read_text().strip() == key != service.operator_key
    assert file.stat().st_mode & 0o077 == 0
    first.close()
    again = Service(thin, tmp_path, workers=WORKERS)
    assert again.operator_key == key
    again.close()


def test_a_trusted_proxy_forwards_addresses(service: Service) -> None:
    with running(Server(service, proxies=["127.0.0.1"])) as server:
        own = basic(service.operator_key)
        assert ask(server, "GET", "/admin", headers={**own, "X-Forwarded-For": "203.0.113.7"})[0] == 403
        assert ask(server, "GET", "/admin", headers=own)[0] == 200


def test_with_accounts_the_page_is_for_admins(thin: Model, tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    operator, tenant = add(path, "operator"), add(path, "tenant")
    accounts = Accounts.load(path, admins=["operator"])
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=accounts)
    with listening(service) as server:
        for headers in (bearer(operator), basic(operator)):
            assert ask(server, "GET", "/admin", headers=headers)[0] == 200
        for headers in (bearer(tenant), basic(tenant)):
            status, reply, _ = ask(server, "GET", "/admin", headers=headers)
            assert (status, reply["error"]["type"]) == (403, "forbidden")
        for headers in ({}, bearer("x"), basic("x"), basic(""), {"Authorization": "Basic ="}):
            status, reply, answered = ask(server, "GET", "/admin", headers=headers)
            assert (status, reply["error"]["type"]) == (401, "unauthorized")
            assert answered["www-authenticate"].startswith('Basic realm="')
        # A password does not help from elsewhere.
        assert ask(server, "GET", "/v1/keys", headers=basic(operator))[0] == 401
    service.close()


def test_the_page_shows_the_state_and_no_credentials(thin: Model, tmp_path: Path, sample: Sample) -> None:
    path = tmp_path / "accounts.json"
    operator, tenant = add(path, "operator"), add(path, "clinic")
    accounts = Accounts.load(path, admins=["operator"])
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=accounts)
    with (
        listening(service) as server,
        RemoteModel(server.url, key=tenant, insecure=True).session() as session,
    ):
        empty = Page(ask(server, "GET", "/admin", headers=bearer(operator))[1].decode())
        assert empty.row(thin.name)[-1] == "0"
        assert not any(row[0] == "clinic" for row in empty.rows)
        session.infer(sample)
        message = framing.join(session._encrypt(sample[None]))
        job = session.remote.send("POST", f"/v1/keys/{session._identifier}/jobs", message)
        text = ask(server, "GET", "/admin", headers=bearer(operator))[1].decode()
        page = Page(text)
        assert page.row(thin.name)[1] == thin.manifest.hash[:8] + "\N{HORIZONTAL ELLIPSIS}"
        assert ("td", {"title": thin.manifest.hash}) in page.tags
        assert int(page.row("Done")[1]) >= 1
        assert page.row("Failed")[1] == "0"
        assert page.row("Median time")[1].endswith(("s", "ms"))
        assert page.row(thin.name)[-1] == "1"
        assert page.row("clinic")[2:4] == ["1", "0"]
        assert page.row("Waiting")[1].endswith(f"of at most {service.jobs.waiting}")
        (machine,) = service.overview().machines
        assert machine.workers == 1
        assert machine.resident_bytes is not None
        assert 20 << 20 < machine.resident_bytes < 4 << 30
        for secret in (operator, tenant, str(session._identifier), str(job["job"])):
            assert secret not in text
            assert hashlib.sha256(secret.encode()).hexdigest() not in text
    service.close()


def test_the_page_loads_nothing_from_other_origins(server: Server, service: Service) -> None:
    _, page, headers = ask(server, "GET", "/admin", headers=basic(service.operator_key))
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    style = re.search(r"<style>(.*?)</style>", page.decode(), re.DOTALL)
    assert style is not None
    assert style[1] == STYLE
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    tags = Page(page.decode()).tags
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "form", "object"})
    for _, attributes in tags:
        assert "src" not in attributes
        assert "style" not in attributes
        assert attributes.get("href") in (None, "/metrics")


def test_shown_text_is_escaped() -> None:
    evil = "<script>\"&'</script>"
    machine = MachineLine(evil, 2, 0.5, 1 << 30, 1 << 30, 1, 1 << 20)
    other = MachineLine("node", 64)
    overview = Overview(
        100.0,
        True,
        QueueLine(1, 256, 0, 90000.0),
        [ModelLine(evil, evil, 1 << 20, 3)],
        [TenantLine(evil, 1, 2, 3, 4, 5), TenantLine("", 0, 0, 0, 0, 0)],
        [machine, other],
    )
    text = render(overview)
    assert "<script" not in text
    page = Page(text)
    assert sum(cell == evil for row in page.rows for cell in row) == 3
    assert ("td", {"title": evil}) in page.tags
    assert page.row("node") == ["node", "64", "", "", "", "", ""]
    assert re.search(r'<span class="badge (\w+)">(.*?)</span>', text).groups() == ("stop", "Stopping")  # type: ignore[union-attr]
    assert page.row("Running for")[1] == "1 min 40 s"
    assert page.row("Longest wait")[1] == "1 d 1 h"
    assert page.row("Without an account")[2:] == ["0", "0", "0", "0"]


@pytest.mark.parametrize(
    ("waiting", "draining", "badge"), [(0, False, "Ready"), (9, False, "Queue full"), (0, True, "Stopping")]
)
def test_the_state_is_a_badge(waiting: int, draining: bool, badge: str) -> None:
    overview = Overview(1.0, draining, QueueLine(waiting, 9, 0, 0.0), [], [], [])
    assert f">{badge}</span>" in render(overview)
    assert Page(render(overview)).row("Median time")[1] == "-"


def test_times_and_counts_are_of_evaluations_that_ended() -> None:
    durations = Durations()
    assert durations.record() == Record()
    for seconds in range(1, KEPT + 101):
        job = Job("j", "k", "m", 0, 1)
        job.seconds = float(seconds)
        durations.add(job)
    refused = Job("j", "k", "m", 0, 1)
    refused.error = BusyError("full")
    durations.add(refused)
    record = durations.record()
    assert (record.done, record.failed) == (KEPT + 100, 1)
    assert durations.typical("m") == record.median == 100 + (KEPT + 1) / 2
    assert record.slow == 100 + int(0.99 * KEPT) + 1
    assert durations.typical("other") is None


def test_tenants_are_counted_apart() -> None:
    jobs = [Job("j", "k", "m", 0, 1, tenant=tenant) for tenant in ("a", "a", "c")]
    jobs[0].state = "running"
    lines = tenant_lines([("a", True, 5), ("a", False, 3), ("b", True, 10)], jobs)
    assert lines == [
        TenantLine("b", 1, 0, 10, 0, 0),
        TenantLine("a", 1, 1, 8, 1, 1),
        TenantLine("c", 0, 0, 0, 1, 0),
    ]
    jobs[1].arrived = time.monotonic() - 50
    assert oldest_wait(jobs) == pytest.approx(50, abs=5)
    assert oldest_wait([]) == 0


def test_workers_rest_without_key_sets(thin: Model, tmp_path: Path, sample: Sample) -> None:
    """The workers of an idle server end, and are back when keys have arrived."""
    workers = Workers()
    service = Service(thin, tmp_path, workers=workers)
    service.prepare()
    (worker,) = workers.all
    before = worker.pid
    assert before is not None
    with listening(service) as server:
        wait(lambda: worker.pid is None)
        with RemoteModel(server.url, insecure=True).session() as session:
            session.upload_keys()
            wait(lambda: worker.pid is not None)
            awake = worker.pid
            time.sleep(2.5)
            assert worker.pid == awake != before
            session.infer(sample)
            assert worker.pid == awake
        wait(lambda: worker.pid is None)
    service.close()
    workers.close()


def test_workers_wake_after_the_head_of_a_set(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a byte, right or wrong, which costs a client nothing."""
    service, head = Service(thin, tmp_path, workers=WORKERS), thin.manifest.keys.head
    woken = threading.Event()
    monkeypatch.setattr(service, "prepare", woken.set)
    monkeypatch.setattr(service, "_prepared", True)

    def begin(size: int) -> PartWriter:
        identifier = str(service.create_keys({"model": service.model.hash})["keys"])
        return service.begin_part(identifier, 0, size)

    with pytest.raises(InvalidObjectError):
        begin(1).append(bytes([head[0] ^ 1]))
    begin(1).append(head[:1])
    piece, awake = begin(len(head)), [service._awake]
    for data in (head[:-1], head[-1:]):
        piece.append(data)
        awake.append(service._awake)
    assert awake == [False, False, True]
    woken.wait()
    service.close()
