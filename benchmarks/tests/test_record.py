from collections.abc import Callable
from typing import Any

import pytest
from harness.record import BadRecord, Row, parse

Line = Callable[..., str]


def test_a_record_belongs_to_the_row_of_its_alpha(line: Line) -> None:
    assert parse(line()).rows((5, 3)) == [Row("rotate", 16, 26, 5)]


def test_a_library_with_digits_of_its_own_stands_beside_every_alpha(line: Line) -> None:
    rows = parse(line(alpha=None)).rows((5, 3))
    assert rows == [Row("rotate", 16, 26, 5), Row("rotate", 16, 26, 3)]


@pytest.mark.parametrize("changes", [{"alpha": 5, "level": 26}, {"alpha": None, "level": 0}])
def test_a_transform_has_one_row_whatever_its_level_and_alpha(line: Line, changes: dict[str, Any]) -> None:
    assert parse(line(work="ntt", **changes)).rows((5, 3)) == [Row("ntt", 16, 0, 0)]


def test_fields_beyond_the_schema_are_kept(line: Line) -> None:
    assert parse(line(limit_s=0.1)).raw["limit_s"] == 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Killed", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"library": "x"}', "no field 'version'"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checked": "yes"}, "field 'checked' is 'yes'"),
        ({"median_s": 0.0}, "not a time"),
        ({"median_s": float("nan")}, "not a time"),
    ],
)
def test_a_field_of_another_kind_is_refused(line: Line, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        parse(line(**changes))
