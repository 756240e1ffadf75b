"""The tensors stored in a model: weights, and values of attributes, including those of nested graphs."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.errors.network import RefusalError

from .arrays import shown_shape


def stored_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield all tensors of a model."""
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)
        for graph in (attribute.g, *attribute.graphs):
            yield from _of_graph(graph)


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
