"""Splits a model where the client takes over: the end that has no encrypted form, from the scores on."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.compiler.front_ends.model_file import client_values, load_model, with_graph
from keywright.compiler.front_ends.operator_context import FLOATS
from keywright.compiler.front_ends.rewriting.classical import in_standard_operators
from keywright.compiler.front_ends.rewriting.decomposed_operators import with_softmax
from keywright.compiler.front_ends.rewriting.quantised import with_real_numbers
from keywright.errors.network import RefusalError
from keywright.program.arrays import Shape
from keywright.program.client.last_steps import ALLOWED, ELEMENTWISE, FLOAT, INTEGERS, ONLY_HERE, ClientPart

from .client_start import split_first_steps

SCORES = "keywright/scores"
"""Name of the client's input where it gets several scores, one behind the other."""

FREED = (ACTIVATIONS.keys() & ALLOWED) | {"Cast", "Identity", "Max", "Min", "ReduceMax", "ReduceMin"}
"""Operators before the client's steps that cost the server polynomials, or nothing."""


@dataclass(frozen=True, eq=False)
class ClientEnd:
    """The client's nodes, before the shapes of the scores are known.

    Attributes:
        model: with an input for each score, in the order of the outputs of the server's model.
        shapes: names of values that the nodes read and that follow from the shapes of the server's values;
            the importer knows them.
    """

    model: onnx.ModelProto
    shapes: frozenset[str]

    def part(self, scores: Sequence[Shape], known: Mapping[str, NDArray[Any]]) -> ClientPart:
        """Return the client's part for scores of these shapes.

        Args:
            scores: the shape of each, with the batch.
            known: the values that `shapes` names.
        """
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        graph.initializer.extend(numpy_helper.from_array(known[name], name) for name in sorted(self.shapes))
        if len(scores) == 1:
            return self._of_any_batch(model, tuple(scores[0]))
        nodes, ends = list[onnx.NodeProto](), np.cumsum([0, *(math.prod(shape) for shape in scores)])
        kinds = [value.type.tensor_type.elem_type or FLOAT for value in graph.input]
        kind = next((each for each in kinds if each not in INTEGERS), kinds[0])
        for index, (value, shape) in enumerate(zip(graph.input, scores, strict=True)):
            bounds = {"from": ends[index : index + 1], "to": ends[index + 1 : index + 2], "axis": [1]}
            # One row for a sample, so that clients run many at once.
            rows = (-1, *shape[1:]) if tuple(shape[:1]) == (1,) else shape
            constants = {**bounds, "shape": rows}
            names = {name: f"{SCORES}/{index}/{name}" for name in constants}
            graph.initializer.extend(
                numpy_helper.from_array(np.asarray(array, np.int64), names[name])
                for name, array in constants.items()
            )
            own, name = value.type.tensor_type.elem_type or FLOAT, SCORES
            steps = [("Slice", [names[each] for each in bounds]), ("Reshape", [names["shape"]])]
            if own in INTEGERS and kind not in INTEGERS:
                steps.append(("Round", []))
            for operator, more in steps:
                name, source = f"{SCORES}/{index}/{operator}", name
                nodes.append(helper.make_node(operator, [source, *more], [name]))
            if own != kind:
                nodes.append(helper.make_node("Cast", [name], [f"{name}/cast"], to=own))
            nodes[-1].output[0] = value.name
        rest = list(graph.node)
        del graph.node[:], graph.input[:]
        graph.node.extend([*nodes, *rest])
        total = (1, int(ends[-1]))
        graph.input.append(helper.make_tensor_value_info(SCORES, kind, total))
        return self._of_any_batch(model, total)

    def _of_any_batch(self, model: onnx.ModelProto, scores: Shape) -> ClientPart:
        """Return the part of a model. A Reshape to a shape that was computed for one sample leaves the first
        axis as it is, so that clients run many samples at once."""
        shapes = ClientPart(model.SerializeToString(), scores).shapes
        sizes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type != "Reshape" or node.input[1] not in self.shapes:
                continue
            source, size = shapes.get(node.input[0], ()), sizes[node.input[1]]
            if source[:1] == (1,) and size.tolist()[:1] == [1]:
                name = f"{node.output[0]}/size"
                kept = np.concatenate([[0], size[1:]]).astype(np.int64)
                model.graph.initializer.append(numpy_helper.from_array(kept, name))
                node.input[1] = name
        return ClientPart(model.SerializeToString(), scores)


