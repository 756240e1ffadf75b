"""Batches within a budget of memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from keywright.commands.helpers.batching import plan_batches
from keywright.commands.helpers.memory import plan_inference
from keywright.commands.helpers.program_and_keys import Compiled, compile_model
from keywright.errors import MemoryBudgetError


def test_a_batch_that_does_not_fit_is_made_smaller(folder: Path) -> None:
    asked: list[int] = []

    def with_batch(batch: int) -> Compiled:
        asked.append(batch)
        return compile_model(folder / "digits.onnx", None, None, batch=batch)

    def least(compiled: Compiled) -> int:
        with pytest.raises(MemoryBudgetError) as refused:
            plan_inference(compiled, 8, 1 << 20)
        return int(refused.value.needed)

    best = compile_model(folder / "digits.onnx", None, None, samples=8)
    assert best.program.batch == 8
    compiled, planned = plan_batches(best, 8, 8 << 30, with_batch)
    assert compiled is best
    assert planned.memory.total <= 8 << 30
    assert asked == []
    most, fewest = least(best), least(with_batch(1))
    assert fewest < most
    asked.clear()
    budget = (fewest + most) // 2
    compiled, planned = plan_batches(best, 8, budget, with_batch)
    assert compiled.program.batch < 8
    assert asked[0] == 4
    assert planned.memory.total <= budget
    with pytest.raises(MemoryBudgetError):
        plan_batches(best, 8, fewest // 2, with_batch)
    assert asked[-1] == 1
