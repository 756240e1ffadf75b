"""Batches within a memory budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from keywright.errors import MemoryBudgetError
from keywright.model import CompiledModel
from keywright.model.compiling import compile_model


def test_a_batch_that_does_not_fit_is_made_smaller(folder: Path) -> None:
    asked: list[int] = []

    def again(batch: int) -> CompiledModel:
        asked.append(batch)
        return compile_model(folder / "digits.onnx", batch=batch)

    def least(compiled: CompiledModel) -> int:
        with pytest.raises(MemoryBudgetError) as refused:
            compiled.plan_process(8, 1 << 20)
        return int(refused.value.needed)

    best = replace(compile_model(folder / "digits.onnx", samples=8), again=again)
    assert best.program.batch == 8
    compiled, planned = best.plan_batches(8, 8 << 30)
    assert compiled is best
    assert planned.memory.total <= 8 << 30
    assert asked == []
    most, fewest = least(best), least(again(1))
    assert fewest < most
    asked.clear()
    budget = (fewest + most) // 2
    compiled, planned = best.plan_batches(8, budget)
    assert compiled.program.batch < 8
    assert asked[0] == 4
    assert planned.memory.total <= budget
    with pytest.raises(MemoryBudgetError):
        best.plan_batches(8, fewest // 2)
    assert asked[-1] == 1
    asked.clear()
    with pytest.raises(MemoryBudgetError):
        compile_model(folder / "digits.onnx", batch=8).plan_batches(8, fewest // 2)
