"""`python -m studies.speed.cases PRESET`: bootstraps with the keys of a preset, timed or counted.

A preset of complex values also bootstraps two ciphertexts of real values at once. Plans that differ only in
their values have the same parameters and the same keys but for a conjugation, and take turns in one process,
as numbers of threads do. With `KEYWRIGHT_BACKEND=counted` the engine counts its kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keywright as kw
import numpy as np
from harness.measurement.clock import Seconds
from harness.measurement.clock import timed as measured
from harness.programs.peer import peak_rss_bytes
from keywright._core import kernel_counts

from studies.speed.variants import plan_of

Counts = Mapping[str, Sequence[int]]
REAL = "_real"
COUNTED = "counted"
"""The back end that counts, as the environment names it."""
PRODUCTS = {"seeded_products": 2, "stored_products": 2, "conversions": 1, "products": 1}
"""Multiply-adds of a word by the name of its kernel: products with a key row or with a diagonal are of both
halves."""


@dataclass(frozen=True)
class Case:
    """A way to bootstrap.

    Attributes:
        preset: its name.
        values: "complex"; "real"; or "pair" for two ciphertexts of real values at once.
    """

    preset: str
    values: str

    @property
    def plan(self) -> kw.BootstrapperPlan:
        """Its bootstrapping."""
        if self.values == "pair":
            return kw.BootstrapperPlan.preset(self.preset, values="pair")
        return plan_of(self.preset)

    @property
    def vectors(self) -> int:
        """Ciphertexts that one run bootstraps."""
        return 2 if self.values == "pair" else 1


def cases(preset: str) -> list[Case]:
    """Return the cases with the keys of a preset."""
    if preset.endswith(REAL):
        return [Case(preset, "real")]
    out = [Case(preset, "complex"), Case(preset, "pair")]
    return out + [Case(name, "real") for name in kw.BootstrapperPlan.presets() if name == preset + REAL]


def operations(before: Counts, after: Counts, log_n: int) -> dict[str, float]:
    """Return butterflies and multiply-adds, in billions, between two readings of the counters."""
    words = {name: sum(after[name]) - sum(before[name]) for name in after}
    products = sum(weight * words[name] for name, weight in PRODUCTS.items())
    return {"butterflies": words["transforms"] * log_n / 2e9, "multiply_adds": products / 1e9}


class Bench:
    """A case with its keys and inputs."""

    def __init__(
        self,
        case: Case,
        bootstrapper: kw.Bootstrapper,
        secret: kw.SecretKey,
        encryptor: kw.Encryptor,
        evaluator: kw.Evaluator,
    ) -> None:
        self.case, self.plan, self.evaluator = case, bootstrapper.plan, evaluator
        self.bootstrapper = bootstrapper
        self.client = kw.Decryptor(secret)
        rng = np.random.default_rng(1)
        shape = (case.vectors, self.plan.slots)
        self.values = rng.uniform(-1, 1, shape)
        if case.values == "complex":
            self.values = self.values + 1j * rng.uniform(-1, 1, shape)
        self.inputs = [
            encryptor.encrypt(row, self.plan.slots, self.plan.input_level, magnitude=1.5)
            for row in self.values
        ]

    def run(self) -> tuple[kw.Ciphertext, ...]:
        """Bootstrap once."""
        if self.case.values == "pair":
            return self.bootstrapper.bootstrap_pair(self.evaluator, *self.inputs)
        return (self.bootstrapper.bootstrap(self.evaluator, self.inputs[0]),)

    def worst_bits(self, results: tuple[kw.Ciphertext, ...]) -> float:
        """Return the bits of the largest error of a part that the bootstrap added.

        Raises:
            SystemExit: a result is off by more than its bound.
        """
        worst = 0.0
        for result, source, row in zip(results, self.inputs, self.values, strict=True):
            decrypted = np.asarray(self.client.decrypt_complex(result))
            if not np.abs(decrypted - row).max() <= result.error_bound:
                raise SystemExit(f"{self.case}: the result is wrong")
            error = decrypted - np.asarray(self.client.decrypt_complex(source))
            parts = [error.real, error.imag] if self.case.values == "complex" else [error.real]
            worst = max(worst, *(float(np.abs(part).max()) for part in parts))
        return -float(np.log2(worst))

    def row(self) -> dict[str, Any]:
        """Return what is known before any run."""
        plan = self.plan
        return {
            "preset": self.case.preset,
            "values": self.case.values,
            "levels_left": plan.levels_left,
            "vectors": self.case.vectors,
            "slots": plan.slots,
            "key_bytes": sum(plan.key_bytes.values()),
            "matrix_bytes": plan.diagonal_bytes(),
        }


def benches(preset: str) -> list[Bench]:
    """Return the cases of a preset, with its keys."""
    plans = {case: case.plan for case in cases(preset)}
    parameters = next(iter(plans.values())).parameters
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    specs = list(dict.fromkeys(spec for plan in plans.values() for spec in plan.required_keys))
    keys = generator.evaluation_keys(specs=specs, relinearization=False)
    evaluator, encryptor = kw.Evaluator(parameters, keys), kw.Encryptor(generator.public_key())
    return [Bench(case, kw.Bootstrapper(plan), secret, encryptor, evaluator) for case, plan in plans.items()]


def counted(bench: Bench) -> dict[str, Any]:
    """Count one bootstrap and its first stage, after one that makes plans."""
    log_n = bench.plan.parameters.log_n
    bench.run()
    before = kernel_counts()
    results = bench.run()
    between = kernel_counts()
    bench.bootstrapper.slots_to_coeffs(bench.evaluator, bench.inputs[0])
    first = operations(between, kernel_counts(), log_n)
    counts = {**operations(before, between, log_n), "slots_to_coeffs": first}
    return {**bench.row(), **counts, "worst_bits": bench.worst_bits(results)}


def timed(listed: list[Bench], runs: int, threads: Sequence[int] = (1,)) -> Iterator[dict[str, Any]]:
    """Time bootstraps in turns, on each number of threads, after one of each that touches memory."""
    bits = [bench.worst_bits(bench.run()) for bench in listed]
    turns = [(bench, count) for bench in listed for count in threads]
    taken: list[list[Seconds]] = [[] for _ in turns]
    for _ in range(runs):
        for (bench, count), seconds in zip(turns, taken, strict=True):
            kw.set_threads(count)
            seconds.append(measured(bench.run)[1])
    peak = peak_rss_bytes()
    for (bench, count), seconds in zip(turns, taken, strict=True):
        yield {
            **bench.row(),
            "wall_s": [each.wall for each in seconds],
            "processor_s": [each.cpu for each in seconds],
            "median_s": statistics.median(each.cpu for each in seconds),
            "threads": count,
            "worst_bits": bits[listed.index(bench)],
            "process_peak_bytes": peak,
            "load": os.getloadavg()[0],
        }


def main(arguments: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(prog="python -m studies.speed.cases", description=__doc__)
    parser.add_argument("preset", help="whose keys are made")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each case (default: 3)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="take turns (default: 1)")
    options = parser.parse_args(arguments)
    kw.set_threads(max(options.threads))
    listed = benches(options.preset)
    counts = os.environ.get("KEYWRIGHT_BACKEND") == COUNTED
    rows = map(counted, listed) if counts else timed(listed, options.runs, options.threads)
    for row in rows:
        show(json.dumps(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
