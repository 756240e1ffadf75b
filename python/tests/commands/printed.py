"""Runs commands in tests, and reads their output."""

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
    """Run a command in a separate process."""
    command = [sys.executable, "-m", "keywright.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the output of a command that fails, in one line: the error, then what to do."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    # Slow machines print progress.
    line, *below = [entry for entry in printed.err.splitlines() if not entry.endswith("on this step")]
    if "--json" in arguments:
        assert not below
        error = json.loads(line)["error"]
        return f"error: {error['message']}; {error.get('advice', '')}"
    assert line.startswith("error: ")
    assert len(below) <= 1
    assert all(entry.startswith("  ") for entry in below)
    return "; ".join([line, *map(str.strip, below)])
