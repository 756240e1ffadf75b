"""Which presets a deep model is compiled for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from keywright.errors import ModelRefusedError
from keywright.errors.refusals.sizes import too_deep
from keywright.model.parameters.parameter_choice import DEEP_PRESETS, Compilation, ParameterChoice
from keywright.model.parameters.presets import BootstrapPreset
from keywright.plan import CostModel


def compiled_for(seconds: dict[str, float], depth: int) -> tuple[str, list[str]]:
    """The preset that is chosen where programs take so long, and those that were compiled for."""
    asked: list[str] = []

    def forms(choice: ParameterChoice, batching: object, slower: float) -> Any:
        name = str(choice.ring)
        asked.append(name)
        if seconds[name] < 0:
            raise ModelRefusedError([too_deep(depth, 0, [name])])
        return [SimpleNamespace(program=SimpleNamespace(seconds=seconds[name]))]

    model: Any = SimpleNamespace(depth=depth, forms=[None])
    compilation: Any = Compilation(model)
    compilation._forms = forms
    return compilation._faster(DEEP_PRESETS, None)[0].ring, asked


def test_a_preset_whose_bootstraps_alone_take_longer_is_not_compiled_for() -> None:
    first, second = DEEP_PRESETS
    least = BootstrapPreset(second, CostModel()).least_seconds(100)
    assert compiled_for({first: least * 0.99, second: 0.0}, 100) == (first, [first])
    assert compiled_for({first: least * 1.01, second: least}, 100) == (second, [first, second])


def test_a_preset_whose_bootstraps_cannot_be_placed_is_left_out() -> None:
    first, second = DEEP_PRESETS
    assert compiled_for({first: -1.0, second: 5.0}, 100) == (second, [first, second])
    assert compiled_for({first: 1e9, second: -1.0}, 100) == (first, [first, second])
    with pytest.raises(ModelRefusedError, match=first):
        compiled_for({first: -1.0, second: -1.0}, 100)


@pytest.mark.parametrize("name", DEEP_PRESETS)
def test_bootstraps_are_counted_from_levels(name: str) -> None:
    preset = BootstrapPreset(name, CostModel())
    gained = preset.plan.output_level - preset.plan.input_level
    each = min(option.seconds or 0.0 for option in preset.options)
    assert each > 0
    least = [
        preset.least_seconds(depth) / each for depth in (1, gained, gained + 1, 2 * gained, 2 * gained + 1)
    ]
    assert least == [0, 0, 1, 1, 2]
