"""`python -m compare.bootstrap`: a bootstrap of Keywright beside Lattigo's, interleaved, one thread.

The two are not the same parameters: Lattigo's is its preset N16QP1546H192H32 (9 levels of 40 bits left,
failure 2^-138.7), Keywright's is the preset that is named (its levels, precision and failure probability: see
docs/bootstrapping.md). The record states levels and measured bits of both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from compare import machine
from compare.__main__ import record_folder
from compare.console import Console, StepFailed
from compare.targets import HERE

SHOWN = ("median_s", "levels_left", "log_scale", "worst_bits", "mean_bits", "key_bytes", "keygen_s")
SHOWN_TOO = ("precompute_s", "peak_rss_bytes")


def build_lattigo(build: Path, console: Console) -> Path:
    """Build the Go program.

    Raises:
        SystemExit: there is no Go, or the build failed.
    """
    if shutil.which("go") is None:
        raise SystemExit("no Go toolchain: `go` is not on the path")
    build.mkdir(parents=True, exist_ok=True)
    binary = build / "lattigo-bootstrap"
    command: list[str | Path] = ["go", "build", "-o", binary, "./bootstrap"]
    try:
        console.step(
            "building Lattigo's bootstrap",
            command,
            build / "lattigo.log",
            cwd=HERE / "peers" / "lattigo",
            environment=os.environ,
        )
    except StepFailed as failure:
        raise SystemExit(f"building Lattigo's bootstrap failed: {failure}") from failure
    return binary


def measure(console: Console, name: str, command: list[str]) -> dict[str, Any]:
    """Run one program that prints one JSON object.

    Raises:
        SystemExit: it failed, or its result did not pass its check.
    """
    console.line(f"{name}: {' '.join(command[1:])}")
    environment = {**os.environ, "GOMAXPROCS": "1", "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed with status {done.returncode}")
    record: dict[str, Any] = json.loads(done.stdout)
    if not record["checked"]:
        raise SystemExit(f"{name}: the result is wrong")
    return record


def table(rounds: list[dict[str, dict[str, Any]]]) -> str:
    """Medians over the rounds, and the ratio of the times within each round."""
    libraries = list(rounds[0])
    lines = ["| | " + " | ".join(libraries) + " |", "|---|" + "---|" * len(libraries)]
    for field in (*SHOWN, *SHOWN_TOO):
        cells = []
        for library in libraries:
            values = [found for one in rounds if (found := one[library].get(field)) is not None]
            cells.append(f"{statistics.median(values):.6g}" if values else "-")
        lines.append(f"| {field} | " + " | ".join(cells) + " |")
    ratios = [one["lattigo"]["median_s"] / one["keywright"]["median_s"] for one in rounds]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds"
    return "\n".join([*lines, "", f"Time, Lattigo to Keywright: {statistics.median(ratios):.2f} ({spread})."])


def main() -> None:
    """Build, measure in turns, write the record, print the table."""
    parser = argparse.ArgumentParser(prog="python -m compare.bootstrap", description=__doc__)
    parser.add_argument(
        "--preset", default="N16_QP1738_L9_S45", help="Keywright's preset (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--runs", type=int, default=2, help="timed runs in a round (default: 2)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    options = parser.parse_args()
    if options.rounds < 1 or options.runs < 1:
        parser.error("--rounds and --runs are at least 1")
    console = Console()
    beside = Path(sys.executable).with_name("keywright")
    if not beside.exists():
        raise SystemExit("`keywright` is not installed: run `make build`")
    lattigo = build_lattigo((HERE / ".build").resolve(), console)
    runs = ["--runs", str(options.runs)]
    ours = [str(beside), "bench", "bootstrap", "--preset", options.preset, "--threads", "1", "--json", *runs]
    commands = {"keywright": ours, "lattigo": [str(lattigo), *runs]}
    folder = record_folder(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    rounds: list[dict[str, dict[str, Any]]] = []
    with (folder / "bootstrap.jsonl").open("w") as raw:
        for number in range(options.rounds):
            order = list(commands) if number % 2 == 0 else list(reversed(commands))
            one = {name: measure(console, name, commands[name]) for name in order}
            for name, record in one.items():
                print(json.dumps({"target": name, "round": number, **record}), file=raw, flush=True)
            rounds.append({name: one[name] for name in commands})
    text = table(rounds)
    heading = "\n".join(["# A bootstrap beside Lattigo's, one thread", "", *machine.describe(), ""])
    (folder / "bootstrap.md").write_text(f"{heading}\n{text}\n")
    print(text)
    console.line(f"written: {folder}")


if __name__ == "__main__":
    main()
