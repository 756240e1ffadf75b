"""`python -m studies.bfv`: BFV of Keywright and of SEAL (through TenSEAL), interleaved, one thread.

Both have the same ring degree, primes, plaintext modulus and values (`peers/bfv.py`). `--measure` runs the
program of Keywright alone, which the driver starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement import machine
from harness.pages.table import markdown
from harness.programs.suite import output
from harness.programs.targets import prepared

Record = dict[str, Any]


def measure_keywright() -> None:
    """Measure every work of Keywright's Python package."""
    import keywright as kw
    from peers.bfv import VALUES, T, measure

    kw.set_threads(1)
    parameters = kw.bfv.Parameters.preset("N13_QP214_T20")
    assert parameters.plaintext_modulus == T
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    encryptor, decryptor = kw.bfv.Encryptor(generator.public_key()), kw.bfv.Decryptor(secret)
    evaluator = kw.bfv.Evaluator(parameters, generator.evaluation_keys(rotations=[1]))
    x, y = encryptor.encrypt(VALUES), encryptor.encrypt(VALUES)

    def reveal(result: object) -> object:
        if isinstance(result, kw.bfv.SeededCiphertext):
            result = result.expand()
        return decryptor.decrypt(result) if isinstance(result, kw.bfv.Ciphertext) else result

    works = {
        "encrypt": lambda: encryptor.encrypt(VALUES),
        "encrypt_secret": lambda: decryptor.encrypt(VALUES),
        "encrypt_scalar": lambda: encryptor.encrypt(3),
        "decrypt": lambda: decryptor.decrypt(x),
        "add": lambda: evaluator.add(x, y),
        "add_plain": lambda: evaluator.add(x, VALUES),
        "multiply_plain": lambda: evaluator.multiply(x, VALUES),
        "multiply_relin": lambda: evaluator.multiply(x, y),
        "rotate": lambda: evaluator.rotate_rows(x, 1),
    }
    measure("keywright", kw.__version__, works, reveal)


def run(name: str, command: list[str]) -> dict[str, Record]:
    """The records of one program, by work.

    Raises:
        SystemExit: it failed, or a result did not pass its check.
    """
    printed = output(command, name=name, cwd=HERE)
    records = {record["work"]: record for record in map(json.loads, printed.splitlines())}
    wrong = [work for work, record in records.items() if not record["checked"]]
    if wrong:
        raise SystemExit(f"{name}: wrong results of {', '.join(wrong)}")
    return records


def table(rounds: list[dict[str, dict[str, Record]]]) -> str:
    """Medians over the rounds in milliseconds, and the ratio of the times within each round."""
    heads = [
        "work",
        "Keywright ms",
        "CPU ms",
        "SEAL ms",
        "CPU ms",
        "SEAL / Keywright, CPU (extremes)",
        "wall",
    ]
    rows = []
    for work in rounds[0]["keywright"]:
        cells = [work]
        for library in ("keywright", "tenseal"):
            medians = (statistics.median(r[library][work][f] for r in rounds) for f in ("median_s", "cpu_s"))
            cells.extend(f"{1e3 * seconds:.3f}" for seconds in medians)
        cpu, wall = (
            [r["tenseal"][work][field] / r["keywright"][work][field] for r in rounds]
            for field in ("cpu_s", "median_s")
        )
        cells.append(f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})")
        cells.append(f"{statistics.median(wall):.2f}")
        rows.append(cells)
    return "\n".join(markdown(heads, rows, aligned=False))


def main() -> None:
    """Measure in turns, write the record, print the table."""
    parser = argparse.ArgumentParser(prog="python -m studies.bfv", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure Keywright alone, as JSON lines")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--runs", type=int, default=21, help="timed runs in a round (default: 21)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    options = parser.parse_args()
    if options.measure:
        measure_keywright()
        return
    if options.rounds < 1 or options.runs < 1:
        parser.error("--rounds and --runs are at least 1")
    console = Console()
    tenseal = prepared("tenseal", BUILD, console)
    runs = ["--runs", str(options.runs)]
    commands = {
        "keywright": [sys.executable, "-m", "studies.bfv", "--measure", *runs],
        "tenseal": [tenseal.command[0], "-m", "peers.tenseal.bfv", *runs],
    }
    folder = record_folder(options.out)
    rounds = []
    with (folder / "bfv.jsonl").open("w") as raw:
        for number in range(options.rounds):
            order = list(commands) if number % 2 == 0 else list(reversed(commands))
            one = {name: run(name, commands[name]) for name in order}
            for name, records in one.items():
                for record in records.values():
                    print(json.dumps({"target": name, "round": number, **record}), file=raw, flush=True)
            rounds.append(one)
            console.line(f"round {number + 1} of {options.rounds}")
    heading = "\n".join(["# BFV beside SEAL's, N = 8192, one thread", "", *machine.describe(), ""])
    text = table(rounds)
    (folder / "bfv.md").write_text(f"{heading}\n{text}\n")
    print(text)
    console.line(f"written: {folder}")


if __name__ == "__main__":
    main()
