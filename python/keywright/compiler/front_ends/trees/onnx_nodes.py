"""Nodes and leaves of ONNX's tree operators, from their attributes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.trees.ensemble import Nodes, exactly, require_counts
from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector
from keywright.program.stored_tensors import array_of

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True, eq=False)
class Branch:
    """One node: a leaf if it has no mode.

    Attributes:
        key: identity inside its tree.
        mode: one of `MODES`; "" for a leaf.
        feature, value: compared.
        children: keys of the nodes for true and for false.
        missing_true: whether missing values go where true ones go.
        members: of BRANCH_MEMBER.
    """

    key: Any
    mode: str
    feature: int = 0
    value: float = 0.0
    children: tuple[Any, Any] = (None, None)
    missing_true: bool = False
    members: Vector | None = None


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of an operator of trees.

    Attributes:
        weights: for a tree and a key, the outputs and weights of a leaf.
        outputs: number of outputs.
        written: outputs that a leaf has a weight for, ascending.
        positive: whether no weight is negative.
    """

    weights: Mapping[tuple[int, Any], Sequence[tuple[int, float]]]
    outputs: int
    written: Sequence[int]
    positive: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """The attributes of an operator of trees.

    Attributes:
        branches: nodes of every tree by key, with the root first.
        leaves: of every tree.
        base: values that are added; empty if there are none.
        labels: of classes; empty for values.
        aggregate, transform: by name.
        single: whether features are compared in single precision.
    """

    branches: Sequence[Mapping[Any, Branch]]
    leaves: Leaves
    base: Vector
    labels: NDArray[Any]
    aggregate: str
    transform: str
    single: bool

    def trees(self) -> Iterator[Nodes]:
        """Yield every tree. Raises `RefusalError` before the first if all are too large."""
        require_counts(len(self.branches), sum(map(len, self.branches)), self.leaves.outputs)
        for number, branches in enumerate(self.branches):
            yield self._tree(number, branches)

    def _tree(self, number: int, branches: Mapping[Any, Branch]) -> Nodes:
        place = {key: index for index, key in enumerate(branches)}
        count = len(branches)
        feature, threshold = np.full(count, -1, np.int64), np.zeros(count)
        left, right = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        missing, values = np.zeros(count, np.bool_), np.zeros((count, self.leaves.outputs))
        members: dict[int, Vector] = {}
        for index, branch in enumerate(branches.values()):
            if not branch.mode:
                for output, weight in self.leaves.weights.get((number, branch.key), ()):
                    values[index, output] += weight
                continue
            try:
                true, false = (place[key] for key in branch.children)
            except KeyError:
                raise RefusalError(
                    f"a node of tree {number} has a child {branch.children!r:.60} that the tree does not have"
                ) from None
            if not math.isfinite(branch.value) and branch.mode != "BRANCH_MEMBER":
                raise RefusalError(f"a node of tree {number} compares with {branch.value}")
            feature[index] = branch.feature
            among, swapped, threshold[index] = _comparison(branch.mode, branch.value, self.single)
            if among:
                known = np.asarray([branch.value]) if branch.members is None else branch.members
                members[index] = exactly(np.asarray(known, np.float64))
            left[index], right[index] = (false, true) if swapped else (true, false)
            # A comparison with NaN is false, "is not equal" true.
            to_true = branch.missing_true or branch.mode == "BRANCH_NEQ"
            missing[index] = to_true != swapped
        return Nodes(feature, threshold, left, right, missing, values, members)


def _comparison(mode: str, value: float, single: bool) -> tuple[bool, bool, float]:
    """Return whether a mode tests membership, whether its true child is the right one of ``x <= t``, and
    t."""
    kind = np.float32 if single else np.float64
    before = float(np.nextafter(kind(value), kind(-np.inf)))
    match mode:
        case "BRANCH_LEQ" | "BRANCH_GT":
            return False, mode == "BRANCH_GT", value
        case "BRANCH_LT" | "BRANCH_GTE":
            return False, mode == "BRANCH_GTE", before
        case "BRANCH_EQ" | "BRANCH_NEQ" | "BRANCH_MEMBER":
            return True, mode == "BRANCH_NEQ", 0.0
        case _:
            raise RefusalError(f"a node has the mode {mode!r}; modes are {', '.join(MODES)}")


def tree_columns(node: onnx.NodeProto, attributes: Mapping[str, Any], *, single: bool = True) -> Columns:
    """Read the attributes of an operator of trees.

    Raises:
        RefusalError: they contradict each other.
        RefusalError: too many trees or nodes.
    """
    try:
        if node.op_type == "TreeEnsemble":
            return _newest(attributes, single)
        return _older(node, attributes, single)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RefusalError(f"the attributes of {node.op_type} contradict each other: {error}") from error


