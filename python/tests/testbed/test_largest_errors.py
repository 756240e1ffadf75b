"""A search for the inputs of the largest error within calibrated ranges: it stays below the stated one."""

import os
from collections.abc import Callable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler.activations.functions import ACTIVATIONS, POSITIVE
from keywright.errors import OutOfRangeError
from keywright.runtime import run_clear
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from .drawn.drawing import Array
from .drawn.functions import NEWEST
from .drawn.registry import graph
from .running import compiled_with_drawn, encrypted, require_simulated, small

STEPS = 40 * int(os.environ.get("KEYWRIGHT_TESTBED", "1"))
POINTS = 64


def climb(
    error: Callable[[Array], Array], low: float, high: float, rng: np.random.Generator, steps: int
) -> Array:
    """Return points of a range with locally largest errors: hill climbing from random places, with steps
    that shrink.

    Args:
        error: of points, (POINTS,).
    """
    points = rng.uniform(low, high, POINTS)
    points[:2] = low, high
    best = error(points)
    width = (high - low) / 8
    for step in range(steps):
        moved = points + width * 0.9**step * rng.normal(size=POINTS)
        # Some start again, where nothing was found yet.
        fresh = rng.random(POINTS) < 0.1
        moved = np.clip(np.where(fresh, rng.uniform(low, high, POINTS), moved), low, high)
        error_there = error(moved)
        better = error_there > best
        points, best = np.where(better, moved, points), np.where(better, error_there, best)
    return points


@pytest.mark.parametrize("method", ["chebyshev:3", "chebyshev:15"])
@pytest.mark.parametrize("operator", sorted(ACTIVATIONS))
def test_no_input_exceeds_the_error_of_a_polynomial(operator: str, method: str) -> None:
    rng = np.random.default_rng([len(method), *operator.encode()])
    body = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], "curve")],
        "curve",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", POINTS])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["batch", POINTS])],
    )
    opsets = [helper.make_opsetid("", NEWEST.get(operator, 17))]
    model = helper.make_model(body, opset_imports=opsets, ir_version=10)
    samples = rng.uniform(0.2, 3, (60, POINTS)) if operator in POSITIVE else rng.normal(size=(60, POINTS))
    compiled = kw.compile(
        model,
        samples,
        parameters=small(6),
        activations={operator.lower(): method},
        noise=np.inf,
    )
    report, evaluator = compiled.program.fit_report, ReferenceEvaluator(model)
    assert report is not None
    if not report.activations:  # a polynomial of its own
        return
    (fitted,) = report.activations

    def exact(points: Array) -> Array:
        with np.errstate(all="ignore"):
            outputs: Any = evaluator.run(None, {"x": points[None]})
        return np.asarray(outputs[0][0], np.float64)

    def error(points: Array) -> Array:
        return np.asarray(np.abs(run_clear(compiled.program, points) - exact(points)))

    worst = climb(error, fitted.low, fitted.high, rng, STEPS)
    # Attributes are in single precision.
    stated = fitted.max_error * (1 + 1e-6) + 2.0**-22 * max(1.0, float(np.abs(exact(worst)).max()))
    assert error(worst).max() <= stated
    # The search comes near the stated error where that is not rounding.
    assert error(worst).max() >= 0.5 * fitted.max_error or fitted.max_error < 1e-9
    run = encrypted(compiled, worst[None])
    assert np.abs(run.outputs[0] - exact(worst)).max() <= stated + run.bound


@pytest.mark.parametrize("seed", [2, 5, 13])
def test_no_sample_exceeds_the_error_of_encryption(seed: int) -> None:
    """Samples that clients accept, moved where an encrypted run has a larger error."""
    rng = np.random.default_rng(seed)
    drawn = graph(seed, most=3)
    compiled = compiled_with_drawn(drawn.model, drawn.samples, seed, batch=1)
    chosen = drawn.samples[:1]
    largest = 0.0
    for step in range(max(3, STEPS // 8)):
        moved = chosen + 0.5 * 0.6**step * rng.normal(size=chosen.shape)
        try:
            run = encrypted(compiled, moved)
        except OutOfRangeError:
            continue
        require_simulated(compiled, moved, run)
        worst = float(run.errors.max())
        if worst > largest:
            chosen, largest = moved, worst
    assert largest > 0
