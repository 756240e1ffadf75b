"""A peer's module in a process of its own: requests and answers are JSON objects, one per line."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import HERE
from harness.programs.schedule import child_environment
from harness.programs.targets import prepared


class PeerEnded(SystemExit):
    """A peer's process ended before it answered.

    Attributes:
        status: its exit status; minus the signal that ended it.
        peak_rss_bytes: its largest resident memory.
    """

    def __init__(self, module: str, status: int, peak_rss_bytes: int) -> None:
        super().__init__(f"the process of {module} ended with status {status}")
        self.status, self.peak_rss_bytes = status, peak_rss_bytes


class PeerProcess:
    """Runs until this process ends.

    Args:
        target: whose environment it runs in.
        module: of `peers`.
        build: folder of the peers' builds.
        threads: of the peer.

    Raises:
        Unavailable: the target cannot be set up on this machine.
    """

    def __init__(self, target: str, module: str, build: Path, console: Console, threads: int = 1) -> None:
        self.module = module
        executable = prepared(target, build, console)
        self._process = subprocess.Popen(
            [executable.command[0], "-m", module],
            cwd=HERE,
            env=child_environment(executable, threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            PeerEnded: the process ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.stdout.close()
            raise PeerEnded(self.module, self._process.returncode, usage.ru_maxrss * 1024)
        answer: dict[str, Any] = json.loads(line)
        return answer
