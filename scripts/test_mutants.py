"""Faults can still be planted, and a fault that no test covers is not found."""

from pathlib import Path

import mutants
import pytest


@pytest.mark.parametrize("fault", mutants.FAULTS, ids=lambda fault: f"{fault.file}: {fault.fault}")
def test_every_fault_can_be_planted(fault: mutants.Fault) -> None:
    source = (mutants.PACKAGE / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.text) == 1
    compile(source.replace(fault.text, fault.fault), fault.file, "exec")
    assert (mutants.ROOT / mutants.TESTS / fault.tests[0]).is_file()


def test_a_fault_that_nothing_looks_at_is_not_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = 'r"""Reads numpy\'s file format for one array of numbers, strictly.'
    tests = ("commands/test_reading.py", "truth or arrays_are_bounded")
    monkeypatch.setattr(
        mutants, "FAULTS", [mutants.Fault("_reading/arrays.py", text, 'r"""Another text.', tests)]
    )
    assert mutants.main([]) == 1
    assert "NOT SEEN: _reading/arrays.py" in capsys.readouterr().out
    gone = mutants.Fault("_reading/arrays.py", "a text that is not there", "", tests)
    with pytest.raises(ValueError, match="0 times"):
        mutants.plant(gone, tmp_path)
