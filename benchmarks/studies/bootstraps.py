"""`python -m studies.bootstraps`: bootstraps of Keywright and of its peers, interleaved.

Every library runs its own preset: levels, precision and failure probability differ, and the record states
them. Each peer is compared with a Keywright preset chosen for it. One process at a time; peers take 10 to 18
GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement import machine
from harness.pages.table import markdown
from harness.programs.suite import output
from harness.programs.targets import Unavailable, prepared, step

SHOWN = (
    "preset",
    "threads",
    "median_s",
    "levels_left",
    "log_scale",
    "worst_bits",
    "mean_bits",
    "key_bytes",
    "keygen_s",
    "precompute_s",
    "peak_rss_bytes",
)
BALANCED, LONG = "N16_QP1732_L9_S45", "N16_QP1745_L15_S40"

Record = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A library's bootstrap: how to set it up, and the Keywright preset that it is compared with."""

    name: str
    prepare: Callable[[Path, Console], Sequence[str]]
    beside: str
    several_threads: bool = True


def lattigo(build: Path, console: Console) -> Sequence[str]:
    """Build the Go program."""
    if shutil.which("go") is None:
        raise Unavailable("no Go toolchain: `go` is not on the path")
    binary = build / "lattigo-bootstrap"
    command: list[str | Path] = ["go", "build", "-o", binary, "./bootstrap"]
    step(
        console,
        "building Lattigo's bootstrap",
        command,
        build / "lattigo-bootstrap.log",
        HERE / "peers/lattigo",
    )
    return (str(binary),)


def of_target(name: str, *arguments: str) -> Callable[[Path, Console], Sequence[str]]:
    """A peer whose program, or environment, is that of the other comparison."""

    def prepare(build: Path, console: Console) -> Sequence[str]:
        return (*prepared(name, build, console).command, *arguments)

    return prepare


def openfhe(secret: str) -> Callable[[Path, Console], Sequence[str]]:
    """The bootstrap's module in the environment of OpenFHE's wheel."""

    def prepare(build: Path, console: Console) -> Sequence[str]:
        python = of_target("openfhe")(build, console)[0]
        return (python, "-m", "peers.openfhe.bootstrap", "--secret", secret)

    return prepare


PEERS = (
    # One of its bootstraps runs on one thread.
    Peer("lattigo", lattigo, BALANCED, several_threads=False),
    Peer("poulpy", of_target("poulpy", "--work", "bootstrap"), LONG),
    Peer("poulpy-ci", of_target("poulpy", "--work", "bootstrap-conjugate-invariant"), LONG),
    Peer("openfhe-sparse", openfhe("sparse"), BALANCED),
    Peer("openfhe-uniform", openfhe("uniform"), BALANCED),
)


def measure(console: Console, name: str, command: Sequence[str], threads: int) -> Record:
    """Run one program that prints one JSON object.

    Raises:
        SystemExit: it failed, or its result did not pass its check.
    """
    console.line(f"{name}: {' '.join(command[1:])}")
    printed = output(command, name=name, threads=threads, cwd=HERE)
    record: Record = json.loads(printed.splitlines()[-1])
    if not record["checked"]:
        raise SystemExit(f"{name}: the result is wrong")
    if record["threads"] != threads:
        raise SystemExit(f"{name} ran on {record['threads']} threads instead of {threads}")
    return record


def table(rounds: Sequence[dict[str, Record]]) -> str:
    """Medians over the rounds of one number of threads, a column for each program."""
    columns = list(rounds[0])
    rows = []
    for field in SHOWN:
        cells = []
        for column in columns:
            values = [table for one in rounds if (table := one[column].get(field)) is not None]
            if values and isinstance(values[0], str):
                cells.append(values[0])
            else:
                cells.append(f"{statistics.median(values):.6g}" if values else "-")
        rows.append([field, *cells])
    return "\n".join(markdown(["", *columns], rows, aligned=False))


def ratios(rounds: Sequence[dict[str, Record]], peers: Sequence[Peer]) -> list[str]:
    """A sentence for each peer: its time to that of the preset beside it, within each round."""
    lines = []
    for peer in peers:
        ratios = [one[peer.name]["median_s"] / one[peer.beside]["median_s"] for one in rounds]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds"
        lines.append(f"Time, {peer.name} to {peer.beside}: {statistics.median(ratios):.2f} ({spread}).")
    return lines


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.bootstraps", description=__doc__)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--peers", default=",".join(names), help="peers, by commas (default: %(default)s)")
    parser.add_argument(
        "--threads", default="1,2", help="numbers of threads, by commas (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--runs", type=int, default=2, help="timed runs in a round (default: 2)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    options = parser.parse_args()
    options.threads = [int(text) for text in options.threads.split(",")]
    options.peers = options.peers.split(",")
    if options.rounds < 1 or options.runs < 1 or min(options.threads) < 1:
        parser.error("--rounds, --runs and --threads are at least 1")
    if unknown := set(options.peers) - set(names):
        parser.error(f"unknown peers {sorted(unknown)}; there are {', '.join(names)}")
    return options


def main() -> None:
    """Set up, measure in turns, write the record, print the tables."""
    given = options()
    console, build = Console(), BUILD
    ours = of_target("keywright")(build, console)
    ready: dict[str, Sequence[str]] = {}
    notes = []
    for peer in PEERS:
        if peer.name in given.peers:
            try:
                ready[peer.name] = peer.prepare(build, console)
            except Unavailable as reason:
                notes.append(f"{peer.name} was not measured: {reason}")
    processors = sorted(os.sched_getaffinity(0))
    if max(given.threads) > len(processors):
        raise SystemExit(f"{max(given.threads)} threads want as many processors; there are {len(processors)}")
    folder = record_folder(given.out)
    text = ["# Bootstraps beside peers", "", *(f"* {fact}" for fact in machine.describe())]
    with (folder / "bootstrap.jsonl").open("w") as raw:
        for threads in given.threads:
            os.sched_setaffinity(0, processors[:threads])
            peers = [p for p in PEERS if p.name in ready and (threads == 1 or p.several_threads)]
            runs = ["--runs", str(given.runs)]
            commands: dict[str, Sequence[str]] = {}
            for preset in dict.fromkeys(peer.beside for peer in peers):
                commands[preset] = (*ours, "bootstrap", "--preset", preset, *runs, "--threads", str(threads))
            for peer in peers:
                flags = ["--threads", str(threads)] if peer.several_threads else []
                commands[peer.name] = (*ready[peer.name], *runs, *flags)
            rounds = []
            for number in range(given.rounds):
                order = list(commands) if number % 2 == 0 else list(reversed(commands))
                one = {name: measure(console, name, commands[name], threads) for name in order}
                for name, record in one.items():
                    print(json.dumps({"target": name, "round": number, **record}), file=raw, flush=True)
                rounds.append({name: one[name] for name in commands})
            text += ["", f"## Threads: {threads}", "", table(rounds), "", *ratios(rounds, peers)]
    text += ["", *notes] if notes else []
    (folder / "bootstrap.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    console.line(f"written: {folder}")


if __name__ == "__main__":
    main()
