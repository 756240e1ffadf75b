"""The measured cases: digits and levels of keys, and depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

Alpha = int | str
PLANS = ((1, 1), ("most", "maximum"), ("most", "dynamic"), ("most", "dynamic_dropped"))
"""Special primes and alphas: 1, the maximum, dynamic, and dynamic with dropped primes."""


@dataclass(frozen=True)
class Case:
    """One bootstrapping. `special` is a number of special primes or "most", as the security bound allows."""

    log_n: int
    depth: int
    special: Alpha
    alpha: Alpha
    key_levels: str = "needed"
    coalescing: bool = True
    timed: bool = True

    def options(self) -> list[str]:
        """Of the program."""
        fields = asdict(self)
        del fields["timed"]
        return [
            text for name, value in fields.items() for text in (f"--{name.replace('_', '-')}", word(value))
        ]


def word(value: object) -> str:
    """A value as the program reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def static(log_n: int, depth: int, special: Alpha, alpha: Alpha) -> Case:
    """Static digits as the paper means them: the same at every level, never coarser."""
    return Case(log_n, depth, special, alpha, coalescing=False)


def depths_cases(log_n: int, depths: Sequence[int]) -> list[Case]:
    """Latency against depth (figures 4 and 8): alpha = 1, the maximum, dynamic, with dropped primes."""
    cases = []
    for depth in depths:
        cases += [
            Case(log_n, depth, "most", "dynamic_dropped"),
            static(log_n, depth, "most", "maximum"),
            Case(log_n, depth, "most", "dynamic"),
            static(log_n, depth, 1, 1),
        ]
    return cases


def sweep_cases(log_n: int, depths: Sequence[int]) -> list[Case]:
    """Latency against alpha (figure 7): each depth with the largest alpha that it leaves room for."""
    return [static(log_n, depth, "most", "maximum") for depth in depths]


def single_cases(log_n: int) -> list[Case]:
    """What section 3.1 compares at depth 16, and its alpha = 5 at depth 9.

    alpha = 1 with coalescing; dynamic digits where the largest key has one special prime, as theirs.
    """
    compared = static(log_n, 9, "most", 5)
    return [Case(log_n, 16, 1, 1), Case(log_n, 16, 1, "dynamic_dropped"), compared]


def bytes_cases(log_n: int, depths: Sequence[int]) -> list[Case]:
    """Bytes alone (table 5): every column, keys at all levels and at the needed ones."""
    return [
        Case(log_n, depth, special, alpha, key_levels=levels, timed=False)
        for depth in depths
        for special, alpha in PLANS
        for levels in ("top", "needed")
    ]


SETS = ("bytes", "depths", "single", "sweep")


def schedule(
    names: Sequence[str], *, quick: bool, log_n: int | None = None, depths: Sequence[int] | None = None
) -> list[Case]:
    """The cases of the named sets, each once, in the order in which they are measured.

    Args:
        names: of `SETS`.
        quick: whether few depths are enough, in a ring without security.
        log_n: of another ring.
        depths: of the set of that name, where others are wanted.
    """
    log_n = log_n or (11 if quick else 16)
    some, all_depths = ((16, 2), (16, 9, 2)) if quick else ((16, 12, 9, 5, 2), range(16, 0, -1))
    sweep = (16, 14) if quick else range(18, 7, -1)
    schedule = {
        "bytes": bytes_cases(log_n, all_depths),
        "depths": depths_cases(log_n, some if depths is None else depths),
        "single": single_cases(log_n),
        "sweep": sweep_cases(log_n, sweep),
    }
    return list(dict.fromkeys(case for name in SETS if name in names for case in schedule[name]))
