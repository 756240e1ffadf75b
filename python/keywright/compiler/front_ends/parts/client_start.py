"""Splits a model where encryption begins: the start that has no encrypted form, and several inputs."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from keywright.compiler.front_ends.model_file import CLIENT, client_values, columns_in, with_graph
from keywright.compiler.front_ends.operator_context import FLOATS
from keywright.compiler.front_ends.reference import Reference
from keywright.errors.engine import EncodeError
from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import dynamic_shape, no_batch_axis
from keywright.program.arrays import Shape
from keywright.program.client.first_steps import BEFORE, MAX_BYTES, FirstSteps
from keywright.program.client.last_steps import ALLOWED, ONLY_HERE
from keywright.program.client.samples import Kind, SampleInput, first_samples
from keywright.program.client.small_model import SmallModel

from . import truth_values
from .embeddings import LOOK_UPS, embedding_nodes
from .expansions import COMPARED, skip_expansions

FEATURES = "keywright/features"
"""Name of the server's input if the client gives several values, one behind the other."""

TRIED = 8
"""Calibration samples on which it is tried whether the steps take several samples together."""

TREES = frozenset(["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"])
CLEAR = frozenset(
    [
        "FeatureVectorizer",
        "Imputer",
        "LabelEncoder",
        "OneHot",
        "OneHotEncoder",
        "StringNormalizer",
    ]
)
"""Operators that a start may have and nothing else."""

ENCRYPTED = COMPARED | frozenset([
    "ArrayFeatureExtractor", "LinearClassifier", "LogSoftmax", "LpNormalization", "Normalizer", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "SVMClassifier", "Softmax",
])  # fmt: skip
EITHER = (ONLY_HERE | {"IsInf", "Mod"}) - ENCRYPTED - CLEAR
"""Operators without an encrypted form that belong to the start if a matrix or the like follows."""

MOVING = frozenset([
    "Cast", "Concat", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
])  # fmt: skip
"""Operators without weights that join the client's values."""


@dataclass(frozen=True, eq=False)
class SplitModel:
    """A model behind its first steps.

    Attributes:
        model: takes the features; the model itself if there are no first steps.
        steps: what the client computes before; None if there are none.
    """

    model: onnx.ModelProto
    steps: FirstSteps | None


def split_first_steps(model: onnx.ModelProto, samples: Any = None) -> SplitModel:
    """Split a model into the client's first steps and the rest.

    The client gets the nodes that need values in the clear: encoders, imputers, look-ups by ids, roundings,
    and all that computes with texts or integers; what leads to them; and what joins their results.

    Args:
        samples: calibration data, from which axes that the model leaves open are taken.

    Raises:
        RefusalError: an axis is open and there are no samples; or a value that the client computes cannot be
            encrypted.
    """
    flow = _Flow(model, samples)
    nodes = flow.client_nodes()
    if not nodes and len(flow.used) <= 1 and not flow.columns and not isinstance(samples, Mapping):
        return SplitModel(flow.model, None)
    return flow.divided(nodes)


