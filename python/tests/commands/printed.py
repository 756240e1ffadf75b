"""Commands as tests run them, and what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from keywright.cli import main


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The JSON lines printed since the last call."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "keywright.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a command prints when it fails, beside how far slow machines are."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    *progress, line = printed.err.strip().splitlines()
    assert all(entry.endswith("so far") for entry in progress)
    assert line.startswith("error: ")
    return line
