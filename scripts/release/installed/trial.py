"""A trial of one package, in a folder of its own and without the tools that built it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = (
    *("HOME", "TMPDIR", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL"),
    *("SYSTEMROOT", "TEMP", "USERPROFILE"),
)
"""Variables that say where things are, not how they are built."""


class Failed(Exception):
    """What was installed does not do what it should."""


class Skipped(Exception):
    """The machine lacks what the trial needs."""


def need(*programs: str) -> None:
    """Skip the trial without these programs."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Skipped(f"not installed: {', '.join(missing)}")


def environment(*folders: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A clean environment whose PATH has `folders` and those of the system, if they have no Rust."""
    everywhere = os.environ["PATH"] if os.name == "nt" else SYSTEM
    system = [
        folder
        for folder in everywhere.split(os.pathsep)
        if not any((Path(folder) / name).exists() for name in ("cargo", "cargo.exe"))
    ]
    path = os.pathsep.join([*map(str, folders), *system])
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "LANG": "C.UTF-8",
        "PATH": path,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **(extra or {}),
    }


def run(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> str:
    """Run a command; returns what it prints.

    Raises:
        Failed: it did not end well.
    """
    print("$", *(str(word).partition("\n")[0] for word in command), flush=True)
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"this failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def one(files: Path, pattern: str) -> Path:
    """The file of a pattern.

    Raises:
        Skipped: there is none; a part of a release can be built alone.
    """
    paths = sorted(files.glob(pattern))
    if not paths:
        raise Skipped(f"`make dist` did not build {pattern}")
    if len(paths) > 1:
        raise Failed(f"several files fit {pattern}: {', '.join(path.name for path in paths)}")
    return paths[0]
