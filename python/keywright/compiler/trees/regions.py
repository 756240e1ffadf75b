"""Regions of leaves: for each leaf the bins of each feature from which samples reach it.

A path's comparisons of one feature together allow a set of its bins. A sample is in exactly one bin of each
feature, so a feature contributes 0 or 1 to the number of features that keep a sample from a leaf, and that
number is linear in the client's bits.
"""

from dataclasses import dataclass

import numpy as np

from keywright.program.arrays import Vector

from .bins import Bins, decisions
from .ensemble import Ensemble, Flags, Numbers


@dataclass(frozen=True, eq=False)
class Regions:
    """Leaves that a sample can reach, and for each the number of features that keep a sample from it:
    ``constant - sum of coefficients * bits``.

    Attributes:
        leaves: their nodes, (count,).
        tree: of every leaf, (count,).
        features: number of features that restrict every leaf, (count,).
        rows, bits, coefficients: leaf (as an index of ``leaves``), bit and coefficient of every entry.
        constant: of every leaf, (count,).
    """

    leaves: Numbers
    tree: Numbers
    features: Numbers
    rows: Numbers
    bits: Numbers
    coefficients: Vector
    constant: Vector


def regions(ensemble: Ensemble, bins: Bins) -> Regions:
    """Return the regions of all leaves; those that no bins reach are left out."""
    return _Walk(ensemble, bins).run()


class _Walk:
    """Follows every path of every tree."""

    def __init__(self, ensemble: Ensemble, bins: Bins) -> None:
        self.ensemble, self.bins = ensemble, bins
        binning = bins.binning
        self.missing = {int(feature): place for place, feature in enumerate(binning.missing)}
        self.first = np.searchsorted(binning.columns, np.arange(ensemble.features))
        self.edges = len(binning.columns)
        # Of every inner node: the bins that go to the left, and last whether a missing value does.
        self.left: dict[int, Flags] = {}
        inner = np.flatnonzero(ensemble.nodes.feature >= 0)
        for feature in np.unique(ensemble.nodes.feature[inner]):
            nodes = inner[ensemble.nodes.feature[inner] == feature]
            left, absent = decisions(ensemble, bins, nodes)
            extra = absent if int(feature) in self.missing else np.zeros(len(nodes), bool)
            for node, flags, last in zip(nodes, left, extra, strict=True):
                self.left[int(node)] = np.append(flags, last)
        self.leaves: list[tuple[int, int, int]] = []
        self.rows: list[int] = []
        self.bits: list[int] = []
        self.coefficients: list[float] = []
        self.constant: list[float] = []

    def run(self) -> Regions:
        for tree, root in enumerate(self.ensemble.roots):
            self._tree(tree, int(root))
        leaves, tree_of, features = np.asarray(self.leaves, np.int64).reshape(-1, 3).T
        return Regions(
            leaves,
            tree_of,
            features,
            np.asarray(self.rows, np.int64),
            np.asarray(self.bits, np.int64),
            np.asarray(self.coefficients, np.float64),
            np.asarray(self.constant, np.float64),
        )

    def _tree(self, tree: int, root: int) -> None:
        ensemble = self.ensemble
        waiting: list[tuple[int, dict[int, Flags]]] = [(root, {})]
        while waiting:
            node, path = waiting.pop()
            feature = int(ensemble.nodes.feature[node])
            if feature < 0:
                self._leaf(tree, node, path)
                continue
            left, before = self.left[node], path.get(feature)
            right = ~left
            if feature not in self.missing:
                right[-1] = False  # there are no missing values
            for child, allowed in ((ensemble.nodes.right[node], right), (ensemble.nodes.left[node], left)):
                both = allowed if before is None else allowed & before
                if both.any():
                    waiting.append((int(child), {**path, feature: both}))

    def _leaf(self, tree: int, node: int, path: dict[int, Flags]) -> None:
        row, count, constant = len(self.leaves), 0, 0.0
        for feature, allowed in path.items():
            absent = self.missing.get(feature)
            if allowed.all() or (absent is None and allowed[:-1].all()):
                continue
            # 1 for a sample in an allowed bin: the first bin is what is above no edge and not missing.
            count += 1
            within = allowed[:-1].astype(np.float64)
            constant += 1.0 - within[0]
            steps = np.diff(within)
            for place in np.flatnonzero(steps):
                self._entry(row, int(self.first[feature] + place), steps[place])
            if absent is not None and (last := float(allowed[-1]) - within[0]):
                self._entry(row, self.edges + absent, last)
        self.constant.append(constant)
        self.leaves.append((node, tree, count))

    def _entry(self, row: int, bit: int, coefficient: float) -> None:
        self.rows.append(row)
        self.bits.append(bit)
        self.coefficients.append(float(coefficient))
