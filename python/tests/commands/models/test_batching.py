"""Batches within a memory budget."""

from __future__ import annotations

from pathlib import Path

import keywright as kw
import pytest
from keywright.errors import OutOfMemoryError
from keywright.model import Executable, Model, executable
from keywright.model.parameters.parameter_choice import Compilation


def test_a_batch_that_does_not_fit_is_made_smaller(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for_batch = Compilation.for_batch

    def noted(self: Compilation, batch: int) -> Executable:
        asked.append(batch)
        return for_batch(self, batch)

    monkeypatch.setattr(Compilation, "for_batch", noted)
    # The process shrinks and grows with the tests before.
    monkeypatch.setattr(executable, "resident_bytes", lambda: 200 << 20)

    def least(compiled: Model) -> int:
        with pytest.raises(OutOfMemoryError, check=lambda error: error.code == "budget") as refused:
            compiled.plan_process(8, 1 << 20)
        return int(refused.value.needed)

    best = kw.compile(folder / "digits.onnx", samples=8)
    assert best.program.batch == 8
    compiled, planned = best.plan_batches(8, 8 << 30)
    assert compiled.program is best.program
    assert planned.memory.total <= 8 << 30
    assert asked == []
    most, fewest = least(best), least(best.for_batch(1))
    assert fewest < most
    asked.clear()
    budget = (fewest + most) // 2
    compiled, planned = best.plan_batches(8, budget)
    assert compiled.program.batch < 8
    assert asked[0] == 4
    assert planned.memory.total <= budget
    with pytest.raises(OutOfMemoryError, check=lambda error: error.code == "budget"):
        best.plan_batches(8, fewest // 2)
    assert asked[-1] == 1
    whole = kw.compile(folder / "digits.onnx", batch=8)
    asked.clear()
    with pytest.raises(OutOfMemoryError, check=lambda error: error.code == "budget"):
        whole.plan_batches(8, fewest // 2)
    assert asked == []
