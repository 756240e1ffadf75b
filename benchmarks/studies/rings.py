"""`python -m studies.rings`: the saving of a smaller ring, and the cost of switching to it and back.

At one level of a bootstrapping preset's chain, one thread: a rotation in the rings of degree 2^16, 2^15 and
2^14, and the switches between them, in turns. Errors are measured against the derived bounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine
from harness.measurement.clock import timed
from harness.pages.table import markdown

if TYPE_CHECKING:
    import keywright as kw

PRESET = "N16_QP1732_L9_S45"
SUBRINGS: list[tuple[int, int, list[int] | None]] = [(15, 12, None), (14, 7, None)]
WAYS = ((16, 15), (16, 14), (15, 14), (14, 15), (14, 16), (15, 16))
SLOTS = 2**13


@dataclass(frozen=True)
class Work:
    """One operation: its function, the bytes of its keys, and the bits that its error bound and its error
    leave.
    """

    run: Callable[[], kw.Ciphertext]
    key_bytes: int
    bound_bits: float
    bits: float


def works(level: int) -> dict[str, Work]:
    """The operations at a level, each run once against the values."""
    import keywright as kw

    parameters = kw.BootstrapperPlan.preset(PRESET).parameters.with_subrings(SUBRINGS)
    rings = {log_n: parameters.subring(log_n) for log_n in (16, 15, 14)}
    specs = {
        f"rotation at 2^{log_n}": [best(kw.KeySpec.rotation, ring, level, 1)] for log_n, ring in rings.items()
    }
    for source, to in WAYS:
        if to < source:
            shape = best(kw.KeySpec.rotation, rings[to], level, 1)
            way = kw.KeySpec.ring_down(
                parameters, to, level, shape.alpha, special=shape.special, source=source
            )
        else:
            shape = best(kw.KeySpec.rotation, rings[to], level, 1)
            way = [
                kw.KeySpec.ring_up(parameters, source, level, shape.alpha, special=shape.special, log_n=to)
            ]
        specs[f"2^{source} to 2^{to}"] = way
    secret = kw.SecretKey.generate(parameters)
    generator, decryptor = kw.KeyGenerator(secret), kw.Decryptor(secret)
    keys = generator.evaluation_keys(
        relinearization=False, specs=[spec for group in specs.values() for spec in group]
    )
    evaluator = kw.Evaluator(parameters, keys)
    values = np.random.default_rng(1).uniform(-1, 1, SLOTS)
    inputs = {
        log_n: decryptor.encrypt(values, slots=SLOTS, level=level, log_n=log_n).expand() for log_n in rings
    }
    out = {}
    for name, group in specs.items():
        begins = group[0].source_log_n
        if begins is None:
            run = _rotation(evaluator, inputs[group[0].log_n])
            expected = np.roll(values, -1)
        else:
            run = _switch(evaluator, inputs[begins], group[0].log_n)
            expected = values
        result = run()
        error = float(np.abs(decryptor.decrypt(result) - expected).max())
        if error > result.error_bound:
            raise AssertionError(f"{name}: error {error} above {result.error_bound}")
        key_bytes = sum(spec.bytes for spec in group)
        out[name] = Work(run, key_bytes, -np.log2(result.error_bound), -np.log2(error))
    return out


def bootstrap(log_n: int | None, level: int) -> dict[str, Any]:
    """Bootstrap inputs of a ring, after switching down with a rotation in each ring. Returns times and
    errors.
    """
    import keywright as kw

    plan = kw.BootstrapperPlan.preset(f"{PRESET}_real", slots=SLOTS, subrings=SUBRINGS, input_log_n=log_n)
    parameters, way = plan.parameters, [] if log_n is None else [15, 14]
    specs = plan.required_keys
    for source, to in pairwise([16, *way]):
        ring = parameters.subring(to)
        specs += [*kw.KeySpec.ring_down(parameters, to, source=source), kw.KeySpec.rotation(ring, 1)]
    secret = kw.SecretKey.generate(parameters)
    keys = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    evaluator, decryptor = kw.Evaluator(parameters, keys), kw.Decryptor(secret)
    bootstrapper = kw.Bootstrapper(plan)
    values = np.random.default_rng(1).uniform(-1, 1, SLOTS)
    a = decryptor.encrypt(values, slots=SLOTS, level=level).expand()
    bits: list[tuple[int, int, float, float]] = []

    def check(ciphertext: kw.Ciphertext) -> None:
        error = float(np.abs(decryptor.decrypt(ciphertext) - values).max())
        if error > ciphertext.error_bound:
            raise AssertionError(f"{ciphertext}: error {error} above {ciphertext.error_bound}")
        bound = -float(np.log2(ciphertext.error_bound))
        bits.append((ciphertext.log_n, ciphertext.level, bound, -float(np.log2(error))))

    for to in way:
        a = evaluator.switch_ring(
            evaluator.drop_to_level(a, min(a.level, parameters.subring(to).max_level)), to
        )
        check(a)
        a, values = evaluator.rotate(a, 1), np.roll(values, -1)
        check(a)
    first = [timed(bootstrapper.slots_to_coeffs, evaluator, a)[1].cpu for _ in range(3)]
    whole = [timed(bootstrapper.bootstrap, evaluator, a) for _ in range(3)]
    check(whole[-1][0])
    return {
        "work": f"bootstrap of inputs of 2^{plan.input_log_n}",
        "slots_to_coeffs_cpu_s": first,
        "slots_to_coeffs_key_bytes": sum(spec.bytes for spec in plan.stage_keys["slots_to_coeffs"]),
        "cpu_s": [seconds.cpu for _, seconds in whole],
        "key_bytes": sum(spec.bytes for spec in plan.required_keys),
        "predicted_bits": plan.predicted_bits(1),
        "bits": bits,
    }


def best(make: Callable[..., kw.KeySpec], ring: kw.Parameters, level: int, steps: int) -> kw.KeySpec:
    """The legal key with the smallest product of targets and digits, over special primes of the ring and
    dropped primes.
    """
    import keywright as kw

    primes = [*range(ring.max_level + 1, len(ring.q) + len(ring.p)), *range(ring.max_level, level, -1)]
    choices: list[tuple[int, int, kw.KeySpec]] = []
    for count in range(1, len(primes) + 1):
        try:
            spec = make(ring, steps, level, level + 1, special=primes[:count])
        except (kw.errors.ParameterError, kw.errors.SecurityError):
            continue
        choices.append(((len(spec.digits) + 2) * (level + 1 + count), count, spec))
    return min(choices)[2]


def _rotation(evaluator: kw.Evaluator, a: kw.Ciphertext) -> Callable[[], kw.Ciphertext]:
    return lambda: evaluator.rotate(a, 1)


def _switch(evaluator: kw.Evaluator, a: kw.Ciphertext, log_n: int) -> Callable[[], kw.Ciphertext]:
    return lambda: evaluator.switch_ring(a, log_n)


def main() -> None:
    """Measure in turns, write the record, print the table."""
    parser = argparse.ArgumentParser(prog="python -m studies.rings", description=__doc__)
    parser.add_argument(
        "--level", type=int, default=6, help="level of the ciphertexts, at most 7 (default: 6)"
    )
    parser.add_argument("--rounds", type=int, default=21, help="rounds (default: 21)")
    parser.add_argument("--bootstrap", action="store_true", help="bootstraps of a ring's inputs, 4 GiB")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-rings)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    import keywright as kw

    kw.set_threads(1)
    console = Console()
    folder = record_folder(options.out, "rings")
    if options.bootstrap:
        with (folder / "bootstrap.jsonl").open("w") as raw:
            for log_n in (14, None):
                line = json.dumps(bootstrap(log_n, SUBRINGS[0][1]))
                print(line, file=raw, flush=True)
                console.line(line)
        return
    measured = works(options.level)
    times: dict[str, list[float]] = {name: [] for name in measured}
    walls: dict[str, list[float]] = {name: [] for name in measured}
    for number in range(options.rounds):
        order = list(measured) if number % 2 == 0 else list(reversed(measured))
        for name in order:
            _, seconds = timed(measured[name].run)
            times[name].append(seconds.cpu)
            walls[name].append(seconds.wall)
    heads = ["", "CPU ms (extremes)", "wall ms", "bytes of keys", "bits: bound", "bits: seen"]
    rows = []
    with (folder / "rings.jsonl").open("w") as raw:
        for name, work in measured.items():
            record: dict[str, Any] = {
                "work": name,
                "level": options.level,
                "cpu_s": times[name],
                "wall_s": walls[name],
                "key_bytes": work.key_bytes,
                "bound_bits": work.bound_bits,
                "bits": work.bits,
            }
            print(json.dumps(record), file=raw)
            cpu = [1e3 * seconds for seconds in times[name]]
            spread = f"{statistics.median(cpu):.1f} ({min(cpu):.1f} to {max(cpu):.1f})"
            wall = f"{1e3 * statistics.median(walls[name]):.1f}"
            rows.append(
                [name, spread, wall, str(work.key_bytes), f"{work.bound_bits:.1f}", f"{work.bits:.1f}"]
            )
    heading = f"# Rings of {PRESET} at level {options.level}, one thread"
    text = "\n".join([heading, "", *machine.describe(), "", *markdown(heads, rows, aligned=False)])
    (folder / "rings.md").write_text(f"{text}\n")
    print(text)
    console.line(f"written: {folder}")


if __name__ == "__main__":
    main()