@dataclass(frozen=True)
class _End:
    """Nodes for the client, by index; the values that they read; activations among them."""

    nodes: frozenset[int]
    scores: tuple[str, ...]
    activations: int


def load_parts(
    model: onnx.ModelProto | str | Path | bytes, samples: Any = None
) -> tuple[onnx.ModelProto, ClientEnd | None]:
    """Return a model in standard operators from the features up to its scores, and the client's end.

    Args:
        samples: calibration data; see `client_start.split_first_steps`.

    Raises:
        RefusalError: as for `load_model`, `split_first_steps` and `split_last_steps`.
    """
    real, _ = with_real_numbers(load_model(model), samples)
    return split_last_steps(with_softmax(split_first_steps(in_standard_operators(real), samples).model))


def split_last_steps(model: onnx.ModelProto) -> tuple[onnx.ModelProto, ClientEnd | None]:
    """Split a model into the part up to its scores and the client's end.

    The client gets nodes such as Softmax and ArgMax, or a sigmoid at the very end. It also gets all nodes
    that follow them, provided these are such nodes or elementwise, and activations directly before that. It
    gets further nodes without weights until its part reads only one value; where there are several scores,
    as those of several heads, it reads them all.

    Args:
        model: without ai.onnx.ml operators other than those that a client runs.

    Returns:
        The model itself and None if there is no such end.

    Raises:
        RefusalError: the end reads weights that the encrypted part multiplies by.
    """
    flow = _Flow(model)
    end = flow.end()
    if end is None:
        return model, None
    before = flow.before(end)
    return before, flow.behind(end, before.graph.output)


