"""Figure 5 from records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.record import BadRecord
from studies.bootstrapping_keys import relinearization
from studies.bootstrapping_keys.relinearization import Measured, Point, chosen, parse, read, summary, table


def line(**changes: object) -> str:
    fields: dict[str, object] = {"log_n": 16, "alpha": 2, "coalescing": False, "level": 5, "top": 31}
    fields |= {"processor_seconds": [0.1, 0.2, 0.4], "checked": True, "threads": 1}
    return json.dumps(fields | changes)


POINTS = {
    Point(16, alpha, coalescing, level): Measured(seconds, 31)
    for alpha, coalescing, level, seconds in [
        (1, False, 8, 0.9),
        (4, False, 8, 0.3),
        (16, False, 8, 0.2),
        (4, True, 8, 0.25),
        (1, False, 2, 0.1),
        (4, False, 2, 0.3),
    ]
}


def test_a_line_is_a_point_with_its_median() -> None:
    assert parse(line()) == (Point(16, 2, False, 5), Measured(0.2, 31))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        line(checked=False),
        line(checked=1),
        line(processor_seconds=[]),
        line(processor_seconds=None),
    ],
)
def test_what_is_no_result_is_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        parse(text)


def test_a_record_is_read_and_absent_means_empty(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    assert read(path) == {}
    path.write_text(line() + "\n" + line(level=4) + "\n")
    assert {point.level for point in read(path)} == {4, 5}


def test_the_choice_counts_transforms() -> None:
    # Level 8: 11 * 10 with alpha = 1, (3 + 2) * 13 with 4, (1 + 2) * 25 with 16.
    assert chosen(POINTS, 8) == 4
    # Level 2: (3 + 2) * 4 with alpha = 1, (1 + 2) * 7 with 4.
    assert chosen(POINTS, 2) == 1
    assert chosen(POINTS, 7) is None


def test_the_table_shows_each_alpha_and_the_choice_beside_the_fastest() -> None:
    rows = table(dict(POINTS))
    assert rows[2] == "| 8 | 900.0 | - | 300.0 | - | 200.0 | 200.0 (16) | 300.0 (4) | 3.00x | 250.0 (4) |"
    assert "median over 2 levels; at worst 1.50" in summary(POINTS)
    assert table({}) == []
    assert summary({}) == ""


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    relinearization.draw(POINTS, "title", tmp_path / "points.png")
    assert (tmp_path / "points.png").read_bytes().startswith(b"\x89PNG")
