"""What an `OutOfRangeError` states of inputs: the range that is accepted, in the numbers of samples."""

from __future__ import annotations

import re
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors import OutOfRangeError
from keywright.program.interface import ClientSteps, InputCodec
from keywright.program.operands.normalisation import Normalisation

RNG = np.random.default_rng(41)


def codec(seed: int, *, ranged: bool) -> tuple[InputCodec, np.ndarray[Any, Any]]:
    """An input of three columns with random scales and offsets, and its calibration data."""
    rng = np.random.default_rng(seed)
    scales, offsets = 10.0 ** rng.uniform(-6, 6, 3), 10.0 ** rng.uniform(-6, 6, 3) * rng.choice([-1, 0, 1], 3)
    samples = offsets + scales * rng.uniform(-1, 1, (50, 3))
    largest = 16 * float(np.abs(samples).max())
    input_codec = InputCodec(
        range=(-largest, largest) if ranged else None,
        scale=2.0 ** rng.integers(0, 5),
        normalisation=Normalisation.of(samples),
        steps=ClientSteps(columns=("a", "b", "c")),
    )
    return input_codec, samples


@pytest.mark.parametrize("ranged", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_every_value_of_a_stated_range_is_accepted(seed: int, ranged: bool) -> None:
    codec_, samples = codec(seed, ranged=ranged)
    magnitude = codec_.magnitude or 64.0

    def check(features: np.ndarray[Any, Any]) -> None:
        codec_.require_range(features)
        codec_.require_magnitude(features, magnitude)

    check(samples)
    for column in range(3):
        stated, numbers = set(), []
        for factor in (30.0, -30.0, 1e3, -1e6, 1e12):
            wrong = samples[:1].copy()
            wrong[0, column] += (
                factor * magnitude * float(np.ptp(samples, axis=0).max() + np.abs(samples).max())
            )
            with pytest.raises(
                OutOfRangeError, match=f"column '{'abc'[column]}' takes values from"
            ) as refused:
                check(wrong)
            stated.add((refused.value.low, refused.value.high))
            shown = re.search(r"from (\S+) to (\S+), but", str(refused.value))
            assert shown is not None
            numbers = [float(each) for each in shown.groups()]
        assert len(stated) == 1
        ((low, high),) = stated
        assert low <= samples[:, column].min() <= samples[:, column].max() <= high
        assert np.allclose(numbers, [low, high], 0, 1e-5 * (high - low))
        for value in np.linspace(low, high, 21).clip(low, high):
            inside = samples[:1].copy()
            inside[0, column] = value
            check(inside)
            assert np.abs(codec_.entering(inside)).max() <= magnitude
        for beyond in (low - 0.01 * (high - low), high + 0.01 * (high - low)):
            outside = samples[:1].copy()
            outside[0, column] = beyond
            with pytest.raises(OutOfRangeError):
                check(outside)


def test_the_range_of_a_column_far_from_zero() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    table = {"year": 2020 + RNG.normal(size=200), "x": RNG.normal(size=200)}
    values = np.stack(list(table.values()), axis=1)
    estimator = linear.LinearRegression().fit(values, values @ [2.0, 1.0])
    estimator.feature_names_in_ = np.asarray(list(table), object)  # as fitting on a data frame does
    model = kw.compile(estimator, calibration=table)
    row, stated = {name: each[:1].copy() for name, each in table.items()}, set()
    for year in (2100.0, 0.0, 1900.0):
        row["year"][:] = year
        with pytest.raises(OutOfRangeError, match="column 'year'") as refused:
            model.predict(row)
        assert refused.value.value == year
        stated.add((refused.value.low, refused.value.high))
    ((low, high),) = stated
    assert low < 2020 < high
    row["year"][:] = 1e6
    with pytest.raises(OutOfRangeError, match="the output") as refused:
        model.predict(row)
    assert refused.value.value == pytest.approx(2e6, rel=1e-3)
    assert refused.value.low < 4040 < refused.value.high
