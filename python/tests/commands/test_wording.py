"""Errors in the words of the command line."""

from __future__ import annotations

import pytest
from keywright.commands.helpers.wording import in_options


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
