"""Scores that are multiples of a unit, such as whole numbers, on all calibration data. Clients take those
near a multiple for it before steps that the smallest error changes, such as Floor or a cast to integers."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from keywright.program.arrays import Vector
from keywright.program.client.last_steps import INTEGERS, WHOLE, ClientPart
from keywright.program.client.small_model import opset_of

LEAST_OPSET = 9
"""The first with Where; for older models, clients warn of scores that are near a step."""

LEAST_SAMPLES = 16
"""Fewer calibration samples do not show that scores are multiples of a unit."""

UNITS = tuple(2.0**-power for power in range(9))
"""Units that are tried, the largest first: powers of two, whose multiples floating-point numbers hold. Where
multiples of others are near a step, the model's own roundings decide."""

ROUNDED = 2.0**-30
"""Scores are multiples but for roundings of this share of their size."""

NEAR, FARTHEST = 2.0**-20, 0.25
"""Distance from a multiple, as a share of the largest score on the calibration data, and at most as a share
of the unit, within which a score is taken for it."""


def with_whole_scores(part: ClientPart, scores: Vector) -> ClientPart:
    """Return the client's part for scores that, if they are multiples of a unit on all calibration data, are
    taken for one within `NEAR`: other scores so near one change by as little. It is returned as it is where
    no step is changed by the smallest error.

    Args:
        scores: of the model on the calibration data, (count, scores).
    """
    model = onnx.load_model_from_string(part.data)
    (source,) = model.graph.input
    if source.type.tensor_type.elem_type in INTEGERS:
        return part  # clients round them all
    if len(scores) < LEAST_SAMPLES or not part.deciding or opset_of(model.opset_import) < LEAST_OPSET:
        return part
    size = np.maximum(np.abs(scores).max(axis=0), 1.0)
    unit = _units(scores, size)
    if not unit.any() or not np.isfinite(size).all():
        return part
    near = np.where(unit > 0, np.minimum(NEAR * size, FARTHEST * unit), -1.0)
    unit = np.where(unit > 0, unit, 1.0)
    graph = model.graph
    double = source.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    kind = np.float64 if double else np.float32
    names = {
        each: WHOLE + each
        for each in ("units", "above", "number", "multiple", "less", "distance", "same", "score")
    }
    for node in graph.node:
        node.input[:] = [names["score"] if name == source.name else name for name in node.input]
    # An output that is a score stays as the server gives it.
    for name, array in (("unit", unit), ("near", near), ("half", np.full(len(unit), 0.5))):
        graph.initializer.append(
            numpy_helper.from_array(array.reshape(part.shape).astype(kind), WHOLE + name)
        )
    own = [
        helper.make_node("Div", [source.name, WHOLE + "unit"], [names["units"]]),
        helper.make_node("Add", [names["units"], WHOLE + "half"], [names["above"]]),
        helper.make_node("Floor", [names["above"]], [names["number"]]),
        helper.make_node("Mul", [names["number"], WHOLE + "unit"], [names["multiple"]]),
        helper.make_node("Sub", [source.name, names["multiple"]], [names["less"]]),
        helper.make_node("Abs", [names["less"]], [names["distance"]]),
        helper.make_node("Less", [names["distance"], WHOLE + "near"], [names["same"]]),
        helper.make_node("Where", [names["same"], names["multiple"], source.name], [names["score"]]),
    ]
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*own, *rest])
    return ClientPart(model.SerializeToString(), part.shape)


def _units(scores: Vector, size: Vector) -> Vector:
    """Return the largest unit of which each score, (count, scores), is a multiple; 0 without any."""
    unit = np.zeros(scores.shape[1])
    for each in UNITS:
        apart = np.abs(scores - each * np.round(scores / each))
        unit = np.where((unit == 0) & (apart <= ROUNDED * size).all(axis=0), each, unit)
    return unit
