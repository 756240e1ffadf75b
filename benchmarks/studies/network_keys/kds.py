"""Tables 6 and 7 of KDS (Joo et al., Sensors 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose

from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    KeyPolicy,
    Planner,
    Workload,
)
from keywright.plan.workload.workload import Group

from studies.network_keys.page_parts import GB, require, step, table
from studies.network_keys.rotation_lists import workloads

ROWS = (
    # Index, alpha, level; GB of GRU + MLP (table 6), SqueezeNet and ResNet-20 (table 7, both activations if
    # they differ).
    ("all required", "dynamic", "all", ("553.648",), ("490.968",), ("534.656",)),
    ("all required", "1", "all", ("307.09",), ("253.403",), ("275.952",)),
    ("power of two", "dynamic", "all", ("83.752",), ("108.179",), ("108.179",)),
    ("power of two", "1", "all", ("55.835",), ("55.835",), ("55.835",)),
    ("all required", "dynamic", "needed", ("52.026",), ("45.353", "46.016"), ("47.32", "53.511")),
)
"""Tables 6 and 7 as printed."""
COUNTS = {
    "ResNet-20, all required, alpha 1": ("275.952", 257),
    "SqueezeNet, all required, alpha 1": ("253.403", 236),
    "GRU + MLP, all required, alpha 1": ("307.09", 286),
    "power of two, alpha 1": ("55.835", 52),
}
"""What tables 6 and 7 print, GB, and the number of keys of 2^30 bytes that it is."""
ALPHAS = (1, 2, 4, 8, 16)
"""The alphas of figure 5."""
CHAIN = Chain(16, (51, *[50] * 30), (51,) * 3)
"""31 primes of about 50 bits, as a multiplication depth of 16 and the 15 levels of a bootstrapping take."""
KEY = 2**30
LOW = 2
"""The level that most rotations of the network's list are not needed above."""
Row = tuple[str, str, str]
"""Index, alpha and level."""
NEEDED = ("all required", "dynamic", "needed")
BUDGETS: tuple[tuple[Row, float], ...] = (
    (("power of two", "1", "all"), 1.0),
    (("all required", "1", "all"), 1.0),
    (NEEDED, 1.0),
    (NEEDED, 1.1),
)
"""Rows, and in how much of their time `optimal` is planned."""
POWERS = STRATEGIES["signed-power-of-two"]
EVERY = STRATEGIES["all-required"]


