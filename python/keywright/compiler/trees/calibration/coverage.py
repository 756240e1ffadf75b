"""Where the thresholds of an ensemble are beside calibration data."""

from dataclasses import dataclass, replace

import numpy as np

from keywright.compiler.trees.bins import Bins, categories, used_features
from keywright.compiler.trees.ensemble import Ensemble, Numbers
from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector

INFINITE = float(np.finfo(np.float64).max)
"""Thresholds of this size only tell missing values from others."""

FEW_THRESHOLDS = 3
"""Features with fewer thresholds do not show how far apart these are."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """Where a model's thresholds are, beside the values of the calibration data.

    Attributes:
        limited: features with thresholds outside, ascending, (count,).
        low, high: the range of their values, (count,).
        outside: number of comparisons with thresholds outside: all calibration samples are on one side.
        comparisons: of the model.
        spanned: share of the values of the calibration data between the lowest and the highest threshold of
            their feature, beside the share between as many values of these data themselves; 1 if the features
            have too few thresholds.
    """

    limited: Numbers
    low: Vector
    high: Vector
    outside: int
    comparisons: int
    spanned: float

    def within(self, bins: Bins) -> Bins:
        """Return bins whose first step refuses samples outside."""
        binning = replace(bins.binning, limited=self.limited, limits=np.stack([self.low, self.high], axis=1))
        return replace(bins, binning=binning)


def coverage(ensemble: Ensemble, samples: Vector) -> Coverage:
    """Compare the thresholds of a model with samples, (count, features).

    Raises:
        RefusalError: all samples lack a feature that the model compares.
    """
    values = samples.astype(np.float32).astype(np.float64) if ensemble.single else samples
    used = used_features(ensemble)
    absent = used[np.isnan(values[:, used]).all(axis=0)]
    if len(absent):
        raise RefusalError(
            f"the trees compare feature {absent[0]}, which is missing in all calibration samples; give "
            "samples that have it (calibration=)",
            code="ranges",
        )
    low, high = np.zeros(ensemble.features), np.zeros(ensemble.features)
    low[used], high[used] = np.nanmin(values[:, used], axis=0), np.nanmax(values[:, used], axis=0)
    inner = np.flatnonzero(ensemble.nodes.feature >= 0)
    feature, threshold = ensemble.nodes.feature[inner], ensemble.nodes.threshold[inner]
    beyond = (threshold < low[feature]) | (threshold >= high[feature])
    beyond &= np.abs(threshold) < INFINITE
    for place, node in enumerate(inner):
        members = ensemble.nodes.members.get(int(node))
        if members is not None:
            inside = (members[:, 1] > low[feature[place]]) & (members[:, 0] <= high[feature[place]])
            beyond[place] = not inside.all()
    # A category beyond all others is in no bin, whatever nodes test it.
    limited = np.union1d(feature[beyond], ensemble.categorical)
    for each in ensemble.categorical:
        low[each], high[each] = categories(ensemble, int(each)).within(low[each], high[each])
    return Coverage(
        limited, low[limited], high[limited], int(beyond.sum()), len(inner), _spanned(ensemble, values)
    )


def _spanned(ensemble: Ensemble, values: Vector) -> float:
    between, usual = 0.0, 0.0
    tested = np.ones(len(ensemble.nodes.feature), bool)
    tested[list(ensemble.nodes.members)] = False
    for feature in used_features(ensemble):
        thresholds = np.unique(ensemble.nodes.threshold[tested & (ensemble.nodes.feature == feature)])
        thresholds = thresholds[np.abs(thresholds) < INFINITE]
        if (count := len(thresholds)) >= FEW_THRESHOLDS:
            present = values[:, feature][~np.isnan(values[:, feature])]
            between += float(((present > thresholds[0]) & (present <= thresholds[-1])).mean())
            usual += (count - 1) / (count + 1)
    return between / usual if usual else 1.0
