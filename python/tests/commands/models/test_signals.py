"""Signals at any time of `keywright serve`."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from keywright.cli import main
from keywright.commands import command_line
from keywright.commands.models import serve
from keywright.errors.service import ConfigurationError
from keywright.serve import Server, Service, Workers
from keywright.serve.tenants.accounts import add
from tests.serve.network import make_full

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP")

BEFORE: dict[str, tuple[Any, str]] = {
    "its arguments are read": (command_line, "parser"),
    "its accounts are read": (serve, "_accounts"),
    "models are loaded": (serve, "load_served"),
    "memory is planned": (serve.MemoryPlan, "of"),
    "it has a state folder": (Service, "__init__"),
    "it is prepared": (Service, "prepare"),
    "it listens": (Server, "__init__"),
}
SERVING: dict[str, tuple[Any, str]] = {"it serves": (Server, "serve_forever")}
AFTER: dict[str, tuple[Any, str]] = {
    "the address is released": (Server, "server_close"),
    "the service ends": (Service, "close"),
    "its workers end": (Workers, "close"),
}


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A command that serves for no time, and folders for its state."""
    make_full().save(tmp_path / "model")
    (tmp_path / "temporary").mkdir()
    add(tmp_path / "accounts.json", "a")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(Service, "prepare", lambda service: None)
    monkeypatch.setattr(Server, "serve_forever", lambda server: None)
    given = ["serve", str(tmp_path / "model"), "--port", "0", "--log-format", "json"]
    yield [*given, "--accounts", str(tmp_path / "accounts.json")]
    assert not list((tmp_path / "temporary").iterdir())


@contextmanager
def sending(number: int, place: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Send a signal before the first call of a function. Yields those that the command left to others."""
    left, call = list[int](), getattr(place, name)

    def signalled(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(place, name, call)
        signal.raise_signal(number)
        return call(*given, **named)

    monkeypatch.setattr(place, name, signalled)
    before = signal.signal(number, lambda number, frame: left.append(number))
    try:
        yield left
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("when", [*BEFORE, *SERVING, *AFTER])
def test_a_hangup_never_ends_the_command(
    when: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = (BEFORE | SERVING | AFTER)[when]
    with sending(signal.SIGHUP, *place, monkeypatch) as left:
        assert main(arguments) == 0
    assert left == []
    assert "accounts have been reloaded" in capfd.readouterr().err


@pytest.mark.parametrize("when", [*list(BEFORE)[1:], *AFTER])
def test_a_signal_to_end_leaves_no_folder(
    when: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`arguments` looks for one."""
    served: list[Server] = []

    def serve_forever(server: Server) -> None:
        served.append(server)

    monkeypatch.setattr(Server, "serve_forever", serve_forever)
    with sending(signal.SIGTERM, *(BEFORE | AFTER)[when], monkeypatch) as left:
        if when in BEFORE:
            with pytest.raises(SystemExit, check=lambda ended: ended.code == 0):
                main(arguments)
        else:
            assert main(arguments) == 0
    assert left == []
    assert len(served) == (when in AFTER)


@pytest.mark.parametrize("broken", ["accounts", "certificate"])
def test_the_certificate_and_the_accounts_are_replaced_together(
    broken: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Or neither of them."""
    renewed: list[Server] = []

    def serve_forever(server: Server) -> None:
        before = server._service.accounts
        if broken == "accounts":
            (tmp_path / "accounts.json").write_text("{}")
        signal.raise_signal(signal.SIGHUP)
        assert server._service.accounts is before

    def renew(server: Server) -> None:
        if broken == "certificate":
            raise ConfigurationError("no certificate", code="certificate")
        renewed.append(server)

    monkeypatch.setattr(Server, "renew", renew)
    monkeypatch.setattr(Server, "serve_forever", serve_forever)
    assert main(arguments) == 0
    assert renewed == []
    assert "stay as they were" in capfd.readouterr().err
