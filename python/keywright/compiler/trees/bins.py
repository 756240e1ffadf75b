"""Bins of features: edges between them, and a value in each that stands for all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keywright.program.arrays import Vector
from keywright.program.operands.binning import Binning

from .ensemble import Ensemble, Flags, Numbers

WHOLE = 2.0**24
"""Whole numbers below this are exact in single precision."""

NEARLY_ONE = 1 - 2.0**-10
"""What a value may be above the largest category: a message shows that it is below the next one."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The client's first step, and a representative of each bin, which only the compiler knows.

    The quantised model is the model itself on representatives: that is its definition.

    Attributes:
        binning: the first step.
        representatives: of every feature, (its edges + 1,); empty for features without a bit.
    """

    binning: Binning
    representatives: Sequence[Vector]

    @property
    def whole(self) -> bool:
        """Whether every bin is for one whole number."""
        return all(is_whole(middle, len(middle)) for middle in self.representatives if len(middle))

    def quantised(self, samples: Vector) -> Vector:
        """Return samples, (count, features), with the representative of every value; missing ones stay."""
        values, result = self.binning.rounded(samples), samples.copy()
        for feature, middle in enumerate(self.representatives):
            if len(middle):
                edges = self.binning.edges[self.binning.columns == feature]
                place = np.searchsorted(edges, values[:, feature])
                absent = np.isnan(values[:, feature])
                result[:, feature] = np.where(absent, np.nan, middle[np.where(absent, 0, place)])
        return result


def used_features(ensemble: Ensemble) -> Numbers:
    """Return the features that a node compares, ascending."""
    return np.unique(ensemble.nodes.feature[ensemble.nodes.feature >= 0])


@dataclass(frozen=True)
class Categories:
    """What values of a feature with categories count as.

    Attributes:
        whole: whether digits after the point are cut off; otherwise only the categories themselves are such.
        toward_zero: whether values above -1 are then 0.
    """

    whole: bool
    toward_zero: bool

    def of(self, values: Vector) -> Vector:
        """Return the categories of ascending values."""
        if not self.whole:
            return values
        return np.where(self.toward_zero & (values > -1) & (values < 0), 0.0, np.floor(values))

    def edges(self, between: Vector) -> Vector:
        """Return edges that part the values of categories, from edges between the categories."""
        if not self.whole:
            return between
        first = np.ceil(between)
        return np.where(self.toward_zero & (first == 0), -1.0, np.nextafter(first, -np.inf))

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the least and the largest value whose category is between those of two values."""
        if not self.whole:
            return low, high
        first, last = self.of(np.asarray([low, high]))
        return float(first), float(last + NEARLY_ONE)


def categories(ensemble: Ensemble, feature: int) -> Categories:
    """Return what values of a feature with categories count as."""
    nodes = [node for node in ensemble.nodes.members if ensemble.nodes.feature[node] == feature]
    low, high = np.concatenate([ensemble.nodes.members[node] for node in nodes]).T
    return Categories(bool((high - low >= 1).all()), bool(((low > -1) & (low < 0)).any()))


def private_bins(ensemble: Ensemble, samples: Vector, count: int) -> Bins:
    """Return at most ``count`` bins of each used feature, whose edges depend on samples alone: each distinct
    value has its own bin if there are few, and so has each whole number in the range of whole numbers;
    otherwise the bins have equal shares of the samples. If nodes test whether a feature equals a number, the
    values between two of few are in a bin of their own, one less than ``count`` more.

    Args:
        samples: (count, features).
    """
    values = samples.astype(np.float32).astype(np.float64) if ensemble.single else samples
    edges, middles = {}, {}
    for feature in used_features(ensemble):
        present = np.sort(values[:, feature][~np.isnan(values[:, feature])])
        if feature not in ensemble.categorical:
            edges[int(feature)], middles[int(feature)] = _quantiles(present, count)
            continue
        taken = categories(ensemble, int(feature))
        bins = _quantiles if taken.whole else _single_values
        between, middles[int(feature)] = bins(taken.of(present), count)
        edges[int(feature)] = taken.edges(between)
    return _bins(ensemble, edges, middles, thresholds=False)


