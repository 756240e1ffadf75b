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


def require_equations(model: onnx.ModelProto) -> None:
    """Refuse a model with a malformed equation of an Einsum, whose shape onnx would infer for ever.

    Raises:
        RefusalError: names the node and the equation.
    """
    for node in (node for graph in _graphs(model) for node in graph.node if node.op_type == "Einsum"):
        for text in (each.s.decode(errors="replace") for each in node.attribute if each.name == "equation"):
            if not EQUATION.fullmatch(text.replace(" ", "")):
                name, allowed = node.name or ", ".join(node.output), "letters, with one ellipsis an operand"
                raise unsupported_attribute(name, node.op_type, "equation", repr(text[:80]), allowed)
