"""Resize: the nearest pixels, or sums of neighbouring ones with constant weights."""

import numpy as np
import onnx
from onnx import helper

from keywright.compiler.front_ends.operator_context import EncryptedValue, Operand, OperatorContext
from keywright.compiler.front_ends.operators.moves import move
from keywright.compiler.front_ends.reference import Array
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

PER_AXIS = ("antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode")
"""Attributes that mean the same for each axis alone."""


def resize(context: OperatorContext) -> Operand | tuple[Operand, ...]:
    """Add Resize. With linear and cubic interpolation, which act on one axis after the other, the result is a
    matrix: the product of those of the axes, which ONNX's reference implementation gives on unit vectors."""
    if context.attribute("mode", "nearest") == "nearest":
        return move(context)
    source = context.encrypted(0)
    if context.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        raise context.refuse("coordinate_transformation_mode", "tf_crop_and_resize", "another mode")
    if (policy := context.attribute("keep_aspect_ratio_policy", "stretch")) != "stretch":
        raise context.refuse("keep_aspect_ratio_policy", policy, "stretch")
    result = source
    for axis, scale, size in _changes(context, source):
        result = _along(context, result, axis, _weights(context, source.shape[axis], scale, size))
    return result


def _changes(context: OperatorContext, source: EncryptedValue) -> list[tuple[int, float | None, int | None]]:
    """Return the axes that change, each with a scale or a size."""
    rank = len(source.shape)
    axes = [axis % rank for axis in context.attribute("axes", list(range(rank)))]
    sizes, scales = context.constant(3), context.constant(2)
    given = sizes if sizes is not None and sizes.size else scales
    if given is None or given.size != len(axes):
        wrong = "absent" if given is None else given.tolist()
        raise context.refuse("scales and sizes", wrong, f"{len(axes)} numbers")
    if given is sizes:
        pairs = [(axis, None, int(size)) for axis, size in zip(axes, given, strict=True)]
        return [each for each in pairs if each[2] != source.shape[each[0]]]
    return [(axis, float(scale), None) for axis, scale in zip(axes, given, strict=True) if scale != 1]


def _weights(context: OperatorContext, length: int, scale: float | None, size: int | None) -> Vector:
    """Return the matrix of one axis, (size, length)."""
    attributes = {
        entry.name: onnx.helper.get_attribute_value(entry)
        for entry in context.node.attribute
        if entry.name in PER_AXIS
    }
    feeds: dict[str, Array] = {"x": np.eye(length), "roi": np.zeros(0, np.float32)}
    if size is None:
        feeds["scales"] = np.asarray([1.0, scale], np.float32)
        names = ["x", "roi", "scales"]
    else:
        feeds["sizes"] = np.asarray([length, size], np.int64)
        names = ["x", "roi", "", "sizes"]
    node = helper.make_node("Resize", names, ["y"], **attributes)
    (responses,) = context.evaluate(feeds, node)
    return np.asarray(responses, np.float64).T


def _along(context: OperatorContext, source: EncryptedValue, axis: int, weights: Vector) -> EncryptedValue:
    """Return the product of a matrix with the values along an axis."""
    shape = (*source.shape[:axis], len(weights), *source.shape[axis + 1 :])
    targets = np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), axis, 0).reshape(len(weights), -1)
    origins = np.moveaxis(source.indices(), axis, 0).reshape(source.shape[axis], -1)
    rows, columns = np.nonzero(weights)
    many = targets.shape[1]
    matrix = SparseMatrix.from_distinct(
        (targets.size, source.size),
        targets[rows].ravel(),
        origins[columns].ravel(),
        np.repeat(weights[rows, columns], many),
    )
    return context.linear(source, shape, matrix)
