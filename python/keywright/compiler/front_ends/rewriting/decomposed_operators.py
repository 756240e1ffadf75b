"""Restores operators that exporters decompose: softmax, which the client computes as a whole, and erfc."""

from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from keywright.program.stored_tensors import array_of, inferred

PASSING = ("Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators between a reduction and the value that it is broadcast to."""


def with_erf(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return an equivalent model of standard operators: tf2onnx keeps TensorFlow's Erfc, which ONNX lacks."""
    if not any(node.op_type == "Erfc" and not node.domain for node in model.graph.node):
        return model
    result = _copied(model)
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    for node in model.graph.node:
        if node.op_type != "Erfc" or node.domain:
            result.graph.node.append(node)
            continue
        source, output = node.input[0], node.output[0]
        kind = helper.tensor_dtype_to_np_dtype(types.get(output) or onnx.TensorProto.FLOAT)
        result.graph.initializer.append(numpy_helper.from_array(np.asarray(1, kind), f"{output}/one"))
        result.graph.node.extend(
            [
                helper.make_node("Erf", [source], [f"{output}/erf"], f"{node.name}/erf"),
                helper.make_node("Sub", [f"{output}/one", f"{output}/erf"], [output], node.name),
            ]
        )
    return result


def with_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return an equivalent model with Softmax and LogSoftmax over the last axis, which jax2onnx writes as
    exp(x - max) / sum and x - max - log(sum)."""
    finder = _Finder(model)
    table = {index: match for index in range(len(model.graph.node)) if (match := finder.match(index))}
    if not table:
        return model
    result = _copied(model)
    for index, node in enumerate(model.graph.node):
        if index not in table:
            result.graph.node.append(node)
            continue
        operator, source = table[index]
        result.graph.node.append(helper.make_node(operator, [source], list(node.output), node.name, axis=-1))
    drop_unread(result.graph)
    return result


class _Finder:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = list(model.graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.shapes: dict[str, list[object]] = {}
        if any(node.op_type == "ReduceMax" for node in self.nodes):
            self.shapes = _shapes(model)

    def match(self, index: int) -> tuple[str, str] | None:
        """Return the operator that a node completes, and its operand."""
        node = self.nodes[index]
        if node.op_type == "Div":
            exponential, total = self._maker(node, 0), self._reduced(node.input[1], "ReduceSum")
            if exponential is None or exponential.op_type != "Exp" or total != exponential.output[0]:
                return None
            centred = self._maker(exponential, 0)
            source = None if centred is None else self._centred(centred)
            return None if source is None else ("Softmax", source)
        if node.op_type == "Sub":
            centred, logarithm = self._maker(node, 0), self._maker(node, 1)
            if centred is None or logarithm is None or logarithm.op_type != "Log":
                return None
            total = self._reduced(logarithm.input[0], "ReduceSum")
            exponential = self.makers.get(total or "")
            if exponential is None or exponential.op_type != "Exp":
                return None
            source = self._centred(centred)
            same = exponential.input[0] == centred.output[0]
            return None if source is None or not same else ("LogSoftmax", source)
        return None

    def _maker(self, node: onnx.NodeProto, index: int) -> onnx.NodeProto | None:
        return self.makers.get(node.input[index]) if index < len(node.input) else None

    def _centred(self, node: onnx.NodeProto) -> str | None:
        """Return x, for x - max(x)."""
        if node.op_type != "Sub" or self._reduced(node.input[1], "ReduceMax") != node.input[0]:
            return None
        return str(node.input[0])

    def _reduced(self, name: str, operator: str) -> str | None:
        """Return the operand of a reduction over its last axis that is broadcast along that axis again."""
        spread = self.shapes.get(name)
        maker = self.makers.get(name)
        while maker is not None and (maker.op_type in PASSING or self._is_least(maker)):
            own = list(maker.input) if maker.op_type == "Max" else list(maker.input)[:1]
            name = next((source for source in own if source not in self.constants), "")
            maker = self.makers.get(name)
        if maker is None or maker.op_type != operator or spread is None:
            return None
        shape = self.shapes.get(maker.input[0], [])
        last = self._axes(maker) in ([-1], [len(shape) - 1])
        return maker.input[0] if last and len(shape) == len(spread) > 1 and spread[-1] == 1 else None

    def _is_least(self, node: onnx.NodeProto) -> bool:
        """Whether a node is max(x, -inf)."""
        if node.op_type != "Max" or len(node.input) != 2:
            return False
        given = [array_of(self.constants[n]) for n in node.input if n in self.constants]
        return len(given) == 1 and bool(np.isneginf(given[0]).all())

    def _axes(self, node: onnx.NodeProto) -> list[int]:
        if len(node.input) > 1 and node.input[1] in self.constants:
            return [int(axis) for axis in array_of(self.constants[node.input[1]]).ravel()]
        return next((list(entry.ints) for entry in node.attribute if entry.name == "axes"), [])


def _shapes(model: onnx.ModelProto) -> dict[str, list[object]]:
    """Return sizes, or names of sizes, of values; none if the model contradicts itself, which the importer
    reports."""
    try:
        graph = inferred(model)
    except (onnx.shape_inference.InferenceError, ValueError):
        return {}
    values = [*graph.input, *graph.value_info, *graph.output]
    return {
        value.name: [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim] for value in values
    }


def _copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without its nodes."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    return result


def drop_unread(graph: onnx.GraphProto, kept: Iterable[str] = ()) -> None:
    """Remove the nodes whose results nothing reads, and their constants, but for values to keep."""
    targets = {*(value.name for value in graph.output), *kept}
    nodes = list(_backwards(graph, targets))[::-1]
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input} | targets
    tensors = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(tensors)


def _backwards(graph: onnx.GraphProto, targets: set[str]) -> Iterator[onnx.NodeProto]:
    for node in reversed(list(graph.node)):
        subgraphs = any(entry.HasField("g") for entry in node.attribute)
        if subgraphs or targets.intersection(node.output):
            targets.update(node.input)
            yield node
