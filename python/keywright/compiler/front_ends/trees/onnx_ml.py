"""Trees of ONNX: TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of ai.onnx.ml, with the
scaling before them and the client's operators behind them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from keywright.compiler.front_ends.model_file import sample_shape
from keywright.compiler.front_ends.rewriting.classical import in_standard_operators
from keywright.compiler.trees.ensemble import (
    Ensemble,
    Features,
    Nodes,
    Numbers,
    Scaling,
    before_scaling,
    joined,
)
from keywright.compiler.trees.last_step import LastStep, Remainder, Transform
from keywright.errors.network import RefusalError
from keywright.errors.refusals.operators import dynamic_shape, unsupported_attribute, unsupported_operator
from keywright.program.arrays import Vector
from keywright.program.client.last_steps import ALLOWED
from keywright.program.stored_tensors import array_of

from .onnx_nodes import Columns, tree_columns

OPERATORS = frozenset(["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"])
BEFORE = "nothing but Cast, Identity, Scaler, and Add, Sub, Mul and Div by constants may be before trees"
BEHIND = "only operators that a client runs may be behind trees"
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
TRANSFORMS: dict[str, Transform] = {"NONE": "none", "LOGISTIC": "logistic", "SOFTMAX": "softmax"}


def has_trees(model: onnx.ModelProto) -> bool:
    """Whether a model has an operator of trees."""
    return any(node.op_type in OPERATORS for node in model.graph.node)


def ensemble_of(model: onnx.ModelProto) -> Ensemble:
    """Read the ensemble of a model that is one.

    Raises:
        RefusalError: other operators before or behind the trees, or several ensembles.
        RefusalError: an aggregation or a transform without an encrypted form.
        RefusalError: attributes contradict each other.
        RefusalError: too many trees, nodes or values.
        RefusalError: the number of features is not fixed.
    """
    return _Reader(in_standard_operators(model)).run()


class _Reader:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.graph = model, model.graph
        self.constants = {tensor.name: array_of(tensor) for tensor in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and (value := _constant(node)) is not None:
                self.constants[node.output[0]] = value
        (self.node, *others) = [node for node in model.graph.node if node.op_type in OPERATORS]
        if others:
            raise unsupported_operator(
                others[0].name,
                others[0].op_type,
                "a model is one ensemble of trees; compile each by itself, and of several folds of "
                "CalibratedClassifierCV a single one, by ensemble=False",
            )
        self.attributes = {a.name: helper.get_attribute_value(a) for a in self.node.attribute}

    def run(self) -> Ensemble:
        inputs = [value for value in self.graph.input if value.name not in self.constants]
        if len(inputs) != 1:
            raise RefusalError(f"the model has {len(inputs)} inputs; it must have one")
        shape = sample_shape(self.model)
        if len(shape) != 1 or not isinstance(shape[0], int) or shape[0] < 1:
            raise dynamic_shape(inputs[0].name, ["batch", *shape])
        features, double = shape[0], inputs[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
        kind = np.dtype(np.float64 if double else np.float32)
        scaling, single = self._before(inputs[0].name, features, kind)
        columns = tree_columns(self.node, self.attributes, single=single)
        trees: Sequence[Nodes] = [_scaled(tree, features, scaling) for tree in columns.trees()]
        average = columns.aggregate == "AVERAGE"
        if columns.aggregate not in ("SUM", "AVERAGE"):
            raise self._refused("aggregate_function", columns.aggregate, "SUM or AVERAGE")
        trees, base, last = self._finished(columns, trees)
        last = self._behind(replace(last, single=not double))
        factor = 1 / len(trees) if average else 1.0
        reads = Features(features, single=not double, missing=True)
        return Ensemble(reads, *joined(trees), base, last, factor)

    def _finished(self, columns: Columns, trees: Sequence[Nodes]) -> tuple[Sequence[Nodes], Vector, LastStep]:
        """Return trees, base and last step as the operator defines them."""
        outputs, base = columns.leaves.outputs, columns.base
        if columns.transform not in TRANSFORMS:
            raise self._refused("post_transform", columns.transform, f"one of {', '.join(TRANSFORMS)}")
        transform = TRANSFORMS[columns.transform]
        if self.node.op_type != "TreeEnsembleClassifier":
            base = np.zeros(outputs) if not len(base) else base
            return trees, self._base(base, outputs), LastStep(transform, values=self.node.output[0])
        labels, names = columns.labels, list(self.node.output) + [""] * (2 - len(self.node.output))
        label, values = names[0] or "label", names[1] or "probabilities"
        if len(labels) == 2 and len(columns.leaves.written) == 1:
            # Scores of one of two classes: shares above 1/2, or scores above 0, have the second label.
            column = columns.leaves.written[0]
            trees = [replace(tree, values=tree.values[:, [column]]) for tree in trees]
            base = base if len(base) else np.zeros(1)
            shares = columns.leaves.positive
            if not shares and transform == "none":
                transform = "opposite"
            elif shares:
                transform = "complement"
            elif transform == "softmax":
                raise self._refused("post_transform", "SOFTMAX of one score", "NONE or LOGISTIC")
            boundary = 0.5 if shares else 0.0
            last = LastStep(transform, labels, label, values, boundary=boundary)
            return trees, self._base(base, 1), last
        if transform == "logistic" and outputs == 1:
            raise self._refused("classlabels", len(labels), "at least 2")
        base = base if len(base) else np.zeros(outputs)
        return trees, self._base(base, outputs), LastStep(transform, labels, label, values)

    def _base(self, base: Vector, outputs: int) -> Vector:
        if len(base) != outputs:
            raise self._refused("base_values", f"{len(base)} values", f"{outputs}")
        return base

    def _before(self, source: str, features: int, kind: Any) -> tuple[Scaling | None, bool]:
        """Return what is computed of features of a type before the trees compare them, None for nothing, and
        whether they are compared in single precision."""
        at = self.node.input[0]
        makers = {name: node for node in self.graph.node for name in node.output}
        steps: list[tuple[str, Any]] = []
        while at != source:
            node = makers.get(at)
            if node is None:
                raise RefusalError(f"nothing computes {at!r}, which the trees read")
            operands = [name for name in node.input if name not in self.constants]
            if node.op_type not in ("Cast", "Identity", *ARITHMETIC) or len(operands) != 1:
                raise unsupported_operator(node.name, node.op_type, BEFORE)
            if node.op_type == "Cast":
                (to,) = [each.i for each in node.attribute if each.name == "to"]
                steps.append(("Cast", helper.tensor_dtype_to_np_dtype(to)))
            elif len(node.input) == 2:
                constant = self.constants[node.input[1]] if node.input[0] == operands[0] else None
                if constant is None and node.op_type in ("Sub", "Div"):
                    raise unsupported_operator(node.name, node.op_type, BEFORE)
                value = self.constants[node.input[0]] if constant is None else constant
                if np.size(value) not in (1, features):
                    raise unsupported_operator(node.name, node.op_type, BEFORE)
                steps.append((node.op_type, np.broadcast_to(np.ravel(value), features)))
            at = operands[0]
        steps = [each for each in reversed(steps) if each[0] != "Cast" or each[1].kind == "f"]
        casts = [kind, *(value for operator, value in steps if operator == "Cast")]
        factors = [np.float64(value) for operator, value in steps if operator in ("Mul", "Div")]
        finite = all(np.isfinite(value).all() for operator, value in steps if operator != "Cast")
        if not (finite and np.all(np.prod([np.ones(features), *map(np.sign, factors)], axis=0) > 0)):
            raise unsupported_operator(self.node.name, self.node.op_type, f"{BEFORE}, with factors above 0")

        def scaling(values: Vector, feature: Numbers) -> Vector:
            result = values.astype(kind)
            for operator, value in steps:
                if operator == "Cast":
                    result = result.astype(value)
                else:
                    result = ARITHMETIC[operator](result, value[feature].astype(result.dtype))
            return result.astype(np.float64)

        changed = any(operator != "Cast" or value != kind for operator, value in steps)
        return scaling if changed else None, casts[-1] != np.float64

    def _behind(self, last: LastStep) -> LastStep:
        """Return the last step with the nodes behind the trees."""
        kept, known = [], set(self.node.output)
        for node in self.graph.node:
            if node is not self.node and any(name in known for name in node.input):
                if node.op_type not in ALLOWED:
                    raise unsupported_operator(node.name, node.op_type, BEHIND)
                kept.append(node)
                known.update(node.output)
        result = {name for node in kept for name in node.output} | set(self.node.output)
        extra = [n for n in self.graph.node if n.op_type == "Constant"]
        read = {name for node in kept for name in node.input} - result
        constants = [tensor for tensor in self.graph.initializer if tensor.name in read]
        given = {tensor.name for tensor in constants}
        extra = [node for node in extra if node.output[0] in read - given]
        missing = read - given - {node.output[0] for node in extra} - {""}
        if missing:
            raise RefusalError(f"{sorted(missing)[0]!r} is read behind the trees and computed before them")
        outputs = [value.name for value in self.graph.output]
        for name in outputs:
            if name not in result:
                raise RefusalError(f"the output {name!r} does not come from the trees")
        opsets = [entry for entry in self.model.opset_import if entry.domain in ("", "ai.onnx.ml")]
        standard = [entry for entry in opsets if entry.domain == ""]
        if not standard or standard[0].version < 13:
            opsets = []
        return replace(last, behind=Remainder([*extra, *kept], constants, outputs, opsets))

    def _refused(self, attribute: str, value: object, allowed: str) -> RefusalError:
        return unsupported_attribute(
            self.node.name or self.node.op_type, self.node.op_type, attribute, value, allowed
        )


def _scaled(tree: Nodes, features: int, scaling: Scaling | None) -> Nodes:
    """Return a tree of features that are not scaled."""
    if tree.feature.max(initial=-1) >= features:
        raise RefusalError(f"a node compares feature {int(tree.feature.max())}, and a sample has {features}")
    return tree if scaling is None else before_scaling(tree, scaling)


def _constant(node: onnx.NodeProto) -> Any:
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.name == "value":
            return array_of(value)
        if attribute.name.startswith("value_"):
            return np.asarray(value)
    return None
