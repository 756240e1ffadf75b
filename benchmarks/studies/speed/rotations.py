"""`python -m studies.speed.rotations`: rotations beside Lattigo in processor time, in turns.

For machines with other work, where the wall time of an operation says little: `studies.operations` compares
wall times. Keywright runs with its fastest back end and with AVX2, in processes of their own. With `--alpha`,
the process measures Keywright alone and prints a row for each operation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement import machine
from harness.measurement.clock import timed
from harness.programs.peer import HOISTED_ROTATIONS
from harness.programs.suite import output
from harness.programs.targets import prepared
from harness.sets import SETS

NAME = "main"
BACKENDS = ("avx512", "avx2")
TOLERANCE = 2.0**-20
SPECIAL_BITS = 50
"""As the sets of `keywright bench`: enough for digits of 50-bit primes, and faster than 60 bits."""


def one_rotation(evaluator: kw.Evaluator, ct: kw.Ciphertext) -> list[kw.Ciphertext]:
    """Rotate by the first of the hoisted steps."""
    return [evaluator.rotate(ct, HOISTED_ROTATIONS[0])]


def rows(alpha: int, runs: int) -> Iterator[dict[str, Any]]:
    """Measure Keywright on the parameters of the main set with so many primes in a digit.

    Raises:
        SystemExit: a result is wrong.
    """
    kw.set_threads(1)
    given = json.loads((HERE / SETS).read_text())[NAME]
    special = [SPECIAL_BITS] * alpha
    parameters = kw.Parameters.from_bits(given["log_n"], given["log_q"], special, given["log_scale"])
    secret = kw.SecretKey.generate(parameters)
    specs = [kw.KeySpec.rotation(parameters, step, alpha=alpha) for step in HOISTED_ROTATIONS]
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=specs, relinearization=False)
    evaluator, client = kw.Evaluator(parameters, keys), kw.Decryptor(secret)
    values = np.random.default_rng(1).uniform(-1, 1, parameters.max_slots)
    for level in given["levels"]:
        ct = client.encrypt(values, parameters.max_slots, level).expand()
        works: dict[str, Callable[[], list[kw.Ciphertext]]] = {
            "rotate": partial(one_rotation, evaluator, ct),
            "rotate_hoisted": partial(evaluator.rotate_hoisted, ct, HOISTED_ROTATIONS),
        }
        for work, run in works.items():
            results = run()
            for step, result in zip(HOISTED_ROTATIONS, results, strict=False):
                error = float(np.abs(np.asarray(client.decrypt(result)) - np.roll(values, -step)).max())
                if not error < TOLERANCE:
                    raise SystemExit(f"{work} at level {level} is off by {error:.3g}")
            seconds = [timed(run)[1].cpu / len(results) for _ in range(runs)]
            yield {"work": work, "level": level, "alpha": alpha, "processor_s": seconds}


def main() -> int:
    """Measure in turns and write the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.speed.rotations", description=__doc__)
    parser.add_argument("--alpha", type=int, help="only measure Keywright, and print")
    parser.add_argument("--alphas", type=int, nargs="+", default=[5, 3], help="primes in a digit")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of all programs (default: 2)")
    parser.add_argument("--runs", type=int, default=9, help="timed runs in a round (default: 9)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-speed-peers)")
    options = parser.parse_args()
    runs = ["--runs", str(options.runs)]
    if options.alpha is not None:
        for row in rows(options.alpha, options.runs):
            print(json.dumps(row), flush=True)
        return 0
    console = Console()
    peer = prepared("lattigo", BUILD, console).command
    own = (sys.executable, "-m", "studies.speed.rotations")
    path = record_folder(options.out, "speed-peers") / "rotations.jsonl"
    with path.open("w", encoding="utf-8") as file:
        print(json.dumps({"kind": "machine", "machine": machine.describe()}), file=file, flush=True)
        for turn in range(options.rounds):
            for alpha in options.alphas:
                digits = ["--alpha", str(alpha), *runs]
                works = ["--sets", SETS, "--set", NAME, "--work", "rotate,rotate_hoisted"]
                commands = {name: ([*own, *digits], {"KEYWRIGHT_BACKEND": name}) for name in BACKENDS}
                commands["lattigo"] = ([*peer, *map(str, works), *digits], {})
                for name, (command, environment) in commands.items():
                    console.line(f"round {turn + 1}, alpha {alpha}: {name}")
                    os.environ.update(environment)
                    for line in output(command, name=name, cwd=HERE).splitlines():
                        taken = json.loads(line)
                        row = {key: taken[key] for key in ("work", "level", "alpha", "processor_s")}
                        row |= {"median_s": statistics.median(row["processor_s"]), "load": os.getloadavg()[0]}
                        print(json.dumps({"target": name, "round": turn, **row}), file=file, flush=True)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
