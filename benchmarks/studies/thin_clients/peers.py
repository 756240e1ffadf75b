"""A thin client's encryption compared with full ones of Keywright, Lattigo and OpenFHE, with all primes of
a set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.console import Console
from harness.folders import BUILD
from harness.pages.table import Spread, duration, markdown, times
from harness.programs.schedule import Measurement, Outcome, Schedule, prepare
from harness.programs.targets import TARGETS, Executable, Target
from harness.sets import Case, ParameterSet

THIN = ("thin-30", "thin-60")
FULL = ("keywright", "lattigo", "openfhe")

ASKED = 20.0
"""Times of thin encryption at 30 bits that a full one is to take."""


@dataclass(frozen=True)
class ThinExecutable(Executable):
    """The thin client's program: it has one prime, whatever the set."""

    log_n: int = 0

    def arguments(self, case: Case, runs: int, threads: int) -> list[str]:
        """The whole command line; it has one thread."""
        return [*self.command, "--log-n", str(self.log_n), "--runs", str(runs)]


def thin(programs: Path, bits: int, log_n: int) -> Callable[[Path, Console], Executable]:
    """The built program, for a prime of `bits` bits."""

    def prepare(build: Path, console: Console) -> Executable:
        return ThinExecutable((str(programs / "thin_client"), "encrypt", "--bits", str(bits)), log_n=log_n)

    return prepare


def targets(programs: Path, log_n: int) -> list[Target]:
    """Thin clients, then full encryptions."""
    full = {target.name: target for target in TARGETS}
    ours = [
        Target(name, thin(programs, bits, log_n), own_digits=True)
        for name, bits in zip(THIN, (30, 60), strict=True)
    ]
    return ours + [full[name] for name in FULL]


def compare(
    chosen: Sequence[Target], parameters: ParameterSet, rounds: int, runs: int, build: Path, folder: Path
) -> Outcome:
    """Set up and run, round by round, into `peers.jsonl`. If a peer cannot be set up, the reason is
    recorded.
    """
    console, outcome = Console(), Outcome()
    programs = prepare(chosen, build, console, outcome)
    with (folder / "peers.jsonl").open("w") as raw:

        def keep(measurement: Measurement) -> None:
            line = {"target": measurement.target, "round": measurement.round, **measurement.record.raw}
            print(json.dumps(line), file=raw, flush=True)

        case = Case(parameters.name, parameters.alphas[0], ("encrypt",), first=True)
        Schedule(runs, 1, console, outcome, keep).run(programs, [case], rounds)
    return outcome


def top(measurements: Sequence[Measurement], primes: int) -> dict[str, list[Measurement]]:
    """Encryptions by target; full ones only with all primes."""
    groups: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        level = 0 if measurement.target in THIN else primes - 1
        if measurement.record.work == "encrypt" and measurement.record.level == level:
            groups.setdefault(measurement.target, []).append(measurement)
    return groups


def seconds(rows: Sequence[Measurement]) -> dict[int, float]:
    """Median seconds by round."""
    return {measurement.round: measurement.record.median_s for measurement in rows}


def table(comparisons: Mapping[str, Sequence[Measurement]], primes: int) -> list[str]:
    """Medians over rounds, and ratios to a thin encryption within rounds: median and extremes."""
    rows = []
    for name, measurements in comparisons.items():
        medians, size = seconds(measurements), measurements[0].record.raw["bytes"]
        cells = [name, "1" if name in THIN else str(primes), duration(Spread.of(medians.values()).median)]
        cells.append("-" if size is None else f"{size:,}")
        for base in THIN:
            own = seconds(comparisons.get(base, ()))
            ratios = [value / own[turn] for turn, value in medians.items() if turn in own]
            cells.append(times(Spread.of(ratios)) if ratios and base != name else "-")
        rows.append(cells)
    heads = ["encode and encrypt", "primes", "median", "bytes", *(f"{name}: times" for name in THIN)]
    return markdown(heads, rows)


def judgement(rows: Mapping[str, Sequence[Measurement]]) -> list[str]:
    """Which full encryptions take at least the required multiple of a thin one at 30 bits."""
    own = seconds(rows.get(THIN[0], ()))
    lines = []
    for name in FULL:
        medians = seconds(rows.get(name, ()))
        ratios = [value / own[turn] for turn, value in medians.items() if turn in own]
        if ratios:
            ratio = Spread.of(ratios).median
            verdict = "reached" if ratio >= ASKED else "not reached"
            lines.append(f"* {name}: {ratio:.1f} of {ASKED:.0f} times, {verdict}")
    return lines


def measure(programs: Path, folder: Path, parameters: ParameterSet, rounds: int, runs: int) -> list[str]:
    """Measure and tabulate. Returns lines of the record.

    Raises:
        SystemExit: nothing was measured.
    """
    chosen = targets(programs, parameters.log_n)
    outcome = compare(chosen, parameters, rounds, runs, BUILD, folder)
    primes = len(parameters.log_q)
    rows = top(outcome.measurements, primes)
    if not rows:
        raise SystemExit("nothing was measured: " + "; ".join(map(": ".join, outcome.reasons.items())))
    lines = [
        "## Encryption beside full libraries",
        "",
        f"{parameters.describe()}; thin clients have one prime.",
        "",
    ]
    lines += [*table(rows, primes), "", *judgement(rows)]
    lines += [f"* {name}: {reason}" for name, reason in outcome.reasons.items()]
    lines += [f"* refused: {what}" for what in dict.fromkeys(outcome.refused)]
    return [*lines, ""]
