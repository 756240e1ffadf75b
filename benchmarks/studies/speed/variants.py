"""Other primes, digits and approximations for a bootstrap of 40-bit levels, counted before anything runs.

The counts are the planner's, for the keys of each plan: within 2 % of what the engine counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain as joined
from typing import Any

import keywright as kw
from keywright.plan.cost.model import Work
from keywright.plan.cost.operations import Operation
from keywright.plan.ring.chain import Chain
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.preset_plans import ring_levels
from keywright.plan.workload.arithmetic import bootstrap_operations

Runs = Sequence[tuple[int, int]]
CHOICES: dict[str, Any] = {
    "slots_to_coeffs": 3,
    "coeffs_to_slots": 4,
    "log_ratio": 11.5,
    "cosine_degree": 50,
    "double_angles": 2,
    "arcsine_degree": 1,
    "key_budget": 1_500_000_000,
    "log2_failure": -192.0,
}
"""Of `N16_QP1745_L15_S40`."""
SPARSER = {"cosine_degree": 60, "double_angles": 1, "ephemeral_weight": 24}
REDUCTION, SEVEN = ((57, 4), (60, 4)), ((57, 3), (60, 4))
"""Primes of `eval_mod`, of 8 and of 7 levels."""


def chain_runs(levels: int, reduction: Runs = REDUCTION, lowest: Runs = ((31, 3),), top: int = 4) -> Runs:
    """Return the widths of ciphertext primes with so many levels of 40 bits."""
    return ((50, 1), *lowest, (40, levels), *reduction, (46, top))


Variants = Mapping[str, tuple[Runs, int, dict[str, Any]]]
VARIANTS: Variants = {
    "15 levels, 7 special primes": (chain_runs(15), 7, {}),
    "the same, keys without a limit": (chain_runs(15), 7, {"key_budget": "fastest"}),
    "the same, slots to coefficients by 2 factors": (
        chain_runs(15, lowest=((40, 2),)),
        7,
        {"slots_to_coeffs": 2},
    ),
    "the same, coefficients to slots by 3 factors": (chain_runs(15, top=3), 7, {"coeffs_to_slots": 3}),
    "13 levels, 9 special primes": (chain_runs(13), 9, {}),
    "the same, cosine of degree 30, 3 double angles": (
        chain_runs(13),
        9,
        {"cosine_degree": 30, "double_angles": 3},
    ),
    "the same, cosine of degree 76, 1 double angle": (
        chain_runs(13),
        9,
        {"cosine_degree": 76, "double_angles": 1},
    ),
    "12 levels, 11 special primes": (chain_runs(12), 11, {}),
    "17 levels, 6 special primes": (chain_runs(17), 6, {}),
    "13 levels, 11 special primes, weight 24": (chain_runs(13, SEVEN), 11, SPARSER),
    "the same, real values": (chain_runs(13, SEVEN), 11, {**SPARSER, "values": "real"}),
    "14 levels, 9 special primes, weight 24": (chain_runs(14, SEVEN), 9, SPARSER),
    "11 levels, 11 special primes, weight 24": (chain_runs(11, SEVEN), 11, SPARSER),
    "13 levels in words of 47 bits, 9 special primes": (((50, 1), (47, 13), *REDUCTION, (46, 4)), 9, {}),
}
"""Widths of ciphertext primes, number of special primes of 50 bits, choices that differ from the preset's."""
FORMER = "N16_QP1725_L12_S40_real"
"""The best preset of commit e2e7e103 for real values. `N16_QP1743_L12_S40_real` replaced it."""
TWO = {"slots_to_coeffs": 2}
NETWORKS: Variants = {
    f"12 levels, 9 special primes, weight 32 (`{FORMER}`)": (chain_runs(12), 9, {}),
    "the same, slots to coefficients by 2 factors": (chain_runs(12, lowest=((31, 2),)), 9, TWO),
    "the same, 11 special primes, cosine of degree 48, 8 bits fewer (`N16_QP1743_L12_S40_real`)": (
        ((50, 1), (31, 2), (40, 12), (56, 4), (59, 4), (47, 4)),
        11,
        {**TWO, "log_ratio": 11.75, "cosine_degree": 48},
    ),
    "13 levels, 11 special primes, weight 24 (`N16_QP1716_L13_S40_real`)": (
        chain_runs(13, SEVEN),
        11,
        SPARSER,
    ),
    "12 levels, the same": (chain_runs(12, SEVEN), 11, SPARSER),
    "12 levels, weight 24, slots to coefficients by 2 factors": (
        chain_runs(12, SEVEN, ((34, 2),)),
        11,
        {**SPARSER, **TWO},
    ),
    "the same, coefficients to slots by 3 factors": (
        chain_runs(12, SEVEN, ((34, 2),), 3),
        11,
        {**SPARSER, **TWO, "coeffs_to_slots": 3},
    ),
    "11 levels, slots to coefficients by 2 factors": (
        chain_runs(11, SEVEN, ((34, 2),)),
        12,
        {**SPARSER, **TWO},
    ),
    "14 levels, 9 special primes, slots to coefficients by 2 factors": (
        chain_runs(14, SEVEN, ((34, 2),)),
        9,
        {**SPARSER, **TWO},
    ),
}
"""The same of bootstraps of `SPARSE` real values, as many as ResNet-20 has for one image."""
SPARSE = {"values": "real", "slots": 1 << 14, "input_log_n": 15}
FIRST = "slots_to_coeffs"
"""The stage that runs in the ring of the input."""
DENSE = {"13 levels in words of 47 bits, 9 special primes": 13}
"""Levels of 40 bits that the modulus of a variant would have in other words."""


