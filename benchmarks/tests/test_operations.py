from collections.abc import Callable
from pathlib import Path

import pytest
from harness.pages.table import Spread, duration, times
from harness.programs.schedule import Measurement, Outcome
from harness.record import Row, parse
from harness.sets import read_set
from studies.operations import plot
from studies.operations.ratios import tabulate
from studies.operations.report import Report

Line = Callable[..., str]
Measured = Callable[..., Measurement]

ROTATE = Row("rotate", 16, 26, 5)
BENCHMARKS = Path(__file__).parent.parent


def test_the_ratio_is_the_median_of_single_rounds_not_the_ratio_of_medians(measured: Measured) -> None:
    # The machine is half as fast in round 1: the ratio of medians would be 0.30 / 0.03 = 10.
    measurement = [measured("keywright", turn, s) for turn, s in enumerate((0.03, 0.06, 0.02))]
    measurement += [measured("lattigo", turn, s) for turn, s in enumerate((0.27, 0.48, 0.30))]
    cell = tabulate(measurement, (5, 3))[ROTATE]["lattigo"]
    assert cell.seconds.median == 0.30
    assert cell.ratio is not None
    assert cell.ratio.median == pytest.approx(9.0)
    assert cell.ratio.low == pytest.approx(8.0)
    assert cell.ratio.high == pytest.approx(15.0)


def test_only_rounds_with_both_give_a_ratio(measured: Measured) -> None:
    measurement = [measured("keywright", 0, 0.03), measured("lattigo", 0, 0.3), measured("lattigo", 1, 0.9)]
    cell = tabulate(measurement, (5,))[ROTATE]["lattigo"]
    assert cell.rounds == 2
    assert cell.ratio is not None
    assert cell.ratio.high == pytest.approx(10.0)


def test_without_keywright_there_are_times_and_no_ratios(measured: Measured) -> None:
    cell = tabulate([measured("lattigo", 0, 0.3)], (5,))[ROTATE]["lattigo"]
    assert cell.ratio is None
    assert cell.seconds == Spread(0.3, 0.3, 0.3)


def test_rows_are_in_the_usual_order_of_works_then_high_levels_first(measured: Measured) -> None:
    measurement = [measured("lattigo", 0, 1, work, level) for work, level in [("keygen", 26), ("rotate", 3)]]
    measurement += [measured("lattigo", 0, 1, "rotate", 26), measured("lattigo", 0, 1, "ntt", 0)]
    rows = [(row.work, row.level) for row in tabulate(measurement, (5,))]
    assert rows == [("ntt", 0), ("rotate", 26), ("rotate", 3), ("keygen", 26)]


def report(outcome: Outcome) -> Report:
    table = tabulate(outcome.measurements, (5,))
    return Report("Title", ["a fact"], ["keywright", "lattigo", "openfhe"], table, outcome)


def test_a_target_without_figures_has_a_column_and_its_reason(measured: Measured) -> None:
    outcome = Outcome([measured("keywright", 0, 0.03), measured("lattigo", 0, 0.27)])
    outcome.reasons["openfhe"] = "no Python 3.10"
    text, markdown = report(outcome).text(), report(outcome).markdown()
    assert "| rotate | 2^16 | 26 | 5 | 30.0 ms | 270 ms 9x (9-9) | - |" in markdown
    for shown in (text, markdown):
        assert "openfhe: no Python 3.10" in shown


def test_an_unchecked_result_is_refused_by_name(line: Line) -> None:
    outcome = Outcome()
    outcome.accept(Measurement("lattigo", 0, parse(line(checked=False))), threads=1)
    outcome.accept(Measurement("openfhe", 0, parse(line(threads=2))), threads=1)
    assert outcome.measurements == []
    assert "refused: lattigo: rotate, level 26, alpha 5: the result was not right" in report(outcome).text()
    assert (
        "refused: openfhe: rotate, level 26, alpha 5: ran with 2 threads instead of 1"
        in report(outcome).text()
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000488, "48.8 us"), (0.000623, "623 us"), (0.265, "265 ms"), (0.0129, "12.9 ms"), (1.574, "1.57 s")],
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_ratios_show_their_extremes() -> None:
    assert times(Spread(9.412, 9.08, 10.26)) == "9.41x (9.08-10.3)"


def test_the_plot_has_one_row_per_work_at_its_largest_parameters(measured: Measured) -> None:
    measurement = [measured("lattigo", 0, 1, "rotate", level) for level in (3, 26, 13)]
    assert plot.top_rows(tabulate(measurement, (5,))) == [ROTATE]


def test_the_plot_is_written(measured: Measured, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = tabulate([measured("keywright", 0, 0.03), measured("lattigo", 0, 0.27)], (5,))
    plot.draw(table, ["keywright", "lattigo", "openfhe"], "Title", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_main_set_is_the_published_one() -> None:
    main = read_set("main", BENCHMARKS / "sets.json")
    assert main.describe() == (
        "N = 2^16, Q = 60 + 26x50 bits (27 primes), P = alpha x 60 bits, alpha = 5, 3, uniform ternary secret"
    )


def test_transforms_are_measured_once_and_operations_at_every_alpha() -> None:
    cases = read_set("main", BENCHMARKS / "sets.json").cases(("ntt", "rotate"))
    assert [(case.alpha, case.works, case.first) for case in cases] == [
        (5, ("ntt", "rotate"), True),
        (3, ("rotate",), False),
    ]
