"""The part of a matrix that is run at every change has every value of every side."""

from itertools import combinations, product

import pytest
from tests.matrices import cells, quick


@pytest.mark.parametrize("sizes", [(7, 7), (14, 7), (29, 4), (11, 3), (7, 7, 2), (5, 7, 3), (5, 4, 4)])
def test_every_value_is_in_a_quick_cell(sizes: tuple[int, ...]) -> None:
    places = [place for place in product(*map(range, sizes)) if quick(place, sizes)]
    assert len(places) * sorted(sizes)[-2] == len([*product(*map(range, sizes))])
    longest = sorted(range(len(sizes)), key=lambda side: sizes[side])[-2:]
    for side, size in enumerate(sizes):
        assert {place[side] for place in places} == set(range(size))
    for pair in combinations(range(len(sizes)), 2):
        if set(pair) != set(longest):
            assert len({tuple(place[side] for side in pair) for place in places}) == (
                sizes[pair[0]] * sizes[pair[1]]
            )


def test_the_other_cells_are_marked_and_none_is_lost() -> None:
    matrix = cells("abc", (1, 2), without={("b", 1)})
    assert [cell.values for cell in matrix] == [("a", 1), ("a", 2), ("b", 2), ("c", 1), ("c", 2)]
    assert [bool(cell.marks) for cell in matrix] == [False, True, False, False, True]
