"""The slopes of cyclic layouts are those that the search finds."""

from __future__ import annotations

import itertools

import cyclic_slopes
import numpy as np
from keywright.compiler.layout.cyclic import SLOPES, Slopes


def test_the_search_finds_the_slopes_of_the_compiler() -> None:
    searched, side = cyclic_slopes.chain(), cyclic_slopes.SIDE
    slopes = {side >> k: Slopes(h.row, h.column, h.moves) for k, h in enumerate(searched)}
    slopes[side >> len(searched)] = Slopes(searched[-1].half_row, searched[-1].half_column)
    assert slopes == SLOPES
    assert [halving.diagonals for halving in searched] == [85, 59, 21]
    assert all(a.half_row == b.row and a.half_column == b.column for a, b in itertools.pairwise(searched))


def test_the_best_number_of_baby_steps() -> None:
    """Sixteen diagonals in a row: four baby steps and four giant steps, of which each has 0 among them."""
    steps = np.arange(16)
    counts = [(n1 - 1) * cyclic_slopes.HOISTED + 16 // n1 - 1 for n1 in (1, 2, 4, 8, 16)]
    assert cyclic_slopes.cost(steps, 256) == min(counts) + 16 * cyclic_slopes.DIAGONAL
