"""`python -m studies.neon_instructions`: instructions of transforms and rotations, with NEON and without.

QEMU counts the instructions of the emulated program with a plugin that this command compiles. The load of
the machine does not change the counts. It needs cc, aarch64-linux-gnu-gcc, qemu-aarch64 and rustup's
aarch64-unknown-linux-gnu.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.console import Console, StepFailed
from harness.folders import BUILD, HERE, record_folder, today
from harness.measurement.machine import commit
from harness.pages.table import markdown

TARGET = "aarch64-unknown-linux-gnu"
LIBRARIES = Path("/usr/aarch64-linux-gnu")
BACKENDS = ("portable", "neon")
PARTS = ("kernels", "rotations")
NEEDED = ("cc", "aarch64-linux-gnu-gcc", "qemu-aarch64", "cargo")


class BadCount(Exception):
    """A line of the program's output has no count; the message is the line."""


@dataclass(frozen=True)
class Count:
    """Instructions of one work at a degree, modulo a prime of a width or of a list of widths."""

    work: str
    degree: str
    primes: str
    instructions: int


def parse(text: str) -> list[Count]:
    """The counts of one run: lines of work, degree, widths and what the plugin wrote after them.

    Raises:
        BadCount: a line is not of that form.
    """
    counts = []
    for line in text.splitlines():
        match line.split():
            case [work, degree, primes, count] if count.isdecimal():
                counts.append(Count(work, degree, primes, int(count)))
            case _:
                raise BadCount(line)
    return counts


def build(console: Console) -> tuple[Path, Path]:
    """The program for the emulated processor, and the plugin.

    Raises:
        SystemExit: a tool is missing or failed.
    """
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    BUILD.mkdir(exist_ok=True)
    plugin = BUILD / "libinstructions.so"
    compiler: list[str | Path] = [
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        plugin,
        HERE / "studies" / "neon_instructions.c",
    ]
    cargo = ["cargo", "build", "--release", "--locked", "--target", TARGET, "-p", "keywright-ckks"]
    linker = {f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}_LINKER": "aarch64-linux-gnu-gcc"}
    log, environment, root = BUILD / "neon.log", {**os.environ, **linker}, HERE.parent
    try:
        console.step("compiling the plugin", compiler, log, cwd=root, environment=environment)
        program = [*cargo, "--example", "instructions"]
        console.step("building the program", program, log, cwd=root, environment=environment)
    except StepFailed as failure:
        raise SystemExit(f"a build failed: {failure}") from failure
    folder = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return folder / TARGET / "release" / "examples" / "instructions", plugin


def run(program: Path, plugin: Path, part: str, backend: str) -> list[Count]:
    """Counts of one part on one back end.

    Raises:
        SystemExit: the program failed.
        BadCount: it printed something else.
    """
    command: list[str | Path] = ["qemu-aarch64", "-L", LIBRARIES, "-plugin", plugin, program, part]
    counts = {"KEYWRIGHT_BACKEND": backend, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **counts}
    )
    if done.returncode != 0:
        raise SystemExit(f"{part} with {backend} failed with status {done.returncode}")
    return parse(done.stdout)


def table(counts: dict[str, list[Count]]) -> list[str]:
    """A row for each work: instructions of both back ends, and their ratio."""
    rows = []
    for slow, fast in zip(*(counts[backend] for backend in BACKENDS), strict=True):
        if (slow.work, slow.degree, slow.primes) != (fast.work, fast.degree, fast.primes):
            raise BadCount(f"{slow} beside {fast}")
        ratio = f"{100 * fast.instructions / slow.instructions:.1f} %"
        rows.append([slow.work, slow.degree, slow.primes, slow.instructions, fast.instructions, ratio])
    return markdown(["work", "N", "bits of primes", *BACKENDS, "neon over portable"], rows)


def facts() -> Iterable[str]:
    """What the counts depend on."""
    for tool in (["rustc", "--version"], ["qemu-aarch64", "--version"]):
        text = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
        yield f"* {text.splitlines()[0]}"
    yield f"* `{TARGET}` on {platform.machine()}, release profile, one thread; {commit()}"


def main() -> None:
    """Count, write the record, print the table."""
    parser = argparse.ArgumentParser(prog="python -m studies.neon_instructions", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-neon)")
    given = parser.parse_args()
    program, plugin = build(Console())
    instructions = {
        backend: [count for part in given.parts for count in run(program, plugin, part, backend)]
        for backend in BACKENDS
    }
    lines = [f"# Instructions with NEON and without, {today()}", "", *facts(), "", *table(instructions)]
    folder = record_folder(given.out, "neon")
    (folder / "instructions.md").write_text("\n".join(lines) + "\n")
    raw = {backend: [vars(count) for count in counts] for backend, counts in instructions.items()}
    (folder / "instructions.json").write_text(json.dumps(raw, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