def _quantiles(values: Vector, count: int) -> tuple[Vector, Vector]:
    """Return the edges between bins of ascending values, and the lower median of the values in each."""
    if not len(values):
        return np.zeros(0), np.zeros(1)
    distinct = np.unique(values)
    if is_whole(distinct, count):
        distinct = np.arange(distinct[0], distinct[-1] + 1)
    if len(distinct) <= count:
        return _between(distinct, np.arange(1, len(distinct))), distinct
    cuts = np.unique(values[np.arange(1, count) * len(values) // count])
    place = np.searchsorted(distinct, cuts)
    edges = _between(distinct, place[place > 0])
    ends = np.concatenate(([0], np.searchsorted(values, edges, side="right"), [len(values)]))
    return edges, values[(ends[:-1] + ends[1:] - 1) // 2]


def _single_values(values: Vector, count: int) -> tuple[Vector, Vector]:
    """Return the same with a bin for each of few distinct values, and one for all values between two of
    them, which are no category; otherwise `_quantiles`."""
    edges, middles = _quantiles(values, count)
    if len(np.unique(values)) > count:
        return edges, middles
    below, above = middles[:-1], middles[1:]
    return (
        np.stack([below, np.nextafter(above, -np.inf)], axis=1).ravel(),
        np.append(np.stack([below, below + (above - below) / 2], axis=1).ravel(), middles[-1:]),
    )


def is_whole(distinct: Vector, count: int) -> bool:
    """Whether ascending values are whole numbers, of which at most ``count`` are in their range."""
    return bool(
        len(distinct) > 0
        and distinct[-1] - distinct[0] < count
        and np.abs(distinct[[0, -1]]).max() < WHOLE
        and (distinct == np.round(distinct)).all()
    )


def _between(distinct: Vector, place: Numbers) -> Vector:
    """Return edges below values, by their place."""
    below, above = distinct[place - 1], distinct[place]
    middle = below + (above - below) / 2
    return np.asarray(np.where((middle >= below) & (middle < above), middle, below), np.float64)


def public_bins(ensemble: Ensemble) -> Bins:
    """Return the bins between the model's own thresholds: nothing is rounded."""
    edges: dict[int, Vector] = {}
    middles: dict[int, Vector] = {}
    testing = np.zeros(len(ensemble.nodes.feature), bool)
    testing[list(ensemble.nodes.members)] = True
    for feature in used_features(ensemble):
        mine = ensemble.nodes.feature == feature
        ranges = [ensemble.nodes.members[int(node)].ravel() for node in np.flatnonzero(mine & testing)]
        # A range starts above the number before its first one.
        ends = np.nextafter(np.concatenate([*ranges, np.zeros(0)]), -np.inf)
        result = np.unique(np.concatenate((ensemble.nodes.threshold[mine & ~testing], ends)))
        edges[int(feature)] = result
        middles[int(feature)] = np.append(result, np.inf)  # each edge is in the bin below it
    return _bins(ensemble, edges, middles, thresholds=True)


def _bins(
    ensemble: Ensemble, edges: dict[int, Vector], middles: dict[int, Vector], *, thresholds: bool
) -> Bins:
    columns = np.repeat(list(edges), [len(each) for each in edges.values()]).astype(np.int64)
    positions = np.concatenate([*edges.values(), np.zeros(0)])
    missing = np.asarray(list(edges), np.int64) if ensemble.missing else np.zeros(0, np.int64)
    if not len(columns) and not len(missing):  # a constant, for which a program still has an input
        columns, positions = np.zeros(1, np.int64), np.zeros(1)
        middles = {feature: np.repeat(each, 1 + (feature == 0)) for feature, each in middles.items()}
    binning = Binning(ensemble.features, columns, positions, missing, ensemble.single, thresholds)
    none = np.zeros(0)
    return Bins(binning, [middles.get(feature, none) for feature in range(ensemble.features)])


def decisions(ensemble: Ensemble, bins: Bins, nodes: Numbers) -> tuple[Flags, Flags]:
    """Return for nodes of one feature which of its bins go to the left, (nodes, bins), and whether missing
    values do, (nodes,)."""
    middle = bins.representatives[int(ensemble.nodes.feature[nodes[0]])]
    pairs = np.repeat(nodes, len(middle)), np.tile(middle, len(nodes))
    left = ensemble.goes_left(*pairs).reshape(len(nodes), len(middle))
    return left, ensemble.nodes.missing_left[nodes]
