"""Progress on standard error: one line that changes on a terminal, one line per step elsewhere."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CLEAR = "\r\x1b[K"
POLL_S = 0.2


class StepFailed(Exception):
    """A command of a set-up ended with an error; the message is the last line that it wrote."""


class Console:
    """Writes status and messages. Results go to standard output, never here."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def status(self, text: str) -> None:
        """Show what is happening now; on a terminal it replaces the previous status."""
        if self._live:
            sys.stderr.write(f"{CLEAR}{text}")
            sys.stderr.flush()

    def line(self, text: str) -> None:
        """Write a line that stays."""
        sys.stderr.write(f"{CLEAR if self._live else ''}{text}\n")
        sys.stderr.flush()

    def step(
        self,
        text: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> None:
        """Run one command of a set-up, its output appended to `log`, with the elapsed time shown.

        Raises:
            StepFailed: the command is missing or ended with an error.
        """
        self.line(f"{text} ...")
        start = time.monotonic()
        with log.open("a") as output:
            try:
                process = subprocess.Popen(
                    command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise StepFailed(f"{command[0]}: {error.strerror}") from error
            try:
                while process.poll() is None:
                    self.status(f"{text} ... {time.monotonic() - start:.0f} s")
                    time.sleep(POLL_S)
            except BaseException:
                process.terminate()
                process.wait()
                raise
        self.status("")
        if process.returncode != 0:
            raise StepFailed(
                last_line(log.read_text(errors="replace")) or f"exit status {process.returncode}"
            )


def last_line(text: str) -> str:
    """The last line that is not empty: where most tools put the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
