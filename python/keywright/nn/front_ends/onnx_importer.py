"""From an ONNX model to a `Graph`, refusing what has no encrypted form."""

import math
from typing import TypeVar, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from keywright.nn.errors import (
    DynamicShapeError,
    InvalidModelError,
    RefusalError,
    TooLargeError,
    UnsupportedAttributeError,
    UnsupportedOperatorError,
)
from keywright.nn.graph.graph import Graph, Input, Linear, Shape
from keywright.nn.graph.sparse import SparseMatrix
from keywright.nn.limits import (
    MAX_CONSTANTS,
    MAX_ELEMENTS,
    require_at_most,
    require_elements,
    shown_shape,
)

from .operators import OPERATORS, Constant, EncryptedValue, Operand, OperatorContext

Result = TypeVar("Result")

MAX_RANK = 1 << 10
"""Integers of a constant that may be sizes."""

ADVICE = {
    "MaxPool": "train with AveragePool, which is linear",
    "Softmax": "remove it: the largest score stays the largest",
    "LogSoftmax": "remove it: the largest score stays the largest",
    "ArgMax": "remove it: the client takes the maximum after decryption",
    "LayerNormalization": "train with BatchNormalization, which is linear at inference",
}


def import_model(model: onnx.ModelProto) -> tuple[Graph, list[RefusalError]]:
    """The model's graph and every reason why it cannot be compiled.

    A node that is refused is replaced by a layer without weights of the shape that ONNX infers, so that what
    follows is still examined; a graph with reasons is good for counting levels only.
    """
    return _Importer(model).run()


