"""The Rust programs of `suite`, which measure what one study alone needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.console import Console, StepFailed
from harness.folders import BUILD, HERE


def build(console: Console, names: Sequence[str]) -> Path:
    """Build programs. Returns the folder in which they are.

    Raises:
        SystemExit: the build failed.
    """
    root = HERE.parent
    BUILD.mkdir(exist_ok=True)
    command = ["cargo", "build", "--release", "--locked", "-p", "keywright-studies"]
    command += [argument for name in names for argument in ("--bin", name)]
    try:
        console.step(
            "building the measurement", command, BUILD / "suite.log", cwd=root, environment=os.environ
        )
    except StepFailed as failure:
        raise SystemExit(f"building the measurement failed: {failure}") from failure
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release"


def output(
    command: Sequence[str], *, name: str | None = None, threads: int = 1, cwd: Path | None = None
) -> str:
    """What a program prints on so many threads.

    Raises:
        SystemExit: it failed.
    """
    counts = dict.fromkeys(("GOMAXPROCS", "RAYON_NUM_THREADS"), str(threads))
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **counts}, cwd=cwd
    )
    if done.returncode != 0:
        raise SystemExit(f"{name or ' '.join(command)} failed with status {done.returncode}")
    return done.stdout
