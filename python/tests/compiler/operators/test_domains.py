"""Functions with a domain: calibration data on the side where one is defined compile, others are refused."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import EncodeError, ModelRefusedError, RefusalError
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

Build = Callable[..., onnx.ModelProto]
Operators = tuple[list[onnx.NodeProto], Mapping[str, NDArray[Any]]]
node = helper.make_node
ABOVE = np.random.default_rng(0).uniform(0.5, 2.0, (80, 4))
SIDES = {"above": ABOVE, "below": -ABOVE, "both": ABOVE - 1.2}
AXIS = {"axis": np.asarray([1])}


def _power(exponent: float) -> Operators:
    return [node("Pow", ["x", "e"], ["y"], "f")], {"e": np.asarray(exponent, np.float32)}


def _clipped(operator: str) -> Operators:
    """After max(x, 0) + 0.3."""
    nodes = [node("Relu", ["x"], ["r"]), node("Add", ["r", "c"], ["s"]), node(operator, ["s"], ["y"], "f")]
    return nodes, {"c": np.asarray(0.3, np.float32)}


DIVISION = (
    [node("MatMul", ["x", "w"], ["s"]), node("Div", ["s", "x"], ["y"], "f")],
    {"w": np.eye(4, dtype=np.float32) + 1},
)
FUNCTIONS: dict[str, tuple[Operators, set[str]]] = {
    **{each: (([node(each, ["x"], ["y"], "f")], {}), {"above"}) for each in ("Log", "Sqrt")},
    **{f"x^{each}": (_power(each), {"above"}) for each in (0.5, -0.5, 1.5, -1.5)},
    **{f"x^{each}": (_power(each), {"above", "below"}) for each in (-1.0, -2.0, -3.0)},
    **{f"{each} of a sum": (_clipped(each), set(SIDES)) for each in ("Log", "Sqrt", "Reciprocal")},
    "Reciprocal": (([node("Reciprocal", ["x"], ["y"], "f")], {}), {"above", "below"}),
    "Div": (DIVISION, {"above", "below"}),
    "ReduceLogSum": (([node("ReduceLogSum", ["x", "axis"], ["y"], "f")], AXIS), {"above"}),
    "ReduceL2": (([node("ReduceL2", ["x", "axis"], ["y"], "f")], AXIS), set(SIDES)),
    "x^3": (_power(3.0), set(SIDES)),
}
"""Operators by the sides of 0 on which they are defined."""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_computed_where_it_is_defined_and_refused_elsewhere(
    build: Build, name: str, side: str
) -> None:
    (nodes, constants), defined = FUNCTIONS[name]
    model, samples = build(nodes, (4,), constants, opset=18), SIDES[side]
    target, fit = compiler.Target(slots=16, levels=20), compiler.Fit(calibration=samples)
    if side not in defined:
        with pytest.raises(ModelRefusedError, match="'f'") as caught:
            compiler.compile_program(model, target, fit)
        (reason,) = caught.value.exceptions
        assert isinstance(reason, RefusalError)
        assert reason.code == "domain"
        assert reason.details["low"] <= 0
        assert f"{reason.details['high']:.6g}" in str(reason)
        return
    results: Any = ReferenceEvaluator(model).run(None, {"x": samples.astype(np.float32)})
    exact = results[0]
    outputs = run_clear(compiler.compile_program(model, target, fit), samples)
    assert np.abs(outputs.reshape(exact.shape) - exact).max() < max(np.ptp(exact) / 2 / 16, 1e-3)


@pytest.mark.parametrize("operator", ["Log", "Reciprocal"])
def test_rows_that_leave_a_domain_are_named(build: Build, operator: str) -> None:
    samples = 1 + np.random.default_rng(5).random((40, 4))
    samples[[7, 31], 2] = -1.0
    model = build([node(operator, ["x"], ["y"], "f")], (4,))
    fit = compiler.Fit(calibration=samples)
    with pytest.raises(ModelRefusedError, match=r"leave out rows 7, 31 \(calibration=\)"):
        compiler.compile_program(model, compiler.Target(slots=16, levels=20), fit)


@pytest.mark.parametrize(
    ("size", "text"),
    [(1e60, "in row 23; scale the samples"), (1e9, "with outliers in row 23 of the calibration data")],
)
def test_rows_far_from_others_are_named(build: Build, size: float, text: str) -> None:
    samples = np.random.default_rng(5).random((40, 4))
    samples[23, 1] = size
    model = build([node("Mul", ["x", "x"], ["s"]), node("Relu", ["s"], ["y"])], (4,))
    fit = compiler.Fit(calibration=samples)
    with pytest.raises((EncodeError, ModelRefusedError), match=text):
        compiler.compile_program(model, compiler.Target(slots=16, levels=20), fit)
