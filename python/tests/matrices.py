"""Matrices of cases, of which a change needs a part at once: `make test-full` runs every cell."""

from collections.abc import Container, Sequence
from itertools import product
from typing import Any

import pytest


def quick(places: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a cell is run at every change: the sum of its places is a multiple of the second longest side.

    Every value of every side is then in a cell, and each pair of values of any other sides than the two
    longest ones too.
    """
    return sum(places) % sorted(sizes)[-2] == 0


def cells(*sides: Sequence[Any], without: Container[tuple[Any, ...]] = ()) -> list[Any]:
    """The cells of a matrix for `pytest.mark.parametrize`; those that wait for `make test-full` are marked.

    Args:
        sides: the values of each parameter.
        without: cells that do not exist.
    """
    sizes = [len(side) for side in sides]
    return [
        pytest.param(*values, marks=() if quick(places, sizes) else pytest.mark.full)
        for places in product(*map(range, sizes))
        if (values := tuple(side[place] for side, place in zip(sides, places, strict=True))) not in without
    ]
