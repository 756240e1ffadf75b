"""Tests of the table of presets."""

from __future__ import annotations

from typing import Any

import bootstrap_table
import pytest
from keywright import BootstrapperPlan


def record(**changes: Any) -> dict[str, Any]:
    return {
        "preset": "N16",
        "values": "complex",
        "slots": 1 << 15,
        "levels_left": 9,
        "log_scale": 45.0,
        "approximation": [16, 48, 2, 7],
        "log2_failure": None,
        "vectors": 100,
        "predicted_worst_bits": 24.94,
        "worst_bits": 24.81,
        "predicted_mean_bits": 29.1,
        "mean_bits": 29.0,
        "result_worst_bits": 24.4,
        "bound_bits": 20.91,
        "keys": 60,
        "key_bytes": 2_480_000_000,
        "matrix_bytes": 380_000_000,
        "median_s": 3.14,
        "peak_rss_bytes": 3_800_000_000,
        "checked": True,
        **changes,
    }


def test_a_row_says_what_was_measured() -> None:
    line = bootstrap_table.table([record()]).splitlines()[2].replace("\N{NO-BREAK SPACE}", " ")
    assert line == (
        "| `N16` | 2^15 complex | 9 of 45 bits | 3.1 | 24.9, 24.8 | 60 | 2.48 GB | 3.8 GB | 0.38 GB "
        "| 29.1, 29.0 | 24.4 | 20.9 | never | 100 | 16, 48, 2, 7 |"
    )


def test_the_last_record_counts_and_wrong_results_are_refused() -> None:
    lines = bootstrap_table.table([record(), record(preset="N15"), record(median_s=2.0)]).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["`N16`", "`N15`"]
    assert "| 2.0 |" in lines[2]
    assert "2^-47" in bootstrap_table.table([record(log2_failure=-47.4)])
    with pytest.raises(SystemExit, match="N16"):
        bootstrap_table.table([record(checked=False)])


def test_the_page_has_the_table_of_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bootstrap_table.PAGE.parents[2] / "benchmarks" / "record"
    days = ("2026-11-23-presets", "2026-11-27-presets", "2026-11-28-presets")
    records = [str(folder / day / "one_thread.jsonl") for day in days]
    monkeypatch.setattr("sys.argv", ["bootstrap_table.py", *records, "--check"])
    with pytest.raises(SystemExit) as ended:
        bootstrap_table.main()
    assert ended.value.code == 0
    monkeypatch.setattr("sys.argv", ["bootstrap_table.py", records[0], "--check"])
    with pytest.raises(SystemExit, match="not that of the record"):
        bootstrap_table.main()


def test_every_preset_has_a_row_or_is_said_to_have_only_a_plan() -> None:
    page = bootstrap_table.PAGE.read_text()
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `N")}
    left = set(BootstrapperPlan.presets()) - rows
    assert all(
        f"`{name}`\nhas only a plan" in page or f"`{name}` has only a plan" in page for name in left
    ), left
