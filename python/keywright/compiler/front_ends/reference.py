"""ONNX's reference implementation, for nodes whose results are known at compile time; and onnxruntime."""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.limits import MAX_CONSTANTS, require_at_most
from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.client.small_model import gather_elements, opset_of, own_step

Array = NDArray[Any]

MAX_RANK = 1 << 10
"""Maximum elements of a constant that may hold sizes."""

RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
"""Operators whose results are others in each run, so that no constant stands for them."""

INFERS = 15
"""Before this opset, the reference implementation normalises a batch as in training."""


def runtime_session(model: onnx.ModelProto) -> Any:
    """Return a session of onnxruntime for a model, with one thread and without its warnings.

    Raises:
        ImportError: it is not installed.
    """
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Reference:
    """Evaluates nodes of one model, within a budget of elements for all of them together.

    Args:
        opsets: of the model.
    """

    def __init__(self, opsets: list[onnx.OperatorSetIdProto]) -> None:
        self._opsets, self._computed = opsets, 0
        self.opset = opset_of(opsets)

    def run(self, node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> list[Array]:
        """Return a node's results.

        Args:
            name: for messages.
            feeds: its operands, by name.

        Raises:
            RefusalError: shapes do not match.
            RefusalError: the shape of a result is unknown before it is computed, or the
                reference implementation refuses the node.
            RefusalError: the results of this node and of all before are too large together.
        """
        _require_foldable(node, name, feeds)
        if len(feeds) == 1 and (own := own_step(node, self.opset)):
            return [own(node, *feeds.values())]
        if node.op_type == "GatherElements":
            try:
                return [gather_elements(node, *(feeds[each] for each in node.input))]
            except (IndexError, ValueError) as error:
                raise unsupported_attribute(
                    name, node.op_type, "operands", str(error), "indices of elements along the axis"
                ) from error
        if node.op_type == "LRN":
            raise unsupported_attribute(
                name, node.op_type, "operand 0", "a constant", "an encrypted value: fold constants first"
            )  # the reference implementation normalises as many channels as there are samples
        if node.op_type == "GlobalMaxPool":
            # The reference implementation takes the largest of all channels of a sequence.
            (images,) = feeds.values()
            return [images.max(axis=tuple(range(2, images.ndim)), keepdims=True)]
        if node.op_type == "ConvTranspose" and len(node.input) == 3 and node.input[2]:
            return self._transposed(node, name, feeds)
        feeds = _fitted(node, feeds)
        values = [onnx.ValueInfoProto(name=name) for name in feeds]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        body = onnx.helper.make_graph([node], "node", values, results)
        self._require_small(node, name, body, feeds)
        opsets = self._opsets
        if node.op_type == "BatchNormalization" and self.opset < INFERS:
            opsets = [onnx.helper.make_opsetid("", INFERS)]
        from onnx.reference import ReferenceEvaluator

        try:
            model = onnx.helper.make_model(body, opset_imports=opsets)
            with np.errstate(all="ignore"):
                result = ReferenceEvaluator(model).run(None, dict(feeds))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise unsupported_attribute(
                name, node.op_type, "these operands", text, "ones that ONNX's reference implementation takes"
            ) from error
        return [np.asarray(array) for array in cast(list[Array], result)]

    def _transposed(self, node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> list[Array]:
        """Run a transposed convolution, and add its biases: the reference implementation gives those of the
        first group to all groups."""
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        del plain.input[2:]
        (values,) = self.run(plain, name, {each: feeds[each] for each in plain.input})
        biases = feeds[node.input[2]]
        return [np.asarray(values + biases.reshape(1, -1, *[1] * (values.ndim - 2)), values.dtype)]

    def _require_small(
        self, node: onnx.NodeProto, name: str, body: onnx.GraphProto, feeds: Mapping[str, Array]
    ) -> None:
        known = onnx.GraphProto()
        known.CopyFrom(body)
        for source, array in feeds.items():
            known.initializer.append(_shape_only(source, array))
        try:
            model = onnx.helper.make_model(known, opset_imports=self._opsets)
            results = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output
        except Exception as error:
            raise RefusalError(f"node {name!r}: shapes do not match: {error}") from error
        for value_info in results:
            tensor = value_info.type.tensor_type
            sizes = [dimension.dim_value for dimension in tensor.shape.dim]
            if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
                raise unsupported_attribute(
                    name, node.op_type, "operands", "a result of unknown shape", "a known shape"
                )
            self._computed += math.prod(sizes)
            require_at_most(f"the result up to node {name!r}", "elements", self._computed, MAX_CONSTANTS)


def _require_foldable(node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> None:
    """Refuse a node whose result is drawn at random, or is another pixel in double precision.

    Raises:
        RefusalError: says which.
    """
    trains = node.op_type == "Dropout" and len(node.input) > 2 and feeds.get(node.input[2])
    if node.op_type in RANDOM or np.any(trains):
        raise unsupported_attribute(
            name, node.op_type, "a result", "drawn at random", "one that is the same for all samples"
        )
    modes = {entry.name: entry.s for entry in node.attribute if entry.name == "mode"}
    if node.op_type == "Resize" and modes.get("mode", b"nearest") == b"nearest":
        raise unsupported_attribute(
            name, "Resize", "operand 0", "a constant", "an encrypted value: store the resized constant"
        )


def _fitted(node: onnx.NodeProto, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return operands that the reference implementation takes, with which a node has the same result. It
    gathers elements by indices of the data's own size along the other axes alone, and cannot pad by less than
    nothing."""
    operands = [feeds.get(name) for name in node.input]
    attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    if node.op_type == "GatherElements":
        data, chosen = operands
        if data is None or chosen is None or chosen.ndim != data.ndim:
            return feeds
        axis = attributes.get("axis", 0) % data.ndim
        kept = [slice(None) if place == axis else slice(size) for place, size in enumerate(chosen.shape)]
        return {**feeds, node.input[0]: data[tuple(kept)]}
    if node.op_type == "Pad" and len(operands) > 1 and attributes.get("mode", b"constant") == b"constant":
        data, ends = operands[:2]
        if data is None or ends is None or ends.size != 2 * data.ndim or ends.min() >= 0:
            return feeds
        low, high = ends.ravel()[: data.ndim], ends.ravel()[data.ndim :]
        kept = [
            slice(max(0, -first), size + min(0, last))
            for first, last, size in zip(low.tolist(), high.tolist(), data.shape, strict=True)
        ]
        return {**feeds, node.input[0]: data[tuple(kept)], node.input[1]: np.maximum(ends, 0)}
    return feeds


def _shape_only(name: str, array: Array) -> onnx.TensorProto:
    """Return a tensor for shape inference: with its values if they can be sizes."""
    if (array.dtype.kind in "iuf" and array.size <= MAX_RANK) or array.size == 1:
        return onnx.numpy_helper.from_array(array, name)
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.TensorProto(name=name, data_type=kind, dims=array.shape)