class _Flow:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.graph = model, model.graph
        self.nodes = list(model.graph.node)
        self.maker = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self.inputs = {value.name for value in self.graph.input} - set(self.constants)
        self.outputs = {value.name for value in self.graph.output}
        self.named = client_values(model)
        self.encrypted = set(self.inputs)
        self.following = set(self.inputs)
        """Values that depend on the input, if only by its shape."""
        self.readers: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for name in node.input:
                self.readers.setdefault(name, []).append(index)
            created = [name for name in node.output if name]
            if node.op_type not in ("Shape", "Size") and any(name in self.encrypted for name in node.input):
                self.encrypted.update(created)
            if any(name in self.following for name in node.input):
                self.following.update(created)

    def end(self) -> _End | None:
        """Return the nodes for the client, if there are any."""
        first: set[int] = set()
        for index, node in enumerate(self.nodes):
            if self._only_client(node) and (behind := self._behind(index)) is not None:
                first |= behind
        result = self._of_one_score(first) or self._of_scores(first)
        return result if result is None or result.nodes or len(result.scores) > 1 else None

    def _of_one_score(self, late: set[int]) -> _End | None:
        """Return the end that reads one value, with as many activations as it can have."""
        best: _End | None = None
        while late:
            cut = self._cut(late)
            last = max(cut, key=lambda name: self.maker.get(name, -1), default=None)
            if last is None or last not in self.maker:
                break  # the model's own input
            if len(cut) == 1:
                count = sum(self.nodes[index].op_type in ACTIVATIONS for index in late)
                if best is None or count > best.activations:
                    best = _End(frozenset(late), (last,), count)
            maker = self.maker[last]
            if self.nodes[maker].op_type not in (ALLOWED if best is None else ELEMENTWISE):
                break
            if self._weighted(maker):
                break
            late = late | {maker}
        return best

    def _of_scores(self, late: set[int]) -> _End | None:
        """Return the end that reads several values, with the operators of `FREED` directly before it."""
        while True:
            cut = self._cut(late)
            if not cut or not cut <= set(self.maker):
                return None
            makers = {self.maker[name] for name in cut if late}
            more = [
                index
                for index in makers
                if self.nodes[index].op_type in FREED
                and not self._weighted(index)
                and len(self._cut(late | {index})) <= len(cut)
                and self._cut(late | {index}) <= set(self.maker)
            ]
            if not more:
                scores = tuple(sorted(cut, key=lambda name: self.maker[name]))
                return _End(frozenset(late), scores, 0)
            late = late | set(more)

    def _weighted(self, index: int) -> bool:
        """Whether a node has weights: constant floating-point operands of more than one element."""
        for name in self.nodes[index].input:
            if name in self.following or not name:
                continue
            tensor = self.constants.get(name)
            if tensor is None:
                return True  # computed of constants
            if tensor.data_type in FLOATS and math.prod(tensor.dims) > 1:
                return True
        return False

    def _only_client(self, node: onnx.NodeProto) -> bool:
        if not any(name in self.encrypted for name in node.input):
            return False
        if self.named.intersection(node.output):
            return True
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
        created = {name for index in late for name in self.nodes[index].output}
        read = {name for index in late for name in self.nodes[index].input}
        read |= self.outputs
        return (read & self.encrypted) - created

    def before(self, end: _End) -> onnx.ModelProto:
        """Return the model up to the scores."""
        kept = [node for index, node in enumerate(self.nodes) if index not in end.nodes]
        read = {name for node in kept for name in node.input}
        body = onnx.helper.make_graph(
            kept,
            self.graph.name,
            list(self.graph.input),
            [onnx.ValueInfoProto(name=name) for name in end.scores],
            [tensor for tensor in self.graph.initializer if tensor.name in read],
        )
        model = with_graph(self.model, body)
        try:
            inferred = onnx.shape_inference.infer_shapes(model).graph.output
        except onnx.shape_inference.InferenceError:
            return model  # the importer reports what is wrong
        for score, value in zip(model.graph.output, inferred, strict=True):
            if value.type.tensor_type.elem_type:
                score.CopyFrom(value)
        return model

    def behind(self, end: _End, scores: Sequence[onnx.ValueInfoProto]) -> ClientEnd:
        """Return the model from the scores on, with the constants that it needs. Nodes that compute from the
        shape of a server's value stay with the server: their results are constants."""
        created = {name for index in end.nodes for name in self.nodes[index].output}
        nodes, shapes, used = set(end.nodes), set[str](), set[str]()
        waiting = [name for index in end.nodes for name in self.nodes[index].input] + sorted(self.outputs)
        while waiting:
            name = waiting.pop()
            maker = self.maker.get(name)
            if not name or name in created or name in end.scores:
                continue
            if name in self.following:
                shapes.add(name)
            elif maker is None:
                used.add(name)
            elif maker not in nodes:
                nodes.add(maker)
                waiting += self.nodes[maker].input
        self._require_own(used, nodes)
        outputs = [onnx.ValueInfoProto(name=value.name) for value in self.graph.output]
        body = onnx.helper.make_graph(
            [self.nodes[index] for index in sorted(nodes)],
            "client",
            list(scores),
            outputs,
            [tensor for tensor in self.graph.initializer if tensor.name in used],
        )
        return ClientEnd(with_graph(self.model, body), frozenset(shapes))

    def _require_own(self, used: set[str], nodes: set[int]) -> None:
        """Refuse an end that reads weights of the encrypted part."""
        kept = set[str]()
        waiting = [
            name
            for index, node in enumerate(self.nodes)
            if index not in nodes and any(name in self.encrypted for name in node.input)
            for name in node.input
        ]
        while waiting:
            name = waiting.pop()
            if name not in self.following and name not in kept:
                kept.add(name)
                waiting += self.nodes[self.maker[name]].input if name in self.maker else []
        for name in sorted(used & kept):
            tensor = self.constants.get(name)
            if tensor is not None and tensor.data_type in FLOATS and math.prod(tensor.dims) > 1:
                raise RefusalError(
                    f"the last steps, which the client computes, read the weights {name!r} of shape "
                    f"{tuple(tensor.dims)}, which the encrypted part multiplies by, so the client would get "
                    "them; return the value before these steps, or give them weights of their own",
                    code="client",
                    name=name,
                )
