"""From an ONNX model to a `Graph`, refusing what has no encrypted form."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from keywright.nn.errors import (
    DynamicShapeError,
    InvalidModelError,
    RefusalError,
    UnsupportedAttributeError,
    UnsupportedOperatorError,
)
from keywright.nn.graph.graph import Graph, Input, Linear, Shape
from keywright.nn.graph.sparse import SparseMatrix

from .operators import OPERATORS, Constant, EncryptedValue, Operand, OperatorContext

ADVICE = {
    "MaxPool": "train with AveragePool, which is linear",
    "Softmax": "remove it: the largest score stays the largest",
    "LogSoftmax": "remove it: the largest score stays the largest",
    "ArgMax": "remove it: the client takes the maximum after decryption",
    "LayerNormalization": "train with BatchNormalization, which is linear at inference",
}


def load_model(model: onnx.ModelProto | str | Path | bytes) -> onnx.ModelProto:
    """The model as a protobuf object, from a path, its bytes, or itself; checked by onnx.

    Raises:
        InvalidModelError: not an ONNX model, or one that contradicts the standard.
    """
    try:
        if isinstance(model, onnx.ModelProto):
            loaded = model
        elif isinstance(model, bytes):
            loaded = onnx.load_model_from_string(model)
        else:
            loaded = onnx.load(model)
        onnx.checker.check_model(loaded)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise InvalidModelError(f"not a valid ONNX model: {error}") from error
    return loaded


def sample_shape(model: onnx.ModelProto) -> Sequence[object]:
    """Declared extents of a sample of a model's first input, without the batch dimension: sizes, names, or 0
    where they are unknown."""
    constants = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in constants:
            return [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim][1:]
    return []


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
        self.opsets = {entry.domain: entry.version for entry in model.opset_import}

    def run(self) -> tuple[Graph, list[RefusalError]]:
        body = self.model.graph
        for tensor in body.initializer:
            self.values[tensor.name] = Constant(np.asarray(onnx.numpy_helper.to_array(tensor)))
        self._check_finite()
        inputs = [value for value in body.input if value.name not in self.values]
        if len(inputs) != 1 or len(body.output) != 1:
            self.reasons.append(
                InvalidModelError(
                    f"the model has {len(inputs)} inputs and {len(body.output)} outputs, not one each"
                )
            )
        self.inferred = self._inferred_shapes()
        for value in inputs:
            shape = self._declared_shape(value)
            number = self.graph.add(Input(shape))
            self.values[value.name] = EncryptedValue(number, shape)
        for index, node in enumerate(body.node):
            self._node(node, node.name or f"{node.op_type}_{index}")
        for value in body.output[:1]:
            result = self.values.get(value.name)
            if isinstance(result, EncryptedValue):
                self.graph.output = result.number
            elif not self.reasons:
                self.reasons.append(InvalidModelError(f"output {value.name!r} does not depend on the input"))
        return self.graph, self.reasons

    def _check_finite(self) -> None:
        for name, value in self.values.items():
            data = cast(Constant, value).array
            if np.issubdtype(data.dtype, np.floating) and not np.isfinite(data).all():
                self.reasons.append(InvalidModelError(f"weights {name!r} hold values that are not finite"))

    def _inferred_shapes(self) -> dict[str, Shape]:
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model).graph
        except onnx.shape_inference.InferenceError as error:
            self.reasons.append(InvalidModelError(f"shapes do not fit: {error}"))
            return {}
        found: dict[str, Shape] = {}
        for value in [*inferred.value_info, *inferred.output]:
            sizes = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim][1:]
            if all(size > 0 for size in sizes):
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
            self.values[name] = Constant(np.asarray(result))
