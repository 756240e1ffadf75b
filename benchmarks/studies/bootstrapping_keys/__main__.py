"""The bootstrapping section of the KDS paper, measured: `python -m studies.bootstrapping_keys`.

Every bootstrap is decrypted and compared with its bound. One thread. Keys that do not fit are made step by
step and dropped, and the time of making them is not counted. The record is written case by case: the same
command with the same --out resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import keywright as kw
from harness.console import Console
from harness.folders import record_folder
from harness.pages.plot import or_say
from harness.pages.table import heading
from harness.programs.suite import build, output

from studies.bootstrapping_keys import page, plot, relinearization, rotations, rule
from studies.bootstrapping_keys.cases import SETS, Case, schedule, word
from studies.bootstrapping_keys.record import Result, line, read, result, together
from studies.bootstrapping_keys.relinearization import Points
from studies.bootstrapping_keys.report import ABSENT, Tables

GIB = 2**30
PARTS = (*SETS, "relinearization")
PROGRAMS = ("key_design", "relinearization")
INTERRUPTED = 130


def parse_options() -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.bootstrapping_keys", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a ring without security, few depths: a minute")
    parser.add_argument("--only", help=f"comma-separated parts (default: all): {', '.join(PARTS)}")
    parser.add_argument("--log-n", type=int, choices=range(11, 17), help="ring (default: 16; 11 if quick)")
    parser.add_argument("--depths", help="comma-separated depths of the part depths (default: some)")
    parser.add_argument(
        "--runs", type=int, default=1, help="timed bootstraps of a case in a round (default: 1)"
    )
    parser.add_argument("--rounds", type=int, default=1, help="of all timed cases in turn (default: 1)")
    parser.add_argument(
        "--memory",
        type=float,
        default=6,
        help="GiB of keys held at once; a case above it streams (default: 6)",
    )
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    parser.add_argument(
        "--page", type=Path, help="Markdown page whose tables are replaced by those that the record has"
    )
    options = parser.parse_args()
    options.only = PARTS if options.only is None else options.only.split(",")
    if unknown := [name for name in options.only if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if min(options.runs, options.rounds) < 1 or not options.memory > 0:
        parser.error("--runs and --rounds are at least 1, --memory above 0")
    options.log_n = options.log_n or (11 if options.quick else 16)
    options.depths = None if options.depths is None else [int(text) for text in options.depths.split(",")]
    return options


def measure(programs: Path, case: Case, options: argparse.Namespace) -> Result:
    """Run one case.

    Raises:
        SystemExit: the program failed.
        BadRecord: its result did not pass its check.
    """
    runs = options.runs if case.timed else 0
    memory = int(options.memory * GIB)
    command = [str(programs / "key_design"), *case.options(), "--runs", str(runs), "--memory", str(memory)]
    return result(case, json.loads(output(command)))


def lacking(points: Result | None, options: argparse.Namespace) -> bool:
    """Whether a case has not been run in every round."""
    return points is None or (points.case.timed and points.rounds < options.rounds)


def multiply(console: Console, programs: Path | None, folder: Path, options: argparse.Namespace) -> Points:
    """Measure figure 5 where the record lacks it. Returns all its points.

    Raises:
        SystemExit: the program failed.
        BadRecord: a product was wrong.
    """
    path = folder / "relinearization.jsonl"
    points = relinearization.read(path)
    log_n = options.log_n
    alphas = relinearization.QUICK_ALPHAS if options.quick else relinearization.ALPHAS
    for alpha in alphas:
        for coalescing in (False, True):
            if programs is None or any(p.alpha == alpha and p.coalescing == coalescing for p in points):
                continue
            console.line(f"multiplications with alpha = {alpha}{', coarser digits' * coalescing}")
            words = {"log-n": log_n, "alpha": alpha, "coalescing": word(coalescing), "runs": 5}
            command = [str(programs / "relinearization")]
            command += [text for name, value in words.items() for text in (f"--{name}", str(value))]
            lines = output(command)
            points |= dict(map(relinearization.parse, lines.splitlines()))
            with path.open("a") as raw:
                raw.write(lines)
    return points


def write(folder: Path, tables: Tables, points: Points, options: argparse.Namespace) -> None:
    """Write the tables and the plot, and the page's tables if there is one."""
    title = f"Bootstrapping keys: digits and levels, 2^{tables.log_n}"
    parts = tables.everything()
    lines = relinearization.table(points)
    parts["relinearization"] = [*lines, "", relinearization.summary(points)] if lines else [ABSENT]
    text = heading(title, "one thread")
    for name, lines in parts.items():
        text += [f"## {name}", "", *lines, ""]
    (folder / "kds.md").write_text("\n".join(text))
    print("\n".join(text))
    with or_say("no picture was written"):
        ring = f"N = 2^{tables.log_n}, one thread"
        plot.draw(tables, f"KDS (Joo et al. 2025), redrawn: {ring}", folder / "kds.png")
        if points:
            figure_5 = f"KDS (Joo et al. 2025), figure 5, redrawn: {ring}"
            relinearization.draw(points, figure_5, folder / "relinearization.png")
        plan = kw.BootstrapperPlan.preset(rotations.PRESET)
        rotations.draw(plan, f"rotation keys of {rotations.PRESET}", folder / "rotations.png")
    if options.page is not None:
        present = {name: lines for name, lines in parts.items() if lines != [ABSENT]}
        options.page.write_text(page.fill(options.page.read_text(), present, [*parts, *rule.NAMES]))


def main() -> int:
    """Measure what the record lacks, then write it all. Returns the exit status."""
    options = parse_options()
    console = Console()
    folder = record_folder(options.out)
    cases = schedule(options.only, quick=options.quick, log_n=options.log_n, depths=options.depths)
    results = read(folder / "kds.jsonl")
    points: Points = relinearization.read(folder / "relinearization.jsonl")
    figure = "relinearization" in options.only
    status = 0
    try:
        programs = (
            build(console, PROGRAMS)
            if figure or any(lacking(results.get(case), options) for case in cases)
            else None
        )
        with (folder / "kds.jsonl").open("a") as raw:
            turns = [
                (turn, case) for turn in range(options.rounds) for case in cases if case.timed or turn == 0
            ]
            for number, (turn, case) in enumerate(turns, 1):
                known = results.get(case)
                if programs is None or (known is not None and known.rounds > turn):
                    continue
                if case.timed:
                    console.line(f"{number} of {len(turns)}: {' '.join(case.options())}")
                measurement = measure(programs, case, options)
                results[case] = measurement if known is None else together(known, measurement)
                print(line(measurement), file=raw, flush=True)
        if figure:
            points = multiply(console, programs, folder, options)
    except KeyboardInterrupt:
        console.line("interrupted; the same command resumes from here")
        status = INTERRUPTED
    write(folder, Tables(results, options.log_n), points, options)
    console.line(f"written: {folder}")
    return status


if __name__ == "__main__":
    sys.exit(main())