def published_bytes(log_n: int, level: int, alpha: int) -> int:
    """Return the bytes of a key by the formula of the paper: 2 N dnum (1 + level + alpha) 8, dnum =
    ceil((1 + level) / alpha)."""
    return 16 * (1 << log_n) * -(-(1 + level) // alpha) * (1 + level + alpha)


def key_bytes() -> str:
    """The key sets of both tables by their formula."""
    full = published_bytes(16, 30, 1)
    rows = []
    for name, (printed, count) in COUNTS.items():
        digits = len(printed.partition(".")[2])
        require(f"{count * KEY / GB:.{digits}f}" == printed, f"{printed} GB are {count} keys of 2^30 bytes")
        rows.append((name, printed, count, f"{count * KEY / GB:.3f}", f"{count * full / GB:.3f}"))
    return table(("key set", "paper, GB", "keys", "keys x 2^30 B", "keys x formula, level 30"), rows)


def as_printed() -> str:
    """Both tables, each figure with its number of keys of 2^30 bytes."""

    def cell(figures: Sequence[str]) -> str:
        counts = " / ".join(f"{float(figure) * GB / KEY:.1f}" for figure in figures)
        return f"{' / '.join(figures)} ({counts})"

    printed = {
        (index, alpha, level): [float(one[0]) for one in figures] for index, alpha, level, *figures in ROWS
    }
    for index in ("all required", "power of two"):
        dynamic, fixed = printed[index, "dynamic", "all"], printed[index, "1", "all"]
        for whole, part in list(zip(dynamic, fixed, strict=True))[1:]:
            ratio = sum(1 / alpha for alpha in ALPHAS)
            require(isclose(whole / part, ratio, rel_tol=1e-4), f"{whole} GB are 31/16 times {part}")
    require(isclose(83.752 / 55.835, 1.5, rel_tol=1e-4), "table 6 has 3/2 times the powers of two")
    rows = [(index, alpha, level, *map(cell, figures)) for index, alpha, level, *figures in ROWS]
    return table(("index", "alpha", "level", "GRU + MLP", "SqueezeNet", "ResNet-20"), rows)


def network(bootstrapping: bool) -> Workload:
    """The rotations of FHE-MP-CNN's ResNet-20 in the parameters of KDS, without relinearizations."""
    groups = workloads()["FHE-MP-CNN"].groups
    name = "ResNet-20 of KDS" + (" with its bootstrapping" if bootstrapping else "")
    return Workload(name, CHAIN, tuple(group for group in groups if bootstrapping or not _bootstraps(group)))


def computed(model: CostModel, hops: int) -> tuple[str, dict[str, object]]:
    """The rows of table 7 for that network alone and with its bootstrapping, with predicted times, and
    `optimal` in the time of some of them; and numbers for the text."""
    alone, both = columns = [Column(network(bootstrapping), model, hops) for bootstrapping in (False, True)]
    rows: list[Sequence[object]] = []
    for index, alpha, level, _, _, figures in ROWS:
        cells = [cell for column in columns for cell in column.cells((index, alpha, level))]
        rows.append((index, alpha, level, " / ".join(figures), *cells))
    for row, factor in BUDGETS:
        cells = [cell for column in columns for cell in column.optimal(row, factor)]
        rows.append((f"`optimal`, at most {factor:g} times the s of: {row[0]}", *row[1:], "", *cells))
    headings = ["index", "alpha", "level", "paper, ResNet-20, GB"]
    for name, column in zip(("network", "with bootstrapping"), columns, strict=True):
        headings += [f"{name} ({column.rotations} / {column.powers} keys), GB", "s"]
    top, theirs = published_bytes(16, 30, 1), COUNTS["ResNet-20, all required, alpha 1"][1]
    require(top == 16 * 2**16 * 31 * 32 and KEY == 16 * 2**16 * 32 * 32, "theirs have 32 digits, not 31")
    low = sum(level <= LOW for level in network(False).highest_levels.values())
    require(2 * low > alone.rotations, f"most rotations are needed at level {LOW} or below")
    require(alone.rotations > theirs, "the list has more rotations than they have keys")

    def less(column: Column, budget: tuple[Row, float]) -> str:
        return f"{column.bytes_of(budget[0]) / (2 * column.best[budget].stored_bytes):.1f}"

    values: dict[str, object] = {
        "kds_rotations": alone.rotations,
        "kds_theirs": theirs,
        "kds_powers_theirs": COUNTS["power of two, alpha 1"][1],
        "kds_powers": alone.powers,
        "kds_powers_both": both.powers,
        "kds_more": f"{100 * (KEY / top - 1):.0f}",
        "kds_more_dynamic": f"{100 * (KEY * sum(1 / alpha for alpha in ALPHAS) / _dynamic() - 1):.0f}",
        "kds_less": less(alone, BUDGETS[-1]),
        "kds_less_both": less(both, BUDGETS[-1]),
        "kds_fewer": less(alone, BUDGETS[1]),
        "kds_fewer_both": less(both, BUDGETS[1]),
        "kds_network": f"{alone.bytes_of(NEEDED) / GB:.1f}",
        "kds_low": low,
        "kds_low_level": LOW,
        "kds_boot": f"{(both.bytes_of(NEEDED) - alone.bytes_of(NEEDED)) / GB:.1f}",
    }
    return table(headings, rows), values


class Column:
    """One program: plans for the rows of the tables, and its planner."""

    def __init__(self, workload: Workload, model: CostModel, hops: int) -> None:
        self.model = model
        with step(workload.name):
            self.planner = Planner(workload, model, max_hops=hops)
            self.plans = {
                (index, alpha, level): plan_of(workload, model, index, alpha, level)
                for index, alpha, level, *_ in ROWS
            }
            self.best = {
                (row, factor): self.planner.best(Budget(seconds=factor * self.plans[row].seconds(model)))
                for row, factor in BUDGETS
            }
        bootstrapping = {a for group in workload.groups if _bootstraps(group) for a in group.targets}
        group = AutomorphismGroup(16)
        powers = {group.rotation(sign << bit) for bit in range(15) for sign in (1, -1)}
        self.rotations, self.powers = len(workload.highest_levels), len(powers | bootstrapping)

    def bytes_of(self, row: Row) -> int:
        """Bytes by the formula, both halves stored: for all levels of one key, or of one for each alpha."""
        index, alpha, level = row
        if level == "needed":
            keys = self.plans[row].keys
            return sum(published_bytes(16, key.shape.level, key.shape.alpha) for key in keys)
        count = self.rotations if index == "all required" else self.powers
        return count * (_dynamic() if alpha == "dynamic" else published_bytes(16, 30, 1))

    def cells(self, row: Row) -> tuple[str, str]:
        """GB and predicted seconds."""
        return f"{self.bytes_of(row) / GB:.1f}", f"{self.plans[row].seconds(self.model):.1f}"

    def optimal(self, row: Row, factor: float) -> tuple[str, str]:
        """The same for `optimal` within a multiple of the time of a row, both halves stored."""
        plan = self.best[row, factor]
        return f"{2 * plan.stored_bytes / GB:.1f}", f"{plan.seconds(self.model):.1f}"


def plan_of(workload: Workload, model: CostModel, index: str, alpha: str, level: str) -> KeyPlan:
    """A row as a plan. Rotations of a bootstrapping have separate keys in every row."""
    policy = KeyPolicy("dynamic" if alpha == "dynamic" else 1, "all" if level == "all" else "needed")
    every = EVERY.plan(workload, model, policy)
    if index == "all required":
        return every
    powers = POWERS.plan(workload, model, policy)
    hops = tuple(
        own if _bootstraps(group) else hop
        for group, own, hop in zip(workload.groups, every.hops, powers.hops, strict=True)
    )
    return replace(powers, hops=hops)


def _bootstraps(group: Group) -> bool:
    return group.name.startswith("bootstrap") or group.name.endswith("/subsum")


def _dynamic() -> int:
    """One key for each alpha, each for the highest level that its special primes leave of 32 primes."""
    return sum(published_bytes(16, 31 - alpha, alpha) for alpha in ALPHAS)
