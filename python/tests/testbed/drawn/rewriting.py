"""Writes a graph in another way that computes the same."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

COMMUTATIVE = {"Add", "Mul", "Max", "Min", "Mean"}


class Rewriting:
    """A copy of a model in which nodes are written otherwise, and steps without effect are put between them.

    Args:
        model: of double precision.
        rng: of all choices.
    """

    def __init__(self, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        self.rng, self.model = rng, onnx.ModelProto()
        self.model.CopyFrom(model)
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.count = 0
        del self.model.graph.node[:]
        for node in model.graph.node:
            self._rewrite(node)

    def _name(self) -> str:
        self.count += 1
        return f"w{self.count}"

    def _constant(self, array: object) -> str:
        name = self._name()
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _node(self, operator: str, sources: list[str], output: str | None = None, **given: Any) -> str:
        output = output or self._name()
        name = f"{operator}_{output}"
        self.model.graph.node.append(helper.make_node(operator, sources, [output], name, **given))
        return output

    def _rewrite(self, node: onnx.NodeProto) -> None:
        rule = getattr(self, f"_{node.op_type.lower()}", None)
        if rule is not None and self.rng.random() < 0.7 and rule(node):
            return
        copy = self.model.graph.node.add()
        copy.CopyFrom(node)
        if node.op_type in COMMUTATIVE:
            order = self.rng.permutation(len(node.input))
            copy.input[:] = [node.input[place] for place in order]
        if len(node.output) == 1 and node.op_type in COMMUTATIVE and self.rng.random() < 0.3:
            self._idle(copy)

    def _idle(self, node: onnx.NodeProto) -> None:
        """Put steps without effect behind a node of floating-point numbers."""
        output, before = node.output[0], self._name()
        node.output[0] = before
        kind = self.rng.integers(4)
        if kind == 0:
            self._node("Neg", [self._node("Neg", [before])], output)
        elif kind == 1:
            self._node("Identity", [before], output)
        elif kind == 2:
            self._node(
                "Mul", [self._node("Mul", [before, self._constant(4.0)]), self._constant(0.25)], output
            )
        else:
            self._node("Sub", [self._node("Add", [before, self._constant(1.5)]), self._constant(1.5)], output)

    def _sub(self, node: onnx.NodeProto) -> bool:
        left, right = node.input
        self._node("Add", [self._node("Neg", [right]), left], node.output[0])
        return True

    def _neg(self, node: onnx.NodeProto) -> bool:
        self._node("Mul", [node.input[0], self._constant(-1.0)], node.output[0])
        return True

    def _pow(self, node: onnx.NodeProto) -> bool:
        exponent = self.constants.get(node.input[1])
        if exponent is None or exponent.size != 1 or exponent.item() not in (2, 3):
            return False
        x = node.input[0]
        y = self._node("Mul", [x, x]) if exponent.item() == 3 else x
        self._node("Mul", [x, y], node.output[0])
        return True

    def _gemm(self, node: onnx.NodeProto) -> bool:
        given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        weights = self.constants.get(node.input[1])
        if weights is None or given.get("transA", 0):
            return False
        weights = given.get("alpha", 1.0) * (weights.T if given.get("transB", 0) else weights)
        # Fused or not: a matrix of two factors, of which the first may be wide.
        inner = self.rng.normal(size=(weights.shape[0], weights.shape[0] + 2))
        product = self._node("MatMul", [node.input[0], self._constant(inner)])
        rest = self._constant(np.linalg.pinv(inner) @ weights)
        bias = self.constants[node.input[2]] if len(node.input) > 2 else np.zeros(1)
        result = self._node("MatMul", [product, rest])
        self._node("Add", [self._constant(given.get("beta", 1.0) * bias), result], node.output[0])
        return True

    def _batchnormalization(self, node: onnx.NodeProto) -> bool:
        scale, bias, mean, variance = (self.constants[name] for name in node.input[1:])
        given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        factor = scale / np.sqrt(variance + given["epsilon"])
        rank = next(
            len(value.type.tensor_type.shape.dim)
            for value in onnx.shape_inference.infer_shapes(self.model).graph.value_info
            if value.name == node.input[0]
        ) if node.input[0] != "x" else len(self.model.graph.input[0].type.tensor_type.shape.dim)  # fmt: skip
        ones = (1,) * (rank - 2)
        scaled = self._node("Mul", [self._constant(factor.reshape(-1, *ones)), node.input[0]])
        offset = self._constant((bias - mean * factor).reshape(-1, *ones))
        self._node("Add", [scaled, offset], node.output[0])
        return True

    def _reducemean(self, node: onnx.NodeProto) -> bool:
        if len(node.input) < 2:
            return False
        parts = self._name(), self._name()
        given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        for part, source in zip(parts, (node.input[0], self._node("Neg", [node.input[0]])), strict=True):
            self._node("ReduceMean", [source, node.input[1]], part, **given)
        half = self._node("Sub", [parts[0], parts[1]])
        self._node("Mul", [half, self._constant(0.5)], node.output[0])
        return True

    def _transpose(self, node: onnx.NodeProto) -> bool:
        order = list(helper.get_attribute_value(node.attribute[0]))
        middle = self._node("Transpose", [node.input[0]], perm=[0, *range(len(order) - 1, 0, -1)])
        back = [0, *range(len(order) - 1, 0, -1)]
        self._node("Transpose", [middle], node.output[0], perm=[back[place] for place in order])
        return True


def rewritten(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Return a model that computes the same as another one, in other steps."""
    return Rewriting(model, np.random.default_rng([seed, 11])).model