def chosen(runs: Runs, special: int) -> kw.Parameters:
    """Return parameters with primes of these widths, and so many special primes of 50 bits."""
    widths = list(joined.from_iterable([bits] * count for bits, count in runs))
    return kw.Parameters.from_bits(16, widths, [50] * special, 40)


def plan_of(name: str) -> kw.BootstrapperPlan:
    """Return the plan of a preset, or that of `FORMER`."""
    if name != FORMER:
        return kw.BootstrapperPlan.preset(name)
    return kw.BootstrapperPlan(chosen(chain_runs(12), 9), **{**CHOICES, "values": "real"})


def sparse(parameters: kw.Parameters, choices: dict[str, Any]) -> kw.BootstrapperPlan:
    """Return the plan of a bootstrap of `SPARSE` values, which begins in their ring."""
    full = kw.BootstrapperPlan(parameters, **choices)
    rings = [ring for ring in ring_levels(full) if ring[0] == SPARSE["input_log_n"]]
    return kw.BootstrapperPlan(parameters.with_subrings(rings), **{**choices, **SPARSE})


def rows(variants: Variants = VARIANTS) -> Iterator[dict[str, Any]]:
    """Return the counts of variants."""
    make = sparse if variants is NETWORKS else lambda parameters, own: kw.BootstrapperPlan(parameters, **own)
    for name, (q, special, choices) in variants.items():
        plan = make(chosen(q, special), {**CHOICES, **choices})
        work = counted(plan)
        butterflies = sum(work.transforms) * 16 * 2**15
        adds = 2 * (sum(work.products) + work.stored_products + work.diagonals)
        adds += sum(work.conversions) + work.multiplications
        bits = plan.predicted_bits(20)
        yield {
            "variant": name,
            "levels_left": DENSE.get(name, plan.levels_left),
            "butterflies": butterflies / 1e9,
            "multiply_adds": adds * 2**16 / 1e9,
            "key_bytes": sum(plan.key_bytes.values()),
            "matrix_bytes": plan.diagonal_bytes(),
            "predicted_worst_bits": None if bits is None else bits[1],
        }


def counted(plan: kw.BootstrapperPlan) -> Work:
    """Return the work of one bootstrap with the keys of its plan."""
    largest = chain_of(plan.parameters)
    begins = plan.input_log_n != largest.log_n
    first = chain_of(plan.parameters.subring(plan.input_log_n)) if begins else largest
    keys: dict[tuple[int, int | None], list[kw.KeySpec]] = defaultdict(list)
    for spec in plan.required_keys:
        if spec.kind in ("rotation", "conjugation", "relinearization"):
            keys[spec.log_n, spec.galois_element].append(spec)
    total = Work()
    removed: dict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    merged: dict[int, tuple[int, ...]] = {}
    for stage, form, level, elements, count in plan.key_groups:
        chain = first if stage == FIRST else largest
        place = ("shared", "whole", "baby", "giant").index(form)
        listed: list[int | None] = [*elements] or [None]
        ways = (best(chain, keys[chain.log_n, one], level) for one in listed)
        uses = [use for use in ways if use is not None]
        work, primes = uses[0]
        # With few keys the rotated input is decomposed again, once for as many steps as there are keys.
        switches = max(1, len(elements))
        again = -(-(switches + 1) // len(uses)) if len(uses) < switches else 1
        for part, times in ((0, again), (1, again - 1), (place, switches - again + 1)):
            total = total.plus(work[part], count * times)
        if elements:
            removed[chain.log_n, level][primes] += count * switches
        else:
            merged[level] = primes
    for operation in bootstrap_operations(plan, "b", first.log_n) if begins else ():
        total = total.plus(done(operation, first, removed, {}), operation.count)
    for operation in bootstrap_operations(plan, "b"):
        total = total.plus(done(operation, largest, removed, merged), operation.count)
    return total


def done(
    operation: Operation,
    chain: Chain,
    removed: Mapping[tuple[int, int], Counter[tuple[int, ...]]],
    merged: Mapping[int, tuple[int, ...]],
) -> Work:
    """Return the work of an operation besides key switches, divided by the primes that most of these use."""
    level, special = operation.level, range(chain.max_level + 1, chain.max_level + 1 + len(chain.p))
    used = removed.get((chain.log_n, level), Counter[tuple[int, ...]]())
    primes = max(used, key=used.__getitem__, default=tuple(special))
    return operation.work(chain, primes, merged.get(level, ()))


def best(chain: Chain, keys: Sequence[kw.KeySpec], level: int) -> tuple[list[Work], tuple[int, ...]] | None:
    """Return the parts of a switch at a level with the lowest key that reaches it, and the primes that it
    removes."""
    lowest = min((key for key in keys if key.level >= level), key=lambda key: key.level, default=None)
    if lowest is None:
        return None
    use = chain.widths.switch(lowest.level, lowest.alpha, list(lowest.special), True, level)
    if use is None:
        return None
    _, removed, _, work = use
    return [Work.counted(row, chain.log_n) for row in work], tuple(removed)
