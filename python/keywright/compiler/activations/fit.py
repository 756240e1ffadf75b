"""How closely a program must follow its model: calibration data for ranges, and polynomials for
activations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from keywright._copies import Stated
from keywright.compiler.activations.approximation.method import Method
from keywright.errors.choices import require_choice, require_integer, require_number
from keywright.errors.engine import ParameterError
from keywright.program.arrays import require_arrays

from .functions import ACTIVATIONS, INSIDE

REFUSED_NOISE = 0.1
"""Errors of encryption above this share of an output's spread are refused by default."""

LARGEST_INPUT = 2.0**64
"""Inputs of a program are smaller than this."""

MOST_BINS = 4096
"""Largest number of bins of a feature."""

Thresholds = Literal["private", "public"]
"""Whether clients learn the thresholds of trees."""

OPERATORS = {name.lower() for name in [*ACTIVATIONS, *INSIDE]}


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Room beyond the values of the calibration data.

    Attributes:
        margin: share of its width by which each measured range is widened on both sides. None uses a tenth,
            or more if the largest values of samples scatter, and widens a range further if a held-out sample
            leaves it.
        input_range: (low, high) of the program's inputs, if known; by default the range of the calibration
            data, widened.
        headroom: factor by which a bootstrapped value may exceed the values of the calibration data; each
            doubling costs a bit.

    Raises:
        ParameterError: an argument is of another type.
        ValueError: a number is out of range.
    """

    margin: float | None = None
    input_range: tuple[float, float] | None = None
    headroom: float = 2.0

    def __post_init__(self) -> None:
        ends = () if self.input_range is None else self.input_range
        if self.input_range is not None and np.shape(ends) != (2,):
            raise ParameterError(f"input_range={ends!r:.60} is no range; use (low, high)", what="input_range")
        if self.margin is not None:
            require_number("margin", self.margin)
        for name, value in [("headroom", self.headroom), *(("an end of input_range", end) for end in ends)]:
            require_number(name, value)
        if self.margin is not None and not 0 <= self.margin < 10:
            raise ValueError(
                f"margin must be a share of the measured width between 0 and 10, got {self.margin}"
            )
        if (
            self.input_range is not None
            and not -LARGEST_INPUT <= self.input_range[0] < self.input_range[1] <= LARGEST_INPUT
        ):
            raise ValueError(
                f"input_range must be (low, high) with low < high, both at most {LARGEST_INPUT:.6g} in "
                f"size, got {self.input_range}"
            )
        if not 1 <= self.headroom < 2**20:
            raise ValueError(f"headroom must be a factor between 1 and 2^20, got {self.headroom}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit(Stated):
    """Ranges of values, and polynomials for activations.

    Methods that `activations` does not fix are chosen: the cheapest polynomials with which the program
    follows the model on all calibration data as closely as `accuracy` and `error` require. Without these
    requirements, no prediction may change that the model decides by more than 1/256 of its largest output. No
    output may change by more than a sixteenth of half its own range without outliers; scores of labels, by a
    sixteenth of the largest of them. Export, polynomials and encryption together may change other outputs by
    a tenth of their spread, and answers behind the client's last steps by a tenth of their range. No sample
    may leave the range of a later polynomial. The compiler refuses a model if no polynomials meet this rule,
    or if the target has too few levels. Methods that `activations` fixes are not part of the rule; if they
    miss it, the report warns. It also states changes above a hundredth of the spread.

    Attributes:
        calibration: typical inputs, (count, *input_shape); a mapping of arrays for several inputs, or of
            columns, or a data frame, if the model has such first steps. The ranges of activations and of the
            output are measured on four fifths of them; the others are held out for the report. Without
            calibration data the output is not scaled and must fit under the last prime.
        activations: methods by operator type in lower case ("relu") or by ONNX node: "chebyshev:DEGREE", a
            polynomial for any function; "minimax:BITS", a composition for piecewise linear functions;
            "stored", a constant for the statistics of normalisations; see `Method`.
        accuracy: minimum share of calibration samples whose prediction, the index of the largest output, must
            not change; a model for which no choice reaches it is refused. Without ``error``, no output may
            change by more than the largest output.
        error: maximum change of any output on calibration data, by export, polynomials and encryption
            together, for estimators of scikit-learn from ``predict`` or ``predict_proba``; polynomials leave
            a sixteenth of it to encryption. Errors of encryption count
            `keywright.model.report.encrypted_error.FACTOR` times, because those of other samples may be as
            large, and `Model.predict` holds the bound with its own batch. Outputs are those behind the
            client's last steps, such as exponentials and probabilities; if all of these are labels, the
            scores before them.
        noise: largest predicted error of encryption, as a share of the spread of any output: its standard
            deviation on the calibration data, or half the distance of their quantiles of 16 % and 84 % if
            that is smaller, so that a few outliers do not count. `keywright.compile` refuses a model above
            it, and warns of one above a hundredth or where a prediction may change. `Model.predict` uses
            no batch above it, and warns in the same way.
        ranges: room beyond the values of the calibration data.
        thresholds: of trees: "private", rounded to the edges of bins that depend only on the calibration
            data, so that clients learn nothing about them; or "public", exact and sent to clients.
        bins: largest number of bins of a feature for private thresholds, 2 to 4096. By default the smallest
            of 16, 32, 64, 128 and 256 that changes at most one label of 200 on the calibration data, and at
            most 2 % of the samples of any label, or outputs by 2 % of the spread of most of them.
            A model that loses a tenth, with 1,024 and 4,096 bins as well, is refused unless `bins`,
            `accuracy` or `error` is given.

    Raises:
        ParameterError: `thresholds` is neither of the two, `bins` are given for public ones, or an argument
            is of another type.
        ValueError: a method does not exist, or a number is out of range.
        EncodeError: calibration data are masked, complex, sparse, times, or no arrays.
    """

    calibration: Any = None
    activations: Mapping[str, str] = field(default_factory=dict)
    accuracy: float | None = None
    error: float | None = None
    noise: float = REFUSED_NOISE
    ranges: Ranges = field(default_factory=Ranges)
    thresholds: Thresholds = "private"
    bins: int | None = None

    def __post_init__(self) -> None:
        require_choice("thresholds", self.thresholds, get_args(Thresholds))
        if not isinstance(self.ranges, Ranges):
            raise ParameterError(
                f"ranges={self.ranges!r:.60} is no keywright.compiler.Ranges; for a range of inputs use "
                "Ranges(input_range=(low, high))",
                what="ranges",
            )
        if self.bins is not None:
            require_integer("bins", self.bins)
        require_number("noise", self.noise)
        for name in ("accuracy", "error"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name))
        if self.bins is not None and not 2 <= self.bins <= MOST_BINS:
            raise ValueError(f"bins must be 2 to {MOST_BINS}, got {self.bins}")
        if self.bins is not None and self.thresholds == "public":
            raise ParameterError("bins= is for private thresholds; leave it out", what="bins")
        if self.accuracy is not None and not 0 < self.accuracy <= 1:
            raise ValueError(
                f"accuracy must be a share of samples above 0 and at most 1, got {self.accuracy}"
            )
        if self.error is not None and not 0 < self.error < float("inf"):
            raise ValueError(f"error must be a bound on the change of outputs above 0, got {self.error}")
        if not self.noise > 0:
            raise ValueError(f"noise must be a share of the spread of outputs above 0, got {self.noise}")
        if not isinstance(self.activations, Mapping):
            raise ParameterError(
                f"activations={self.activations!r} is no mapping; give a method for each activation by its "
                "name, such as {'relu': 'minimax:10'}",
                what="activations",
                value=repr(self.activations),
            )
        _ = self.methods
        if self.calibration is not None:
            require_arrays(self.calibration, "calibration data")

    @cached_property
    def methods(self) -> dict[str, Method]:
        """`activations`, parsed."""
        return {name: Method.parse(text) for name, text in self.activations.items()}

    def method(self, operator: str, name: str) -> Method | None:
        """Return the method requested for an ONNX node, by its name or else by its operator type."""
        return self.methods.get(name) or self.methods.get(operator.lower())


def for_trees(name: str) -> ParameterError:
    """Return the refusal of an argument about trees for a model that has none."""
    return ParameterError(f"{name}= is for trees, and the model has none; leave it out", what=name)
