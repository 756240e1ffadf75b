"""A key switch in software, at the shape of an accelerator: `python -m studies.software_key_switch`.

The shape is that of Duong-Ngoc and Lee: N = 2^16, a prime of 60 bits, three of 51, a special prime of 60,
digits of one prime. A rotation is a key switch and a permutation. At this shape, Lattigo has the digits of
SEAL. SEAL runs through TenSEAL's binding of its API, told not to check the security: its table ends at 2^15.
The libraries take turns on one thread. The study measures processor time; for Lattigo it is the difference
between a process of many rotations and one of few.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement import machine
from harness.measurement.clock import timed
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.process import PeerProcess
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable, prepared

SHAPE: dict[str, Any] = {
    "log_n": 16,
    "log_q": [60, 51, 51, 51],
    "log_p": 60,
    "log_scale": 51,
    "levels": [3],
    "ntt_log_n": [16],
    "ntt_log_q": 50,
}
FEW, MANY = 2, 22
PAPER_S = {"SEAL 3.7 on a Core i9-9900KF": 32.402e-3, "the accelerator": 284.6e-6}


class Keywright:
    """Rotations of one ciphertext."""

    name = "Keywright"

    def __init__(self) -> None:
        parameters = kw.Parameters.from_bits(16, SHAPE["log_q"], [SHAPE["log_p"]], SHAPE["log_scale"])
        secret = kw.SecretKey.generate(parameters)
        generator = kw.KeyGenerator(secret)
        self.decryptor = kw.Decryptor(secret)
        self.evaluator = kw.Evaluator(parameters, generator.evaluation_keys(rotations=[1]))
        self.values = np.linspace(-1, 1, parameters.max_slots)
        self.input = kw.Encryptor(generator.public_key()).encrypt(self.values)

    def round(self) -> float:
        """Processor seconds of a rotation; the last result is checked.

        Raises:
            SystemExit: the result is wrong.
        """
        rotated = self.evaluator.rotate(self.input, 1)
        seconds = []
        for _ in range(MANY - FEW):
            rotated, took = timed(self.evaluator.rotate, self.input, 1)
            seconds.append(took.cpu)
        error = np.abs(self.decryptor.decrypt(rotated) - np.roll(self.values, -1)).max()
        if not error <= rotated.error_bound:
            raise SystemExit(f"Keywright's rotation is off by {error}")
        return float(np.mean(seconds))


SEAL_ERROR = 2.0**-20
"""SEAL states no bound. Its error is near 2^-28 here."""


class Seal:
    """SEAL in a process of its own."""

    name = "SEAL"

    def __init__(self, console: Console, build: Path) -> None:
        self.process = PeerProcess("tenseal", "peers.tenseal.rotations", build, console)
        bits = [*SHAPE["log_q"], SHAPE["log_p"]]
        self.process.ask({"log_n": SHAPE["log_n"], "bits": bits, "log_scale": SHAPE["log_scale"]})

    def round(self) -> float:
        """Processor seconds of a rotation.

        Raises:
            SystemExit: the result is wrong.
        """
        answer = self.process.ask({"runs": MANY - FEW})
        if not answer["error"] <= SEAL_ERROR:
            raise SystemExit(f"SEAL's rotation is off by {answer['error']}")
        seconds: float = answer["cpu"]
        return seconds


class Lattigo:
    """Lattigo's program, which checks its results."""

    name = "Lattigo"

    def __init__(self, console: Console, build: Path, sets: Path) -> None:
        self.command = [*prepared("lattigo", build, console).command, "-sets", str(sets)]
        self.command += ["-set", "key_switch", "-alpha", "1", "-work", "rotate"]

    def processor(self, runs: int) -> float:
        """Processor seconds of a process with a number of rotations.

        Raises:
            SystemExit: it failed, or its result did not pass its check.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [*self.command, "-runs", str(runs)]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, "GOMAXPROCS": "1"}
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0 or not json.loads(done.stdout.splitlines()[-1])["checked"]:
            raise SystemExit(f"lattigo failed: {done.stderr[-200:]}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def round(self) -> float:
        """Processor seconds of a rotation."""
        few, many = self.processor(FEW), self.processor(MANY)
        return (many - few) / (MANY - FEW)


def main() -> None:
    """Measure, check, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.software_key_switch", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument(
        "--libraries", nargs="+", choices=["seal", "lattigo"], default=["seal", "lattigo"], help="beside ours"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-key-switch)")
    options = parser.parse_args()
    folder = record_folder(options.out, "key-switch")
    build = options.build.resolve()
    os.chdir(HERE)
    pin(1)
    kw.set_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        sets = Path(scratch) / "sets.json"
        sets.write_text(json.dumps({"key_switch": SHAPE}))
        ways: list[Keywright | Lattigo | Seal] = [Keywright()]
        try:
            if "seal" in options.libraries:
                ways.append(Seal(Console(), build))
            if "lattigo" in options.libraries:
                ways.append(Lattigo(Console(), build, sets))
        except Unavailable as unavailable:
            raise SystemExit(f"{options.libraries}: {unavailable}") from unavailable
        seconds_by_way: dict[str, list[float]] = {way.name: [] for way in ways}
        with (folder / "raw.jsonl").open("w") as raw:
            for turn in range(options.rounds):
                for way in ways[:: 1 - 2 * (turn % 2)]:
                    seconds = way.round()
                    seconds_by_way[way.name].append(seconds)
                    line = {"way": way.name, "round": turn, "cpu_s": seconds, "commit": machine.commit()}
                    print(json.dumps(line), file=raw, flush=True)
    rows = [[name, spread([1e3 * s for s in seconds])] for name, seconds in seconds_by_way.items()]
    text = "\n".join(
        [
            *heading(
                "A key switch of an accelerator's shape in software",
                "N = 2^16, q of 60 + 3x51 bits, a special prime of 60, digits of one prime, one thread",
                f"processor time of a rotation, median (smallest to largest) of {options.rounds} rounds",
                f"load of the machine {os.getloadavg()[0]:.1f}",
            ),
            *markdown(["library", "a rotation, ms"], rows, aligned=False),
            "",
            *(
                f"* {name} / Keywright: {spread(quotients(seconds, seconds_by_way['Keywright']))}"
                for name, seconds in seconds_by_way.items()
                if name != "Keywright"
            ),
            *(
                f"* Keywright / {name} in the paper: "
                f"{spread([s / theirs for s in seconds_by_way['Keywright']])}"
                for name, theirs in PAPER_S.items()
            ),
            "",
        ]
    )
    (folder / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
