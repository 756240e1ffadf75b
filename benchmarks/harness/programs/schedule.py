"""Runs the programs, interleaved: a round runs every target once, and each starts with another target."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.console import Console, last_line
from harness.folders import HERE
from harness.programs.targets import Executable, Target, Unavailable
from harness.record import BadRecord, Record, parse
from harness.sets import Case


@dataclass(frozen=True)
class Measurement:
    """A record with the target and round that it came from."""

    target: str
    round: int
    record: Record


@dataclass
class Outcome:
    """What a comparison has so far. `reasons` says why a target has no figures, or not all of them."""

    measurements: list[Measurement] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    interrupted: bool = False

    def accept(self, measurement: Measurement, threads: int) -> None:
        """Take a measurement, unless its result was not checked or it ran at another number of threads."""
        record = measurement.record
        what = f"{measurement.target}: {record.work}, level {record.level}, alpha {record.alpha}"
        if not record.checked:
            self.refused.append(f"{what}: the result was not right, or not checked")
        elif record.threads != threads:
            self.refused.append(f"{what}: ran with {record.threads} threads instead of {threads}")
        else:
            self.measurements.append(measurement)


def prepare(
    targets: Sequence[Target], build: Path, console: Console, outcome: Outcome
) -> dict[Target, Executable]:
    """Set every target up in the folder `build`; one that cannot be leaves its reason in `outcome`."""
    build.mkdir(parents=True, exist_ok=True)
    programs = {}
    for target in targets:
        try:
            programs[target] = target.prepare(build, console)
        except Unavailable as unavailable:
            outcome.reasons[target.name] = str(unavailable)
            console.line(f"{target.name}: {unavailable}")
    return programs


class RunFailed(Exception):
    """A program ended with an error or printed something that is not a record."""


@dataclass(frozen=True)
class Schedule:
    """How to run: `runs` timed runs per work on `threads` threads. `keep` gets every measurement at once."""

    runs: int
    threads: int
    console: Console
    outcome: Outcome
    keep: Callable[[Measurement], None]

    def run(self, programs: dict[Target, Executable], cases: Sequence[Case], rounds: int) -> None:
        """Fill the outcome, round by round.

        A target that fails is left out from then on, with its reason. An interrupt ends the rounds and keeps
        what is there.
        """
        steps = [(turn, case) for turn in range(rounds) for case in cases]
        try:
            for number, (turn, case) in enumerate(steps, 1):
                available = [target for target in programs if target.name not in self.outcome.reasons]
                for target in rotated(available, turn):
                    if target.own_digits and not case.first:
                        continue
                    label = f"[{number}/{len(steps)}] {target.name}, set {case.set_name}, alpha {case.alpha}"
                    try:
                        self.run_one(programs[target], target, case, turn, label)
                    except RunFailed as failure:
                        self.outcome.reasons[target.name] = str(failure)
                        self.console.line(f"{label}: {failure}")
        except KeyboardInterrupt:
            self.outcome.interrupted = True
            self.console.line("interrupted: writing what is there")

    def run_one(self, executable: Executable, target: Target, case: Case, turn: int, label: str) -> None:
        """Run one program on one case and take its records as it prints them.

        Raises:
            RunFailed: the program could not start, ended with an error, or printed what is not a record.
        """
        start = time.monotonic()
        with tempfile.TemporaryFile("w+") as errors:
            try:
                process = subprocess.Popen(
                    executable.arguments(case, self.runs, self.threads),
                    cwd=HERE,
                    env=child_environment(executable, self.threads),
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
            except OSError as error:
                raise RunFailed(f"{executable.command[0]}: {error.strerror}") from error
            with process:
                try:
                    self.console.status(f"{label}: keys")
                    for line in process.stdout or ():
                        self.take(line, target, turn, f"{label}, {time.monotonic() - start:.0f} s")
                except BadRecord as bad:
                    process.kill()
                    raise RunFailed(f"printed something else than a record: {bad}") from bad
                except BaseException:
                    process.kill()
                    raise
            errors.seek(0)
            if process.returncode != 0:
                reason = last_line(errors.read()).removeprefix(f"{target.name}: ")
                raise RunFailed(reason or f"exit status {process.returncode}")
        self.console.line(f"{label}: {time.monotonic() - start:.0f} s")

    def take(self, line: str, target: Target, turn: int, label: str) -> None:
        """Read one line of a program's output."""
        measurement = Measurement(target.name, turn, parse(line))
        self.keep(measurement)
        self.outcome.accept(measurement, self.threads)
        self.console.status(f"{label}: {measurement.record.work}, level {measurement.record.level}")


def rotated(targets: Sequence[Target], by: int) -> list[Target]:
    """The targets in cyclic order from another start, so that none always comes first."""
    shift = by % len(targets) if targets else 0
    return [*targets[shift:], *targets[:shift]]


def child_environment(executable: Executable, threads: int) -> dict[str, str]:
    """The environment of a program, with every usual thread count set."""
    counts = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS", "OPENBLAS_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(counts, str(threads)), **executable.environment}


def pin(threads: int) -> None:
    """Keep this process and its children on `threads` processors: no library takes more than its share."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[-threads:])
