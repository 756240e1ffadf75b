"""Measure the operations of this machine, beside the limits that its own rates set.

Each result is decrypted and compared before it is timed.
"""

import argparse
import json

import keywright as kw
from keywright._core import bench, bench_sets, bench_works
from keywright._terminal import Column, Terminal, Value, format_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    works = ", ".join(bench_works())
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"what to measure: {works}")
    parser.add_argument("--set", default="main", choices=bench_sets(), help="parameter set (default main)")
    parser.add_argument("--alpha", type=int, help="primes per digit; all of the set by default")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--threads", type=int, help="threads; all cores by default")
    parser.add_argument("--seeded", action="store_true", help="use seeded keys")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Measure and print every figure."""
    if options.threads is not None:
        kw.set_threads(options.threads)
    rows: list[dict[str, Value]] = []

    def emit(line: str) -> None:
        row = json.loads(line)
        if terminal.json:
            terminal.record(row)
            return
        terminal.note(f"{row['work']}, level {row['level']}: {format_seconds(row['median_s'])}")
        row["share"] = row["limit_s"] / row["median_s"]
        rows.append(row)

    bench(
        emit,
        set=options.set,
        alpha=options.alpha,
        works=options.works,
        runs=options.runs,
        seeded=options.seeded,
    )
    if not terminal.json:
        terminal.table(COLUMNS, rows)


COLUMNS = (
    Column("work", "work"),
    Column("log_n", "log2 N", "number"),
    Column("level", "level", "number"),
    Column("alpha", "alpha", "number"),
    Column("threads", "threads", "number"),
    Column("backend", "back end"),
    Column("median_s", "median", "seconds"),
    Column("min_s", "least", "seconds"),
    Column("limit_s", "limit", "seconds"),
    Column("share", "of the limit", "number"),
    Column("bytes", "bytes", "bytes"),
    Column("checked", "checked"),
)
