import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keywright as kw
import pytest
from harness.record import BadRecord
from studies.bootstrapping_keys import page, paper, plot, relinearization, rotations, rule
from studies.bootstrapping_keys.cases import SETS, Case, schedule, static
from studies.bootstrapping_keys.record import Result, line, read, result, together
from studies.bootstrapping_keys.report import ABSENT, Tables
from studies.ledger.records import ROOT, records

Make = Callable[..., Result]


@pytest.fixture
def make() -> Make:
    """Return the result of a case."""

    def make(case: Case, seconds: float = 2.0, **changes: Any) -> Result:
        alpha = case.alpha if case.alpha != "maximum" else 3
        raw = {
            "alpha": alpha,
            "special": 3 if case.special == "most" else case.special,
            "rotation_keys": 40,
            "formula_bytes": 8 * paper.GB,
            "key_bytes": 2 * paper.GB,
            "step_bytes": paper.GB,
            "seconds": [9 * seconds],
            "processor_seconds": [seconds],
            "stage_processor_seconds": dict.fromkeys(STAGES, seconds / 4),
            "worst_bits": 21.0,
            "checked": True,
        }
        return result(case, {**raw, **changes})

    return make


STAGES = ("slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod")


def test_a_record_comes_back_from_its_lines(make: Make, tmp_path: Path) -> None:
    measurement = [make(case) for case in schedule(SETS, quick=True)]
    path = tmp_path / "kds.jsonl"
    path.write_text("".join(line(one) + "\n" for one in measurement))
    assert read(path) == {one.case: one for one in measurement}
    assert read(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checked": False}, "not within its bound"),
        ({"checked": 1}, "not within its bound"),
        ({"processor_seconds": [1.0, 0.0]}, "not positive"),
    ],
)
def test_a_wrong_result_is_refused(make: Make, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        make(Case(16, 16, 1, 1), **changes)


@pytest.mark.parametrize(
    "text", ["Killed", "[1]", "{}", '{"case": {}}', '{"case": 7}', '{"case": {"log_n": 16, "x": 1}}']
)
def test_other_text_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kds.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(BadRecord, match=r"kds\.jsonl:1"):
        read(path)


def test_a_missing_field_is_named(make: Make) -> None:
    measurement = make(Case(16, 16, 1, 1))
    for name in ("key_bytes", "processor_seconds"):
        with pytest.raises(BadRecord, match=name):
            result(measurement.case, {key: value for key, value in measurement.raw.items() if key != name})
    # A plan has no times.
    plan = replace(measurement.case, timed=False)
    assert (
        result(plan, {key: value for key, value in measurement.raw.items() if "seconds" not in key}).case
        == plan
    )


def test_options_are_those_of_the_program() -> None:
    options = static(16, 9, "most", "maximum").options()
    expected = "--log-n 16 --depth 9 --special most --alpha maximum --key-levels needed --coalescing false"
    assert " ".join(options) == expected


@pytest.mark.parametrize("quick", [True, False])
def test_the_schedule_has_every_case_once(quick: bool) -> None:
    cases = schedule(SETS, quick=quick)
    assert len(cases) == len(set(cases)) == len({(*case.options(), str(case.timed)) for case in cases})
    assert {case.depth for case in schedule(["bytes"], quick=False)} == set(paper.TABLE_5)
    assert all(case.timed for case in schedule(["sweep", "single", "depths"], quick=quick))


def test_speeds_are_those_of_the_times(make: Make) -> None:
    dropped, most = Case(16, 16, "most", "dynamic_dropped"), static(16, 16, "most", "maximum")
    times = {static(16, 16, 1, 1): 12.0, most: 6.0, dropped: 4.0, Case(16, 16, 1, 1): 8.0}
    tables = Tables({case: make(case, seconds) for case, seconds in times.items()}, 16)
    assert tables.latency()[2] == "| 16 | 12.00 | 3 | 6.00 | - | 4.00 | 3.00x | 3.00x | 1.50x | 1.50x |"
    rows = {cells[1]: cells[3] for cells in (row.split(" | ") for row in tables.findings()) if len(cells) > 3}
    assert rows == {}
    assert "| dynamic over alpha = 1, mean over depths | 1.41x | 3.00x |" in tables.findings()
    assert "| dynamic over the maximum, mean | 1.12x | 1.50x |" in tables.findings()
    assert tables.stages()[-1] == "| all | 12.00 | 8.00 | 4.00 |"
    assert tables.sweep()[2:] == ["| 3 | 16 | 6.00 | 8.00 | 2.00 | 21.0 |"]


def test_runs_of_a_round_are_compared_with_each_other(make: Make) -> None:
    dropped, one = Case(16, 16, "most", "dynamic_dropped"), static(16, 16, 1, 1)
    first, second, third = (
        {
            case: replace(result, raw={**result.raw, "processor_seconds": [processor], "seconds": [wall]})
            for case, processor, wall in ((one, *slow), (dropped, *fast))
            for result in [make(case)]
        }
        for slow, fast in (((12.0, 13.0), (4.0, 4.0)), ((20.0, 44.0), (5.0, 11.0)), ((6.0, 8.0), (3.0, 1.0)))
    )
    rounds = {case: together(together(first[case], second[case]), third[case]) for case in first}
    assert rounds[one].rounds == 3
    cells = Tables(rounds, 16).latency()[2].split(" | ")
    assert cells[1] == "12.00 (6.00 to 20.00)"
    assert cells[6] == "3.00x (2.00 to 4.00)"
    assert cells[7] == "4.00x (3.25 to 8.00)"


def test_tables_without_rows_say_so(make: Make) -> None:
    plan = Case(16, 16, 1, 1, key_levels="top", timed=False)
    tables = Tables({plan: make(plan)}, 16).everything()
    assert tables["latency"] == tables["stages"] == [ABSENT]
    assert "| 16 | 40.8 / 8.00 |" in tables["memory"][2]


def test_the_tables_of_the_paper_are_whole_numbers_of_keys() -> None:
    # Table 7: 257 indices with alpha = 1 at level 31 are 275.952 GB.
    assert abs(paper.implied_keys(16, 275.952, 1) - 257) < 0.001
    for depth, row in paper.TABLE_5.items():
        assert abs(paper.implied_keys(depth, row.alpha_1, 1) - 38) < 0.003
    assert paper.alphas(9) == [1, 5]
    assert paper.alphas(15) == [1]


def test_a_page_gets_the_tables_that_it_names() -> None:
    text = "a\n<!-- kds: memory -->\nold\nlines\n<!-- /kds -->\nb\n"
    filled = page.fill(text, {"memory": ["| new |"]}, ["memory"])
    assert filled == "a\n<!-- kds: memory -->\n| new |\n<!-- /kds -->\nb\n"
    assert page.fill(filled, {"memory": ["| new |"]}, ["memory"]) == filled
    assert page.fill(text, {"stages": []}, ["stages", "memory"]) == text
    with pytest.raises(page.MissingTable, match="memory"):
        page.fill(text, {"stages": []}, ["stages"])


def test_the_tables_of_the_page_are_those_of_its_records() -> None:
    """Those of bootstraps are of one record, that of multiplications is of another."""
    listed = records()
    text = (ROOT / listed["page_kds"].path).read_text()
    tables = Tables(read(ROOT / listed["bootstrapping"].path), 16).everything()
    points = relinearization.read(ROOT / listed["relinearization"].path)
    tables["relinearization"] = [*relinearization.table(points), "", relinearization.summary(points)]
    assert page.fill(text, tables, [*tables, *rule.NAMES]) == text


def test_lines_are_json(make: Make) -> None:
    assert json.loads(line(make(Case(16, 16, 1, 1))))["case"]["depth"] == 16


def test_the_rotation_table_has_every_rotation_key_of_its_stage() -> None:
    widths = [50, 40, 40, 45, 45, 45, *[50] * 7, 59, 60, 50, 50, 50]
    parameters = kw.Parameters.from_bits(10, widths, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        slots_to_coeffs=2,
        coeffs_to_slots=2,
        log_ratio=5,
        cosine_degree=62,
        double_angles=1,
        arcsine_degree=7,
        stages_apart=True,
    )
    table = rotations.rotations(plan)
    assert list(table) == ["slots_to_coeffs", "coeffs_to_slots"]
    assert {level for _, level in table["slots_to_coeffs"]} == {1, 2}
    top = plan.levels["coeffs_to_slots"][0]
    assert {level for _, level in table["coeffs_to_slots"]} == {top - 1, top}
    keys = [spec for specs in plan.stage_keys.values() for spec in specs if spec.kind == "rotation"]
    assert sum(map(len, table.values())) == len(keys) > 0
    assert all(0 < step < plan.slots for places in table.values() for step, _ in places)


def test_pictures_are_drawn(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = {case: make(case) for case in schedule(SETS, quick=True)}
    plot.draw(Tables(results, 11), "title", tmp_path / "kds.png")
    assert (tmp_path / "kds.png").stat().st_size > 0


def test_the_rule_has_an_alpha_for_every_column_of_the_paper() -> None:
    assert [(alpha, depth) for alpha, depth in rule.series() if alpha in (1, 2, 4, 5, 8)] == [
        (1, 16), (2, 16), (4, 12), (5, 9), (8, 8),
    ]  # fmt: skip
    cases = rule.schedule(16, range(16, 0, -1))
    assert len(cases) == len(set(cases))
    for case in cases:
        if case.alpha != "dynamic_dropped":
            assert case.alpha in rule.alphas(case.depth)
            assert case.special == case.alpha
    assert paper.alphas(1) == [1, 17]
    assert [depth for depth in range(1, 17) if rule.alphas(depth) == [1]] == [1, 3, 7, 13, 15]
    primes = {case.depth for case in cases if case.timed}
    assert primes == set(range(1, 17)) - {15, 13, 7, 3, 1}


def test_tables_of_the_rule_need_the_whole_record(make: Make) -> None:
    results = {case: make(case) for case in rule.schedule(16, range(16, 0, -1))}
    tables = rule.tables(results, 16)
    assert list(tables) == list(rule.NAMES)
    assert "| 9 | 1, 5 | 6.842 | 8.00 | 2.00 | 2.00 | 1.00x |" in tables["rule_depths"]
    assert "| 13 | 1 | 33.51 | 8.00 | - | - | - |" in tables["rule_depths"]
    assert tables["rule_alphas"][2:4] == ["| 1 | 16 | 2.00 | 8.00 |", "| 2 | 16 | 2.00 | 8.00 |"]
    results.pop(next(iter(results)))
    assert rule.tables(results, 16) == {}


def test_the_page_has_the_tables_of_the_rule() -> None:
    record = read(ROOT / "benchmarks/record/2026-11-28-kds-rule/rule.jsonl")
    text = (ROOT / "docs/reproduction/kds-bootstrap-keys.md").read_text()
    assert set(rule.NAMES) <= set(page.marks(text))
    assert page.fill(text, rule.tables(record, 16), page.marks(text)) == text


def test_bytes_of_table_5_are_the_papers_up_to_the_number_of_keys() -> None:
    """Where its figure is of the alpha counted here: 45 keys by l + alpha, for 27 by 1 + l + alpha."""
    record = read(ROOT / "benchmarks/record/2026-11-28-kds-rule/rule.jsonl")
    for depth, alpha in ((12, 4), (11, 3), (10, 2), (9, 5), (8, 6), (5, 7), (4, 10), (2, 9)):
        printed = paper.TABLE_5[depth].maximum
        assert printed is not None
        ours = record[rule.stored(16, depth, alpha)].raw["formula_bytes"] / paper.GB
        assert 1.60 < printed / ours < 1.62
