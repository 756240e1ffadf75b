"""Rewrites quantised operators of onnxruntime (domain com.microsoft) and of ONNX as a DequantizeLinear of
each operand, the operator itself, and a QuantizeLinear of its result.

Sources: onnxruntime, docs/ContribOperators.md; ONNX, QLinearConv and QLinearMatMul.
"""

from collections.abc import Callable
from typing import Any

import onnx
from onnx import TensorProto, helper

from keywright._reading.records import refusing
from keywright.errors import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute

DOMAIN = "com.microsoft"
LEAST_OPSET = 13
"""Before this opset, scales of axes are unknown, and the operators of a model are converted to it."""

PLAIN = {
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearReduceMean": "ReduceMean",
    "QLinearSigmoid": "Sigmoid",
    "QLinearSoftmax": "Softmax",
}
"""Operators of one quantised operand: (x, scale, zero point, scale of the result, its zero point)."""

PAIRS = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
"""Operators of two quantised operands, each with its scale and zero point."""

RENAMED = ("QuantizeLinear", "DequantizeLinear")
"""Operators that ONNX has with the same meaning."""


class RuntimeOperators:
    """Appends the replacements of nodes to a graph.

    Args:
        nodes: to append to.
    """

    def __init__(self, nodes: list[onnx.NodeProto]) -> None:
        self.nodes = nodes
        self.rules: dict[str, Callable[[onnx.NodeProto, dict[str, Any]], None]] = {
            **dict.fromkeys(PLAIN, self._plain),
            **dict.fromkeys(PAIRS, self._pair),
            **dict.fromkeys(RENAMED, self._renamed),
            "DynamicQuantizeMatMul": self._dynamic_product,
            "MatMulIntegerToFloat": self._integer_product,
            "QGemm": self._gemm,
            "QLinearConcat": self._joined,
            "QLinearConv": self._convolution,
            "QLinearMatMul": self._product,
            "QLinearWhere": self._chosen,
        }

    def node(self, node: onnx.NodeProto) -> None:
        """Append the replacement of a node, or the node if it has none. Raises `RefusalError`: images with
        channels last."""
        standard = node.domain in ("", "ai.onnx")
        rule = self.rules.get(node.op_type) if node.domain == DOMAIN or standard else None
        if rule is None or (standard and node.op_type in RENAMED):
            self.nodes.append(node)
            return
        attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        if attributes.pop("channels_last", 0):
            raise unsupported_attribute(
                node.name, node.op_type, "channels_last", 1, "0: quantise without the NHWC transformer"
            )
        rule(node, attributes)

    def add(self, operator: str, inputs: list[str], output: str, label: str, **attributes: Any) -> str:
        """Append a standard node."""
        self.nodes.append(helper.make_node(operator, inputs, [output], f"{label}/{operator}", **attributes))
        return output

    def _real(self, node: onnx.NodeProto, first: int, axis: int | None = None) -> str:
        """Append the real numbers of a quantised operand with its scale and zero point behind it."""
        operand = [*node.input, "", ""][first : first + 3]
        taken = [name for name in operand if name]
        attributes = {} if axis is None else {"axis": axis}
        output = f"{node.output[0]}/{first}/real"
        return self.add("DequantizeLinear", taken, output, f"{node.name}/{first}", **attributes)

    def _quantised(self, node: onnx.NodeProto, result: str, scale: int) -> None:
        """Append the quantisation of a result, with the number of the operand that is its scale."""
        taken = [result, *[name for name in node.input[scale : scale + 2] if name]]
        self.add("QuantizeLinear", taken, node.output[0], node.name)

    def _renamed(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        self.nodes.append(
            helper.make_node(node.op_type, list(node.input), list(node.output), node.name, **attributes)
        )

    def _plain(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        attributes.pop("opset", None)
        source, result = self._real(node, 0), f"{node.output[0]}/result"
        self.add(PLAIN[node.op_type], [source], result, node.name, **attributes)
        self._quantised(node, result, 3)

    def _pair(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        both, result = [self._real(node, 0), self._real(node, 3)], f"{node.output[0]}/result"
        self.add(PAIRS[node.op_type], both, result, node.name, **attributes)
        self._quantised(node, result, 6)

    def _joined(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        parts = [self._real(node, first) for first in range(2, len(node.input), 3)]
        result = self.add("Concat", parts, f"{node.output[0]}/result", node.name, **attributes)
        self._quantised(node, result, 0)

    def _chosen(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        operands = [node.input[0], self._real(node, 1), self._real(node, 4)]
        result = self.add("Where", operands, f"{node.output[0]}/result", node.name)
        self._quantised(node, result, 7)

    def _product(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        operands = [self._real(node, 0), self._real(node, 3, axis=-1)]
        result = self.add("MatMul", operands, f"{node.output[0]}/result", node.name)
        self._quantised(node, result, 6)

    def _convolution(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        operands = [self._real(node, 0), self._real(node, 3, axis=0)]
        if len(node.input) > 8 and node.input[8]:
            operands.append(self._bias(node, node.input[8], node.input[1], node.input[4]))
        result = self.add("Conv", operands, f"{node.output[0]}/result", node.name, **attributes)
        self._quantised(node, result, 6)

    def _gemm(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        across = 0 if attributes.get("transB", 0) else 1
        operands = [self._real(node, 0), self._real(node, 3, axis=across)]
        if len(node.input) > 6 and node.input[6]:
            operands.append(self._bias(node, node.input[6], node.input[1], node.input[4]))
        result = node.output[0] if len(node.input) < 8 else f"{node.output[0]}/result"
        # The integers of the bias have the scale of both operands times alpha.
        alpha = attributes.get("alpha", 1.0)
        if len(operands) == 3 and alpha != 1:
            raise unsupported_attribute(node.name, node.op_type, "alpha", alpha, "1 beside a bias")
        self.add("Gemm", operands, result, node.name, **attributes)
        if result != node.output[0]:
            self._quantised(node, result, 7)

    def _bias(self, node: onnx.NodeProto, integers: str, first: str, second: str) -> str:
        """Append a bias of integers, in units of the product of two scales."""
        label, output = f"{node.name}/bias", f"{node.output[0]}/bias"
        number = self.add("Cast", [integers], f"{output}/number", label, to=TensorProto.FLOAT)
        scale = self.add("Mul", [first, second], f"{output}/scale", label)
        return self.add("Mul", [number, scale], output, f"{label}/scaled")

    def _integer_product(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        operands = [*node.input, "", "", ""][:7]
        left, right, first, second, left_zero, right_zero, bias = operands
        self._scaled_product(node, [left, right, left_zero, right_zero], [first, second], bias)

    def _dynamic_product(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        source, right, second, right_zero, bias = [*node.input, "", ""][:5]
        names = [f"{node.output[0]}/{part}" for part in ("number", "scale", "zero")]
        self.nodes.append(
            helper.make_node("DynamicQuantizeLinear", [source], names, f"{node.name}/quantised")
        )
        self._scaled_product(node, [names[0], right, names[2], right_zero], [names[1], second], bias)

    def _scaled_product(
        self, node: onnx.NodeProto, operands: list[str], scales: list[str], bias: str
    ) -> None:
        output = node.output[0]
        while operands and not operands[-1]:
            operands.pop()
        integers = self.add("MatMulInteger", operands, f"{output}/integers", node.name)
        number = self.add("Cast", [integers], f"{output}/real", node.name, to=TensorProto.FLOAT)
        scale = self.add("Mul", scales, f"{output}/unit", f"{node.name}/unit")
        if not bias:
            self.add("Mul", [number, scale], output, node.name)
            return
        product = self.add("Mul", [number, scale], f"{output}/product", node.name)
        self.add("Add", [product, bias], output, node.name)


def with_standard_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return an equivalent model in which DequantizeLinear and QuantizeLinear surround what was quantised.

    Raises:
        RefusalError: an operator has attributes without such a form, or lacks operands.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    nodes: list[onnx.NodeProto] = []
    rewriter = RuntimeOperators(nodes)
    with refusing("a valid ONNX model", RefusalError, code="model"):
        for node in model.graph.node:
            rewriter.node(node)
    result.graph.node.extend(nodes)
    opset = next((entry for entry in result.opset_import if entry.domain in ("", "ai.onnx")), None)
    if opset is None or opset.version < LEAST_OPSET:
        result = converted(result, LEAST_OPSET, "a quantised model")
    try:
        onnx.checker.check_model(result)  # which does not know the operators of runtimes
    except onnx.checker.ValidationError as error:
        raise RefusalError(f"not a valid ONNX model: {error}; export the model again") from error
    return result


def converted(model: onnx.ModelProto, opset: int, kind: str) -> onnx.ModelProto:
    """Return a model with the operators of a newer opset.

    Args:
        kind: of the model, with its article.

    Raises:
        RefusalError: the converter does not know an operator.
    """
    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises errors of many classes
        raise RefusalError(
            f"{kind} of an opset below {opset} cannot be converted ({error}); export it with opset {opset} "
            "or later"
        ) from error


def ranks_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the number of axes of the values for which it can be inferred.

    Raises:
        RefusalError: the model contradicts itself.
    """
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise RefusalError(f"shapes do not fit: {error}") from error
    ranks = {each.name: len(each.dims) for each in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    return ranks
