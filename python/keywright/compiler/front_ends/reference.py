"""ONNX's reference implementation, for nodes whose results are known at compile time; and onnxruntime."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.limits import MAX_CONSTANTS, require_at_most
from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.client.small_model import gather_elements, opset_of, own_step
from keywright.program.stored_tensors import stored_tensors

Array = NDArray[Any]

MAX_RANK = 1 << 10
"""Maximum elements of a constant that may hold sizes."""

RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
"""Operators whose results are others in each run, so that no constant stands for them."""

OF_TEXTS = frozenset(
    re.findall(
        r"\w+",
        """Cast CastLike Concat Constant Equal Expand Flatten Gather GatherElements GatherND Identity
    LabelEncoder OneHotEncoder Reshape Shape Size Slice Split Squeeze StringNormalizer Tile
    Transpose Unsqueeze Where""",
    )
)
"""Operators whose results are no longer texts than their operands."""

TEXT = 32
"""Elements as long as a number's text."""

SMALL_CONSTANTS = 1 << 25
"""Elements that a model without stored tensors may compute; four more for each stored byte."""

MAX_WORK = 1 << 32
"""Steps of all nodes together."""

INTERPOLATION = 1 << 10
"""Steps of an element of an image: earlier reference implementations interpolate them one by one."""

POOLING = 1 << 12
"""Steps of an element of a window, in loops of Python."""

SCATTERING = 1 << 10
"""Steps of an element that is placed alone."""

SLOW = 1 << 8
"""Steps of a pair of elements, or of an element and a place of a window, in loops of Python."""

WHOLE = frozenset(
    re.findall(
        r"\w+",
        """Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd
    BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat Constant ConstantOfShape Cos
    Cosh CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Elu Equal Erf Exp
    Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu GlobalAveragePool GlobalMaxPool
    Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax
    LpNormalization Max Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu Pad
    Pow QuantizeLinear Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape ReverseSequence
    RMSNormalization Round Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus
    Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK
    Transpose Trilu Unsqueeze Where Xor""",
    )
)
"""Operators that take steps, and memory, by the number of elements alone."""

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
    """Evaluates nodes of one model, within a budget of elements and of work for all of them together.

    Args:
        model: with its stored tensors, for which the budget is larger.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._opsets, self._computed, self._work = list(model.opset_import), 0, 0
        self._allowed = SMALL_CONSTANTS + 4 * sum(tensor.ByteSize() for tensor in stored_tensors(model))
        self.opset = opset_of(self._opsets)

    def run(self, node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> list[Array]:
        """Return a node's results.

        Args:
            name: for messages.
            feeds: its operands, by name.

        Raises:
            RefusalError: shapes do not match.
            RefusalError: the shape of a result is unknown before it is computed, or the
                reference implementation refuses the node.
            RefusalError: the results of this node and of all before are too large together, or take too long.
        """
        _require_foldable(node, name, feeds)
        try:
            feeds = _fitted(node, feeds)
            self._require_small(node, name, feeds)
            if node.op_type == "ConvTranspose" and len(node.input) == 3 and node.input[2]:
                return self._transposed(node, name, feeds)
            with np.errstate(all="ignore"):
                return [np.asarray(array) for array in self._results(node, feeds)]
        except RefusalError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise unsupported_attribute(
                name, node.op_type, "these operands", text, "ones that ONNX's reference implementation takes"
            ) from error

    def _results(self, node: onnx.NodeProto, feeds: Mapping[str, Array]) -> list[Array]:
        own = own_step(node, self.opset) if len(node.input) == 1 else None
        if node.op_type == "GatherElements":
            own = gather_elements
        if own is not None:
            return [own(node, *(feeds[each] for each in node.input))]
        if node.op_type == "GlobalMaxPool":
            # The reference implementation takes the largest of all channels of a sequence.
            (images,) = feeds.values()
            return [images.max(axis=tuple(range(2, images.ndim)), keepdims=True)]
        opsets = self._opsets
        if node.op_type == "BatchNormalization" and self.opset < INFERS:
            opsets = [onnx.helper.make_opsetid("", INFERS)]
        from onnx.reference import ReferenceEvaluator

        model = onnx.helper.make_model(_alone(node, feeds), opset_imports=opsets)
        return cast(list[Array], ReferenceEvaluator(model).run(None, dict(feeds)))

    def _transposed(self, node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> list[Array]:
        """Run a transposed convolution, and add its biases: the reference implementation gives those of the
        first group to all groups."""
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        del plain.input[2:]
        (values,) = self.run(plain, name, {each: feeds[each] for each in plain.input})
        biases = feeds[node.input[2]]
        return [np.asarray(values + biases.reshape(1, -1, *[1] * (values.ndim - 2)), values.dtype)]

    def _require_small(self, node: onnx.NodeProto, name: str, feeds: Mapping[str, Array]) -> None:
        known = _alone(node, feeds)
        for source, array in feeds.items():
            known.initializer.append(_shape_only(source, array))
        try:
            model = onnx.helper.make_model(known, opset_imports=self._opsets)
            results = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output
        except Exception as error:
            raise RefusalError(f"node {name!r}: shapes do not match: {error}") from error
        size, text = 0, _longest_text(node, feeds)
        for value_info in results:
            tensor = value_info.type.tensor_type
            sizes = [dimension.dim_value for dimension in tensor.shape.dim]
            if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
                raise unsupported_attribute(
                    name, node.op_type, "operands", "a result of unknown shape", "a known shape"
                )
            size += math.prod(sizes) * (text if tensor.elem_type == onnx.TensorProto.STRING else 1)
        self._computed += size
        allowed = min(self._allowed, MAX_CONSTANTS)
        require_at_most(f"the result up to node {name!r}", "elements", self._computed, allowed)
        self._work += _work(node, [feeds[each] for each in node.input if each], size)
        require_at_most(
            f"computing the constants up to node {name!r}",
            "steps",
            self._work,
            MAX_WORK,
            "fold constants before the export",
        )


def _alone(node: onnx.NodeProto, feeds: Mapping[str, Array]) -> onnx.GraphProto:
    """Return a graph of one node."""
    values = [onnx.ValueInfoProto(name=name) for name in feeds]
    results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    return onnx.helper.make_graph([node], "node", values, results)


def _longest_text(node: onnx.NodeProto, feeds: Mapping[str, Array]) -> int:
    """Return the elements that a text of a result takes at most: numpy gives all texts of an array one
    length."""
    texts = [text for entry in node.attribute for text in (entry.s, *entry.strings)]
    arrays = [array for array in feeds.values() if array.dtype.kind in "OSUT"]
    return max([TEXT, *map(len, texts), *(len(text) for array in arrays for text in array.ravel().tolist())])


def _extents(node: onnx.NodeProto, operands: Sequence[Array]) -> int:
    """Return the product of the sizes of an Einsum's letters."""
    equation = b"".join(entry.s for entry in node.attribute if entry.name == "equation").decode()
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if [len(term) for term in terms] != [each.ndim for each in operands] or "." in equation:
        return math.prod(max(each.size, 1) for each in operands)
    sizes: dict[str, int] = {}
    for term, each in zip(terms, operands, strict=True):
        sizes |= dict(zip(term, each.shape, strict=True))
    return math.prod(sizes.values())


