"""The windows of pools and convolutions, in every combination of the attributes that place them, as
onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from keywright.compiler.activations.polynomial_choice import outputs_of
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.graph.graph import Linear
from keywright.compiler.layout.layer_work import Prices
from keywright.compiler.layout.layout_choice import choose_layouts
from keywright.compiler.layout.lowering import lower
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from tests.matrices import cells

OPERATORS = (("MaxPool", 12), ("MaxPool", 22), ("AveragePool", 11), ("AveragePool", 22), ("Conv", 17))
MODES = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
SIZES, KERNELS = ((5,), (6,), (8,), (7, 6)), (1, 2, 3)
PADS = ((0, 0), (1, 1), (0, 1), (1, 0))

PRICES = Prices(rotation=1.0, hoisted=0.5, diagonal=0.0625, ciphertext=2.0)

Image = NDArray[np.float64]


def attributes(
    operator: str, mode: str, dilation: int, stride: int, ceil: int, include: int, pads: tuple[int, int]
) -> dict[str, Any]:
    """The attributes of a node for each axis of an image; those that an operator lacks are left out."""
    given: dict[str, Any] = {"strides": stride, "auto_pad": mode}
    if dilation != 1 or operator != "AveragePool":
        given["dilations"] = dilation
    if mode == "NOTSET":
        given["pads"] = pads
    if operator != "Conv":
        given["ceil_mode"] = ceil
    if operator == "AveragePool":
        given["count_include_pad"] = include
    return given


def model(
    operator: str, opset: int, given: dict[str, Any], size: tuple[int, ...], kernel: int
) -> onnx.ModelProto:
    """A model of one node."""
    rank, names, stored = len(size), ["x"], []
    spread = dict(given)
    for name in {"strides", "dilations"} & given.keys():
        spread[name] = [given[name]] * rank
    if "pads" in given:
        spread["pads"] = [given["pads"][0]] * rank + [given["pads"][1]] * rank
    if operator == "Conv":
        weights = np.arange(1, 1 + kernel**rank, dtype=np.float32).reshape(1, 1, *[kernel] * rank)
        names, stored = ["x", "w"], [numpy_helper.from_array(weights, "w")]
    node = helper.make_node(operator, names, ["y"], kernel_shape=[kernel] * rank, **spread)
    values = [
        helper.make_tensor_value_info("x", 1, [1, 1, *size]),
        helper.make_tensor_value_info("y", 1, [f"axis{axis}" for axis in range(2 + rank)]),
    ]
    graph = helper.make_graph([node], "g", values[:1], values[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def by_runtime(built: onnx.ModelProto, image: Image) -> Image | None:
    """What onnxruntime computes; None where it refuses, or reads what is no pixel."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            built.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        (result,) = session.run(None, {"x": image.astype(np.float32)})
    except Exception:  # noqa: BLE001 - it raises errors of many classes
        return None
    return result.astype(np.float64) if result.size and np.abs(result).max() < 1e6 else None


def by_specification(operator: str, given: dict[str, Any], kernel: int, image: Image) -> Image:
    """What the ONNX specification says of a row of pixels, without count_include_pad."""
    size, stride, mode = len(image), given["strides"], given["auto_pad"]
    dilation, rounded = given.get("dilations", 1), np.ceil if given.get("ceil_mode") else np.floor
    extent = (kernel - 1) * dilation + 1
    before, after = given.get("pads", (0, 0))
    if mode.startswith("SAME"):
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        after = total - before
    count = int(rounded((size + before + after - extent) / stride)) + 1
    count -= (count - 1) * stride >= size + before
    results = []
    for position in range(count):
        places = position * stride - before + dilation * np.arange(kernel)
        inside = (places >= 0) & (places < size)
        pixels, weights = image[places[inside]], np.arange(1, kernel + 1)[inside]
        results.append({"MaxPool": np.max, "AveragePool": np.mean}.get(operator, weights.dot)(pixels))
    return np.asarray(results)


