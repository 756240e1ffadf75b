"""Whether a small model computes each row of its input by itself: then many samples are one run.

A value *has rows* if the model computed it from its input; its first axis then counts samples. A node keeps
the rows apart if it works along other axes alone. What is not known to keep them is taken to mix them.
Some values count samples on their second axis, behind one of length 1 or of members of an ensemble: labels
that ArrayFeatureExtractor picks, and probabilities before their mean is taken.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.program.arrays import Shape

POINTWISE = frozenset([
    "Abs", "Add", "Binarizer", "Cast", "Ceil", "Clip", "Div", "Elu", "Equal", "Exp", "Floor", "Greater",
    "GreaterOrEqual", "Identity", "LabelEncoder", "Less", "LessOrEqual", "Log", "Max", "Min", "Mul", "Neg",
    "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Softplus", "Sqrt", "Sub", "Sum", "Tanh",
    "Where",
])  # fmt: skip
"""Operators whose results have the shape that their operands broadcast to."""

ALONG_AN_AXIS = {"ArgMax": 0, "ArgMin": 0, "LogSoftmax": -1, "LpNormalization": -1, "Softmax": -1}
"""Operators that work along one axis, with the axis that is meant where none is named."""

OF_ROWS = frozenset(["LinearClassifier", "Normalizer", "SVMClassifier"])
"""Operators of classifiers, which take a matrix of samples."""

REDUCTIONS = frozenset(["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"])

WHOLE_ROWS_SINCE = 13
"""Before this opset, softmax read all axes from its own on as one."""


def rows_apart(
    model: onnx.ModelProto, constants: Mapping[str, NDArray[Any]], shapes: Mapping[str, Shape], opset: int
) -> bool:
    """Return whether every node keeps the rows of the model's only input apart.

    Args:
        constants: stored tensors by name.
        shapes: of every value for one sample, whose first axis has length 1.
    """
    with_rows, second = {model.graph.input[0].name}, set[str]()
    if opset < WHOLE_ROWS_SINCE or shapes[model.graph.input[0].name][:1] != (1,):
        return False
    for node in model.graph.node:
        operands = [name for name in node.input if name]
        if second.intersection(operands):
            if _to_rows(node, constants, shapes):
                with_rows.update(node.output)
            elif _stays_second(node, second):
                second.update(node.output)
            else:
                return False
            continue
        if with_rows.isdisjoint(operands):
            return False
        if any(name not in with_rows and name not in constants for name in operands):
            return False
        if any(shapes[name][:1] != (1,) for name in node.output if name):
            return False
        if _to_second(node, with_rows, constants, shapes):
            second.update(node.output)
            continue
        if not _keeps(node, with_rows, constants, shapes):
            return False
        with_rows.update(name for name in node.output if name)
    return all(output.name in with_rows for output in model.graph.output)


def _to_second(
    node: onnx.NodeProto,
    with_rows: set[str],
    constants: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, Shape],
) -> bool:
    """Return whether a node moves samples from the first axis to the second."""
    if node.op_type == "ArrayFeatureExtractor":
        stored, index = node.input
        of_rows = index in with_rows and shapes[index] == (1, 1)
        return of_rows and stored in constants and constants[stored].ndim == 1
    if node.op_type == "Reshape" and node.input[0] in with_rows and len(shapes[node.input[0]]) == 2:
        width = shapes[node.input[0]][1]
        # A sum over members of single numbers may be rounded otherwise for one sample than for several.
        return width > 1 and constants[node.input[1]].tolist() == [1, -1, width]
    return False


def _stays_second(node: onnx.NodeProto, second: set[str]) -> bool:
    if node.op_type == "Concat":
        return second.issuperset(node.input) and bool(_attribute(node, "axis", 0) == 0)
    return node.op_type == "Cast"


def _to_rows(
    node: onnx.NodeProto, constants: Mapping[str, NDArray[Any]], shapes: Mapping[str, Shape]
) -> bool:
    """Return whether a node moves samples from the second axis back to the first."""
    if node.op_type == "Reshape":
        return shapes[node.input[0]] == (1, 1) and constants[node.input[1]].tolist() in ([-1], [-1, 1])
    if node.op_type in ("ReduceMean", "ReduceSum") and not _attribute(node, "keepdims", 1):
        axes = constants.get(node.input[1]) if len(node.input) > 1 else _attribute(node, "axes", None)
        return axes is not None and np.ravel(axes).tolist() == [0]
    return False


def _keeps(
    node: onnx.NodeProto,
    with_rows: set[str],
    constants: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, Shape],
) -> bool:
    first, others = node.input[0], node.input[1:]
    ranks = {name: len(shapes[name]) for name in node.input if name}
    if node.op_type in POINTWISE:
        # Rows meet rows, and a constant has one row for all.
        rank = len(shapes[node.output[0]])
        return all(
            ranks[name] == rank if name in with_rows else ranks[name] < rank or shapes[name][0] == 1
            for name in ranks
        )
    if node.op_type == "Concat":
        return all(name in with_rows for name in ranks) and _inner(
            [_attribute(node, "axis", 0)], ranks[first]
        )
    if node.op_type == "Gather" and first in constants:
        return bool(_attribute(node, "axis", 0) == 0)
    if first not in with_rows or any(name in with_rows for name in others):
        return False
    if node.op_type in OF_ROWS:
        return ranks[first] == 2 and (node.op_type != "LinearClassifier" or _selects(node, shapes[first][1]))
    if node.op_type in ALONG_AN_AXIS:
        return _inner([_attribute(node, "axis", ALONG_AN_AXIS[node.op_type])], ranks[first])
    if node.op_type == "Gather":
        return _inner([_attribute(node, "axis", 0)], ranks[first])
    if node.op_type in REDUCTIONS or node.op_type in ("Squeeze", "Unsqueeze"):
        given = constants.get(node.input[1]) if len(node.input) > 1 else _attribute(node, "axes", None)
        return (
            given is not None and np.size(given) > 0 and _inner(np.ravel(given), _rank_of_axes(node, shapes))
        )
    if node.op_type == "Slice":
        starts = constants[node.input[1]]
        axes = constants[node.input[3]] if len(node.input) > 3 and node.input[3] else range(len(starts))
        return _inner(axes, ranks[first])
    if node.op_type == "Reshape":
        extents = constants[node.input[1]]
        first_axis = extents[0] == 0 or (extents[0] == -1 and np.all(extents[1:] >= 0))
        return bool(first_axis and not _attribute(node, "allowzero", 0))
    return False


def _selects(node: onnx.NodeProto, width: int) -> bool:
    """Return whether a classifier's matrix takes each of its scores from one number. Sums of several are
    rounded otherwise in a product of matrices than in one of a vector."""
    matrix = np.reshape(_attribute(node, "coefficients", []), (-1, width))
    return bool((np.count_nonzero(matrix, axis=1) <= 1).all())


def _rank_of_axes(node: onnx.NodeProto, shapes: Mapping[str, Shape]) -> int:
    """Return the rank that a node's axes count in, which for a node that adds axes is that of its result."""
    return len(shapes[node.output[0] if node.op_type == "Unsqueeze" else node.input[0]])


def _inner(axes: Iterable[Any], rank: int) -> bool:
    """Return whether no axis is the first."""
    return rank > 0 and all(int(axis) % rank != 0 for axis in axes)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next(
        (onnx.helper.get_attribute_value(each) for each in node.attribute if each.name == name), default
    )
