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
from keywright.program.operands.normalisation import Normalisation

from .bins import Bins
from .ensemble import ADVICE, Ensemble, Numbers
from .last_step import Sums
from .leaves import RoundedLeaves, rounded_leaves
from .regions import Regions, regions


@dataclass(frozen=True, eq=False)
class Paths:
    """The graph of a quantised ensemble.

    Attributes:
        graph: from bits to ``base + factor * sum of leaves``.
        sums: how the scores are made; their centre has the leaves that are subtracted from whole trees.
        width: bound on the distance of scores from their origin, (outputs,).
        largest: bounds on every value of the graph.
        features: most features that restrict one leaf.
        leaves: number of leaves that the program computes.
    """

    graph: Graph
    sums: Sums
    width: Vector
    largest: dict[int, float]
    features: int
    leaves: int

    @property
    def normalisation(self) -> Normalisation:
        """The program's result: scores without their origin, which the client adds in double precision, of at
        most 1 in every output."""
        width = np.where(self.width > 0, self.width, 1.0)
        mantissa, exponent = np.frexp(width)
        return Normalisation(self.sums.origin, np.ldexp(1.0, exponent - (mantissa == 0.5)))


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
    leaves = rounded_leaves(ensemble)
    whole, most_frequent = _from_most_frequent(ensemble, leaves, result)
    kept = np.flatnonzero(whole.any(axis=1))
    most = int(result.features[kept].max(initial=0))
    centre = leaves.centre.sum(axis=0) + leaves.step * most_frequent
    if most == 0:  # every leaf is the only one of its tree
        centre = centre + leaves.step * whole.sum(axis=0)
    sums = Sums(ensemble.base, centre, leaves.step, ensemble.factor)
    base, width = sums.origin, np.abs(ensemble.factor) * leaves.step * _largest(whole, result.tree)
    graph = Graph()
    source = graph.add(Input((bins.binning.bits,)))
    if most == 0:
        outputs, none = len(base), np.zeros(0, np.int64)
        nothing = SparseMatrix((outputs, bins.binning.bits), none, none, np.zeros(0))
        graph.output = graph.add(Linear((outputs,), (source,), (nothing,), base))
        bound = float(np.abs(base).max())
        return Paths(graph, sums, np.zeros(outputs), {source: 1.0, graph.output: bound}, 0, 0)
    scores = SparseMatrix.from_dense((ensemble.factor * leaves.step * whole[kept]).T)
    place = np.full(len(result.leaves), -1)
    place[kept] = np.arange(len(kept))
    mine = place[result.rows] >= 0
    shape = (len(kept), bins.binning.bits)
    counts = SparseMatrix.from_distinct(
        shape, place[result.rows[mine]], result.bits[mine], result.coefficients[mine]
    )
    bound = float((np.abs(base) + width).max())
    keeping = result.constant[kept]
    last = _indicated(graph, source, counts, keeping, most)
    graph.output = graph.add(Linear((len(base),), (last,), (scores,), base, label="leaves"))
    graph = simplify(graph)
    # Everything before the scores is at most 1, a square at most 9 / 8.
    largest = dict.fromkeys(graph.nodes, 1.125) | {graph.output: bound}
    return Paths(graph, sums, width, largest, most, len(kept))


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


def _from_most_frequent(ensemble: Ensemble, leaves: RoundedLeaves, result: Regions) -> tuple[Vector, Vector]:
    """Return the leaves in steps from the most frequent ones of their tree, which then need not be computed;
    and the sum of those, from the centres."""
    whole = leaves.whole[result.leaves]
    total = np.zeros(ensemble.outputs)
    order = np.argsort(result.tree, kind="stable")
    starts = np.flatnonzero(np.diff(result.tree[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        distinct, which = np.unique(whole[group], axis=0, return_inverse=True)
        which = which.ravel()
        # Among equally frequent values, the one of the leaf with most features.
        counts = np.bincount(which).astype(np.float64)
        deepest = np.zeros(len(distinct))
        np.maximum.at(deepest, which, result.features[group])
        most = int(np.lexsort((deepest, counts))[-1])
        total += distinct[most]
        whole[group] -= distinct[most]
    return whole, total


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
