"""What the measurements ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from keywright._core import bench_checked

CHECKED = "an engine that checks its arithmetic, as the build for tests does: a release takes less time"


def describe() -> list[str]:
    """Processor, memory, commit, and the build if its times are not those of a release; a fact a line."""
    return [
        f"{processor()}, {os.cpu_count()} processors, {memory_gib():.0f} GiB, {platform.release()}",
        commit(),
        *([CHECKED] if bench_checked() else []),
    ]


def processor() -> str:
    """Model name as the kernel reports it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gib() -> float:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def commit() -> str:
    """The commit that is checked out, and whether files differ from it."""
    git = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        process = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return "Keywright commit unknown: no git"
    return (
        f"Keywright commit {process.stdout.strip()}"
        if process.returncode == 0
        else "Keywright commit unknown"
    )
