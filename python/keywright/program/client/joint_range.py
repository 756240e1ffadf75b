"""The range of all features together: an ellipsoid around calibration data, checked without the program. Of
many features, it is around random sums of them."""

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.records import refusing
from keywright.errors.engine import FormatError
from keywright.errors.network import OutOfRangeError
from keywright.program.arrays import Vector

MOST_FEATURES = 64
"""Of samples with more features, sums are taken: the covariances of all would be most of a manifest."""

SUMS = 32
"""Sums of features with random signs. Data that depend on fewer hidden values are on a surface in them."""

UNSEEN = 1 << 10
"""Power of two by which features without a spread are divided: they do not count."""

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

MOST_SUMMED = 1 << 18
"""Samples of as many features have no joint range: the signs of their sums would take 64 MiB."""

SUMMED: dict[str, Any] = {"features": 0, "powers": [], "places": []}
"""Entries of sums, with their values where there are none."""

SEED = b"keywright joint range 1"


@dataclass(frozen=True, eq=False)
class JointRange:
    """Values ``x`` with ``|factor (x - centre)| <= largest``: features, or sums of many with random signs.

    Attributes:
        centre: (values,).
        factor: (values, values).
        largest: the largest distance.
        features: number of the features in sums; 0 if the values are the features.
        powers: of two, by which features in sums are divided before; empty if all have one scale.
        places: whole numbers, which are subtracted then; as many as powers.

    Raises:
        ValueError: the shapes do not fit, or numbers are not finite.
    """

    centre: Vector
    factor: Vector
    largest: float
    features: int = 0
    powers: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.centre)
        finite = np.isfinite(self.centre).all() and np.isfinite(self.factor).all()
        if self.factor.shape != (count, count) or not 0 < count <= MOST_FEATURES or not finite:
            raise ValueError(f"a joint range has a finite matrix for at most {MOST_FEATURES} features")
        if not 0 < self.largest < np.inf:
            raise ValueError("the largest distance of a joint range is a number above 0")
        if self.features and not (count <= SUMS and MOST_FEATURES < self.features < MOST_SUMMED):
            raise ValueError(f"there are {SUMS} sums of {MOST_FEATURES + 1} to {MOST_SUMMED - 1} features")
        if len(self.powers) not in {0, self.features} or len(self.places) != len(self.powers):
            raise ValueError("a joint range has a power and a place for each feature in sums, or none")
        if any(abs(each) > UNSEEN for each in self.powers) or any(
            abs(each) > 1 << 62 for each in self.places
        ):
            raise ValueError("the powers of a joint range are out of range")

    @property
    def width(self) -> int:
        """The number of features of a sample."""
        return self.features or len(self.centre)

    @classmethod
    def of(cls, samples: Vector, *, one_scale: bool = False) -> "JointRange | None":
        """Return the range of calibration data, (count, features); None if these are too few.

        Args:
            one_scale: whether features have a common scale, as the pixels of an image do.
        """
        count, features = samples.shape
        if features >= MOST_SUMMED or count < LEAST_SAMPLES:
            return None
        if features > MOST_FEATURES:
            powers, places = ((), ()) if one_scale else _units(samples)
            inner = cls.of(_sums(samples, min(SUMS, count // PER_FEATURE), powers, places))
            return inner and replace(inner, features=features, powers=powers, places=places)
        if count < max(LEAST_SAMPLES, PER_FEATURE * features):
            return None
        if not (np.ptp(samples, axis=0) > 0).any():
            return None
        halves = samples[::2], samples[1::2]
        far = np.concatenate([_distances(each, *_ellipsoid(other)) for each, other in (halves, halves[::-1])])
        largest = max(MARGIN * far.max(), far.mean() + DEVIATIONS * far.std())
        centre, factor = _ellipsoid(samples)
        largest = max(largest, MARGIN * float(_distances(samples, centre, factor).max()))
        return cls(centre, _short(factor), float(_short(np.asarray(largest))))

    def require(self, features: NDArray[np.float64]) -> None:
        """Refuse samples, (count, ...), outside.

        Raises:
            OutOfRangeError: states the distance.
        """
        values = features.reshape(len(features), -1)
        if self.features:
            values = _sums(values, len(self.centre), self.powers, self.places)
        with np.errstate(over="ignore", invalid="ignore"):  # of a range that a server made up
            worst = float(_distances(values, self.centre, self.factor).max())
        if not worst <= self.largest:
            raise OutOfRangeError(
                "the distance of the features together from the middle of the calibration data",
                worst,
                0.0,
                self.largest,
            )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that `read` accepts."""
        entry = {"centre": self.centre.tolist(), "factor": self.factor.tolist(), "largest": self.largest}
        sums = {"features": self.features, "powers": list(self.powers), "places": list(self.places)}
        return entry | sums if self.features else entry

    @staticmethod
    def read(entry: object) -> "JointRange":
        """Read the range from a JSON object.

        Raises:
            FormatError: the object is malformed.
        """
        with refusing("a joint range of features", FormatError, code="program"):
            if not isinstance(entry, dict) or len(entry["centre"]) > MOST_FEATURES:
                raise ValueError("it is not an object, or is too large")
            centre, factor = (np.asarray(entry[name], np.float64) for name in ("centre", "factor"))
            features, powers, places = (entry.get(name, few) for name, few in SUMMED.items())
            if not all(type(each) is int for each in (features, *powers, *places)):
                raise ValueError("numbers of features, powers of two and places are whole")
            largest = float(entry["largest"])
            return JointRange(centre, factor, largest, features, tuple(powers), tuple(places))


def _ellipsoid(samples: Vector) -> tuple[Vector, Vector]:
    """Return the centre and the factor of samples, (count, features)."""
    centre = samples.mean(axis=0)
    size = np.maximum(samples.std(axis=0), np.ptp(samples, axis=0) / WIDEST)
    inverse = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    scaled = (samples - centre) * inverse
    covariance = scaled.T @ scaled / len(samples) + RIDGE * np.eye(len(centre))
    return centre, np.linalg.inv(np.linalg.cholesky(covariance)) * inverse


def _units(samples: Vector) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the power of two next to the spread of each feature, and its mean in this unit."""
    size = np.maximum(samples.std(axis=0), np.ptp(samples, axis=0) / WIDEST)
    spread = size > 0
    powers = np.where(spread, np.rint(np.log2(np.where(spread, size, 1.0))), UNSEEN)
    whole = np.clip(powers, -UNSEEN, UNSEEN).astype(np.int64)
    places = np.rint(np.ldexp(samples.mean(axis=0), -whole))
    return tuple(whole.tolist()), tuple(map(int, np.where(np.abs(places) < 2**62, places, 0).tolist()))


def _sums(samples: Vector, count: int, powers: tuple[int, ...], places: tuple[int, ...]) -> Vector:
    """Return sums of features with random signs, (samples, count)."""
    scaled = samples
    if powers:
        scaled = np.ldexp(samples, -np.asarray(powers, np.int64)) - np.asarray(places, np.float64)
    return np.asarray(scaled @ _signs(samples.shape[1], count), np.float64)


@lru_cache(maxsize=2)
def _signs(features: int, count: int) -> Vector:
    """Return the signs, (features, count), the same everywhere."""
    size = -(-features * count // 8)
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(SEED).digest(size), np.uint8))[: features * count]
    return np.where(bits, 1.0, -1.0).reshape(features, count)


def _distances(samples: Vector, centre: Vector, factor: Vector) -> Vector:
    return np.asarray(np.linalg.norm((samples - centre) @ factor.T, axis=1))


def _short(values: Vector) -> Vector:
    """Return values with few digits: a manifest has them as text."""
    short = [float(f"{value:.{DIGITS}g}") for value in values.ravel().tolist()]
    return np.asarray(short, np.float64).reshape(values.shape)
