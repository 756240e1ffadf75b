"""The common form of all tree ensembles, and their evaluation in the clear."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.limits import require_at_most
from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector
from keywright.program.client.first_steps import FirstSteps

from .last_step import LastStep

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Scaling = Callable[[Vector, Numbers], Vector]
"""What trees compare, computed of values, (count,), and the features that they are of, (count,): a map of
each feature that never falls."""

MAX_TREES = 1 << 16
MAX_NODES = 1 << 19
MAX_VALUES = 1 << 23
"""Maximum numbers of trees, of nodes of all trees, and of values of all leaves."""

ADVICE = "fit fewer or smaller trees"

CHUNK = 1 << 22
"""Samples times trees that are evaluated at once."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one tree, whose root is node 0, or of all trees of an ensemble.

    Attributes:
        feature: that every node compares, (nodes,); -1 for a leaf.
        threshold: of every node, (nodes,).
        left, right: children of every node, (nodes,).
        missing_left: where every node sends a missing feature, (nodes,).
        values: of every leaf, (nodes, outputs); other nodes have zeros.
        members: for the nodes that test membership, the ranges of the values that go to the left, each its
            first number and the first one above it, (ranges, 2).
    """

    feature: Numbers
    threshold: Vector
    left: Numbers
    right: Numbers
    missing_left: Flags
    values: Vector
    members: Mapping[int, Vector] = field(default_factory=dict)


@dataclass(frozen=True)
class Features:
    """What trees read of a sample.

    Attributes:
        count: number of features.
        single: whether they are compared in single precision.
        missing: whether they may be missing.
        names: of the columns of a table; empty if they have none.
        categories: of the features that were columns of categories of a data frame, in order, which the trees
            know by their places: each the number of the feature, None if the library does not tell, and the
            categories, none if it does not hold them.
        coded: whether samples always hold these categories and never their places.
        strict: whether the library refuses other categories; otherwise they are missing values.
    """

    count: int
    single: bool = False
    missing: bool = False
    names: tuple[str, ...] = ()
    categories: tuple[tuple[int | None, Sequence[Any]], ...] = ()
    coded: bool = False
    strict: bool = False


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose leaves add up: ``base + factor * sum of leaves``, then the last step.

    A node sends a sample to the left if its feature is at most the threshold, or in one of its ranges. A
    missing feature goes to the left if the node says so. Nodes of all trees are numbered together.

    Attributes:
        reads: what the trees read.
        roots: root of every tree, (trees,).
        nodes: of all trees.
        base: (outputs,).
        factor: of the sum.
        last: the client's computation on the sums.

    Raises:
        RefusalError: too many trees, nodes or values.
        RefusalError: the nodes are not trees, or a number is not finite.
    """

    reads: Features
    roots: Numbers
    nodes: Nodes
    base: Vector
    last: LastStep
    factor: float = 1.0

    @property
    def features(self) -> int:
        """Number of features of a sample."""
        return self.reads.count

    @property
    def single(self) -> bool:
        """Whether features are compared in single precision."""
        return self.reads.single

    @property
    def missing(self) -> bool:
        """Whether the model takes missing features."""
        return self.reads.missing

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; empty if they have none."""
        return self.reads.names

    def __post_init__(self) -> None:
        require_counts(len(self.roots), len(self.nodes.feature), self.outputs)
        inner, count = self.nodes.feature >= 0, len(self.nodes.feature)
        children = np.concatenate((self.nodes.left[inner], self.nodes.right[inner]))
        named = np.concatenate((children, self.roots))
        if not len(self.roots) or (len(named) and not (named.min() >= 0 and named.max() < count)):
            raise RefusalError("a tree names a node that the ensemble does not have")
        if len(np.unique(named)) != len(named) or len(named) != count:
            raise RefusalError("the nodes of the ensemble are not trees: a node has no parent or two")
        if self.nodes.feature.max(initial=-1) >= self.features:
            raise RefusalError(
                f"a node compares feature {int(self.nodes.feature.max())}, and a sample has {self.features}"
            )
        tested = inner.copy()
        tested[list(self.nodes.members)] = False
        finite = np.isfinite(self.nodes.threshold[tested]).all() and np.isfinite(self.nodes.values).all()
        if not (finite and np.isfinite(self.base).all() and np.isfinite(self.factor)):
            raise RefusalError("the ensemble has a threshold or a leaf that is not finite")

    @property
    def categorical(self) -> Numbers:
        """The features of which nodes test membership, ascending."""
        return np.unique(self.nodes.feature[list(self.nodes.members)])

    @property
    def outputs(self) -> int:
        """Number of sums."""
        return int(self.nodes.values.shape[1])

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.nodes.feature < 0).sum())

    def goes_left(self, nodes: Numbers, values: Vector) -> Flags:
        """Return for pairs of a node and its feature's value, (count,), whether they go to the left."""
        left = np.where(
            np.isnan(values), self.nodes.missing_left[nodes], values <= self.nodes.threshold[nodes]
        )
        if self.nodes.members:
            for place in np.flatnonzero(np.isin(nodes, list(self.nodes.members)) & ~np.isnan(values)):
                low, high = self.nodes.members[int(nodes[place])].T
                left[place] = ((low <= values[place]) & (values[place] < high)).any()
        return np.asarray(left, np.bool_)

    def reached(self, samples: Vector) -> Numbers:
        """Return the leaf that samples, (count, features), reach in each tree, (count, trees)."""
        values = samples.astype(np.float32).astype(np.float64) if self.single else samples
        rows = max(CHUNK // len(self.roots), 1)
        parts = [self._reached(values[first : first + rows]) for first in range(0, len(values), rows)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.roots)), np.int64)

    def _reached(self, values: Vector) -> Numbers:
        at = np.tile(self.roots, (len(values), 1))
        while (inner := self.nodes.feature[at] >= 0).any():
            row, tree = np.nonzero(inner)
            nodes = at[row, tree]
            left = self.goes_left(nodes, values[row, self.nodes.feature[nodes]])
            at[row, tree] = np.where(left, self.nodes.left[nodes], self.nodes.right[nodes])
        return at

    def sums(self, samples: Vector) -> Vector:
        """Return the sums of leaves of samples, (count, features) to (count, outputs)."""
        result = np.zeros((len(samples), self.outputs))
        for leaves in self.reached(samples).T:
            result += self.nodes.values[leaves]
        return result

    def scores(self, samples: Vector) -> Vector:
        """Return ``base + factor * sums`` of samples, (count, features) to (count, outputs)."""
        return np.asarray(self.base + self.factor * self.sums(samples), np.float64)


