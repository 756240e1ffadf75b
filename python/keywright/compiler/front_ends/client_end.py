"""Splits a model where the client takes over: the end that has no encrypted form, from the scores on."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import onnx

from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.program.client_part import ALLOWED, ELEMENTWISE, ONLY_HERE, ClientPart

from .classical import standardised
from .model_file import load_model
from .operator_context import FLOATS
from .written_out import with_softmax


@dataclass(frozen=True)
class _End:
    """Nodes for the client, by index; the value that they read; activations among them."""

    nodes: frozenset[int]
    scores: str
    activations: int


def load_parts(model: onnx.ModelProto | str | Path | bytes) -> tuple[onnx.ModelProto, ClientPart | None]:
    """Return a model in standard operators up to its scores, and the client's part; errors as for
    `load_model`."""
    return divide(with_softmax(standardised(load_model(model))))


def divide(model: onnx.ModelProto) -> tuple[onnx.ModelProto, ClientPart | None]:
    """Split a model into the part up to its scores and the client's part.

    The client gets nodes such as Softmax and ArgMax, or a sigmoid at the very end. It also gets all nodes
    that follow them, provided these are such nodes or elementwise, further nodes until its part reads only
    one value, and activations directly before that.

    Args:
        model: without ai.onnx.ml operators other than those that a client runs.

    Returns:
        The model itself and None if there is no such end.
    """
    flow = _Flow(model)
    end = flow.end()
    if end is None:
        return model, None
    before = flow.before(end)
    return before, flow.behind(end, before.graph.output[0])


class _Flow:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.graph = model, model.graph
        self.nodes = list(model.graph.node)
        self.maker = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        constants = {tensor.name for tensor in self.graph.initializer}
        self.inputs = {value.name for value in self.graph.input} - constants
        self.outputs = {value.name for value in self.graph.output}
        self.encrypted = set(self.inputs)
        self.readers: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for name in node.input:
                self.readers.setdefault(name, []).append(index)
            if node.op_type not in ("Shape", "Size") and any(name in self.encrypted for name in node.input):
                self.encrypted.update(name for name in node.output if name)

    def end(self) -> _End | None:
        """Return the nodes for the client, if there are any."""
        late: set[int] = set()
        for index, node in enumerate(self.nodes):
            if self._only_client(node) and (behind := self._behind(index)) is not None:
                late |= behind
        best: _End | None = None
        while late:
            cut = self._cut(late)
            last = max(cut, key=lambda name: self.maker.get(name, -1), default=None)
            if last is None or last not in self.maker:
                break  # the model's own input
            if len(cut) == 1:
                count = sum(self.nodes[index].op_type in ACTIVATIONS for index in late)
                if best is None or count > best.activations:
                    best = _End(frozenset(late), last, count)
            maker = self.maker[last]
            if self.nodes[maker].op_type not in (ALLOWED if best is None else ELEMENTWISE):
                break
            late = late | {maker}
        return best

    def _only_client(self, node: onnx.NodeProto) -> bool:
        if not any(name in self.encrypted for name in node.input):
            return False
        if node.op_type == "Cast":
            return all(entry.i not in FLOATS for entry in node.attribute if entry.name == "to")
        if node.op_type == "Sigmoid":  # a probability, which nothing reads
            return node.output[0] in self.outputs and node.output[0] not in self.readers
        return node.op_type in ONLY_HERE

    def _behind(self, index: int) -> set[int] | None:
        """Return a node and all that follows it; None if a client cannot run some of it."""
        result, waiting = set(), [index]
        while waiting:
            current = waiting.pop()
            if self.nodes[current].op_type not in ALLOWED:
                return None
            if current not in result:
                result.add(current)
                waiting += [r for name in self.nodes[current].output for r in self.readers.get(name, [])]
        return result

    def _cut(self, late: Iterable[int]) -> set[str]:
        """Return the encrypted values that the client's nodes read and the server's nodes make, or that the
        model returns."""
        members = {name for index in late for name in self.nodes[index].output}
        read = {name for index in late for name in self.nodes[index].input}
        read |= self.outputs
        return (read & self.encrypted) - members

    def before(self, end: _End) -> onnx.ModelProto:
        """Return the model up to the scores."""
        kept = [node for index, node in enumerate(self.nodes) if index not in end.nodes]
        read = {name for node in kept for name in node.input}
        body = onnx.helper.make_graph(
            kept,
            self.graph.name,
            list(self.graph.input),
            [onnx.ValueInfoProto(name=end.scores)],
            [tensor for tensor in self.graph.initializer if tensor.name in read],
        )
        model = self._model(body)
        try:
            (inferred,) = onnx.shape_inference.infer_shapes(model).graph.output
        except onnx.shape_inference.InferenceError:
            return model  # the importer reports what is wrong
        if inferred.type.tensor_type.elem_type:
            model.graph.output[0].CopyFrom(inferred)
        return model

    def behind(self, end: _End, scores: onnx.ValueInfoProto) -> ClientPart:
        """Return the model from the scores on, with the constants that it needs."""
        target, nodes = set(end.nodes), set(end.nodes)
        while target:
            index = target.pop()
            for name in self.nodes[index].input:
                maker = self.maker.get(name)
                if maker is not None and maker not in nodes and name != end.scores:
                    nodes.add(maker)
                    target.add(maker)
        read = {name for index in nodes for name in self.nodes[index].input}
        outputs = [onnx.ValueInfoProto(name=value.name) for value in self.graph.output]
        body = onnx.helper.make_graph(
            [self.nodes[index] for index in sorted(nodes)],
            "client",
            [scores],
            outputs,
            [tensor for tensor in self.graph.initializer if tensor.name in read],
        )
        return ClientPart(self._model(body).SerializeToString(), ())

    def _model(self, body: onnx.GraphProto) -> onnx.ModelProto:
        return onnx.helper.make_model(
            body, opset_imports=self.model.opset_import, ir_version=self.model.ir_version
        )
