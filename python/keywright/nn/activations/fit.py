"""How closely a program follows its model: the data that ranges are measured on, and the polynomials."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from .functions import ACTIVATIONS

MAX_DEGREE = 63


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """Ranges of values, and polynomials in the place of activations.

    Attributes:
        calibration: typical inputs, (count, *input_shape), on which the ranges of activations and of the
            output are measured. Without them the output is not scaled and must fit under the last prime as
            it is.
        degrees: degree of the polynomial that stands for each ONNX activation ("Relu": 15); 7 where not
            given. Degree 2 takes one level, degree d otherwise ceil(log2(d + 1)).
        margin: share of its width by which each measured range is widened on both sides.
        headroom: how many times the values of the calibration data a bootstrapped value may reach; each
            doubling costs a bit.

    Raises:
        ValueError: an activation that there is none of, or a number out of its bounds.
    """

    calibration: ArrayLike | None = None
    degrees: Mapping[str, int] = field(default_factory=dict)
    margin: float = 0.1
    headroom: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 10:
            raise ValueError(f"margin is a share of the measured width between 0 and 10, got {self.margin}")
        for name, degree in self.degrees.items():
            if name not in ACTIVATIONS:
                raise ValueError(f"degrees names {name!r}; activations are {', '.join(sorted(ACTIVATIONS))}")
            if not 1 <= degree <= MAX_DEGREE:
                raise ValueError(f"the degree of {name} must be between 1 and {MAX_DEGREE}, got {degree}")
        if not 1 <= self.headroom < 2**20:
            raise ValueError(f"headroom is a factor between 1 and 2^20, got {self.headroom}")
