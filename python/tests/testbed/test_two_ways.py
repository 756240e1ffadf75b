"""The same function written or run in two ways: answers agree within the errors that each states."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from keywright._core import set_threads
from keywright.errors import ModelRefusedError, OutOfRangeError, RefusalError
from keywright.model import Model, Ring

from .checking import Outcome, most_answered, refused
from .drawn.drawing import ROUNDING, Array
from .drawn.registry import Drawn, graph
from .drawn.rewriting import rewritten
from .running import compiled_with_drawn, encrypted, small

COUNT = int(os.environ.get("KEYWRIGHT_TESTBED", "2"))
Compile = Callable[[Drawn, int], Model]


@dataclass(frozen=True, eq=False)
class Answer:
    """Outputs of a way, and what it states about them.

    Attributes:
        error: derived bound on what encryption adds.
        change: largest change of an output by polynomials on the calibration data.
    """

    outputs: Array
    error: float
    change: float


def compiled(drawn: Drawn, seed: int, **given: object) -> Model:
    return compiled_with_drawn(drawn.model, drawn.samples, seed, **given)


def cheapest_keys(drawn: Drawn, seed: int) -> Model:
    keys = compiled(drawn, seed, batch=1)
    return keys.with_plan(keys.candidates[0].plan)


def fastest_keys(drawn: Drawn, seed: int) -> Model:
    keys = compiled(drawn, seed, batch=1)
    return keys.with_plan(keys.candidates[-1].plan)


WAYS: dict[str, Compile] = {
    "alone": lambda d, s: compiled(d, s, batch=1),
    "two in a ciphertext": lambda d, s: compiled(d, s, batch=2),
    "all in a ciphertext": lambda d, s: compiled(d, s, batch=8),
    "few slots": lambda d, s: compiled(d, s, batch=1, parameters=Ring(small(), slots=128)),
    "another ring": lambda d, s: compiled(d, s, parameters=small(log_n=12)),
    "another scale": lambda d, s: compiled(d, s, parameters=small(bits=50)),
    "levels to spare": lambda d, s: compiled(d, s, parameters=small(levels=27)),
    "fewest bytes of keys": cheapest_keys,
    "fastest keys": fastest_keys,
}


def answer(model: Model, samples: Array) -> Answer:
    report = model.program.fit_report
    assert report is not None
    run = encrypted(model, samples)
    return Answer(run.outputs, run.bound, report.outputs.largest_change)


def require_equal(one: Answer, other: Answer, *, polynomials: bool) -> None:
    """Check that two answers agree. Of one approximated model, polynomials are the same."""
    stated = one.error + other.error + ROUNDING * float(np.abs(one.outputs).max())
    stated += one.change + other.change if polynomials else 0.0
    apart = float(np.abs(one.outputs - other.outputs).max())
    assert apart <= stated, f"{apart:.3g} apart, stated {stated:.3g}"


def check_ways(seed: int) -> Outcome:
    """Compile a drawn model in all ways, and run it on the same samples."""
    drawn = graph(seed, most=4)
    samples = drawn.samples[:3]
    try:
        model = compiled(drawn, seed)
        first = answer(model, samples)
        for name, way in WAYS.items():
            try:
                require_equal(first, answer(way(drawn, seed), samples), polynomials=False)
            except AssertionError as error:
                raise AssertionError(f"{name}, graph {seed}: {error}") from error
        for threads in (2, 3):
            set_threads(threads)
            try:
                require_equal(first, answer(model, samples), polynomials=False)
            finally:
                set_threads(1)
    except (ModelRefusedError, RefusalError, OutOfRangeError) as error:
        return refused(error)
    return Outcome()


def require_same_outputs(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Check outputs of the client's steps, which may jump near a threshold: most elements."""
    for left, right in zip(one.values(), other.values(), strict=True):
        assert left.shape == right.shape
        assert (np.abs(left.astype(float) - right.astype(float)) <= 1e-3).mean() > 0.9


def check_writings(seed: int) -> Outcome:
    """Compile a drawn model as it is and written in other steps."""
    drawn = graph(seed, most=5)
    samples = drawn.samples[:3]
    try:
        first = compiled(drawn, seed)
        other = compiled(replace(drawn, model=rewritten(drawn.model, seed)), seed)
        one, two = answer(first, samples), answer(other, samples)
        if one.outputs.shape == two.outputs.shape:
            require_equal(one, two, polynomials=True)
        else:  # the client begins at another node, so scores are others; the model's outputs are not
            require_same_outputs(first.answers(one.outputs), other.answers(two.outputs))
    except (ModelRefusedError, RefusalError, OutOfRangeError) as error:
        return refused(error)
    return Outcome()


def test_ways_of_running_agree() -> None:
    most_answered([check_ways(seed) for seed in range(COUNT)], 0.5)


def test_ways_of_writing_agree() -> None:
    most_answered([check_writings(seed) for seed in range(2 * COUNT)], 0.5)


def test_a_writing_is_another_one() -> None:
    """A rewriting that changes nothing would test nothing."""
    models = [graph(seed).model for seed in range(12)]
    changed = [rewritten(model, seed).graph.node != model.graph.node for seed, model in enumerate(models)]
    assert sum(changed) >= 8


@pytest.mark.full
def test_many_ways_agree() -> None:
    most_answered([check_ways(seed) for seed in range(COUNT, 30 * COUNT)], 0.5)
    most_answered([check_writings(seed) for seed in range(2 * COUNT, 90 * COUNT)], 0.5)
