"""Search for the slopes of `keywright.compiler.layout.cyclic`, and print them as that module has them.

    python scripts/cyclic_slopes.py

For the largest side, slopes are tried of the form that makes a repacking's shifts an interval: 2 a - a' = 1
and 2 b - b' = 2 up to signs. For each smaller side all small 2 a - a' and 2 b - b' are tried, with every way
to send the four pixels (r, s) to channels. What counts is the cost of the repackings: baby steps, giant steps
and products, much as `CostTable` has them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

HOISTED, DIAGONAL = 0.5, 0.1
"""Cost of a baby step and of a product with a diagonal, in giant steps: a baby step takes a quarter of the
time, and a key of its own."""

SIDE = 32
SMALLEST = 4
STEEPEST = 12
"""Largest 2 a - a' and 2 b - b' that are tried."""

Moves = tuple[int, int, int, int]


@dataclass(frozen=True, order=True)
class Halving:
    """A repacking for half the side.

    Attributes:
        cost: in giant steps.
        diagonals: how many it has.
        row, column: slopes of the larger side.
        half_row, half_column: slopes of the smaller.
        moves: t(0, 0), t(0, 1), t(1, 0), t(1, 1).
    """

    cost: float
    diagonals: int
    row: int
    column: int
    half_row: int
    half_column: int
    moves: Moves


def covers(row: int, column: int, side: int) -> bool:
    """Whether row y + column x takes every value modulo side^2 on a square of the side."""
    y, x = np.indices((side, side))
    return len(np.unique((row * y + column * x) % side**2)) == side**2


def cost(steps: np.ndarray, period: int) -> float:
    """Cost of a map with these diagonals, with the best number of baby steps."""
    used = np.zeros(period, bool)
    used[steps % period] = True
    cost = []
    for n1 in (1 << k for k in range(period.bit_length())):
        table = used.reshape(-1, n1)
        babies, giants = (int(np.count_nonzero(np.any(table, axis=axis).ravel()[1:])) for axis in (0, 1))
        cost.append(HOISTED * babies + giants)
    return min(cost) + DIAGONAL * int(np.count_nonzero(used))


def moves(row: int, column: int, pixels: int) -> Iterator[Moves]:
    """Return ways to move the pixels (r, s) to four channels of `pixels` pixels each. A pixel moves by t(r,
    s), which is row r + column s modulo the pixels, to a separate channel. For each, the two nearest are
    returned."""
    choices: dict[tuple[int, int], list[int]] = {}
    for place, (r, s) in enumerate(((0, 1), (1, 0), (1, 1)), start=1):
        start = row * r + column * s
        near = (start + pixels // 2) % pixels - pixels // 2
        for move in (near + pixels * j for j in range(-3, 4)):
            choices.setdefault((place, (start - move) // pixels % 4), []).append(move)
    for order in itertools.permutations((1, 2, 3)):
        one, two, three = (
            sorted(choices[place, to], key=abs)[:2] for place, to in zip((1, 2, 3), order, strict=True)
        )
        for a, b, c in itertools.product(one, two, three):
            yield 0, a, b, c


def halvings(row: int, column: int, half: int) -> Iterator[Halving]:
    """All repackings that are tried, from slopes to half the side."""
    y, x = np.indices((half, half))
    for down, beside in itertools.product(range(-STEEPEST, STEEPEST + 1), repeat=2):
        to = 2 * row - down, 2 * column - beside
        within = np.unique(down * y + beside * x)
        if len(within) <= 4 * half and covers(*to, half):
            for four in moves(row, column, half**2):
                steps = np.unique(within[:, None] + np.asarray(four))
                if len(steps) <= 8 * half:
                    yield Halving(cost(steps, 8 * half**2), len(steps), row, column, *to, four)


def firsts(half: int) -> Iterator[Halving]:
    """Repackings from the largest side whose shifts are an interval."""
    y, x = np.indices((half, half))
    signs = itertools.product((1, -1), (2, -2), (2 * half, -2 * half), (half // 2 - 1, 1 - half // 2))
    for down, beside, below, right in signs:
        for u, v in itertools.product(range(4), repeat=2):
            row, column = below + half**2 * u, right + half**2 * v
            to = 2 * row - down, 2 * column - beside
            channels = {(u * r + v * s) % 4 for r, s in itertools.product((0, 1), repeat=2)}
            if len(channels) == 4 and covers(row, column, 2 * half) and covers(*to, half):
                four = (0, right, below, below + right)
                steps = np.unique((down * y + beside * x)[..., None] + np.asarray(four))
                yield Halving(cost(steps, 16 * half**2), len(steps), row, column, *to, four)


def chain() -> list[Halving]:
    """The repackings from side to side, of which the first two together are the best, and then each."""
    best = min(
        ((first, min(halvings(first.half_row, first.half_column, SIDE // 4))) for first in firsts(SIDE // 2)),
        key=lambda two: (sum(halving.cost for halving in two), two),
    )
    chain = list(best)
    half = SIDE // 8
    while half >= SMALLEST:
        chain.append(min(halvings(chain[-1].half_row, chain[-1].half_column, half)))
        half //= 2
    return chain


def main() -> None:
    """Print the slopes."""
    slopes, side = chain(), SIDE
    for halving in slopes:
        print(f"    {side}: Slopes({halving.row}, {halving.column}, {halving.moves}),  # {halving.diagonals}")
        side //= 2
    print(f"    {side}: Slopes({slopes[-1].half_row}, {slopes[-1].half_column}),")


if __name__ == "__main__":
    main()
