"""The client's first step of tree ensembles: features become bits that say which edges they exceed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Stated
from keywright.errors.network import OutOfRangeError
from keywright.program.arrays import Vector

Columns = NDArray[np.int64]

MAX_BITS = 1 << 22
"""Maximum number of bits of one sample."""


@dataclass(frozen=True, eq=False)
class Binning(Stated):
    """A bit for each edge, 1 if its feature is above the edge, then a bit for each feature that may be
    missing, 1 if it is. A missing feature is above no edge.

    Attributes:
        features: number of features of a sample.
        columns, edges: feature and position of every edge, (edges,), ordered by feature, then by position.
        missing: features that may be missing (NaN), ascending, (count,).
        single: whether features are rounded to single precision before they are compared.
        thresholds: whether edges are the thresholds of the model; otherwise they come from calibration data
            alone.
        limited: features that the model also compares with thresholds outside the calibration data,
            ascending, (count,): their values must not be outside.
        limits: the least and the largest value of each of them, (count, 2).

    Raises:
        ValueError: the parts contradict each other, or edges are not finite or not in order.
    """

    features: int
    columns: Columns
    edges: Vector
    missing: Columns
    single: bool = False
    thresholds: bool = False
    limited: Columns = field(default_factory=lambda: np.zeros(0, np.int64))
    limits: Vector = field(default_factory=lambda: np.zeros((0, 2)))

    def __post_init__(self) -> None:
        if not 1 <= self.features < 1 << 31:
            raise ValueError(f"a sample has {self.features} features")
        if not 1 <= self.bits <= MAX_BITS:
            raise ValueError(f"a sample has {self.bits} bits; 1 to {MAX_BITS} are possible")
        if len(self.columns) != len(self.edges):
            raise ValueError(f"{len(self.edges)} edges are of {len(self.columns)} features")
        named = (("edges", self.columns), ("missing bits", self.missing), ("limits", self.limited))
        for name, each in named:
            if len(each) and not (each.min() >= 0 and each.max() < self.features):
                raise ValueError(f"{name} are of features that a sample of {self.features} does not have")
        if (np.diff(self.missing) <= 0).any():
            raise ValueError("features that may be missing are not in ascending order")
        if (np.diff(self.limited) <= 0).any():
            raise ValueError("features with limits are not in ascending order")
        ranges = self.limits.shape == (len(self.limited), 2) and np.isfinite(self.limits).all()
        if not (ranges and (self.low <= self.high).all()):
            raise ValueError("limits of features are not ranges, one of each")
        if not np.isfinite(self.edges).all():
            raise ValueError("an edge is not finite")
        steps = np.diff(self.columns)
        if (steps < 0).any() or (np.diff(self.edges)[steps == 0] <= 0).any():
            raise ValueError("edges are not in ascending order")

    @property
    def low(self) -> Vector:
        """The least value of each limited feature, (count,)."""
        return self.limits[:, 0]

    @property
    def high(self) -> Vector:
        """The largest value of each limited feature, (count,)."""
        return self.limits[:, 1]

    @property
    def bits(self) -> int:
        """Bits of a sample."""
        return len(self.columns) + len(self.missing)

    @cached_property
    def used(self) -> Columns:
        """Features that have a bit, ascending."""
        return np.union1d(self.columns, self.missing)

    def apply(self, samples: Vector) -> Vector:
        """Return the bits of samples, (count, features) to (count, bits); features without a bit are not
        looked at."""
        values = self.rounded(samples)
        above = values[:, self.columns] > self.edges
        return np.concatenate((above, np.isnan(values[:, self.missing])), axis=1).astype(np.float64)

    def require_limits(self, samples: Vector, columns: Sequence[str] = ()) -> None:
        """Refuse samples, (count, features), outside the limits: the answer may be that of others.

        Args:
            columns: names of the features, if they have names.

        Raises:
            OutOfRangeError: names the feature and the value furthest outside.
        """
        values = self.rounded(samples)[:, self.limited]
        beyond = np.fmax(self.low - values, values - self.high)  # missing values are within
        if beyond.size and np.nanmax(beyond, initial=0.0) > 0:
            row, place = np.unravel_index(int(np.nanargmax(beyond)), beyond.shape)
            number = int(self.limited[place])
            raise OutOfRangeError(
                f"column {columns[number]!r}" if columns else f"feature {number} of the trees",
                float(values[row, place]),
                float(self.low[place]),
                float(self.high[place]),
            )

    def rounded(self, samples: Vector) -> Vector:
        """Return samples in the precision in which they are compared."""
        if not self.single:
            return samples
        with np.errstate(over="ignore"):
            return samples.astype(np.float32).astype(np.float64)

    def absent(self, samples: Vector) -> NDArray[np.bool_]:
        """Return which values of samples, (..., features), are missing and may be. If any feature may be
        missing, so may those without an edge."""
        allowed = np.full(self.features, len(self.missing) > 0)
        allowed[np.setdiff1d(self.columns, self.missing)] = False
        return np.asarray(np.isnan(samples) & allowed, np.bool_)

    def to_json(self) -> dict[str, Any]:
        """Return the parts as values of JSON."""
        limits = {
            "limits": {
                "features": self.limited.tolist(),
                "low": self.low.tolist(),
                "high": self.high.tolist(),
            }
        }
        return {
            "features": self.features,
            "columns": self.columns.tolist(),
            "edges": self.edges.tolist(),
            "missing": self.missing.tolist(),
            "single": self.single,
            "thresholds": self.thresholds,
            **(limits if len(self.limited) else {}),
        }

    def __str__(self) -> str:
        count = len(np.unique(self.columns))
        what = "the model's thresholds" if self.thresholds else "quantiles of the calibration data"
        limits = f", and the ranges of {len(self.limited)} of them there" if len(self.limited) else ""
        return f"{len(self.edges)} edges of {count} features, {what}{limits}"
