"""Networks on ciphertexts under key sets: `python -m studies.executed_keys --network NAME`.

A key set takes a process of its own, which makes the keys, encrypts one sample, evaluates, decrypts and
compares with the program in the clear. Key sets take turns. Making keys, encoding and encrypting are not
timed. Where the keys of a set are above --key-memory, those of some instructions are in memory at a time: the
clock stands still while others are made, and the peak of the process is not that of the set. The record is
written run by run, and the same command with the same --out goes on where it was cut off.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.console import Console
from harness.folders import HERE, record_folder
from harness.measurement import machine
from keywright import compiler
from keywright.commands.helpers.inputs import parse_bytes
from keywright.plan import CostModel, KeyPlan, Workload
from keywright.plan.keys import plan_file
from keywright.plan.workload.network import convert

from studies.executed_keys.key_sets import DEFAULT, NAMES, PLANNED, WITHIN, facts, planned, published
from studies.executed_keys.subjects import SUBJECTS, Compiled, compile_subject, load


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.executed_keys", description=__doc__)
    titles = "; ".join(f"{name}: {subject.title}" for name, subject in SUBJECTS.items())
    parser.add_argument("--network", choices=SUBJECTS, required=True, help=titles)
    parser.add_argument("--model", type=Path, help="its ONNX file, where it does not come with Keywright")
    parser.add_argument("--data", type=Path, help="folder of NSL-KDD's files, tar of CIFAR-10's test images")
    parser.add_argument("--sets", help=f"comma-separated key sets, of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each key set (default: 3)")
    parser.add_argument("--threads", type=int, default=1, help="of the evaluation (default: 1)")
    parser.add_argument("--key-threads", type=int, default=2, help="of making keys (default: 2)")
    parser.add_argument(
        "--key-memory", type=parse_bytes, default=10**10, help="bytes of keys at a time (default: 10GB)"
    )
    parser.add_argument("--work", type=Path, help="folder that keeps program and plans between calls")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-executed-keys)")
    options = parser.parse_args(arguments)
    options.sets = list(DEFAULT) if options.sets is None else options.sets.split(",")
    if unknown := [name for name in options.sets if name not in NAMES]:
        parser.error(f"there is no key set {unknown[0]!r}; there are {', '.join(NAMES)}")
    options.model = options.model or SUBJECTS[options.network].model
    if options.model is None:
        parser.error(f"--model names the ONNX file of {options.network}: see examples/README.md")
    return options


class Study:
    """One network.

    Args:
        options: of the command line.
        work: folder of the program and the plans.
    """

    def __init__(self, options: argparse.Namespace, work: Path, console: Console) -> None:
        self.options, self.work, self.console = options, work, console
        self.subject = SUBJECTS[options.network]
        self.program = work / f"{options.network}.kwp"
        self.sample = work / f"{options.network}.npy"
        if not self.program.exists():
            console.line(f"compiling {options.network}")
            calibration, samples = self.subject.samples(options.data, 1)
            np.save(self.sample, samples[0])
            compiler.save(compile_subject(self.subject, options.model, calibration).program, self.program)
        self.compiled: Compiled = load(self.subject, compiler.load(self.program))

    @property
    def workload(self) -> Workload:
        """Every key switch of the program."""
        compiled = self.compiled
        return convert(compiled.program, compiled.parameters, self.options.network, compiled.bootstraps)

    def path(self, name: str) -> Path:
        """Of a plan."""
        return self.work / f"{self.options.network}-{name}.json"

    def plan(self) -> None:
        """Make the plans that are not there."""
        workload, model = self.workload, CostModel()
        missing = [name for name in self.options.sets if not self.path(name).exists()]
        for name in missing:
            if name not in PLANNED and name not in WITHIN:
                self.store(name, published(workload, model, name))
        for name, plan in planned(workload, model, [n for n in missing if n in PLANNED or n in WITHIN]):
            self.store(name, plan)

    def write_plans(self, path: Path) -> None:
        """A line for each key set: its bytes, and its time as predicted."""
        model = CostModel()
        with path.open("w") as out:
            for name in NAMES:
                if self.path(name).exists():
                    plan = plan_file.load(self.path(name))
                    line = {"network": self.options.network, "set": name, **facts(plan, model)}
                    print(json.dumps(line), file=out)

    def store(self, name: str, plan: KeyPlan) -> None:
        """Write a plan, and say what it has."""
        self.path(name).write_text(plan_file.to_json(plan))
        self.console.line(f"{name}: {len(plan.keys)} keys, {plan.stored_bytes / 1e9:.2f} GB seeded")

    def run(self, name: str, predicted_error: float | None) -> dict[str, Any]:
        """One run.

        Raises:
            SystemExit: it failed, or its result was wrong.
        """
        setting = self.work / "setting.json"
        options = self.options
        fields = {
            "network": options.network,
            "program": str(self.program),
            "sample": str(self.sample),
            "plan": str(self.path(name)),
            "key_memory": options.key_memory,
            "threads": options.threads,
            "key_threads": options.key_threads,
            "predicted_error": predicted_error,
        }
        setting.write_text(json.dumps(fields))
        command = [sys.executable, "-m", "studies.executed_keys.worker", str(setting)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=HERE)
        if done.returncode != 0 or not done.stdout:
            raise SystemExit(f"the run with {name} failed with status {done.returncode}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a record so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def turns(sets: Sequence[str], rounds: int, known: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Key sets in turn, those left out whose runs are recorded."""
    done = {name: sum(line["set"] == name for line in known) for name in sets}
    for turn in range(rounds):
        for name in sets:
            if done[name] <= turn:
                yield name


def main() -> int:
    """Run what the record lacks."""
    options = parse_options()
    folder, console = record_folder(options.out, "executed-keys"), Console()
    path = folder / f"{options.network}.jsonl"
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        study = Study(options, work, console)
        study.plan()
        study.write_plans(folder / f"{options.network}-plans.jsonl")
        known = read(path)
        errors = {line["set"]: line["predicted_error"] for line in known}
        sets = [name for name in options.sets if study.path(name).exists()]
        with path.open("a") as out:
            for name in turns(sets, options.rounds, known):
                outcome = study.run(name, errors.get(name))
                errors[name] = outcome["predicted_error"]
                line = {"network": options.network, "set": name, **outcome, "machine": machine.describe()}
                print(json.dumps(line), file=out, flush=True)
                console.line(f"{name}: {outcome['seconds']:.2f} s, error {outcome['error']:.2g}")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
