"""A peer's process that ends."""

import os
import sys
from pathlib import Path

import pytest
from harness.console import Console
from harness.programs import process
from harness.programs.targets import Executable


def test_a_peer_that_ends_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = Executable((sys.executable,))
    monkeypatch.setattr(process, "prepared", lambda *_: executable)
    monkeypatch.setattr(process, "child_environment", lambda *_: dict(os.environ))
    # The package has no module of its own to run.
    peer = process.PeerProcess("orion", "peers", tmp_path, Console())
    with pytest.raises(process.PeerEnded, match=r"peers ended with status 1") as ended:
        peer.ask({"place": 0})
    assert ended.value.status == 1
    assert ended.value.peak_rss_bytes > 1 << 20
