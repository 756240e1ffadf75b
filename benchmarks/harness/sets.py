"""The parameter sets of `sets.json`, cut into the cases that one program run measures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from keywright._core import bench_works

SETS = Path("sets.json")

WORKS = tuple(bench_works())
"""Those of `keywright bench`; a peer has some of them."""
TRANSFORMS = ("ntt", "intt")
"""The works in which digits play no part."""


@dataclass(frozen=True)
class Case:
    """What one program run measures: a set, a digit size and the works."""

    set_name: str
    alpha: int
    works: tuple[str, ...]
    first: bool
    """True for one case of each set: the one that libraries with digits of their own run."""


@dataclass(frozen=True)
class ParameterSet:
    """The part of an entry of `sets.json` that the table needs."""

    name: str
    log_n: int
    log_q: tuple[int, ...]
    log_p: int
    alphas: tuple[int, ...]

    def cases(self, works: tuple[str, ...]) -> list[Case]:
        """One case per alpha. Transforms know no alpha: they are measured in the first case only."""
        cases = []
        for alpha in self.alphas:
            first = alpha == self.alphas[0]
            chosen = tuple(work for work in works if first or work not in TRANSFORMS)
            if chosen:
                cases.append(Case(self.name, alpha, chosen, first))
        return cases

    def describe(self) -> str:
        """The set in a line, with runs of equal primes counted."""
        runs: list[list[int]] = []
        for bits in self.log_q:
            if runs and runs[-1][1] == bits:
                runs[-1][0] += 1
            else:
                runs.append([1, bits])
        primes = " + ".join(f"{count}x{bits}" if count > 1 else str(bits) for count, bits in runs)
        alphas = ", ".join(map(str, self.alphas))
        return (
            f"N = 2^{self.log_n}, Q = {primes} bits ({len(self.log_q)} primes), "
            f"P = alpha x {self.log_p} bits, alpha = {alphas}, uniform ternary secret"
        )


def read_set(name: str, path: Path = SETS) -> ParameterSet:
    """Read one set; raises `KeyError` for an unknown name."""
    entry = json.loads(path.read_text())[name]
    return ParameterSet(name, entry["log_n"], tuple(entry["log_q"]), entry["log_p"], tuple(entry["alphas"]))
