"""Counts of an emulated program."""

from __future__ import annotations

import pytest
from studies.neon_instructions import BadCount, Count, parse, table


def test_a_line_is_a_work_with_what_the_plugin_wrote() -> None:
    assert parse("forward 2^14 45 1135934\n") == [Count("forward", "2^14", "45", 1135934)]


@pytest.mark.parametrize("line", ["forward 2^14 45", "forward 2^14 45 x", "12", ""])
def test_a_line_without_a_count_is_refused(line: str) -> None:
    with pytest.raises(BadCount):
        parse(f"{line}\n")


def test_works_stand_beside_their_own() -> None:
    counts = {"portable": [Count("forward", "2^14", "45", 200)], "neon": [Count("forward", "2^14", "45", 90)]}
    assert table(counts)[-1] == "| forward | 2^14 | 45 | 200 | 90 | 45.0 % |"
    with pytest.raises(BadCount):
        table({**counts, "neon": [Count("inverse", "2^14", "45", 90)]})
