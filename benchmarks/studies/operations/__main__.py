"""`python -m studies.operations`, run in the folder `benchmarks`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from harness.console import Console
from harness.folders import BUILD, HERE, record_folder, today
from harness.measurement import machine
from harness.pages.plot import or_say
from harness.programs.schedule import Measurement, Outcome, Schedule, pin, prepare
from harness.programs.targets import TARGETS
from harness.sets import WORKS, ParameterSet, read_set

from studies.operations import plot
from studies.operations.ratios import tabulate
from studies.operations.report import Report, facts

NOTHING_MEASURED = 1
INTERRUPTED = 130


def parse_options() -> argparse.Namespace:
    """Read and check the command line."""
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(
        prog="python -m studies.operations",
        description="Measure Keywright beside other libraries, interleaved.",
    )
    parser.add_argument("--quick", action="store_true", help="the small parameter set, one round")
    parser.add_argument("--peers", help=f"comma-separated targets (default: all): {', '.join(names)}")
    parser.add_argument("--work", help=f"comma-separated works (default: all): {', '.join(WORKS)}")
    parser.add_argument(
        "--rounds", type=int, help="rounds, each of which runs every target (default: 5; quick: 1)"
    )
    parser.add_argument("--runs", type=int, default=5, help="timed runs of a work in a round (default: 5)")
    parser.add_argument("--threads", type=int, default=1, help="threads of every library (default: 1)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.peers = chosen(parser, options.peers, names, "peer")
    options.work = chosen(parser, options.work, list(WORKS), "work")
    processors = len(os.sched_getaffinity(0))
    if not 1 <= options.threads <= processors:
        parser.error(f"--threads {options.threads}: this machine lends 1 to {processors}")
    if options.rounds < 1 or options.runs < 1:
        parser.error("--rounds and --runs are at least 1")
    return options


def chosen(parser: argparse.ArgumentParser, given: str | None, known: list[str], kind: str) -> list[str]:
    """The known names among those given, in the usual order; all if none is given."""
    if given is None:
        return known
    names = given.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown {kind} {unknown[0]!r}; there are {', '.join(known)}")
    return [name for name in known if name in names]


def discard_empty(folder: Path) -> None:
    """Remove a record without a single line; a refused result is a line, and stays."""
    raw = folder / "raw.jsonl"
    if raw.stat().st_size == 0:
        raw.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def write(options: argparse.Namespace, parameters: ParameterSet, outcome: Outcome, folder: Path) -> Report:
    """Write the table and the plot of the measurements."""
    records = [measurement.record for measurement in outcome.measurements]
    versions = dict.fromkeys(f"{record.raw['library']} {record.version}" for record in records)
    report = Report(
        f"Keywright beside its peers, {today()}",
        facts(
            parameters,
            options.threads,
            options.rounds,
            options.runs,
            machine.describe(),
            [", ".join(versions)],
        ),
        options.peers,
        tabulate(outcome.measurements, parameters.alphas),
        outcome,
    )
    (folder / "table.md").write_text(report.markdown())
    with or_say("plot.png was not written"):
        plot.draw(report.table, options.peers, report.title, folder / "plot.png")
    return report


def main() -> int:
    """Set up, measure, write, print. Returns the exit status."""
    options = parse_options()
    os.chdir(HERE)
    console, outcome = Console(), Outcome()
    parameters = read_set("quick" if options.quick else "main")
    targets = [target for target in TARGETS if target.name in options.peers]
    build = options.build.resolve()
    try:
        programs = prepare(targets, build, console, outcome)
    except KeyboardInterrupt:
        console.line("interrupted before anything was measured")
        return INTERRUPTED
    folder = record_folder(options.out)
    pin(options.threads)
    with (folder / "raw.jsonl").open("w") as raw:

        def keep(measurement: Measurement) -> None:
            line = {
                "target": measurement.target,
                "round": measurement.round,
                "set": parameters.name,
                **measurement.record.raw,
            }
            print(json.dumps(line), file=raw, flush=True)

        plan = Schedule(options.runs, options.threads, console, outcome, keep)
        plan.run(programs, parameters.cases(tuple(options.work)), options.rounds)
    if not outcome.measurements:
        discard_empty(folder)
        console.line("nothing was measured: " + "; ".join(f"{n}: {r}" for n, r in outcome.reasons.items()))
        return INTERRUPTED if outcome.interrupted else NOTHING_MEASURED
    report = write(options, parameters, outcome, folder)
    print(report.text())
    console.line(f"written: {folder}")
    return INTERRUPTED if outcome.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
