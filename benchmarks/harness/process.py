"""A peer's module in a process of its own: requests and answers are JSON objects, one per line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import HERE
from harness.schedule import child_environment
from harness.targets import prepared


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
            SystemExit: the process ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.module} ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
