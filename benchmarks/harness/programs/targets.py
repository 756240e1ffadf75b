"""The compared targets: Keywright and each peer, with their set-up in a build folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.console import Console, StepFailed
from harness.folders import HERE
from harness.sets import SETS, Case

KEYWRIGHT = "keywright"


class Unavailable(Exception):
    """A target cannot be measured on this machine; the message is the reason that its column shows."""


@dataclass(frozen=True)
class Executable:
    """A command that is ready to run, and what it adds to the environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    peer: bool = True
    """A peer program reads the sets from `sets.json`; `keywright bench` knows them by name."""

    def arguments(self, case: Case, runs: int, threads: int) -> list[str]:
        """The whole command line for one case."""
        options = ["--set", case.set_name, "--alpha", str(case.alpha)]
        options += ["--runs", str(runs), "--threads", str(threads)]
        if self.peer:
            return [*self.command, "--sets", str(SETS), *options, "--work", ",".join(case.works)]
        return [*self.command, *options, *case.works]


@dataclass(frozen=True)
class Target:
    """A column of the table. `own_digits`: the library takes no alpha, so one case of a set is enough."""

    name: str
    prepare: Callable[[Path, Console], Executable]
    own_digits: bool = False


def keywright(backend: str | None) -> Callable[[Path, Console], Executable]:
    """The installed `keywright`, beside this interpreter or on the path, with one back end forced."""

    def prepare(build: Path, console: Console) -> Executable:
        beside = Path(sys.executable).with_name("keywright")
        command = str(beside) if beside.exists() else shutil.which("keywright")
        if command is None:
            raise Unavailable("`keywright` is not installed: run `make build`")
        environment = {} if backend is None else {"KEYWRIGHT_BACKEND": backend}
        return Executable((command, "bench", "--json"), environment, peer=False)

    return prepare


def lattigo(build: Path, console: Console) -> Executable:
    """Build the Go program; `go.sum` pins Lattigo."""
    if shutil.which("go") is None:
        raise Unavailable("no Go toolchain: `go` is not on the path")
    binary = build / "lattigo"
    step(
        console,
        "building lattigo",
        ["go", "build", "-o", binary, "."],
        build / "lattigo.log",
        HERE / "peers/lattigo",
    )
    return Executable((str(binary),))


def poulpy(build: Path, console: Console) -> Executable:
    """Build the Rust program with nightly; it wants AVX-512 IFMA."""
    if shutil.which("cargo") is None:
        raise Unavailable("no Rust toolchain: `cargo` is not on the path")
    nightly = subprocess.run(["cargo", "+nightly", "--version"], capture_output=True, text=True, check=False)
    if nightly.returncode != 0:
        raise Unavailable("no nightly Rust: run `rustup toolchain install nightly`")
    if "avx512ifma" not in Path("/proc/cpuinfo").read_text():
        raise Unavailable("this CPU has no AVX-512 IFMA, which poulpy's fastest back end needs")
    target = build / "poulpy"
    flags = {"CARGO_TARGET_DIR": str(target), "RUSTFLAGS": "-C target-cpu=native"}
    command = ["cargo", "+nightly", "build", "--release", "--locked"]
    step(console, "building poulpy", command, build / "poulpy.log", HERE / "peers/poulpy", flags)
    return Executable((str(target / "release" / "keywright-peer-poulpy"),))


def wheel(package: str, module: str, python: Callable[[], Path]) -> Callable[[Path, Console], Executable]:
    """A virtual environment with the wheel that `peers/PACKAGE/requirements.txt` pins, and a test import."""

    def prepare(build: Path, console: Console) -> Executable:
        pins = HERE / "peers" / package / "requirements.txt"
        command = environment(package, module, python(), pins, build, console)
        return Executable((str(command), "-m", f"peers.{package}"))

    return prepare


def environment(
    package: str, module: str, interpreter: Path, pins: Path, build: Path, console: Console
) -> Path:
    """The interpreter of a virtual environment with what a file pins, after a test import.

    Raises:
        Unavailable: it cannot be made on this machine.
    """
    venv, log = build / package, build / f"{package}.log"
    installed, command = venv / "installed.txt", venv / "bin" / "python"
    expected = f"{interpreter}\n{pins.read_text()}"
    if not installed.exists() or installed.read_text() != expected:
        make: list[str | Path] = [interpreter, "-m", "venv", "--clear", venv]
        step(console, f"making an environment for {package}", make, log, pins.parent)
        pip: list[str | Path] = [command, "-m", "pip", "install", "--disable-pip-version-check", "-r", pins]
        step(console, f"installing {package}", pip, log, pins.parent)
        step(console, f"importing {package}", [command, "-c", f"import {module}"], log, pins.parent)
        installed.write_text(expected)
    return command


def step(
    console: Console,
    text: str,
    command: Sequence[str | Path],
    log: Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run one set-up command in a folder; a failure makes the target unavailable."""
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        console.step(
            text,
            command,
            log,
            cwd=folder,
            environment={**os.environ, **(environment or {})},
        )
    except StepFailed as failure:
        raise Unavailable(f"{text} failed: {failure} (log: {os.path.relpath(log, HERE)})") from failure


def this_python() -> Path:
    """The interpreter that runs the comparison."""
    return Path(sys.executable)


def python_3_10() -> Path:
    """Python 3.10, the one version that OpenFHE's current wheel is built for."""
    interpreter = shutil.which("python3.10")
    managed = sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))
    for candidate in [*([Path(interpreter)] if interpreter else []), *managed]:
        # A version manager's stand-in exists for every version, whether or not it is the selected one.
        if subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return candidate
    raise Unavailable("no Python 3.10, the version of OpenFHE's wheel: `python3.10` is not on the path")


TARGETS = (
    Target(KEYWRIGHT, keywright(None)),
    Target("keywright-avx2", keywright("avx2")),
    Target("keywright-portable", keywright("portable")),
    Target("lattigo", lattigo),
    Target("openfhe", wheel("openfhe", "openfhe", python_3_10)),
    Target("desilo", wheel("desilo", "desilofhe", this_python), own_digits=True),
    Target("tenseal", wheel("tenseal", "tenseal.sealapi", this_python)),
    Target("poulpy", poulpy, own_digits=True),
)


NETWORK_TARGETS = (Target("orion", wheel("orion", "orion", this_python)),)
"""Peers that run whole networks and are not columns of the table of operations."""


def prepared(name: str, build: Path, console: Console) -> Executable:
    """A target by its name, set up.

    Raises:
        Unavailable: it cannot be on this machine.
    """
    return next(target for target in (*TARGETS, *NETWORK_TARGETS) if target.name == name).prepare(
        build, console
    )