def _list(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return an attribute that is a list, or a tensor; empty if there is none."""
    tensor = attributes.get(f"{name}_as_tensor")
    result = attributes.get(name, []) if tensor is None else tensor
    return array_of(result).ravel().tolist() if isinstance(result, onnx.TensorProto) else result


def _older(node: onnx.NodeProto, attributes: Mapping[str, Any], single: bool) -> Columns:
    classes = node.op_type == "TreeEnsembleClassifier"
    of = "class" if classes else "target"
    trees = _list(attributes, "nodes_treeids")
    numbers = {tree: place for place, tree in enumerate(dict.fromkeys(trees))}
    require_counts(len(numbers), len(trees), 1)
    keys, modes = _list(attributes, "nodes_nodeids"), _list(attributes, "nodes_modes")
    columns = [_list(attributes, f"nodes_{name}") for name in ("featureids", "values")]
    columns += [_list(attributes, f"nodes_{name}") for name in ("truenodeids", "falsenodeids")]
    missing = _list(attributes, "nodes_missing_value_tracks_true") or [0] * len(trees)
    branches: list[dict[Any, Branch]] = [{} for _ in numbers]
    children: set[tuple[int, Any]] = set()
    for tree, key, mode, feature, value, true, false, lost in zip(
        trees, keys, modes, *columns, missing, strict=True
    ):
        name, number = mode.decode(), numbers[tree]
        if name == "LEAF":
            branches[number][key] = Branch(key, "")
        else:
            branches[number][key] = Branch(key, name, feature, value, (true, false), bool(lost))
            children |= {(number, true), (number, false)}
    rooted = [_rooted(each, number, children) for number, each in enumerate(branches)]
    leaves: dict[tuple[int, Any], list[tuple[int, float]]] = {}
    outputs = _list(attributes, f"{of}_ids")
    weights = _list(attributes, f"{of}_weights")
    for tree, key, output, weight in zip(
        _list(attributes, f"{of}_treeids"), _list(attributes, f"{of}_nodeids"), outputs, weights, strict=True
    ):
        leaves.setdefault((numbers[tree], key), []).append((output, weight))
    labels: NDArray[Any] = np.zeros(0)
    if classes:
        texts = [text.decode() for text in _list(attributes, "classlabels_strings")]
        labels = np.asarray(texts or _list(attributes, "classlabels_int64s"))
    count = len(labels) if classes else int(attributes.get("n_targets", 1))
    return Columns(
        rooted,
        Leaves(leaves, count, sorted(set(outputs)), min(weights, default=0.0) >= 0),
        np.asarray(_list(attributes, "base_values"), np.float64),
        labels,
        attributes.get("aggregate_function", b"SUM").decode(),
        attributes.get("post_transform", b"NONE").decode(),
        single,
    )


def _rooted(branches: dict[Any, Branch], number: int, children: set[tuple[int, Any]]) -> dict[Any, Branch]:
    """Return the nodes of a tree with the root first."""
    roots = [key for key in branches if (number, key) not in children]
    if len(roots) != 1:
        raise RefusalError(f"tree {number} has {len(roots)} roots")
    return {roots[0]: branches[roots[0]]} | branches


def _newest(attributes: Mapping[str, Any], single: bool) -> Columns:
    splits, modes = _list(attributes, "nodes_splits"), _list(attributes, "nodes_modes")
    features = _list(attributes, "nodes_featureids")
    true, false = (_list(attributes, f"nodes_{side}nodeids") for side in ("true", "false"))
    true_leaf, false_leaf = (_list(attributes, f"nodes_{side}leafs") for side in ("true", "false"))
    missing = _list(attributes, "nodes_missing_value_tracks_true") or [0] * len(splits)
    targets, weights = _list(attributes, "leaf_targetids"), _list(attributes, "leaf_weights")
    roots = _list(attributes, "tree_roots")
    require_counts(len(roots), len(splits) + len(targets), 1)
    sets = _sets(_list(attributes, "membership_values"))
    among = [place for place, mode in enumerate(modes) if MODES[mode] == "BRANCH_MEMBER"]
    members = dict(zip(among, sets, strict=True))
    leaves: dict[tuple[int, Any], list[tuple[int, float]]] = {}
    branches: list[dict[Any, Branch]] = []
    seen: set[Any] = set()
    for number, root in enumerate(roots):
        table: dict[Any, Branch] = {}
        first: Any = ("node", root)
        if (true[root], true_leaf[root]) == (false[root], false_leaf[root]) and true_leaf[root]:
            first = ("leaf", true[root])  # a tree of one leaf
        waiting = [first]
        while waiting:
            key = waiting.pop()
            if key in seen:
                raise RefusalError(f"tree {number} has a node with two parents")
            seen.add(key)
            kind, place = key
            if kind == "leaf":
                table[key] = Branch(key, "")
                leaves[number, key] = [(targets[place], weights[place])]
                continue
            both = (
                ("leaf" if true_leaf[place] else "node", true[place]),
                ("leaf" if false_leaf[place] else "node", false[place]),
            )
            mode, lost = MODES[modes[place]], bool(missing[place])
            table[key] = Branch(key, mode, features[place], splits[place], both, lost, members.get(place))
            waiting += both
        branches.append(table)
    return Columns(
        branches,
        Leaves(
            leaves,
            int(attributes.get("n_targets", 1)),
            sorted(set(targets)),
            min(weights, default=0.0) >= 0,
        ),
        np.zeros(0),
        np.zeros(0),
        AGGREGATES[attributes.get("aggregate_function", 1)],
        POSTS[attributes.get("post_transform", 0)],
        single,
    )


def _sets(values: Sequence[float]) -> list[Vector]:
    """Return the sets of values that NaN separates."""
    array = np.asarray(values, np.float64)
    ends = np.flatnonzero(np.isnan(array))
    parts = np.split(array, ends)
    return [part[~np.isnan(part)] for part in parts if len(part[~np.isnan(part)])]
