"""Measure key switches and other operations on this machine, so that `keywright plan` predicts their times.

Times are for one thread. The speed of several threads (--threads) is measured with a linear transform. The
file records the processor, the instruction set and the release. `keywright plan` refuses a file from another
machine.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import keywright as kw
from keywright._files import new_file
from keywright.commands.helpers.errors import CommandError
from keywright.commands.terminal import Column, Terminal, Value
from keywright.plan.cost import CHAINS, Calibration, Measurement, fit, measure, speedup

from .calibrate_check import BOOTSTRAPS, ProgramCheck, check_bootstrap, check_network

WORDS = {
    "switch": "a key switch alone",
    "hoisted": "one of four hoisted ones",
    "transform": "a linear transform",
    "product": "a product of ciphertexts",
    "operation": "a rescaling, sum or encoding",
    "ring": "a switch from the ring of twice the degree",
    "key": "making a key",
    "load": "reading a key",
}

EXAMPLE = "keywright calibrate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--out", type=Path, help="file to write (default: in the user's cache)")
    parser.add_argument(
        "--rings",
        type=int,
        nargs="+",
        choices=sorted(CHAINS),
        help="base-2 logarithms of the ring degrees to measure (default: all; with --check the rings of "
        "the calibration)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; test the existing calibration on other levels and digits than it was fitted "
        "to, a bootstrap and a network",
    )
    parser.add_argument(
        "--network", type=Path, nargs="+", help="models for --check (.onnx; default: the digits network)"
    )
    parser.add_argument(
        "--bootstrap",
        choices=kw.BootstrapperPlan.presets(),
        nargs="+",
        metavar="PRESET",
        help="bootstraps for --check, of keywright presets (default: one for the largest measured ring, if "
        "there is one)",
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Measure, fit, write; or measure and compare."""
    if not options.check and (options.network or options.bootstrap):
        raise CommandError("--network and --bootstrap choose what --check runs; add --check")
    path = options.out or Calibration.path()
    calibration = Calibration.load(path) if options.check else None
    known = sorted(CHAINS if calibration is None else calibration.gauges)
    rings = options.rings or known
    unknown = sorted(set(rings) - set(known))
    if unknown:
        raise CommandError(
            f"the calibration has no ring of degree 2^{unknown[0]} to check; calibrate that ring first"
        )
    threads, start = kw.threads(), time.perf_counter()
    try:
        measured = measure(rings, held_out=options.check, progress=terminal.progress)
        times = speedup(max(rings), threads) if threads > 1 else 1.0
    finally:
        kw.set_threads(threads)
    if calibration is None:
        calibration = fit(measured, {threads: times} if threads > 1 else {})
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write_text(calibration.to_json(), encoding="utf-8")
    _table(calibration, measured, terminal)
    _print_speedup(calibration, threads, times, terminal)
    if options.check:
        try:
            _check_programs(options, max(rings), calibration, terminal)
        finally:
            kw.set_threads(threads)
    terminal.note(f"{calibration.machine}: {time.perf_counter() - start:.0f} s")
    if not options.check:
        terminal.note(f"written to {path}")


def _print_speedup(calibration: Calibration, threads: int, times: float, terminal: Terminal) -> None:
    expected = calibration.speedup(threads)
    if threads == 1 or expected is None:
        return
    columns = [
        Column("threads", "threads", "number"),
        Column("predicted_speedup", "times faster than one, predicted", "number"),
        Column("speedup", "measured", "number"),
    ]
    row: dict[str, Value] = {
        "threads": threads,
        "predicted_speedup": round(expected, 2),
        "speedup": round(times, 2),
    }
    terminal.table(columns, [row], title="Threads")


def _table(calibration: Calibration, measured: list[Measurement], terminal: Terminal) -> None:
    model = calibration.model
    rows: list[dict[str, Value]] = []
    for log_n in sorted({entry.shape.chain.log_n for entry in measured}):
        for what, words in WORDS.items():
            results = [e for e in measured if e.what == what and e.shape.chain.log_n == log_n]
            if not results:
                continue
            slowdowns = [entry.gauge / calibration.gauges[log_n] for entry in results]
            ratios = [entry.predicted(model) / entry.seconds for entry in results]
            errors = [abs(ratio - 1) for ratio in ratios]
            steady = [abs(ratio * slow - 1) for ratio, slow in zip(ratios, slowdowns, strict=True)]
            rows.append(
                {
                    "ring": f"2^{log_n}",
                    "what": words,
                    "count": len(results),
                    "fastest": min(entry.seconds for entry in results),
                    "slowest": max(entry.seconds for entry in results),
                    "median_error": median(errors),
                    "worst_error": max(errors),
                    "slowdown": median(slowdowns),
                    "median_steady_error": median(steady),
                    "worst_steady_error": max(steady),
                }
            )
    columns = [
        Column("ring", "ring degree"),
        Column("what", "what"),
        Column("count", "measured", "number"),
        Column("fastest", "fastest", "seconds"),
        Column("slowest", "slowest", "seconds"),
        Column("median_error", "median prediction error", "ratio"),
        Column("worst_error", "worst", "ratio"),
        Column("slowdown", "slowdown since calibration", "ratio"),
        Column("median_steady_error", "error without drift", "ratio"),
        Column("worst_steady_error", "worst", "ratio"),
    ]
    terminal.table(columns, rows, title="Predicted beside measured")


def _check_programs(
    options: argparse.Namespace, largest: int, calibration: Calibration, terminal: Terminal
) -> None:
    """Predict and measure networks and bootstraps, one of the largest ring unless the options name others."""
    presets = options.bootstrap or ([BOOTSTRAPS[largest]] if largest in BOOTSTRAPS else [])
    networks = options.network or [None]
    checks: list[ProgramCheck] = []
    with terminal.progress("programs", len(presets) + len(networks)) as advance:
        for preset in presets:
            checks.append(check_bootstrap(preset, calibration))
            advance(1)
        for network in networks:
            checks.append(check_network(network, calibration))
            advance(1)
    columns = [
        Column("what", "what"),
        Column("switches_s", "key switches, predicted", "seconds"),
        Column("rest_s", "the rest, predicted", "seconds"),
        Column("predicted_s", "both", "seconds"),
        Column("measured_s", "measured", "seconds"),
        Column("error", "off by", "ratio"),
        Column("slowdown", "slowdown since calibration", "ratio"),
        Column("steady_error", "error without drift", "ratio"),
    ]
    rows: list[dict[str, Value]] = [
        {
            "what": check.what,
            "switches_s": check.predicted.switches,
            "rest_s": check.predicted.rest,
            "predicted_s": check.predicted.seconds,
            "measured_s": check.seconds,
            "error": check.error,
            "slowdown": check.seconds / check.steady,
            "steady_error": check.steady_error,
        }
        for check in checks
    ]
    terminal.table(columns, rows, title="Whole programs")
