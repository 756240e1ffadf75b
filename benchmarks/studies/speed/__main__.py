"""The work and the time of a bootstrap for each level that it leaves and each value, and the page of speed.

The engine counts the work of one bootstrap of each case with its counting back end. Then the cases are
timed: the processes of the presets take turns, round after round, on one thread. Seconds are of the
processor. Writes speed.jsonl. With `--page` it measures nothing, and writes the page from the last records.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import HERE, record_folder
from harness.measurement import machine
from harness.programs.suite import output

from studies.speed.cases import COUNTED
from studies.speed.page import last_records, page
from studies.speed.variants import FORMER
from studies.speed.variants import rows as variants

PRESETS = (
    "N16_QP1745_L15_S40",
    "N16_QP1605_L10_S40",
    FORMER,
    "N16_QP1743_L12_S40_real",
    "N16_QP1716_L13_S40",
)
"""Whose keys are made, each in a process of its own."""


def rows(preset: str, *options: str) -> list[dict[str, Any]]:
    """Return the rows that a process prints."""
    command = (sys.executable, "-m", "studies.speed.cases", preset, *options)
    return [json.loads(line) for line in output(command, name=preset, cwd=HERE).splitlines()]


def measure(presets: Sequence[str], rounds: int, runs: int) -> list[dict[str, Any]]:
    """Count every case once, and the variants; time the cases in every round."""
    console = Console()
    out = []
    os.environ["KEYWRIGHT_BACKEND"] = COUNTED
    for preset in presets:
        console.line(f"counting: {preset}")
        out += [{"kind": "count", **row} for row in rows(preset)]
    console.line("counting: variants")
    out += [{"kind": "variant", **row} for row in variants()]
    del os.environ["KEYWRIGHT_BACKEND"]
    for number in range(rounds):
        for preset in presets:
            console.line(f"round {number + 1} of {rounds}: {preset}")
            out += [{"kind": "time", "round": number, **row} for row in rows(preset, "--runs", str(runs))]
    return out


def main() -> int:
    """Write the record and the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.speed", description=__doc__)
    parser.add_argument("--presets", nargs="+", default=PRESETS, help="whose keys are made")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all presets (default: 3)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs in a round (default: 3)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-speed)")
    parser.add_argument("--page", type=Path, help="only write this page, from the last records")
    options = parser.parse_args()
    if options.page is not None:
        options.page.write_text(page(last_records(HERE / "record")), encoding="utf-8")
        return 0
    about = {"kind": "machine", "machine": machine.describe()}
    listed = [about, *measure(options.presets, options.rounds, options.runs)]
    path = record_folder(options.out, "speed") / "speed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in listed), encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
