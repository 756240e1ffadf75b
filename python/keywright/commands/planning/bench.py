"""Time basic operations on this machine, and compare them with what its arithmetic and memory allow.

Each result is decrypted and compared before the operation is timed. All results of bootstraps are compared.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from keywright._core import bench, bench_bootstrap, bench_presets, bench_sets, bench_works
from keywright._reading.documents import OWN, read_json
from keywright._units import format_seconds
from keywright.commands.helpers.errors import CommandError
from keywright.commands.terminal import Column, Terminal, Value

BOOTSTRAP = "bootstrap"

EXAMPLE = "keywright bench rotate multiply --set main"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    works = ", ".join([*bench_works(), BOOTSTRAP])
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"what to measure: {works}")
    parser.add_argument("--set", default="main", choices=bench_sets(), help="parameter set (default: main)")
    parser.add_argument(
        "--preset",
        choices=bench_presets(),
        metavar="PRESET",
        help=f"parameters of {BOOTSTRAP}, which requires it: quick, or a preset with bootstraps of keywright "
        "presets",
    )
    parser.add_argument("--alpha", type=int, help="primes per digit (default: all of the set)")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each operation (default: 5)")
    parser.add_argument(
        "--vectors",
        type=int,
        help=f"vectors with which {BOOTSTRAP} measures precision; all but the first are timed (default: "
        "one more than --runs)",
    )
    parser.add_argument("--seeded", action="store_true", help="use seeded keys")


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Measure and print all figures."""
    bootstraps = BOOTSTRAP in options.works
    if bootstraps != (options.preset is not None):
        raise CommandError(
            f"{BOOTSTRAP} and --preset need each other; run keywright bench {BOOTSTRAP} --preset "
            f"{options.preset or bench_presets()[0]}"
        )
    if options.vectors is not None and not bootstraps:
        raise CommandError(
            f"--vectors is an option of {BOOTSTRAP}, which this command does not measure; leave it out"
        )
    if options.vectors is not None and options.vectors < 2:
        raise CommandError(
            f"--vectors {options.vectors} is too small; use at least 2, because the first is not timed"
        )
    works = [work for work in options.works if work != BOOTSTRAP]
    if unknown := sorted(set(works) - set(bench_works())):
        named = ", ".join([*bench_works(), BOOTSTRAP])
        raise CommandError(f"there is no operation {unknown[0]!r}; use one of {named}")
    if works or not bootstraps:
        _operations(options, works, terminal)
    if bootstraps:
        _bootstrap(options, terminal)


def _operations(options: argparse.Namespace, works: list[str], terminal: Terminal) -> None:
    rows: list[dict[str, Value]] = []

    def emit(line: str) -> None:
        row = read_json(line, OWN)
        if terminal.json:
            terminal.record(row)
            return
        terminal.note(f"{row['work']}, level {row['level']}: {format_seconds(row['median_s'])}")
        row["share"] = row["limit_s"] / row["median_s"]
        rows.append(row)

    bench(emit, set=options.set, alpha=options.alpha, works=works, runs=options.runs, seeded=options.seeded)
    if not terminal.json:
        title = "{} thread{}, back end {}".format(
            rows[0]["threads"], "s" * (rows[0]["threads"] != 1), rows[0]["backend"]
        )
        terminal.table(COLUMNS, rows, title=title)


def _bootstrap(options: argparse.Namespace, terminal: Terminal) -> None:
    lines: list[str] = []
    runs = options.runs if options.vectors is None else options.vectors - 1
    with _phases(terminal) as progress:
        bench_bootstrap(lines.append, preset=options.preset, runs=runs, progress=progress)
    rows = [read_json(line, OWN) for line in lines]
    if terminal.json:
        for row in rows:
            terminal.record(row)
        return
    for columns in BOOTSTRAP_TABLES:
        terminal.table(columns, rows)


@contextmanager
def _phases(terminal: Terminal) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a bar for each phase of a measurement, or a line where there are no bars."""
    with ExitStack() as bar:
        advance: dict[str, Callable[[int], None]] = {}
        before = 0

        def progress(phase: str, done: int, total: int) -> None:
            nonlocal before
            if phase not in advance:
                bar.close()
                terminal.note(phase)
                advance[phase], before = bar.enter_context(terminal.progress(phase, total)), 0
            advance[phase](done - before)
            before = done

        yield progress


COLUMNS = (
    Column("work", "work"),
    Column("log_n", "log2 N", "number"),
    Column("level", "level", "number"),
    Column("alpha", "alpha", "number"),
    Column("median_s", "median", "seconds"),
    Column("limit_s", "limit", "seconds"),
    Column("share", "of the limit", "share"),
    Column("bytes", "bytes", "bytes"),
    Column("checked", "checked"),
)
"""They fit 80 columns; JSON has more numbers."""

# Use tables with one row each, so that they fit a terminal.
BOOTSTRAP_TABLES = (
    (
        Column("preset", "preset"),
        Column("log_n", "log2 N", "number"),
        Column("levels_left", "levels left", "number"),
        Column("threads", "threads", "number"),
        Column("backend", "back end"),
        Column("median_s", "median", "seconds"),
        Column("min_s", "least", "seconds"),
        Column("checked", "checked"),
    ),
    (
        Column("slots_to_coeffs_s", "slots_to_coeffs", "seconds"),
        Column("mod_raise_s", "mod_raise", "seconds"),
        Column("coeffs_to_slots_s", "coeffs_to_slots", "seconds"),
        Column("eval_mod_s", "eval_mod", "seconds"),
    ),
    (
        Column("vectors", "vectors", "number"),
        Column("predicted_mean_bits", "mean bits predicted", "number"),
        Column("mean_bits", "seen", "number"),
        Column("predicted_worst_bits", "worst bits predicted", "number"),
        Column("worst_bits", "seen", "number"),
    ),
    (
        Column("keys", "keys", "number"),
        Column("key_bytes", "bytes", "bytes"),
        Column("keygen_s", "making them", "seconds"),
        Column("precompute_s", "matrices", "seconds"),
        Column("peak_rss_bytes", "peak memory", "bytes"),
    ),
)
