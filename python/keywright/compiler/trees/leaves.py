"""Leaves in whole steps from the middle of their tree, so that an offset of all values costs no precision."""

from dataclasses import dataclass, replace

import numpy as np

from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector

from .ensemble import Ensemble, Numbers

STEP_BITS = 20
"""Sums of leaves are multiples of 2^-STEP_BITS of the width of their range, or a little more."""


@dataclass(frozen=True, eq=False)
class RoundedLeaves:
    """The values of leaves, rounded: ``centre + step * whole``.

    Attributes:
        step: of every output, (outputs,); 0 for an output that does not vary.
        tree: of every node, (nodes,).
        centre: of every tree, a multiple of the step, (trees, outputs).
        whole: of every leaf, (nodes, outputs); other nodes have zeros.
        width: of the range of sums, (outputs,).
    """

    step: Vector
    tree: Numbers
    centre: Vector
    whole: Vector
    width: Vector

    def within(self, ensemble: Ensemble) -> Ensemble:
        leaf = ensemble.nodes.feature < 0
        values = np.where(leaf[:, None], self.centre[self.tree] + self.whole * self.step, 0.0)
        return replace(ensemble, nodes=replace(ensemble.nodes, values=values))


def rounded_leaves(ensemble: Ensemble) -> RoundedLeaves:
    """Return the leaves of an ensemble, rounded.

    Every output has a step of its own. The scores of labels, which are compared with each other, share one,
    so that equal scores stay equal.

    Raises:
        RefusalError: the range of the sums is beyond double precision.
    """
    tree = _trees(ensemble)
    leaf = ensemble.nodes.feature < 0
    values, of = ensemble.nodes.values[leaf], tree[leaf]
    shape = (len(ensemble.roots), ensemble.outputs)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(low, of, values)
    np.maximum.at(high, of, values)
    with np.errstate(over="ignore"):
        width = (high - low).sum(axis=0)
    if not np.isfinite(width).all():
        raise RefusalError("the leaves of the ensemble differ by more than double precision holds")
    if ensemble.last.labels is not None:
        width = np.full_like(width, width.max())
    mantissa, exponent = np.frexp(width)
    step = np.ldexp(np.where(width > 0, 1.0, 0.0), exponent - (mantissa == 0.5) - STEP_BITS)
    unit = np.where(step > 0, step, 1.0)
    middle = low + (high - low) / 2
    centre = np.where(step > 0, np.round(middle / unit) * unit, middle)
    whole = np.zeros_like(ensemble.nodes.values)
    whole[leaf] = np.round((values - centre[of]) / unit)
    return RoundedLeaves(step, tree, centre, whole, width)


def _trees(ensemble: Ensemble) -> Numbers:
    """Return the tree of every node, (nodes,)."""
    nodes, result = ensemble.nodes, np.zeros(len(ensemble.nodes.feature), np.int64)
    at, tree = ensemble.roots, np.arange(len(ensemble.roots))
    while len(at):
        result[at] = tree
        inner = nodes.feature[at] >= 0
        at = np.concatenate((nodes.left[at[inner]], nodes.right[at[inner]]))
        tree = np.concatenate((tree[inner], tree[inner]))
    return result