@dataclass(frozen=True, eq=False)
class EncodedEnsemble:
    """Trees behind what the client computes.

    Attributes:
        steps: make the features of samples.
        trees: of these features.
    """

    steps: FirstSteps
    trees: Ensemble


def require_counts(trees: int, nodes: int, outputs: int) -> None:
    """Refuse an ensemble that is too large, before anything of its size is made.

    Raises:
        RefusalError: names the count and the limit.
    """
    require_at_most("the ensemble", "trees", trees, MAX_TREES, ADVICE)
    require_at_most("the ensemble", "nodes", nodes, MAX_NODES, ADVICE)
    require_at_most("the ensemble", "values of leaves", nodes * outputs, MAX_VALUES, ADVICE)


def exactly(values: Vector) -> Vector:
    """Return the ranges of single values, (values, 2)."""
    return np.stack((values, np.nextafter(values, np.inf)), axis=1)


def cut_off(categories: Vector, *, toward_zero: bool = False) -> Vector:
    """Return the ranges of the values that a library takes for its categories, (categories, 2): it cuts off
    the digits after the point.

    Args:
        toward_zero: whether it takes numbers above -1 for 0; otherwise they are no category.
    """
    ranges = np.stack((categories, categories + 1), axis=1)
    if toward_zero:
        ranges[categories == 0, 0] = np.nextafter(-1.0, 0.0)
    return ranges


def before_scaling(nodes: Nodes, scaling: Scaling) -> Nodes:
    """Return nodes that send features where the given ones send them after a scaling: for every double, with
    the scaling's own roundings."""
    inner, feature = nodes.feature >= 0, np.maximum(nodes.feature, 0)
    thresholds = np.where(inner, _last_at_most(nodes.threshold, feature, scaling), 0.0)
    members = {}
    for node, ranges in nodes.members.items():
        below = np.nextafter(ranges, -np.inf).ravel()
        last = _last_at_most(below, np.full(len(below), nodes.feature[node]), scaling)
        first = np.nextafter(last, np.inf).reshape(ranges.shape)
        first[:, 1] = np.maximum(first[:, 1], exactly(first[:, 0])[:, 1])
        members[node] = first
    return replace(nodes, threshold=thresholds, members=members)


def _last_at_most(thresholds: Vector, feature: Numbers, scaling: Scaling) -> Vector:
    """Return the largest doubles, (count,), that a scaling maps to at most the thresholds, (count,)."""
    last = np.full(len(thresholds), np.finfo(np.float64).max).view(np.int64)
    low, high = -last, last  # doubles in order, as whole numbers
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # of two, the upper one
        with np.errstate(all="ignore"):
            left = scaling(np.copysign(np.abs(middle).view(np.float64), middle), feature) <= thresholds
        low, high = np.where(left, middle, low), np.where(left, high, middle - 1)
    return np.copysign(np.abs(low).view(np.float64), low)


def joined(trees: Sequence[Nodes]) -> tuple[Numbers, Nodes]:
    """Return the roots and the nodes of trees, one after the other.

    Raises:
        RefusalError: too many trees, nodes or values.
        RefusalError: there are no trees.
    """
    if not trees:
        raise RefusalError("the ensemble has no trees")
    sizes = [len(tree.feature) for tree in trees]
    require_counts(len(trees), sum(sizes), trees[0].values.shape[1])
    first = np.concatenate(([0], np.cumsum(sizes)))[:-1].astype(np.int64)
    moved = {
        name: np.concatenate([getattr(t, name) + at for t, at in zip(trees, first, strict=True)])
        for name in ("left", "right")
    }
    same = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("feature", "threshold", "missing_left", "values")
    }
    members = {
        int(at) + node: values
        for tree, at in zip(trees, first, strict=True)
        for node, values in tree.members.items()
    }
    return first, Nodes(members=members, **moved, **same)
