from pathlib import Path

import pytest
from harness.programs.peer import TOLERANCE, Bench, Options, ParameterSet, parse_options
from harness.record import parse

SETS = str(Path(__file__).parent.parent / "sets.json")
PARAMETERS = ParameterSet(14, (60, 45, 45), 60, 45, (2, 1))


def bench(*works: str) -> Bench:
    return Bench("library", "1.0", "backend", 1, Options(PARAMETERS, 1, frozenset(works), 3, 1))


def test_a_measurement_is_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []
    bench().measure("rotate", 2, lambda: calls.append(1), lambda _: 0.0, size=7)
    record = parse(capsys.readouterr().out)
    assert len(calls) == 4  # one untimed
    assert (record.work, record.log_n, record.level, record.alpha) == ("rotate", 14, 2, 1)
    assert (record.raw["runs"], record.raw["bytes"], record.checked) == (3, 7, True)
    assert record.raw["min_s"] <= record.median_s <= record.raw["max_s"]


def test_a_record_has_the_extremes(capsys: pytest.CaptureFixture[str]) -> None:
    bench().emit("rotate", 2, [0.3, 0.1, 0.2], 0.0, None)
    record = parse(capsys.readouterr().out)
    assert (record.raw["min_s"], record.median_s, record.raw["max_s"]) == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("error", "checked"), [(TOLERANCE, True), (2 * TOLERANCE, False), (float("nan"), False)]
)
def test_a_wrong_result_is_not_checked(
    error: float, checked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    bench().emit("rotate", 2, [0.1], error, None)
    assert parse(capsys.readouterr().out).checked is checked


def test_a_work_that_is_not_wanted_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    bench("encode").measure("rotate", 2, lambda: pytest.fail("was run"), lambda _: 0.0)
    assert capsys.readouterr().out == ""


def test_options_read_the_shared_sets() -> None:
    options = parse_options("library", ["--sets", SETS, "--set", "main", "--work", "rotate,keygen"])
    assert options.parameters.max_level == 26
    assert options.parameters.slots == 1 << 15
    assert options.works == {"rotate", "keygen"}


@pytest.mark.parametrize("bad", [["--set", "huge"], ["--runs", "0"], ["--threads", "0"]])
def test_bad_options_end_with_usage(bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options("library", ["--sets", SETS, *bad])
    assert "usage:" in capsys.readouterr().err


def test_times_are_per_operation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 8.0] * 3)
    monkeypatch.setattr("harness.programs.peer.time.perf_counter", lambda: next(clock))
    bench().measure("rotate_hoisted", 2, lambda: None, lambda _: 0.0, operations=8)
    assert parse(capsys.readouterr().out).median_s == 1.0
