"""Errors in the words of the command line."""

from __future__ import annotations

import ast
import itertools
import re

import pytest
from keywright._units import quantity
from keywright.commands.helpers.wording import in_options
from tests.sources import files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch=65536: too many", "--batch 65536: too many"),
        ("give either preset= or plan=", "give either --preset or --plan"),
        ("calibration_count=5, plan=", "--calibration-count 5, --plan"),
        ("levels=5 and compiler.Fit(batch=3)", "levels=5 and compiler.Fit(--batch 3)"),
        ("force=True, plans=", "force=True, --plan"),
        (
            "calibration=, finer polynomials (activations=, error=)",
            "--calibration, finer polynomials (--activation, --error)",
        ),
        ("a batch==3, x.batch=3, other_batch=3", "a batch==3, x.batch=3, other_batch=3"),
    ],
)
def test_arguments_that_a_command_has_are_options(text: str, expected: str) -> None:
    assert in_options(text, {"force_all", "batch", "preset", "plan", "calibration_count"}) == expected


COUNTED = re.compile(
    r" (levels|samples|keys|entries|vectors|rotations|activations|automorphisms|inputs|steps)\b"
)
"""Nouns of which there may be one."""

ROOMS = ("commands", "search", "program/fit_report.py", "model/session.py", "model/report")


def plurals(tree: ast.AST) -> list[str]:
    """Return plural nouns right behind a number that is filled in, which may be 1; a number beside a
    condition is known to be another."""
    conditional = {
        id(each) for node in ast.walk(tree) if isinstance(node, ast.IfExp) for each in ast.walk(node)
    }
    return [
        f"{ast.unparse(before)}{match[0]}"
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr) and id(text) not in conditional
        for before, after in itertools.pairwise(text.values)
        if isinstance(before, ast.FormattedValue)
        and isinstance(after, ast.Constant)
        and (match := COUNTED.match(str(after.value)))
    ]


def test_one_of_a_kind_is_no_plural() -> None:
    listed = {
        f"{path}: {text}"
        for path, tree in files()
        if path.as_posix().startswith(ROOMS)
        for text in plurals(tree)
    }
    assert not listed
    assert quantity(1, "level") == "1 level"
    assert [quantity(count, "entry", "entries") for count in (0, 2, 3000)] == [
        "0 entries",
        "2 entries",
        "3,000 entries",
    ]
