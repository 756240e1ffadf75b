"""Ctrl-C at any point: status 130, one line, no files left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest
from keywright._interrupts import ending_at_interrupts
from keywright.cli import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

WITHIN_AN_OPERATION = """
import hashlib, sys, threading
from pathlib import Path
from keywright._interrupts import ending_at_interrupts
from keywright._files import new_folder

with ending_at_interrupts(), new_folder(Path(sys.argv[1]) / "keys") as folder:
    (folder / "secret.kw").write_bytes(b"half")
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1 << 30)  # minutes, without a look at signals
"""


@pytest.mark.usefixtures("interruptible")
def test_an_operation_that_does_not_end_is_broken_off(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHIN_AN_OPERATION, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        assert len(list(tmp_path.iterdir())) == 1
        time.sleep(1.0)  # until the operation runs: an earlier interrupt is an ordinary one
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate()
    assert running.returncode == 130
    assert errors == "interrupted; no file was left half written\n"
    assert list(tmp_path.iterdir()) == []


class Interrupting(MetaPathFinder):
    """Ctrl-C at the import of the commands."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Raise what a signal raises."""
        if name == "keywright.commands.command_line":
            raise KeyboardInterrupt


def test_imports_can_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "keywright.commands.command_line", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["info", "--help"]) == 130
    assert capsys.readouterr().err == "interrupted; no file was left half written\n"


@pytest.mark.usefixtures("interruptible")
def test_a_block_that_ends_is_an_ordinary_interrupt() -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)

    def interrupted() -> None:
        with ending_at_interrupts():
            signal.raise_signal(signal.SIGINT)
            time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert signal.set_wakeup_fd(before) == before


@pytest.mark.usefixtures("interruptible")
def test_a_handler_of_another_kind_stays_in_charge() -> None:
    """As in `keywright serve`, which finishes running requests before it ends."""
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with ending_at_interrupts():
            signal.raise_signal(signal.SIGINT)
            time.sleep(1.5)  # longer than the patience with an operation
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
