"""Trees of a package's own format as an ONNX model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto, helper


@dataclass(frozen=True)
class Tree:
    """A tree by its nodes, of which the first is the root.

    Attributes:
        features, thresholds: of inner nodes; anything at leaves.
        left, right: numbers of the children where the condition holds and where not; -1 at leaves.
        missing_left: whether a missing value goes to the left.
        values: at leaves.
    """

    features: Sequence[int]
    thresholds: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    missing_left: Sequence[bool]
    values: Sequence[float]


def regressor(trees: Iterable[Tree], features: int, base: float, condition: str) -> onnx.ModelProto:
    """The sum of trees behind a sigmoid, from ``x`` (batch, features) to ``y`` (batch, 1).

    Args:
        condition: BRANCH_LT or BRANCH_LEQ.
    """
    nodes: dict[str, Any] = {}
    targets: dict[str, Any] = {}
    for number, tree in enumerate(trees):
        for node, left in enumerate(tree.left):
            leaf = left < 0
            for name, value in (
                ("treeids", number),
                ("nodeids", node),
                ("modes", "LEAF" if leaf else condition),
                ("featureids", 0 if leaf else tree.features[node]),
                ("values", 0.0 if leaf else tree.thresholds[node]),
                ("truenodeids", 0 if leaf else left),
                ("falsenodeids", 0 if leaf else tree.right[node]),
                ("missing_value_tracks_true", 0 if leaf else int(tree.missing_left[node])),
            ):
                nodes.setdefault(f"nodes_{name}", []).append(value)
            if leaf:
                for name, value in (
                    ("treeids", number),
                    ("nodeids", node),
                    ("ids", 0),
                    ("weights", tree.values[node]),
                ):
                    targets.setdefault(f"target_{name}", []).append(value)
    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["sum"],
        domain="ai.onnx.ml",
        n_targets=1,
        base_values=[base],
        **nodes,
        **targets,
    )
    graph = helper.make_graph(
        [ensemble, helper.make_node("Sigmoid", ["sum"], ["y"])],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", features])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
