"""Refuses models that take any number of samples and compute a sample's outputs from other samples, too."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx

from keywright.errors.network import RefusalError
from keywright.program.client.small_model import FLATTENS_BEFORE, ROWS, opset_of
from keywright.program.stored_tensors import array_of, inferred

BATCH = "keywright/batch"
"""Name of the axis of samples where the model gives it none."""

ALONG = {
    **dict.fromkeys(ROWS, -1),
    "ArgMax": 0,
    "ArgMin": 0,
    "Concat": 0,
    "Gather": 0,
    "GatherElements": 0,
    "LpNormalization": -1,
    "MatMul": -1,
    "Split": 0,
    "TopK": -1,
}
"""Operators that compute, choose or join along one axis, with the axis that they have by default."""

WHOLE = 1 << 31
"""Ends of slices from here on leave nothing out."""

FROM = frozenset(["LayerNormalization", "RMSNormalization"])
"""Operators that compute over all axes from one on; the last by default."""

SEVERAL = frozenset(["Concat", "Einsum"])
"""Operators that compute along axes of any operand; others do along those of the first."""


def require_independent(model: onnx.ModelProto) -> None:
    """Refuse a model with an open batch axis along which a node computes. Axes whose names get lost, as by a
    reshape to computed sizes, are not followed.

    Raises:
        RefusalError: names the node.
    """
    named = onnx.ModelProto()
    named.CopyFrom(model)
    constants = _constants(named.graph)
    names = set[str]()
    for value in named.graph.input:
        axes = value.type.tensor_type.shape.dim
        if value.name not in constants and axes and not axes[0].dim_value:
            axes[0].dim_param = axes[0].dim_param or BATCH
            names.add(axes[0].dim_param)
    if not names:
        return
    del named.graph.value_info[:]  # whose axes may have names of their own
    for value in named.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        graph = inferred(named)
    except (onnx.shape_inference.InferenceError, ValueError):
        return  # the importer reports what is wrong
    shapes = {
        value.name: [axis.dim_param for axis in value.type.tensor_type.shape.dim]
        for value in [*graph.input, *graph.value_info, *graph.output]
        if value.type.tensor_type.HasField("shape")
    }
    opset = opset_of(model.opset_import)
    for index, node in enumerate(model.graph.node):
        sources = [
            (place, shapes[name])
            for place, name in enumerate(node.input if node.op_type in SEVERAL else node.input[:1])
            if name in shapes and name not in constants
        ]
        if not sources or node.domain not in ("", "ai.onnx"):
            continue
        crossed = [
            axis
            for place, shape in sources
            for axis in _axes(node, place, len(shape), constants, opset)
            if 0 <= axis < len(shape) and shape[axis] in names
        ]
        results = [[axis for axis in shapes.get(name, ()) if axis in names] for name in node.output]
        if crossed or any(len(each) > 1 for each in results):
            how = f"computes along axis {crossed[0]}, the axis of" if crossed else "joins every two of"
            raise RefusalError(
                f"node {node.name or f'{node.op_type}_{index}'!r}: {node.op_type} {how} the samples, and "
                "encrypted samples are independent; use another axis, or export the model with a batch of 1 "
                "if it takes one sample at a time",
                code="batch",
                node=node.name,
            )


def _constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return what initializers and Constant nodes hold that may be axes."""
    table = {tensor.name: tensor for tensor in graph.initializer}
    for name, entry in (
        (name, entry)
        for node in graph.node
        if node.op_type == "Constant"
        for name in node.output
        for entry in node.attribute
    ):
        if entry.name == "value":
            table[name] = entry.t
        elif entry.name in ("value_int", "value_ints"):
            table[name] = onnx.numpy_helper.from_array(np.asarray(onnx.helper.get_attribute_value(entry)))
    return table


def _axes(
    node: onnx.NodeProto, place: int, rank: int, constants: dict[str, onnx.TensorProto], opset: int
) -> Iterator[int]:
    """Yield the axes of an operand along which a node computes."""
    attributes: dict[str, Any] = {
        entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute
    }
    if node.op_type in ROWS and opset < FLATTENS_BEFORE:
        yield from range(attributes.get("axis", 1) % max(rank, 1), rank)
    elif node.op_type in ALONG:
        axis = attributes.get("axis", ALONG[node.op_type])
        if -rank <= axis < rank:
            yield axis % rank
    elif node.op_type in FROM:
        yield from range(attributes.get("axis", -1) % max(rank, 1), rank)
    elif node.op_type == "Einsum":
        sources, arrow, result = attributes.get("equation", b"").decode().replace(" ", "").partition("->")
        kept = result if arrow else "".join(each for each in sources if sources.count(each) == 1)
        term = "".join(sources.split(",")[place : place + 1])
        term = term.replace("...", "." * (rank - len(term) + 3))
        yield from [axis for axis, letter in enumerate(term) if letter not in kept + "."]
    elif node.op_type == "Flatten":
        yield from [0] if attributes.get("axis", 1) in (0, -rank) else []
    elif node.op_type == "Gemm":
        yield 0 if attributes.get("transA", 0) else rank - 1
    elif node.op_type in ("CumSum", "Slice"):
        yield from _named(node, rank, constants)
    elif node.op_type.startswith("Reduce"):
        yield from _reduced(node, attributes, rank, constants)


def _whole(name: str, constants: dict[str, onnx.TensorProto]) -> list[int] | None:
    """Return the whole numbers of a constant; None if it is computed, or the importer refuses its type."""
    array = array_of(constants[name]) if name in constants else None
    return None if array is None or array.dtype.kind not in "iu" else list(map(int, array.ravel()))


def _named(node: onnx.NodeProto, rank: int, constants: dict[str, onnx.TensorProto]) -> Iterator[int]:
    """Yield the axes that operands name: that of CumSum, and those of which Slice leaves something out; none
    if they are computed."""
    known = [_whole(name, constants) for name in node.input[1:5]]
    if not known or (any(node.input[3:4]) and known[2] is None):
        return
    if node.op_type == "CumSum":
        yield from [axis % max(rank, 1) for axis in known[0] or []]
    elif len(known) > 1 and known[0] is not None:
        count = len(known[0])
        ends, axes, steps = (
            given or default
            for given, default in zip(
                [*known[1:], None, None][:3], ([0] * count, range(count), [1] * count), strict=True
            )
        )
        for start, end, axis, step in zip(known[0], ends, axes, steps, strict=False):
            if (start, step) != (0, 1) or end < WHOLE - 1:
                yield axis % max(rank, 1)


def _reduced(
    node: onnx.NodeProto, attributes: dict[str, Any], rank: int, constants: dict[str, onnx.TensorProto]
) -> Sequence[int]:
    """Return the axes of a reduction; none if they are computed."""
    axes = attributes.get("axes", [])
    if len(node.input) > 1 and node.input[1]:
        named = _whole(node.input[1], constants)
        if named is None:
            return []
        axes = named
    if not axes:
        return [] if attributes.get("noop_with_empty_axes", 0) else range(rank)
    return [axis % rank for axis in axes if -rank <= axis < rank]
