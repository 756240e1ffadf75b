"""Rewrites the operators of ai.onnx.ml, which skl2onnx writes, as standard ones.

Scores become matrices, powers and functions. Labels and probabilities stay with the original operator,
applied to the scores; the client computes it.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.stored_tensors import array_of

DOMAIN = "ai.onnx.ml"
LEAST_OPSET = 13
"""Opset for models that import no standard operators."""

Floats = NDArray[np.float64]


def in_standard_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return an equivalent model; operators without a rule stay."""
    if not any(node.domain == DOMAIN for node in model.graph.node):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    rewriter = _Rewriter(result)
    del result.graph.node[:]
    for node in model.graph.node:
        rewriter.node(node)
    if not any(entry.domain in ("", "ai.onnx") for entry in result.opset_import):
        result.opset_import.append(helper.make_opsetid("", LEAST_OPSET))
    return result


class _Rewriter:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.rules: dict[str, Callable[[onnx.NodeProto, dict[str, Any]], bool]] = {
            "ArrayFeatureExtractor": self._features,
            "LinearClassifier": self._linear_classifier,
            "LinearRegressor": self._linear_regressor,
            "SVMClassifier": self._svm_classifier,
            "SVMRegressor": self._svm_regressor,
            "Scaler": self._scaler,
            "ZipMap": self._map,
        }

    def node(self, node: onnx.NodeProto) -> None:
        """Append the replacement of a node."""
        rule = self.rules.get(node.op_type) if node.domain == DOMAIN else None
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if rule is None or not rule(node, attributes):
            self.graph.node.append(node)

    def _add(self, operator: str, inputs: list[str], output: str, label: str, **attributes: Any) -> str:
        self.graph.node.append(
            helper.make_node(operator, inputs, [output], f"{label}/{output}", **attributes)
        )
        return output

    def _constant(self, array: NDArray[Any], name: str, kind: type[np.floating[Any]] = np.float32) -> str:
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array, kind), name))
        return name

    def _affine(
        self,
        source: str,
        weights: Floats,
        bias: Floats,
        output: str,
        label: str,
        kind: type[np.floating[Any]] = np.float32,
    ) -> str:
        """Append source @ weights.T + bias, in single precision or in that of ``kind``."""
        to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        cast = self._add("Cast", [source], f"{output}/features", label, to=to)
        matrix = self._constant(weights, f"{output}/weights", kind)
        offset = self._constant(bias, f"{output}/bias", kind)
        return self._add("Gemm", [cast, matrix, offset], output, label, transB=1)

    def _map(self, node: onnx.NodeProto, _: dict[str, Any]) -> bool:
        self._add("Identity", [node.input[0]], node.output[0], node.name)
        return True

    def _features(self, node: onnx.NodeProto, _: dict[str, Any]) -> bool:
        values, chosen = node.input
        if values in self.constants or chosen not in self.constants:
            return False
        index = array_of(self.constants[chosen]).ravel()
        name = f"{node.output[0]}/index"
        self.graph.initializer.append(numpy_helper.from_array(index, name))
        self._add("Gather", [values, name], node.output[0], node.name, axis=-1)
        return True

    def _scaler(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        output, source = node.output[0], node.input[0]
        single = self._add("Cast", [source], f"{output}/single", node.name, to=onnx.TensorProto.FLOAT)
        offset = self._constant(_floats(attributes, "offset", [0.0]), f"{output}/offset")
        scale = self._constant(_floats(attributes, "scale", [1.0]), f"{output}/scale")
        centred = self._add("Sub", [single, offset], f"{output}/centred", node.name)
        self._add("Mul", [centred, scale], output, node.name)
        return True

    def _linear_regressor(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        targets = attributes.get("targets", 1)
        if attributes.get("post_transform", b"NONE") != b"NONE":
            return False
        weights = _floats(attributes, "coefficients", []).reshape(targets, -1)
        bias = _floats(attributes, "intercepts", [0.0] * targets)
        self._affine(node.input[0], weights, bias, node.output[0], node.name)
        return True

    def _linear_classifier(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        classes = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or []
        intercepts = attributes.get("intercepts") or []
        rows = len(intercepts) or len(classes) or 1
        weights = _floats(attributes, "coefficients", []).reshape(rows, -1)
        bias = np.asarray(intercepts or [0.0] * rows, np.float64)
        scores = self._affine(node.input[0], weights, bias, f"{node.output[0]}/scores", node.name)
        transform = attributes.get("post_transform", b"NONE").decode()
        if rows == 1 < len(classes) and transform != "LOGISTIC":
            raise unsupported_attribute(
                node.name,
                node.op_type,
                "post_transform",
                f"{transform} of one score for two labels",
                "LOGISTIC, or a score for each label: runtimes give different probabilities otherwise",
            )
        kept = {name: attributes[name] for name in attributes if name.startswith("classlabels")}
        self._labelled(
            node, scores, kept | {"post_transform": attributes.get("post_transform", b"NONE")},
            coefficients=np.eye(rows).ravel().tolist(), intercepts=[0.0] * rows,
        )  # fmt: skip
        return True

    def _svm_regressor(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        if attributes.get("one_class", 0) or attributes.get("post_transform", b"NONE") != b"NONE":
            return False
        coefficients, rho = _floats(attributes, "coefficients", []), _floats(attributes, "rho", [0.0])
        source, count = node.input[0], attributes.get("n_supports", 0)
        if count:
            source = self._kernel(node, attributes, count)
        self._affine(source, coefficients.reshape(1, -1), rho[:1], node.output[0], node.name)
        return True

    def _svm_classifier(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        labels = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or []
        members = [int(count) for count in attributes.get("vectors_per_class") or []]
        if len(labels) < 2 or len(members) != len(labels):
            return False
        total = sum(members)
        coefficients = _floats(attributes, "coefficients", []).reshape(-1, total)
        start = np.concatenate(([0], np.cumsum(members)))
        pairs = list(combinations(range(len(labels)), 2))
        weights = np.zeros((len(pairs), total))
        for row, (i, j) in enumerate(pairs):
            weights[row, start[i] : start[i + 1]] = coefficients[j - 1, start[i] : start[i + 1]]
            weights[row, start[j] : start[j + 1]] = coefficients[i, start[j] : start[j + 1]]
        kernel = self._kernel(node, attributes, total)
        rho = _floats(attributes, "rho", [])
        scores = self._affine(kernel, weights, rho, f"{node.output[0]}/scores", node.name)
        # One vector for each pair, of its first class, recovers the score from the kernel.
        alike = np.zeros((len(labels) - 1, len(pairs)))
        for column, (_, j) in enumerate(pairs):
            alike[j - 1, column] = -1.0
        kept: dict[str, Any] = {
            name: attributes[name] for name in ("post_transform", "prob_a", "prob_b") if name in attributes
        }
        label = f"{node.output[0]}/number"
        self._labelled(
            node,
            scores,
            kept,
            outputs=[label, *node.output[1:]],
            classlabels_ints=list(range(len(labels))),
            kernel_type="LINEAR",
            kernel_params=[0.0, 0.0, 0.0],
            coefficients=alike.ravel().tolist(),
            support_vectors=(-np.eye(len(pairs))).ravel().tolist(),
            vectors_per_class=[len(labels) - 1 - i for i in range(len(labels))],
            rho=[0.0] * len(pairs),
        )
        name = f"{node.output[0]}/classes"
        strings = isinstance(labels[0], bytes)
        array = (
            np.asarray([text.decode() for text in labels], object)
            if strings
            else np.asarray(labels, np.int64)
        )
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        self._add("Gather", [name, label], node.output[0], node.name, axis=0)
        return True

    def _labelled(
        self,
        node: onnx.NodeProto,
        scores: str,
        kept: dict[str, Any],
        outputs: list[str] | None = None,
        **attributes: Any,
    ) -> None:
        """Append the classifier itself, with the scores as its features."""
        self.graph.node.append(
            helper.make_node(
                node.op_type,
                [scores],
                list(node.output) if outputs is None else outputs,
                node.name,
                domain=DOMAIN,
                **kept,
                **attributes,
            )
        )

    def _kernel(self, node: onnx.NodeProto, attributes: dict[str, Any], count: int) -> str:
        """Append the kernel between the input and each support vector.

        A distance is the difference of squares and products, which are far larger than itself where features
        are. So its parts are in double precision.
        """
        vectors = _floats(attributes, "support_vectors", []).reshape(count, -1)
        gamma, offset, degree = [*attributes.get("kernel_params", []), 0.0, 0.0, 0.0][:3]
        kind = attributes.get("kernel_type", b"LINEAR").decode()
        source, name, nothing = node.input[0], f"{node.output[0]}/kernel", np.zeros(count)
        if kind == "LINEAR":
            return self._affine(source, vectors, nothing, name, node.name)
        if kind == "RBF":
            cast = self._add("Cast", [source], f"{name}/features", node.name, to=onnx.TensorProto.DOUBLE)
            square = self._add("Mul", [cast, cast], f"{name}/square", node.name)
            factors, double = np.full(vectors.shape, -gamma), np.float64
            own = self._affine(square, factors, nothing, f"{name}/own", node.name, double)
            bias = -gamma * (vectors**2).sum(axis=1)
            mixed = self._affine(cast, 2 * gamma * vectors, bias, f"{name}/mixed", node.name, double)
            distance = self._add("Add", [own, mixed], f"{name}/exponent", node.name)
            return self._add("Exp", [distance], name, node.name)
        inner = self._affine(source, gamma * vectors, np.full(count, offset), f"{name}/inner", node.name)
        if kind == "SIGMOID":
            return self._add("Tanh", [inner], name, node.name)
        exponent = self._constant(np.asarray(degree), f"{name}/degree")
        return self._add("Pow", [inner, exponent], name, node.name)


def _floats(attributes: dict[str, Any], name: str, default: list[float]) -> Floats:
    return np.asarray(attributes.get(name, default), np.float64)