class _Importer:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.graph = Graph()
        self.reasons: list[RefusalError] = []
        self.values: dict[str, Operand] = {}
        self.computed = 0
        self.opsets = {entry.domain: entry.version for entry in model.opset_import}

    def run(self) -> tuple[Graph, list[RefusalError]]:
        body = self.model.graph
        for tensor in body.initializer:
            try:
                self._constant(tensor.name, np.asarray(onnx.numpy_helper.to_array(tensor)))
            except (ValueError, TypeError, MemoryError) as error:
                shape = shown_shape(list(tensor.dims))
                reason = InvalidModelError(
                    f"weights {tensor.name!r} do not have their shape {shape}: {error}"
                )
                self.reasons.append(reason)
        inputs = [value for value in body.input if value.name not in self.values]
        if len(inputs) != 1 or len(body.output) != 1:
            self.reasons.append(
                InvalidModelError(
                    f"the model has {len(inputs)} inputs and {len(body.output)} outputs, not one each"
                )
            )
        self.inferred = self._inferred_shapes()
        for value in inputs:
            try:
                declared = self._declared_shape(value)
            except TooLargeError as refusal:
                self.reasons.append(refusal)
                return self.graph, self.reasons
            number = self.graph.add(Input(declared))
            self.values[value.name] = EncryptedValue(number, declared)
        for index, node in enumerate(body.node):
            self._node(node, node.name or f"{node.op_type}_{index}")
        for value in body.output[:1]:
            result = self.values.get(value.name)
            if isinstance(result, EncryptedValue):
                self.graph.output = result.number
            elif not self.reasons:
                self.reasons.append(InvalidModelError(f"output {value.name!r} does not depend on the input"))
        return self.graph, self.reasons

    def _constant(self, name: str, array: NDArray[np.generic]) -> None:
        """Note a constant, and what is wrong with it; the rest of the model is examined with zeros then."""
        wrong = ""
        if array.dtype.kind == "c":
            wrong = "are complex numbers"
        elif array.dtype.kind not in "biuOSUT" and not np.isfinite(np.asarray(array, np.float64)).all():
            wrong = "hold values that are not finite"
        if wrong:
            self.reasons.append(InvalidModelError(f"weights {name!r} {wrong}"))
            array = np.zeros(array.shape)
        self.values[name] = Constant(array)

    def _inferred_shapes(self) -> dict[str, Shape]:
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model).graph
        except onnx.shape_inference.InferenceError as error:
            self.reasons.append(InvalidModelError(f"shapes do not fit: {error}"))
            return {}
        found: dict[str, Shape] = {}
        for value in [*inferred.value_info, *inferred.output]:
            sizes = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim][1:]
            if all(size > 0 for size in sizes) and math.prod(sizes) <= MAX_ELEMENTS:
                found[value.name] = tuple(sizes)
        return found

    def _declared_shape(self, value: onnx.ValueInfoProto) -> Shape:
        dimensions = list(value.type.tensor_type.shape.dim)
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in dimensions]
        fixed = sizes[1:]
        if not sizes or not all(isinstance(size, int) and size > 0 for size in fixed):
            self.reasons.append(DynamicShapeError(value.name, sizes))
            return tuple(size if isinstance(size, int) and size > 0 else 1 for size in fixed)
        if isinstance(sizes[0], int) and sizes[0] not in (0, 1):
            self.reasons.append(DynamicShapeError(value.name, sizes))
        require_elements(f"input {value.name!r}", cast(Shape, fixed))
        return cast(Shape, tuple(fixed))

    def _node(self, node: onnx.NodeProto, name: str) -> None:
        if any(source and source not in self.values for source in node.input):
            self._check_operator(node, name)  # an operand was refused and has no known shape
            return
        sources = [self.values[source] if source else None for source in node.input]
        try:
            if all(isinstance(source, Constant) or source is None for source in sources):
                self._fold(node, sources)
                return
            context = OperatorContext(self.graph, node, name, sources)
            handler = OPERATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            if handler is None:
                raise self._unsupported(node, name)
            self.values[node.output[0]] = handler(context)
            context.check_all_attributes_read()
        except RefusalError as reason:
            self.reasons.append(reason)
            self._stand_in(node, sources)

    def _check_operator(self, node: onnx.NodeProto, name: str) -> None:
        if node.op_type not in OPERATORS and node.op_type != "Constant":
            self.reasons.append(self._unsupported(node, name))

    def _unsupported(self, node: onnx.NodeProto, name: str) -> UnsupportedOperatorError:
        advice = ADVICE.get(node.op_type, f"supported are {', '.join(sorted(OPERATORS))}")
        return UnsupportedOperatorError(name, node.op_type, advice)

    def _stand_in(self, node: onnx.NodeProto, sources: list[Operand | None]) -> None:
        source = next((s for s in sources if isinstance(s, EncryptedValue)), None)
        shape = self.inferred.get(node.output[0])
        if source is None or shape is None:
            return
        size = int(np.prod(shape, dtype=np.int64))
        columns = int(np.prod(source.shape, dtype=np.int64))
        nothing = np.zeros(0, np.int64)
        matrix = SparseMatrix((size, columns), nothing, nothing, np.zeros(0))
        number = self.graph.add(Linear(shape, (source.number,), (matrix,), np.zeros(size)))
        self.values[node.output[0]] = EncryptedValue(number, shape)

    def _fold(self, node: onnx.NodeProto, sources: list[Operand | None]) -> None:
        """Compute a node of constants with ONNX's reference implementation."""
        names = [name for name, source in zip(node.input, sources, strict=True) if source is not None]
        body = onnx.helper.make_graph(
            [node],
            "constant",
            [onnx.ValueInfoProto(name=name) for name in names],
            [onnx.ValueInfoProto(name=name) for name in node.output],
        )
        opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        feeds: dict[str, NDArray[np.generic]] = {
            name: source.array
            for name, source in zip(node.input, sources, strict=True)
            if isinstance(source, Constant)
        }
        self._require_small(node, body, opsets)
        try:
            results = ReferenceEvaluator(onnx.helper.make_model(body, opset_imports=opsets)).run(None, feeds)
        except Exception as error:
            raise UnsupportedAttributeError(
                node.name or node.op_type,
                node.op_type,
                "constant operands",
                error,
                "operands that can be folded",
            ) from error
        for name, result in zip(node.output, cast(list[NDArray[np.generic]], results), strict=True):
            self._constant(name, np.asarray(result))

    def _require_small(
        self, node: onnx.NodeProto, body: onnx.GraphProto, opsets: list[onnx.OperatorSetIdProto]
    ) -> None:
        """Refuse to compute a constant whose shape is too large, or cannot be told before it is computed.

        Raises:
            UnsupportedAttributeError, TooLargeError: which of both.
        """
        name = node.name or node.op_type
        known = onnx.GraphProto()
        known.CopyFrom(body)
        for source in dict.fromkeys(node.input):
            value = self.values.get(source)
            if isinstance(value, Constant):
                known.initializer.append(_shape_only(source, value.array))
        model = onnx.helper.make_model(known, opset_imports=opsets)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True).graph
        except Exception as error:
            raise InvalidModelError(f"node {name!r}: shapes do not fit: {error}") from error
        for value_info in inferred.output:
            tensor = value_info.type.tensor_type
            sizes = [dimension.dim_value for dimension in tensor.shape.dim]
            if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
                raise UnsupportedAttributeError(
                    name, node.op_type, "constant operands", "of a result of unknown shape", "a known shape"
                )
            self.computed += math.prod(sizes)
            require_at_most(f"the constants up to node {name!r}", "elements", self.computed, MAX_CONSTANTS)


def _shape_only(name: str, array: NDArray[np.generic]) -> onnx.TensorProto:
    """A tensor for the inference of shapes: with its values where they can be sizes."""
    if (array.dtype.kind in "iu" and array.size <= MAX_RANK) or array.size == 1:
        return onnx.numpy_helper.from_array(array, name)
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.TensorProto(name=name, data_type=kind, dims=array.shape)
