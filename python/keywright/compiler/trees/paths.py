"""An ensemble as a graph: one linear map from bits to paths, one polynomial, one linear map to the scores."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from keywright.compiler.graph.graph import Domain, Graph, Input, Linear, Multiply, Polynomial
from keywright.compiler.graph.simplify import simplify
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Vector

from .bins import Bins
from .ensemble import ADVICE, Ensemble, Numbers
from .regions import Regions, regions

STEP_BITS = 20
"""Sums of leaves are multiples of 2^-STEP_BITS of their largest possible value, or a little more."""


@dataclass(frozen=True, eq=False)
class Paths:
    """The graph of a quantised ensemble.

    Attributes:
        graph: from bits to ``base + factor * sum of leaves``.
        step: sums of leaves are multiples of it.
        largest: bounds on every value of the graph.
        features: most features that restrict one leaf.
        leaves: number of leaves that the program computes.
        base: of the scores, with the leaves that are subtracted from whole trees.
    """

    graph: Graph
    step: float
    largest: dict[int, float]
    features: int
    leaves: int
    base: Vector


def indicator(features: int) -> Vector:
    """Return the polynomial that is 1 where no feature keeps a sample from a leaf, and 0 where 1 to
    ``features`` do, in the Chebyshev basis: of ``x = 1 - 2 m / features`` for m of them. It is the product of
    (1 - m / j) over j, and at most 1 in size on [-1, 1]."""
    j = np.arange(1, features + 1)[:, None]

    def product(x: Any) -> Any:
        return np.asarray(np.prod(1 - features * (1 - np.asarray(x)) / 2 / j, axis=0), np.float64)

    return np.asarray(np.polynomial.chebyshev.chebinterpolate(product, features), np.float64)


def paths(ensemble: Ensemble, bins: Bins) -> Paths:
    """Return the graph of an ensemble on bins.

    Raises:
        RefusalError: the paths have too many comparisons.
    """
    entries = int(_comparisons(ensemble))
    require_at_most("the ensemble", "comparisons on all paths", entries, MAX_ENTRIES, ADVICE)
    result = regions(ensemble, bins)
    values, constant, step = _leaf_values(ensemble, result)
    kept = np.flatnonzero(values.any(axis=1))
    base = ensemble.base + ensemble.factor * constant
    most = int(result.features[kept].max(initial=0))
    graph = Graph()
    source = graph.add(Input((bins.binning.bits,)))
    if most == 0:  # every leaf is the only one of its tree
        base = base + ensemble.factor * values.sum(axis=0)
        outputs, none = len(base), np.zeros(0, np.int64)
        nothing = SparseMatrix((outputs, bins.binning.bits), none, none, np.zeros(0))
        graph.output = graph.add(Linear((outputs,), (source,), (nothing,), base))
        bound = float(np.abs(base).max())
        return Paths(graph, step, {source: 1.0, graph.output: bound}, 0, 0, base)
    leaves = SparseMatrix.from_dense(ensemble.factor * values[kept].T)
    place = np.full(len(result.leaves), -1)
    place[kept] = np.arange(len(kept))
    mine = place[result.rows] >= 0
    shape = (len(kept), bins.binning.bits)
    counts = SparseMatrix.from_distinct(
        shape, place[result.rows[mine]], result.bits[mine], result.coefficients[mine]
    )
    bound = float((np.abs(base) + np.abs(ensemble.factor) * _largest(values, result.tree)).max())
    keeping = result.constant[kept]
    last = _indicated(graph, source, counts, keeping, most)
    graph.output = graph.add(Linear((len(base),), (last,), (leaves,), base, label="leaves"))
    graph = simplify(graph)
    # Everything before the scores is at most 1, a square at most 9 / 8.
    largest = dict.fromkeys(graph.nodes, 1.125) | {graph.output: bound}
    return Paths(graph, step, largest, most, len(kept), base)


def _indicated(graph: Graph, source: int, counts: SparseMatrix, constant: Vector, most: int) -> int:
    """Append the indicators of leaves: ``constant - counts @ bits`` features keep a sample from them."""
    shape = (len(constant),)
    if most == 1:
        return graph.add(Linear(shape, (source,), (counts,), 1 - constant, label="paths"))
    if most == 2:  # (1 - m) (1 - m / 2) = t^2 - 1/8 with t = (3/2 - m) / sqrt 2
        root = 1 / math.sqrt(2)
        matrix = counts.scaled(root)
        entering = graph.add(Linear(shape, (source,), (matrix,), root * (1.5 - constant), label="paths"))
        domain = Domain(-1.5 * root, 1.5 * root, -1.0, 1.0)
        square = graph.add(Multiply(shape, (entering, entering), "paths", domain))
        diagonal = SparseMatrix.diagonal(np.ones(len(constant)))
        return graph.add(Linear(shape, (square,), (diagonal,), np.full(len(constant), -0.125)))
    matrix = counts.scaled(2 / most)
    entering = graph.add(Linear(shape, (source,), (matrix,), 1 - 2 * constant / most, label="paths"))
    return graph.add(Polynomial(shape, (entering,), indicator(most), "paths", Domain(-1.0, 1.0, -1.0, 1.0)))


def _leaf_values(ensemble: Ensemble, result: Regions) -> tuple[Vector, Vector, float]:
    """Return the values of leaves, rounded to multiples of a step, less the most frequent ones of their tree,
    whose leaves then need not be computed; the sum of those; and the step."""
    values = ensemble.nodes.values[result.leaves]
    total = float(_largest(values, result.tree).max(initial=0.0))
    step = 2.0 ** (math.ceil(math.log2(total)) - STEP_BITS) if total > 0 else 0.0
    if step:
        values = np.round(values / step) * step
    constant = np.zeros(ensemble.outputs)
    order = np.argsort(result.tree, kind="stable")
    starts = np.flatnonzero(np.diff(result.tree[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        distinct, which = np.unique(values[group], axis=0, return_inverse=True)
        which = which.ravel()
        # Among equally frequent values, the one of the leaf with most features.
        counts = np.bincount(which).astype(np.float64)
        deepest = np.zeros(len(distinct))
        np.maximum.at(deepest, which, result.features[group])
        most = int(np.lexsort((deepest, counts))[-1])
        constant += distinct[most]
        values[group] -= distinct[most]
    return values, constant, step


def _largest(values: Vector, tree: Numbers) -> Vector:
    """Return a bound on the size of every sum of one leaf of each tree, (outputs,)."""
    most = np.zeros((int(tree.max(initial=-1)) + 1, values.shape[1]))
    np.maximum.at(most, tree, np.abs(values))
    return np.asarray(most.sum(axis=0), np.float64)


def _comparisons(ensemble: Ensemble) -> float:
    """Return the number of comparisons on the paths of all leaves."""
    at = ensemble.roots
    level, total = 0, 0.0
    while len(at):
        leaf = ensemble.nodes.feature[at] < 0
        total += level * float(leaf.sum())
        inner = at[~leaf]
        at = np.concatenate((ensemble.nodes.left[inner], ensemble.nodes.right[inner]))
        level += 1
    return total