def _work(node: onnx.NodeProto, operands: Sequence[Array], size: int) -> int:
    """Return the steps in which the reference implementation computes results with so many elements: no fewer
    than the elements that it holds meanwhile."""
    every = size + sum(each.size for each in operands)
    match node.op_type:
        case operator if operator in WHOLE:
            return every
        case "MatMul" if operands[0].ndim:
            return every + size * int(operands[0].shape[-1])
        case "Gemm":
            return every + size * int(max(operands[0].shape))
        case "Einsum":
            return every + _extents(node, operands)
        case "Resize":
            return every * INTERPOLATION
        case "ScatterElements" | "ScatterND":
            return every + operands[2].size * SCATTERING
        case "Conv":
            return every + size * math.prod(operands[1].shape[1:]) * SLOW
    window = 1
    for entry in node.attribute:
        if entry.name in ("dilations", "kernel_shape", "output_shape", "pads", "strides"):
            window *= math.prod(max(abs(each), 1) for each in entry.ints)
    if node.op_type in ("AveragePool", "LpPool", "MaxPool"):
        return every + size * window * POOLING
    return every * max(window, every) * SLOW


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
    if node.op_type == "LRN":  # the reference implementation normalises as many channels as there are samples
        raise unsupported_attribute(
            name, node.op_type, "operand 0", "a constant", "an encrypted value: fold constants first"
        )
    texts = any(each.dtype.kind in "OSUT" for each in feeds.values())
    if (texts and node.op_type not in OF_TEXTS) or node.op_type == "ImageDecoder":
        raise unsupported_attribute(
            name, node.op_type, "an operand", "a text or a file", "its result, stored"
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
