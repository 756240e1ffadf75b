"""Key extension: the algorithm on integers, its counts, and the engine's own count of the ordinary switch."""

import random
from math import prod

import pytest
from keywright.plan.ring.chain import Chain
from studies.key_extension.__main__ import rows, table
from studies.key_extension.counts import Setting, auxiliary, extended, extensions, ordinary
from studies.key_extension.switching import (
    Extension,
    Ring,
    Switched,
    centred,
    extend,
    groups,
    least_auxiliary,
    make_key,
    times,
)
from studies.key_extension.switching import extended as switch_extended
from studies.key_extension.switching import ordinary as switch_ordinary

N = 8
BITS = 20


def primes_below(bound: int, count: int) -> list[int]:
    primes: list[int] = []
    while len(primes) < count:
        bound -= 1
        if all(bound % divisor for divisor in range(2, int(bound**0.5) + 1)):
            primes.append(bound)
    return primes


PRIMES = primes_below(1 << BITS, 40)
SHAPES = [(1, 1, 1, 1), (5, 1, 1, 2), (6, 2, 2, 3), (7, 3, 3, 4), (6, 6, 6, 12), (5, 2, 2, 7)]
"""Primes, special primes, alpha, primes in a digit of the key."""


def switched(
    shape: tuple[int, int, int, int], seed: int = 1
) -> tuple[Ring, Switched, Switched, list[list[int]]]:
    primes, special, alpha, size = shape
    ring = Ring(N, tuple(PRIMES[:primes]), tuple(PRIMES[primes : primes + special]), alpha)
    of = Setting(N.bit_length() - 1, primes, special, alpha, BITS)
    inner = auxiliary(of, size, BITS)
    extension = Extension(size, tuple(PRIMES[-inner:]))
    source = random.Random(seed)
    old, new = ([source.randint(-1, 1) for _ in range(N)] for _ in range(2))
    value = [source.randrange(prod(ring.q)) for _ in range(N)]
    key = make_key(ring, old, new, source)
    both = switch_ordinary(ring, key, value), switch_extended(ring, key, extension, value)
    return ring, *both, [old, new, value]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_extended_key_switches_to_the_same_ciphertext(shape: tuple[int, int, int, int]) -> None:
    ring, before, after, (old, new, value) = switched(shape)
    assert after.halves == before.halves
    q = prod(ring.q)
    got = [x + y for x, y in zip(after.halves[0], times(after.halves[1], new), strict=True)]
    error = centred([g - w for g, w in zip(got, times(value, old), strict=True)], q)
    # Rounding of both halves, and errors of at most 3 times the digits, divided by the special primes.
    assert max(map(abs, error)) <= 1 + N + 2 * len(ring.digits) * N


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_are_those_of_the_algorithm(shape: tuple[int, int, int, int]) -> None:
    primes, special, alpha, size = shape
    of = Setting(N.bit_length() - 1, primes, special, alpha, BITS)
    _, before, after, _ = switched(shape)
    for counts, operations in ((ordinary(of), before), (extended(of, size, BITS), after)):
        assert sum(counts.transforms) == operations.work["transforms"]
        assert counts.products == operations.work["products"]
        assert sum(counts.conversions) == operations.work["conversions"]


def test_bytes_are_those_of_the_extended_key() -> None:
    of = Setting(N.bit_length() - 1, 6, 2, 2, BITS)
    ring = Ring(N, tuple(PRIMES[:6]), tuple(PRIMES[6:8]), 2)
    key = make_key(ring, [1] * N, [1] * N, random.Random(3))
    extension = Extension(3, tuple(PRIMES[-auxiliary(of, 3, BITS) :]))
    rows_of = extend(ring, key, extension)
    limbs = sum(len(half) for row in rows_of for halves in row for half in halves)
    assert extended(of, 3, BITS).key_bytes == limbs * N * 8


def test_an_auxiliary_modulus_that_is_too_small_is_refused() -> None:
    ring = Ring(N, tuple(PRIMES[:4]), tuple(PRIMES[4:5]), 1)
    key = make_key(ring, [1] * N, [1] * N, random.Random(2))
    small = Extension(2, tuple(PRIMES[-2:]))
    assert prod(small.t) < least_auxiliary(ring, 2)
    with pytest.raises(ValueError, match="too small"):
        switch_extended(ring, key, small, [1] * N)


@pytest.mark.parametrize(("primes", "alpha"), [(32, 1), (31, 3), (28, 6), (7, 2)])
def test_the_engine_counts_the_ordinary_switch_alike(primes: int, alpha: int) -> None:
    chain = Chain(16, (50.0,) * primes, (50.0,) * alpha, bound=4000)
    special = chain.special_candidates(primes - 1)[:alpha]
    use = chain.widths.switch(primes - 1, alpha, special, True, primes - 1)
    assert use is not None
    shared, whole, *_ = use[3]
    counts = ordinary(Setting(16, primes, alpha, alpha))
    assert shared[0] + whole[0] == sum(counts.transforms)
    assert shared[0] == counts.shared
    assert shared[4] + whole[4] == sum(counts.conversions)
    assert whole[2] == counts.products


def test_groups_have_every_prime_once() -> None:
    assert groups([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]


def test_extension_pays_for_fine_digits_alone() -> None:
    """Fewer transforms for one and two primes to a digit, in more memory; not for long digits."""
    for alpha, wins in ((1, True), (2, True), (6, False), (8, False)):
        of = Setting(16, 34 - alpha, alpha, alpha)
        fewest = min((counts for _, _, counts in extensions(of)), key=lambda one: sum(one.transforms))
        assert (sum(fewest.transforms) < sum(ordinary(of).transforms)) == wins
        assert fewest.key_bytes > ordinary(of).key_bytes
        assert sum(fewest.transforms) - fewest.shared > sum(ordinary(of).transforms) - ordinary(of).shared


def test_the_table_has_a_line_for_each_setting() -> None:
    rows_of_table = list(rows())
    assert len(table(rows_of_table)) == 2 + len(rows_of_table) // 3
    assert {row["key"] for row in rows_of_table} == {"ordinary", "fewest transforms", "fastest"}
