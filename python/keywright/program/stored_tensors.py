"""What a model stores, in nested graphs as well: tensors, of weights and attributes, and equations."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute, unsupported_operator

from .arrays import shown_shape

SUBSCRIPTS = r"[a-zA-Z]*(\.\.\.[a-zA-Z]*)?"
EQUATION = re.compile(rf"{SUBSCRIPTS}(,{SUBSCRIPTS})*(->{SUBSCRIPTS})?")
"""An equation of an Einsum, without spaces, as the standard defines it."""

SHAPED = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Squeeze": 1, "Unsqueeze": 1}
"""Operators whose results have axes by the entries of an operand, with the place of that operand."""

GATHERING = frozenset(["Gather", "GatherND"])
"""Operators whose results may have as many axes as all operands together."""

ADDING = frozenset(["ConcatFromSequence", "OneHot"])
"""Operators whose results may have an axis more than their operands."""

FUNCTION = "it is a function of the model: write it out by onnx.inliner.inline_local_functions"
KNOWN = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Domains whose operators are read by their names, whether or not a model has a function of that name."""

INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
MAX_AXES = 1 << 22
"""Of all values together, as far as constants tell."""

MAX_FOLLOWED = 1 << 20
"""Entries of vectors, all together, that onnx follows in case they are sizes of other values."""


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
        left += (nested for node in graph.node for nested in _nested(node))


def _nested(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else []
        yield from attribute.graphs


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
    of an Einsum, a Split into more parts than it has outputs, values of very many axes, or calls of
    functions of its own, which onnx would write out.

    Raises:
        RefusalError: names the node, and the attribute.
    """
    for graph in _graphs(model):
        for node in graph.node:
            for each in node.attribute:
                _require_attribute(node, each)
    _Axes(model).of_graph(model.graph)


def inferred(model: onnx.ModelProto) -> onnx.GraphProto:
    """Return the graph of a model with the shapes that onnx infers: some nodes may be missing. It notes every
    entry of the vectors that some operators read, as sizes of others; nodes that read more than the limit,
    and those with graphs of their own, keep the shapes that need no entries.

    Raises:
        onnx.shape_inference.InferenceError, ValueError: the model contradicts itself.
    """
    plain = onnx.shape_inference.infer_shapes(model)
    graph, left = plain.graph, list(_not_followed(plain))
    names = {name for index in left for name in graph.node[index].output}
    known = [value for value in [*graph.value_info, *graph.output] if value.name in names]
    for index in reversed(left):
        del graph.node[index]
    for values, declared in ((graph.value_info, model.graph.value_info), (graph.output, model.graph.output)):
        del values[:]  # inferred names of sizes would hide those that entries tell
        values.extend(declared)
    graph.value_info.extend(known)
    return onnx.shape_inference.infer_shapes(plain, data_prop=True).graph


def _not_followed(model: onnx.ModelProto) -> Iterator[int]:
    """Yield the places of nodes whose entries may exceed the limit, in a model with inferred shapes."""
    entries = {
        each.name: math.prod(each.dims) if each.data_type in INTEGERS and len(each.dims) < 2 else 0
        for each in model.graph.initializer
    }
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        shape = value.type.tensor_type.shape
        known = value.type.tensor_type.HasField("shape")
        length = shape.dim[0].dim_value or math.inf if len(shape.dim) == 1 else 0
        entries.setdefault(value.name, length if known else math.inf)
    noted = 0
    for index, node in enumerate(model.graph.node):
        if any(True for _ in _nested(node)):
            yield index
        elif node.op_type in _following():
            count = sum(entries.get(name, math.inf) for name in node.input if name)
            if noted + count > MAX_FOLLOWED:
                yield index
                continue
            noted += count
            entries.update((name, max(count, entries.get(name, math.inf))) for name in node.output)


@cache
def _following() -> frozenset[str]:
    """Return the operators for which onnx notes the entries of operands, also by functions that they stand
    for."""
    return frozenset(
        each.name
        for each in onnx.defs.get_all_schemas_with_history()
        if each.has_data_propagation_function or not each.has_type_and_shape_inference_function
    )


def _require_attribute(node: onnx.NodeProto, entry: onnx.AttributeProto) -> None:
    name, text = node.name or ", ".join(node.output), entry.s.decode(errors="replace")
    if (node.op_type, entry.name) == ("Einsum", "equation") and not EQUATION.fullmatch(text.replace(" ", "")):
        allowed = "letters, with one ellipsis an operand"
        raise unsupported_attribute(name, node.op_type, "equation", repr(text), allowed)
    if (node.op_type, entry.name) == ("Split", "num_outputs") and entry.i > len(node.output):
        allowed = f"at most the {len(node.output)} that it has"
        raise unsupported_attribute(name, node.op_type, "num_outputs", entry.i, allowed)


class _Axes:
    """Counts the axes of values: no fewer than onnx infers, as far as constants tell.

    Args:
        model: the model. Calls of its own functions, which have axes of their own, are refused.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.ranks, self.sizes, self.total = dict[str, int](), dict[str, int](), 0
        # Axes to squeeze are an attribute, and later an operand; the other one has no effect.
        self.early = {each.version < 13 for each in model.opset_import if each.domain in ("", "ai.onnx")}
        self.own = {(each.domain, each.name) for each in model.functions if each.domain not in KNOWN}

    def of_graph(self, graph: onnx.GraphProto, given: int = 0) -> int:
        """Return the most axes of a value of a graph, whose inputs have at most so many if it is nested."""
        for value in [*graph.input, *graph.value_info, *graph.output]:
            self.ranks[value.name] = max(given, len(value.type.tensor_type.shape.dim))
        for tensor in graph.initializer:
            self._store(tensor.name, tensor.dims)
        return max((self._of_node(node) for node in graph.node), default=0)

    def _store(self, name: str, dims: Sequence[int]) -> None:
        self.ranks[name], self.sizes[name] = len(dims), dims[0] if len(dims) == 1 else 0

    def _of_node(self, node: onnx.NodeProto) -> int:
        name = node.name or ", ".join(node.output)
        if (node.domain, node.op_type) in self.own:
            raise unsupported_operator(name, node.op_type, FUNCTION)
        own = [self.ranks.get(each, 0) for each in node.input]
        rank, axes = max(own, default=0), int(node.op_type in ADDING)
        squeezes = node.op_type == "Squeeze"
        for graph in _nested(node):
            rank = max(rank, self.of_graph(graph, rank) + 1)
        for each in node.attribute:
            if each.name in ("axes", "shape") and (not squeezes or self.early == {True}):
                axes += len(each.ints) if node.op_type in SHAPED or each.name == "shape" else 0
            if each.name == "equation":
                rank, axes = rank if b"..." in each.s else 0, len(each.s)
        if node.op_type in SHAPED and (not squeezes or self.early == {False}):
            axes += sum(self.sizes.get(each, 0) for each in node.input[SHAPED[node.op_type] :][:1])
        if node.op_type in GATHERING:
            rank = sum(own)
        elif node.op_type == "Reshape" and axes:
            rank = 0
        elif squeezes:
            rank, axes = max(rank - bool(axes), 0), 0
        self.total += (rank + axes) * len(node.output)
        if self.total > MAX_AXES:
            text = f"values up to the result of node {name!r} have more than {MAX_AXES} axes together"
            raise RefusalError(text, code="size")
        self.ranks.update(dict.fromkeys(node.output, rank + axes))
        for each in node.attribute if node.op_type == "Constant" else ():
            self._store(node.output[0], each.t.dims if each.HasField("t") else [len(each.ints)])
        return rank + axes