class _Flow:
    def __init__(self, model: onnx.ModelProto, samples: Any) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.graph, self.samples = self.model.graph, samples
        self.columns = columns_in(model)
        self.named = client_values(model)
        constants = {tensor.name for tensor in self.graph.initializer}
        self.inputs = {value.name: value for value in self.graph.input if value.name not in constants}
        if samples is not None and not self.columns:
            self._fix_axes()
        self._read()

    def _read(self) -> None:
        """Note who makes and who reads each value."""
        self.nodes = list(self.graph.node)
        self.maker = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self.data, self.following = set(self.inputs), set(self.inputs)
        self.readers: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for name in node.input:
                self.readers.setdefault(name, []).append(index)
            created = [name for name in node.output if name]
            if node.op_type not in ("Shape", "Size") and any(name in self.data for name in node.input):
                self.data.update(created)
            if any(name in self.following for name in node.input):
                self.following.update(created)
        read = {name for node in self.nodes for name in node.input}
        read |= {value.name for value in self.graph.output}
        # A table has all its columns, also those that no step reads.
        self.used = [name for name in self.inputs if name in read or self.columns]

    def _fix_axes(self) -> None:
        """Take open axes from the samples."""
        arrays = self.samples if isinstance(self.samples, Mapping) else None
        if arrays is None:
            if len(self.inputs) != 1:
                return
            arrays = dict.fromkeys(self.inputs, self.samples)
        for name, value in self.inputs.items():
            if name not in arrays:
                continue
            shape = np.shape(arrays[name])
            declared = value.type.tensor_type.shape
            if not value.type.tensor_type.HasField("shape"):
                declared.dim.extend([onnx.TensorShapeProto.Dimension(dim_param="batch") for _ in shape])
            sizes = tuple(axis.dim_value for axis in declared.dim)
            if sizes and 0 not in sizes and sizes == shape[1:]:
                raise no_batch_axis(name, sizes, calibrated=True)
            if len(declared.dim) == len(shape):
                for axis, size in zip(declared.dim[1:], shape[1:], strict=True):
                    if axis.dim_value <= 0:
                        axis.dim_value = size

    # The client's nodes

    def client_nodes(self) -> set[int]:
        """Return the client's nodes, by index."""
        types = self._types()
        forced = [index for index in range(len(self.nodes)) if self._forced(index, types)]
        if not forced and len(self.used) <= 1 and not self.columns:
            return set()
        self._fold_shapes()
        if skip_expansions(self.model, self.nodes, self.data, self._constant):
            self._read()
        types = self._types()
        outcome: set[int] = set()
        for index in range(len(self.nodes)):
            if self._forced(index, types) and (before := self._leading(index)) is not None:
                outcome |= before
        if TREES.intersection(node.op_type for node in self.nodes) and (outcome or len(self.used) > 1):
            for index, node in enumerate(self.nodes):
                if node.op_type in TREES and (before := self._leading(index)) is not None:
                    outcome |= before - {index}
        outcome |= embedding_nodes(self.nodes, outcome, self.data, self._times_read)
        return self._joined(outcome, types)

    def _types(self) -> dict[str, int]:
        """Return the types of values, as far as they are known."""
        outcome = {name: value.type.tensor_type.elem_type for name, value in self.inputs.items()}
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model).graph
        except (onnx.shape_inference.InferenceError, ValueError):
            return outcome
        for value in [*inferred.value_info, *inferred.output]:
            outcome.setdefault(value.name, value.type.tensor_type.elem_type)
        return outcome

    def _forced(self, index: int, types: Mapping[str, int]) -> bool:
        """Whether a node needs its operands in the clear, and is no last step."""
        node = self.nodes[index]
        operands = [name for name in node.input if name in self.data]
        if not operands or node.op_type in ("Shape", "Size"):
            return False
        if self.named.intersection(node.output):
            return self._leading(index) is not None
        if node.op_type in CLEAR or (node.op_type in LOOK_UPS and node.input[1] in self.data):
            return self._leading(index) is not None
        clear = [name for name in operands if types.get(name, 0) not in {*FLOATS, TensorProto.BOOL, 0}]
        cast = node.op_type == "Cast" and not any(
            entry.i in FLOATS for entry in node.attribute if entry.name == "to"
        )
        same = node.op_type == "Equal" and node.input[0] == node.input[1]
        either = cast or (node.op_type in EITHER and not same)
        if not clear and not either:
            return False
        return self._leading(index) is not None and self._served(index)

    def _leading(self, index: int) -> set[int] | None:
        """Return a node and all that it follows from; None if a client cannot run some of it."""
        outcome, waiting = set[int](), [index]
        while waiting:
            current = waiting.pop()
            node = self.nodes[current]
            if node.op_type not in (BEFORE | TREES if current == index else BEFORE):
                return None
            if current not in outcome:
                outcome.add(current)
                waiting += [self.maker[n] for n in node.input if n in self.following and n in self.maker]
        return outcome

    def _served(self, index: int) -> bool:
        """Whether something that only a server computes follows a node."""
        seen, waiting = set[int](), [index]
        while waiting:
            current = waiting.pop()
            if self.nodes[current].op_type not in ALLOWED | BEFORE:
                return True
            if current not in seen:
                seen.add(current)
                waiting += [r for name in self.nodes[current].output for r in self.readers.get(name, [])]
        return False

    def _joined(self, outcome: set[int], types: Mapping[str, int]) -> set[int]:
        """Return the client's nodes with those that join their results, and those that take a value of
        another type than floats from them.

        Raises:
            RefusalError: such a node cannot be run by clients.
        """
        outcome = set(outcome)
        several = len(self.used) > 1 or bool(self.columns)
        # Of a single input of numbers, a program computes truth values itself: see `approximating`.
        bits = len(self.used) > 1 or self._kind(self.used[0]) != "numbers"
        changed = True
        while changed:
            changed = False
            cut = self._cut(outcome)
            created = {name for index in outcome for name in self.nodes[index].output}
            for index, node in enumerate(self.nodes):
                operands = [name for name in node.input if name in self.data]
                if index in outcome or not operands or node.op_type in ("Shape", "Size"):
                    continue
                wrong = [name for name in operands if types.get(name, 1) not in FLOATS and name in cut]
                if bits and truth_values.is_mask(node, self._constant):
                    continue
                inside = set(operands) <= cut | created
                joins = inside and node.op_type in MOVING and (several or created.intersection(operands))
                # The client would encrypt the operand, too, where something else reads it.
                joins = joins and all(self._times_read(n) == 1 for n in created.intersection(operands))
                if (joins or wrong) and (before := self._leading(index)) is not None:
                    outcome |= before
                    changed = True
                    break
                if bits and all(types.get(name) == TensorProto.BOOL for name in wrong):
                    continue
                if wrong:
                    raise RefusalError(
                        f"node {node.name or node.op_type!r}: {node.op_type} takes {wrong[0]!r}, which the "
                        "client computes and which holds no floating-point numbers, so it cannot be "
                        "encrypted; cast it to floats in the model, or, if it is an id, look it up without "
                        f"{node.op_type}",
                        code="client",
                        node=node.name,
                    )
        return outcome

    def _cut(self, outcome: Iterable[int]) -> set[str]:
        """Return the values that the client has and the server reads, or the model returns."""
        outcome = set(outcome)
        created = {name for index in outcome for name in self.nodes[index].output} | set(self.used)
        read = {
            name
            for index, node in enumerate(self.nodes)
            if index not in outcome and node.op_type not in ("Shape", "Size")
            for name in node.input
        }
        read |= {value.name for value in self.graph.output}
        return created & read & self.data

    # Shapes

    def _fold_shapes(self) -> None:
        """Replace values that follow from constants and the shapes of inputs alone by constants.

        Raises:
            RefusalError: an axis is open.
        """
        known: dict[str, NDArray[Any]] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in self.graph.initializer
        }
        shapes = {name: np.asarray((1, *self.shape_of(name)), np.int64) for name in self.used}
        reference, kept = Reference(self.model), list[onnx.NodeProto]()
        folded = dict[str, NDArray[Any]]()
        for node in self.nodes:
            names = [name for name in node.input if name]
            if node.op_type in ("Shape", "Size") and node.input[0] in shapes:
                results = [_shape_result(node, shapes[node.input[0]])]
            elif names and all(n in known or n in folded for n in names):
                feeds = {name: folded.get(name, known.get(name)) for name in names}
                results = reference.run(node, node.name or node.op_type, feeds)  # type: ignore[arg-type]
            else:
                if not names and node.op_type == "Constant":
                    value = reference.run(node, node.name or node.op_type, {})
                    known[node.output[0]] = value[0]
                kept.append(node)
                continue
            folded.update(zip([name for name in node.output if name], results, strict=True))
        if folded:
            del self.graph.node[:]
            self.graph.node.extend(kept)
            self.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in folded.items())
            self._read()

    def shape_of(self, name: str) -> Shape:
        """Return the shape of a sample of an input.

        Raises:
            RefusalError: an axis is open.
        """
        dimensions = list(self.inputs[name].type.tensor_type.shape.dim)
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in dimensions]
        fixed = tuple(size for size in sizes[1:] if isinstance(size, int) and size > 0)
        if not sizes or len(fixed) < len(sizes) - 1:
            raise dynamic_shape(name, sizes)
        return fixed

    # Both halves

    def divided(self, nodes: set[int]) -> SplitModel:
        """Return both halves."""
        for name in self._cut(nodes) & set(self.used):
            nodes = nodes | self._selected(name, nodes)
        cut = sorted(self._cut(nodes), key=lambda name: (self.maker.get(name, -1), name))
        if not cut:
            raise RefusalError(
                "the model returns what its first steps, which the client computes, give: nothing is left to "
                "encrypt",
                code="client",
            )
        inputs = tuple(SampleInput(name, self.shape_of(name), self._kind(name)) for name in self.used)
        chains = {
            name: truth_values.before(name, self.nodes, self.maker, nodes, self.following) for name in cut
        }
        between = [name for chain in chains.values() for name, _ in chain]
        data, values, every = self._run(nodes, inputs, [*cut, *between])
        moved = nodes.difference(
            *(
                truth_values.smallest(chain, values[name].size, values)
                for name, chain in chains.items()
                if values[name].dtype == bool
            )
        )
        if moved != nodes or between:
            nodes = moved
            cut = sorted(self._cut(nodes), key=lambda name: (self.maker.get(name, -1), name))
            data, values, every = self._run(nodes, inputs, cut)
        shapes = {name: every[name] for name in cut}
        for name in cut:
            if values[name].dtype.kind not in "fb" and name in self.maker:
                raise RefusalError(
                    f"the client computes {name!r}, which holds no floating-point numbers, so it cannot be "
                    "encrypted; cast it to floats in the model",
                    code="client",
                )
        whole = len(cut) == 1 and len(shapes[cut[0]]) > 1 and shapes[cut[0]][0] == 1
        whole = whole and values[cut[0]].dtype != bool
        shape = shapes[cut[0]][1:] if whole else (sum(math.prod(shapes[name]) for name in cut),)
        if len(data) > MAX_BYTES:
            raise RefusalError(
                f"the client's first steps take {len(data)} bytes, most of them tables, and clients read at "
                f"most {MAX_BYTES}; look rows up before, and compile the model behind the table",
                code="client",
            )
        steps = FirstSteps(data, inputs, shape, columns=self.columns)
        if self._together(steps):
            steps = FirstSteps(data, inputs, shape, True, self.columns)
        kinds = {name: values[name].dtype for name in cut}
        rest = self._rest(nodes, kinds, every, whole=whole)
        return SplitModel(rest, steps)

    def _run(
        self, nodes: set[int], inputs: tuple[SampleInput, ...], outputs: Iterable[str]
    ) -> tuple[bytes, Mapping[str, NDArray[Any]], Mapping[str, Shape]]:
        """Return a client's model of some nodes, its outputs for a sample of zeros, and the shapes of all its
        values."""
        body = helper.make_graph(
            [self.nodes[index] for index in sorted(nodes | self._constants_of(nodes))],
            "client",
            [self._alone(name) for name in self.used],
            [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs)],
            [t for t in self.graph.initializer if t.name in self._read_by(nodes)],
        )
        data = self._model(body).SerializeToString()
        samples = {each.name: _example(each, self.inputs[each.name]) for each in inputs}
        every = dict[str, Shape]()
        model = SmallModel(data, "the client's first steps", BEFORE, len(data))
        return data, model.run(samples, every), every

    def _selected(self, name: str, nodes: set[int]) -> set[int]:
        """Let the client give only those columns of an input that the server reads: others may hold gaps,
        which the client fills. Return the node that selects them, if any."""
        constants = {tensor.name: tensor for tensor in self.graph.initializer}
        readers = [
            node
            for index, node in enumerate(self.nodes)
            if index not in nodes and name in node.input and node.op_type not in ("Shape", "Size")
        ]
        columns: list[NDArray[np.int64]] = []
        for node in readers:
            axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
            if node.op_type != "Gather" or axis != 1 or node.input[1] not in constants:
                return set()
            columns.append(numpy_helper.to_array(constants[node.input[1]]))
        if len(self.shape_of(name)) != 1 or name in {value.name for value in self.graph.output}:
            return set()
        width = self.shape_of(name)[0]
        used = np.unique(np.concatenate([np.ravel(each) % width for each in columns]))
        if len(used) == width:
            return set()
        own = f"{name}/used"
        for number, (node, each) in enumerate(zip(readers, columns, strict=True)):
            places = np.asarray(np.searchsorted(used, each % width), np.int64)
            self.graph.initializer.append(numpy_helper.from_array(places, f"{own}/{number}"))
            node.input[:] = [own, f"{own}/{number}"]
        self.graph.initializer.append(numpy_helper.from_array(used.astype(np.int64), f"{own}/columns"))
        self.graph.node.append(helper.make_node("Gather", [name, f"{own}/columns"], [own], own, axis=1))
        self._read()
        return {len(self.nodes) - 1}

    def _times_read(self, name: str) -> int:
        """Return how often a value is read, as an output of the model, too."""
        return len(self.readers.get(name, [])) + [value.name for value in self.graph.output].count(name)

    def _constant(self, name: str) -> NDArray[Any] | None:
        """Return a stored constant or the value of a Constant node; None for other values."""
        stored = next((tensor for tensor in self.graph.initializer if tensor.name == name), None)
        if stored is None and (index := self.maker.get(name)) is not None:
            node = self.nodes[index]
            stored = next((entry.t for entry in node.attribute if node.op_type == "Constant"), None)
        return None if stored is None else numpy_helper.to_array(stored)

    def _constants_of(self, nodes: set[int]) -> set[int]:
        """Return the nodes that compute constants for some nodes."""
        outcome, waiting = set[int](), [name for index in nodes for name in self.nodes[index].input]
        while waiting:
            maker = self.maker.get(waiting.pop())
            if maker is not None and maker not in nodes and maker not in outcome:
                outcome.add(maker)
                waiting += self.nodes[maker].input
        return outcome

    def _read_by(self, nodes: set[int]) -> set[str]:
        return {name for index in nodes | self._constants_of(nodes) for name in self.nodes[index].input}

    def _kind(self, name: str) -> Kind:
        kind = self.inputs[name].type.tensor_type.elem_type
        if kind == TensorProto.STRING:
            return "text"
        return "numbers" if kind in FLOATS else "integers"

    def _alone(self, name: str) -> onnx.ValueInfoProto:
        """Return an input for one sample."""
        kind = self.inputs[name].type.tensor_type.elem_type
        return helper.make_tensor_value_info(name, kind, (1, *self.shape_of(name)))

    def _together(self, steps: FirstSteps) -> bool:
        """Whether the steps give the same for several calibration samples together as for each.

        Raises:
            EncodeError: the samples are of another shape or kind.
        """
        if self.samples is None:
            return False
        few = first_samples(self.samples, TRIED)
        alone, single = steps.features(few)
        if single or len(alone) < 2:
            return False
        try:
            both, _ = FirstSteps(steps.data, steps.inputs, steps.shape, True, steps.columns).features(few)
        except EncodeError:
            return False
        return np.array_equal(alone, both, equal_nan=True)

    def _rest(
        self,
        nodes: set[int],
        kinds: Mapping[str, np.dtype[Any]],
        every: Mapping[str, Shape],
        *,
        whole: bool,
    ) -> onnx.ModelProto:
        """Return the server's half, with the client's values as its input.

        Args:
            kinds: types of the values that the client gives.
            every: shapes of all values of the client.
        """
        shapes = {name: every[name] for name in kinds}
        kept = [node for index, node in enumerate(self.nodes) if index not in nodes]
        created = {name for index in nodes for name in self.nodes[index].output} | set(self.used)
        known, rest = list[onnx.TensorProto](), list[onnx.NodeProto]()
        for node in kept:
            if node.op_type in ("Shape", "Size") and node.input[0] in created:
                outcome = _shape_result(node, np.asarray(every[node.input[0]], np.int64))
                known.append(numpy_helper.from_array(outcome, node.output[0]))
            else:
                rest.append(node)
        before: list[onnx.NodeProto] = []
        kind = helper.np_dtype_to_tensor_dtype(max(kinds.values()))
        kind = kind if kind in FLOATS else TensorProto.FLOAT
        if whole:
            (name,) = shapes
            source = helper.make_tensor_value_info(name, kind, ("batch", *shapes[name][1:]))
        else:
            ends = np.cumsum([0, *(math.prod(shape) for shape in shapes.values())])
            source = helper.make_tensor_value_info(FEATURES, kind, ("batch", int(ends[-1])))
            for index, (name, shape) in enumerate(shapes.items()):
                parts: dict[str, Any] = {
                    "from": ends[index : index + 1],
                    "to": ends[index + 1 : index + 2],
                    "axis": [1],
                }
                names = {
                    each: f"{FEATURES}/{index}/{each}" for each in (*parts, "shape", "values", "restored")
                }
                arrays = [*parts.items(), ("shape", shape)]
                known += [numpy_helper.from_array(np.asarray(a, np.int64), names[each]) for each, a in arrays]
                sliced = [FEATURES, names["from"], names["to"], names["axis"]]
                own = helper.np_dtype_to_tensor_dtype(kinds[name])
                own = own if own in {*FLOATS, TensorProto.BOOL} else TensorProto.FLOAT
                before += [
                    helper.make_node("Slice", sliced, [names["values"]]),
                    helper.make_node("Reshape", [names["values"], names["shape"]], [names["restored"]]),
                    helper.make_node("Cast", [names["restored"]], [name], to=own),
                ]
        read = {name for node in rest for name in node.input} | {value.name for value in self.graph.output}
        body = helper.make_graph(
            [*before, *rest],
            self.graph.name,
            [source],
            list(self.graph.output),
            [*known, *(tensor for tensor in self.graph.initializer if tensor.name in read)],
        )
        return self._model(body)

    def _model(self, body: onnx.GraphProto) -> onnx.ModelProto:
        model = with_graph(self.model, body)
        helper.set_model_props(model, {CLIENT: json.dumps(sorted(self.named))} if self.named else {})
        return model


def _shape_result(node: onnx.NodeProto, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the result of Shape or Size for an operand of these sizes."""
    if node.op_type == "Size":
        return np.asarray(sizes.prod(), np.int64)
    ends = {entry.name: entry.i for entry in node.attribute}
    return sizes[ends.get("start", 0) : ends.get("end", len(sizes))]


def _example(value: SampleInput, declared: onnx.ValueInfoProto) -> NDArray[Any]:
    """Return a sample of an input: zeros, or empty texts."""
    if value.kind == "text":
        return np.full((1, *value.shape), "", object)
    kind = helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
    return np.zeros((1, *value.shape), kind)