SIDES = (OPERATORS, MODES, (1, 2), (1, 2, 3), (0, 1), (0, 1))
ABSENT = {
    cell
    for cell in product(*SIDES)
    for (kind, opset), _, dilation, _, ceil, include in [cell]
    if (kind == "AveragePool" and opset < 19 and dilation > 1)
    or (kind == "Conv" and ceil)
    or (kind != "AveragePool" and include)
}
"""Nodes that ONNX does not have."""


def images(mode: str) -> Iterator[tuple[tuple[int, ...], int, tuple[int, int]]]:
    yield from product(SIZES, KERNELS, PADS if mode == "NOTSET" else PADS[:1])


@pytest.mark.parametrize(
    ("operator", "mode", "dilation", "stride", "ceil", "include"),
    cells(*SIDES, without=ABSENT),
)
def test_windows_are_those_of_onnxruntime(
    operator: tuple[str, int], mode: str, dilation: int, stride: int, ceil: int, include: int
) -> None:
    (kind, opset), rng, computed = operator, np.random.default_rng(3), 0
    for size, kernel, pads in images(mode):
        given = attributes(kind, mode, dilation, stride, ceil, include, pads)
        built = model(kind, opset, given, size, kernel)
        imported = import_model(built)
        if imported.reasons:
            continue
        image = rng.integers(-9, 10, (1, 1, *size)).astype(np.float64)
        own = outputs_of(imported.graph, image.reshape(1, -1)).ravel()
        expected = by_runtime(built, image)
        if expected is None and (len(size) > 1 or include):
            continue
        if expected is None:
            expected = by_specification(kind, given, kernel, image.ravel())
        computed += 1
        np.testing.assert_allclose(own, expected.ravel(), atol=1e-4, err_msg=f"{given} {size} {kernel}")
    # Refused are pools whose windows runtimes place in different ways, and shares that depend on the opset.
    same = mode.startswith("SAME")
    refused = kind != "Conv" and ((same and dilation > 1) or (kind == "AveragePool" and ceil and include))
    assert (computed == 0) == refused


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"auto_pad": "SAME_LOWER", "dilations": [2, 2], "kernel_shape": [2, 2]}, "dilations"),
        ({"auto_pad": "SAME_UPPER", "strides": [3, 3], "kernel_shape": [1, 1]}, "auto_pad"),
    ],
)
def test_pools_that_are_padded_in_two_ways_are_refused(given: dict[str, Any], named: str) -> None:
    values = [
        helper.make_tensor_value_info(name, 1, ["n", 1, size, size]) for name, size in (("x", 6), ("y", 2))
    ]
    node = helper.make_node("MaxPool", ["x"], ["y"], "pool", **given)
    (reason,) = import_model(
        helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    ).reasons
    assert named in str(reason)
    assert "pads" in str(reason)


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 1), (1, 2), (1, 4)])
@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
def test_strides_of_one_axis_and_pools_take_few_diagonals(operator: str, strides: tuple[int, int]) -> None:
    """Layers behind one another: empty slots, or pixels in the order of a vector, multiply the diagonals."""
    channels, side, slots = 16, 16, 4096
    weights = numpy_helper.from_array(np.ones((channels, channels, 2, 2), np.float32), "w")
    given: dict[str, Any] = {"kernel_shape": [2, 2], "strides": strides, "pads": [0, 0, 1, 1]}
    stored = [weights] if operator == "Conv" else []
    nodes = [
        helper.make_node(operator, [value, "w"][: 1 + len(stored)], [to], **given)
        for value, to in ("xa", "ay")
    ]
    x = helper.make_tensor_value_info("x", 1, [1, channels, side, side])
    y = helper.make_tensor_value_info("y", 1, [f"axis{axis}" for axis in range(4)])
    onnx_graph = helper.make_graph(nodes, "windows", [x], [y], stored)
    graph = import_model(helper.make_model(onnx_graph, opset_imports=[helper.make_opsetid("", 17)])).graph
    layouts = choose_layouts(graph, slots, PRICES, fixed=True)
    size = 0
    for number, node in graph.nodes.items():
        if isinstance(node, Linear):
            lowered = lower(node, [layouts[operand] for operand in node.operands], layouts[number], PRICES)
            size += sum(transform.bytes for _, transform in lowered.rows)
    assert size <= 200 * 8 * slots
