"""What a model stores, in nested graphs as well: tensors, of weights and attributes, and equations."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute

from .arrays import shown_shape

SUBSCRIPTS = r"[a-zA-Z]*(\.\.\.[a-zA-Z]*)?"
EQUATION = re.compile(rf"{SUBSCRIPTS}(,{SUBSCRIPTS})*(->{SUBSCRIPTS})?")
"""An equation of an Einsum, without spaces, as the standard defines it."""

INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
MAX_INTEGERS = 1 << 20
"""Of a vector that may hold the sizes of others."""


def stored_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield all tensors of a model."""
    for graph in _graphs(model):
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """Yield a model's graph and functions, and the graphs that nodes hold."""
    left: list[onnx.GraphProto | onnx.FunctionProto] = [*model.functions, model.graph]
    while left:
        graph = left.pop()
        yield graph
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            left += [attribute.g] if attribute.HasField("g") else []
            left += attribute.graphs


def array_of(tensor: onnx.TensorProto) -> NDArray[Any]:
    """Return the values of a tensor.

    Raises:
        RefusalError: its type is unknown to onnx, or its shape is wrong.
    """
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except LookupError:
        raise RefusalError(
            f"weights {tensor.name!r} have type {tensor.data_type}, which onnx does not know"
        ) from None
    except (ValueError, TypeError, MemoryError) as error:
        shape = shown_shape(list(tensor.dims))
        raise RefusalError(f"weights {tensor.name!r} do not have their shape {shape}: {error}") from error


def external_file(tensor: onnx.TensorProto) -> str | None:
    """Return the file beside the model that holds a tensor, if there is one."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def require_inside(model: onnx.ModelProto) -> None:
    """Refuse a model with tensors in files. A model that is not a file itself has no folder: the files would
    be read from the current directory.

    Raises:
        RefusalError: names the tensor and the file.
    """
    for tensor in stored_tensors(model):
        if (name := external_file(tensor)) is not None:
            raise RefusalError(
                f"tensor {tensor.name!r} is in a separate file {name!r}; give the model's path, or save "
                "it as one file"
            )


def require_inferable(model: onnx.ModelProto) -> None:
    """Refuse a model for whose shapes onnx would take time or memory without end: with a malformed equation
    of an Einsum, a Split into more parts than it has outputs, or a long vector of integers, each of which is
    followed.

    Raises:
        RefusalError: names the node and the attribute, or the vector.
    """
    for graph in _graphs(model):
        for node in graph.node:
            for each in node.attribute:
                _require_attribute(node, each)
        _require_short(graph)


def inferred(model: onnx.ModelProto, *, strict: bool = False) -> onnx.GraphProto:
    """Return the graph of a model with the shapes that onnx infers. It follows vectors of integers entry by
    entry, so their lengths are inferred before.

    Raises:
        RefusalError: a vector of integers is too long to be followed.
        onnx.shape_inference.InferenceError, ValueError: the model contradicts itself.
    """
    _require_short(onnx.shape_inference.infer_shapes(model, strict_mode=strict).graph)
    return onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True).graph


def _require_attribute(node: onnx.NodeProto, entry: onnx.AttributeProto) -> None:
    name, text = node.name or ", ".join(node.output), entry.s.decode(errors="replace")
    if (node.op_type, entry.name) == ("Einsum", "equation") and not EQUATION.fullmatch(text.replace(" ", "")):
        allowed = "letters, with one ellipsis an operand"
        raise unsupported_attribute(name, node.op_type, "equation", repr(text[:80]), allowed)
    if (node.op_type, entry.name) == ("Split", "num_outputs") and entry.i > len(node.output):
        allowed = f"at most the {len(node.output)} that it has"
        raise unsupported_attribute(name, node.op_type, "num_outputs", entry.i, allowed)


def _require_short(graph: onnx.GraphProto | onnx.FunctionProto) -> None:
    makers = {name: node.name for node in graph.node for name in node.output}
    values = [*graph.input, *graph.output] if isinstance(graph, onnx.GraphProto) else []
    for value in [*values, *graph.value_info]:
        kind = value.type.tensor_type
        sizes = [axis.dim_value for axis in kind.shape.dim]
        if kind.elem_type in INTEGERS and len(sizes) == 1 and sizes[0] > MAX_INTEGERS:
            name = makers.get(value.name, "")
            what = f"the result of node {name!r}" if name else repr(value.name)
            text = f"{what} is a vector of {sizes[0]} integers, and at most {MAX_INTEGERS} are followed"
            raise RefusalError(text, code="size")
