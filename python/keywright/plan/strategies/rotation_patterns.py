"""Rotation keys from patterns of steps, arithmetic and geometric: the five algorithms of ARK (Chan et al.,
ePrint 2024/1948), on integers as published.

A decomposition is a tuple of stored integers whose sum is the targets one. Where the pseudocode leaves a
choice, the comments state the choice made here; `Interpretation` has the places where this project departs
from the paper, each of which changes the number of keys. The sums are sums of rotation steps. The paper
applies the algorithms to Galois exponents as well (its list rot2), where sums mean nothing: see
`docs/reproduction/keys.md`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Decomposition = tuple[int, ...]
LONGEST_GROUP = 5
"""Longer groups are divided (`moreSubdivision`, which the paper does not define): groups of the examples have
five numbers."""


@dataclass(frozen=True)
class Interpretation:
    """Where the algorithms are followed to the letter of the paper, and where not.

    Attributes:
        long_runs: algorithm 1 has runs of more than two numbers, as its description says; otherwise of at
            least two, as its pseudocode has.
        every_offset: algorithm 4 takes consecutive powers of two together at every offset, as printed;
            otherwise at positive offsets alone.
    """

    long_runs: bool
    every_offset: bool


OURS = Interpretation(long_runs=False, every_offset=False)
TEXT = Interpretation(long_runs=True, every_offset=True)


@dataclass(frozen=True)
class PatternKeys:
    """Rotations with keys, and the decomposition of each targets rotation.

    Attributes:
        keys: rotations that have a key, sorted.
        decompositions: for each targets rotation its keys, first hop first.
    """

    keys: tuple[int, ...]
    decompositions: Mapping[int, Decomposition]


def find_symmetric_patterns(
    numbers: Iterable[int], interpretation: Interpretation = OURS
) -> dict[int, list[int]]:
    """Algorithm 1: runs of sorted numbers with one difference, by difference."""
    shortest = 3 if interpretation.long_runs else 2
    ordered = sorted(set(numbers))
    patterns: dict[int, list[int]] = {}
    index = 0
    while index < len(ordered) - 1:
        start = index
        difference = ordered[index + 1] - ordered[index]
        while index < len(ordered) - 1 and ordered[index + 1] - ordered[index] == difference:
            index += 1
        if index + 1 - start >= shortest:
            patterns.setdefault(difference, []).extend(ordered[start : index + 1])
        index += 1
    return patterns


def find_geometric_patterns(numbers: Iterable[int]) -> dict[int, list[int]]:
    """Algorithm 2: numbers 2^n + k, by k, for every k with at least two of them. Only positive numbers have a
    logarithm."""
    groups: dict[int, list[int]] = {}
    for number in numbers:
        if number > 0:
            for exponent in range(number.bit_length() + 1):
                members = groups.setdefault(number - (1 << exponent), [])
                if number not in members:
                    members.append(number)
    return {offset: members for offset, members in groups.items() if len(members) >= 2}


def symmetric_keys(patterns: Mapping[int, Sequence[int]]) -> dict[int, list[Decomposition]]:
    """Algorithm 3: groups of neighbours around a centre: a centre and an offset for each number."""
    groups: list[list[int]] = []
    for difference, numbers in patterns.items():
        current = [numbers[0]]
        for previous, number in pairwise(numbers):
            if number - previous > difference or number < previous:
                groups.append(current)
                current = []
            current.append(number)
        groups.append(current)
    table: dict[int, list[Decomposition]] = {}
    for group in groups:
        for part in _subdivide(group):
            centre = part[len(part) // 2]
            for number in part:
                sums = tuple(value for value in (centre, number - centre) if value)
                if number and sums not in table.setdefault(number, []):
                    table[number].append(sums)
    kept = {value for ways in table.values() for way in ways for value in way}
    return {number: [(number,)] if number in kept else ways for number, ways in table.items()}


def _subdivide(group: list[int]) -> list[list[int]]:
    """Return equal parts, as many as the divisor nearest to the square root; one part if the length is small
    or prime."""
    length = len(group)
    divisors = [size for size in range(2, length) if length % size == 0]
    if length <= LONGEST_GROUP or not divisors:
        return [group]
    size = min(divisors, key=lambda divisor: (abs(divisor - length**0.5), -divisor))
    return [group[start : start + size] for start in range(0, length, size)]


def geometric_keys(
    patterns: Mapping[int, Sequence[int]], interpretation: Interpretation = OURS
) -> dict[int, list[Decomposition]]:
    """Algorithm 4: for each number the sums of a power of two and an offset that is worth a key, powers of
    two first."""
    table: dict[int, list[Decomposition]] = {}
    kept: set[int] = set()
    rest: list[tuple[int, Sequence[int]]] = []

    def note(number: int, sums: Decomposition) -> None:
        ways = table.setdefault(number, [])
        if not any(sorted(way) == sorted(sums) for way in ways):
            ways.append(sums)
        kept.update(sums)

    for offset, numbers in patterns.items():
        if (interpretation.every_offset or offset > 0) and len(numbers) > 4 and _consecutive(numbers, offset):
            for first, second in zip(numbers[::2], numbers[1::2], strict=False):
                note(first, (first,))
                note(second, (first, first, -offset) if offset else (first, first))
            if len(numbers) % 2:
                note(numbers[-1], (numbers[-1],))
        elif offset > 0 and offset & (offset - 1) == 0:
            for number in numbers:
                note(number, (number - offset, offset))
        elif offset == 0:
            for number in numbers:
                note(number, (number,))
        else:
            rest.append((offset, numbers))
    rest.sort(key=lambda entry: -len(entry[1]))
    waiting: dict[int, list[Decomposition]] = {}
    for offset, numbers in rest:
        for number in numbers:
            if number not in table:
                waiting.setdefault(number, []).append((number - offset, offset))
    for number, ways in waiting.items():
        for way in ways:
            if any(value in kept for value in way):
                note(number, way)
    return table


def _consecutive(numbers: Sequence[int], offset: int) -> bool:
    """`ConsecutiveNum`: the powers of two of a group follow each other."""
    return all(2 * (a - offset) == b - offset for a, b in pairwise(numbers))


def merge(numbers: Iterable[int], maps: Sequence[Mapping[int, Sequence[Decomposition]]]) -> PatternKeys:
    """Algorithm 5: numbers with one decomposition first, then those whose decompositions are already stored,
    then the decomposition that needs the fewest new keys. Numbers without any get a key of their own."""
    targets = [number for number in dict.fromkeys(numbers) if number]
    ways = {
        number: [way for result in maps for way in result.get(number, ())] or [(number,)]
        for number in targets
    }
    kept: set[int] = set()
    chosen: dict[int, Decomposition] = {}
    for number, options in ways.items():
        if len(options) == 1:
            chosen[number] = options[0]
            kept.update(options[0])
    for number, options in ways.items():
        complete = [way for way in options if kept.issuperset(way)]
        if number not in chosen and complete:
            chosen[number] = min(complete, key=len)
    # Line 16 counts what a decomposition adds; among equals, choose the one whose new keys serve the most
    # other numbers.
    popular = Counter(value for options in ways.values() for way in options for value in way)
    for number, options in ways.items():
        if number not in chosen:
            best = min(
                options,
                key=lambda way: (
                    len(set(way) - kept),
                    len(way),
                    -sum(popular[value] for value in set(way) - kept),
                ),
            )
            chosen[number] = best
            kept.update(best)
    kept = {value for way in chosen.values() for value in way}
    return PatternKeys(tuple(sorted(kept)), chosen)


def pattern_keys(
    numbers: Iterable[int], priority: Literal["memory", "time"], interpretation: Interpretation = OURS
) -> PatternKeys:
    """Run all algorithms: patterns, keys for each, merged; "memory" returns the set of fewest keys, "time"
    the one of fewest rotations."""
    numbers = list(numbers)
    targets = [number for number in dict.fromkeys(numbers) if number]
    symmetric = symmetric_keys(find_symmetric_patterns(numbers, interpretation))
    geometric = geometric_keys(find_geometric_patterns(targets), interpretation)
    candidates = [merge(targets, maps) for maps in ([symmetric], [geometric], [symmetric, geometric])]

    def hops(candidate: PatternKeys) -> int:
        return sum(len(way) for way in candidate.decompositions.values())

    if priority == "memory":
        return min(candidates, key=lambda candidate: (len(candidate.keys), hops(candidate)))
    smaller = [candidate for candidate in candidates if len(candidate.keys) < len(targets)] or candidates
    return min(smaller, key=lambda candidate: (hops(candidate), len(candidate.keys)))
