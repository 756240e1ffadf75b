"""The range of all features together: an ellipsoid around calibration data, checked without the program."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.errors.engine import FormatError
from keywright.errors.network import OutOfRangeError
from keywright.program.arrays import Vector

MOST_FEATURES = 64
"""Samples of more features have no joint range: their covariances would be most of a manifest."""

LEAST_SAMPLES, PER_FEATURE = 50, 4
"""There is none for fewer calibration samples, or for fewer of them for each feature."""

WIDEST = 8.0
"""The deviation of a feature is at least its range divided by this: of a rare category, or beside an outlier,
the deviation alone says nothing."""

RIDGE = 2.0**-6
"""Part of the variance of every direction: features that are nearly collinear may differ by the eighth of a
deviation, as by rounding."""

MARGIN, DEVIATIONS = 2.0, 8.0
"""Factors of the largest distance of calibration data from the centre of the others, and of the deviation of
these distances above their mean: the larger result is the largest distance of a sample."""

DIGITS = 6


@dataclass(frozen=True, eq=False)
class JointRange:
    """Features ``x`` with ``|factor (x - centre)| <= largest``.

    Attributes:
        centre: (features,).
        factor: (features, features).
        largest: the largest distance.

    Raises:
        ValueError: the shapes do not fit, or numbers are not finite.
    """

    centre: Vector
    factor: Vector
    largest: float

    def __post_init__(self) -> None:
        count = len(self.centre)
        finite = np.isfinite(self.centre).all() and np.isfinite(self.factor).all()
        if self.factor.shape != (count, count) or not 0 < count <= MOST_FEATURES or not finite:
            raise ValueError(f"a joint range has a finite matrix for at most {MOST_FEATURES} features")
        if not 0 < self.largest < np.inf:
            raise ValueError("the largest distance of a joint range is a number above 0")

    @classmethod
    def of(cls, samples: Vector) -> "JointRange | None":
        """Return the range of calibration data, (count, features); None if these are too few."""
        count, features = samples.shape
        if not features <= MOST_FEATURES or count < max(LEAST_SAMPLES, PER_FEATURE * features):
            return None
        if not (np.ptp(samples, axis=0) > 0).any():
            return None
        halves = samples[::2], samples[1::2]
        far = np.concatenate([_distances(each, *_ellipsoid(other)) for each, other in (halves, halves[::-1])])
        largest = max(MARGIN * far.max(), far.mean() + DEVIATIONS * far.std())
        centre, factor = _ellipsoid(samples)
        largest = max(largest, MARGIN * float(_distances(samples, centre, factor).max()))
        return cls(_short(centre), _short(factor), float(_short(np.asarray(largest))))

    def require(self, features: NDArray[np.float64]) -> None:
        """Refuse samples, (count, ...), outside.

        Raises:
            OutOfRangeError: states the distance.
        """
        worst = float(_distances(features.reshape(len(features), -1), self.centre, self.factor).max())
        if not worst <= self.largest:
            raise OutOfRangeError(
                "the distance of the features together from the middle of the calibration data",
                worst,
                0.0,
                self.largest,
            )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that `read` accepts."""
        factor = self.factor.tolist()
        return {"centre": self.centre.tolist(), "factor": factor, "largest": self.largest}

    @staticmethod
    def read(entry: object, code: str) -> "JointRange":
        """Read the range from a JSON object.

        Raises:
            FormatError: the object is malformed, with this code.
        """
        try:
            if not isinstance(entry, dict) or len(entry["centre"]) > MOST_FEATURES:
                raise ValueError("it is no object, or too large")
            centre, factor = (np.asarray(entry[name], np.float64) for name in ("centre", "factor"))
            return JointRange(centre, factor, float(entry["largest"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"the joint range of features cannot be read: {error}", code=code) from error


def _ellipsoid(samples: Vector) -> tuple[Vector, Vector]:
    """Return the centre and the factor of samples, (count, features)."""
    centre = samples.mean(axis=0)
    size = np.maximum(samples.std(axis=0), np.ptp(samples, axis=0) / WIDEST)
    inverse = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    scaled = (samples - centre) * inverse
    covariance = scaled.T @ scaled / len(samples) + RIDGE * np.eye(len(centre))
    return centre, np.linalg.inv(np.linalg.cholesky(covariance)) * inverse


def _distances(samples: Vector, centre: Vector, factor: Vector) -> Vector:
    return np.asarray(np.linalg.norm((samples - centre) @ factor.T, axis=1))


def _short(values: Vector) -> Vector:
    """Return values with few digits: a manifest has them as text."""
    short = [float(f"{value:.{DIGITS}g}") for value in values.ravel().tolist()]
    return np.asarray(short, np.float64).reshape(values.shape)
