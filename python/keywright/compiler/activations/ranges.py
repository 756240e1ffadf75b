"""Input ranges of activations, measured on calibration data."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._units import numbered
from keywright.compiler.graph.graph import Activation, Graph
from keywright.compiler.graph.piecewise import Function
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError
from keywright.errors.refusals.precision import out_of_domain
from keywright.program.arrays import Vector
from keywright.program.fit_report import ExportDifferences

Labels = Callable[[Vector], NDArray[Any]]
"""Returns one label for each row of outputs, (count,)."""

HOLD_OUT_EVERY = 5
LEAST_TO_HOLD_OUT = 50
MARGIN = 0.1
"""Default share of its width by which a range is widened on both sides, at least."""

MODERATE = 1e100
"""The largest size of a value on calibration data: sums of squares do not overflow."""

DEVIATIONS = 8.0
"""By default, allowed standard deviations of samples' largest values above their mean. Extremes of many
values follow Gumbel's distribution, for which 2e-5 lie beyond."""

POSITIVE_FACTOR = 4.0
"""By default, the low end of a range of positive values is at most so many times below the smallest measured
value. Polynomials for 1 / x or a logarithm grow with the ratio of the ends, and a sample below is refused."""

MOST_GROWTH = 2.0**16
"""By how much the largest value of a function on a widened range may exceed the largest on the calibration
data: the exponential of a wide range would be infinite at its widened end, where no polynomial is close."""

GRID = 1 << 10
"""Points of a widening at which a function's growth is looked at."""

SLACK = 1 / 16
"""Share by which a range exceeds the limits that its values have by their own computation."""

MAX_VALUES = 1 << 13
"""Values of an activation used in a fit; if there are more, evenly spread ones are selected."""


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """Input values of one activation.

    Attributes:
        low, high: the range, widened by the margin.
        values: some or all of the values in it.
        escaped: samples that left the range before it was widened for them.
    """

    low: float
    high: float
    values: Vector
    escaped: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ActivationInputs:
    """Inputs of activations, each by its number, on calibration data.

    Attributes:
        lows, highs: range for each sample, (count,).
        values: for samples that are not held out, or some of them.
        positive: activations defined on one side of 0 only, whose ranges are widened towards 0 by a factor.
        limits: see `Activation.limits`.
        functions: the activations.
    """

    lows: Mapping[int, Vector] = field(default_factory=dict)
    highs: Mapping[int, Vector] = field(default_factory=dict)
    values: Mapping[int, Vector] = field(default_factory=dict)
    positive: frozenset[int] = frozenset()
    limits: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    functions: Mapping[int, Function] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ExactRun:
    """The model's run in the clear on calibration data.

    Attributes:
        samples: (count, features).
        held_out: which samples are held out, (count,).
        outputs: of the model, (count, outputs); (count, 0) if it has no activations, so that there is nothing
            to compare.
        inputs: of the activations.
        signed: whether a single output's sign is the model's prediction.
        several: whether outputs are values, like those of a regression, or scores of several labels: no
            largest one is a prediction.
        scores: whether outputs are known to be scores of one label, which are compared with each other. Those
            of a network without a last step may be values.
        export: how the model differs from what it was exported from.
        labels: returns the labels of outputs, (count, n), where these are no indices of the largest output,
            as those of votes of pairs of classes are not; None where they are, or if there are none.
    """

    samples: Vector
    held_out: NDArray[np.bool_]
    outputs: Vector
    inputs: ActivationInputs = field(default_factory=ActivationInputs)
    signed: bool = False
    several: bool = False
    scores: bool = False
    export: ExportDifferences = field(default_factory=ExportDifferences)
    labels: Labels | None = None

    def predictions(self, outputs: Vector) -> NDArray[Any] | None:
        """Return the predictions of outputs, (count, n), one for each: a label, the index of the largest, or
        a sign; None if a single output, or each of several, is a value."""
        if self.labels is not None:
            return self.labels(outputs)
        return None if self.several else predictions(outputs, signed=self.signed)

    @property
    def values(self) -> bool:
        """Whether outputs are judged by their own spread: none is known to be a score of labels."""
        return bool(self.outputs.size) and not self.scores and self.labels is None

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Return the samples that the report uses: those held out, or all."""
        return self.held_out if self.held_out.any() else np.ones_like(self.held_out)

    def ranges(self, margin: float | None) -> dict[int, MeasuredRange]:
        """Return the range of each activation, on the samples that are not held out, widened by a share of
        its width on both sides. With None, the share is at least `MARGIN`, more if `DEVIATIONS` requires it,
        and a range is widened further if a held-out sample leaves it."""
        return {number: self._range(number, margin) for number in self.inputs.lows}

    def input_range(self, margin: float | None) -> tuple[float, float]:
        """Return the range of all inputs, widened in the same way."""
        low, high, _ = self._widened(self.samples.min(axis=1), self.samples.max(axis=1), margin)
        return low, high

    def _range(self, number: int, margin: float | None) -> MeasuredRange:
        lows, highs = self.inputs.lows[number], self.inputs.highs[number]
        mirrored = number in self.inputs.positive and float(highs.max()) < 0
        if mirrored:
            lows, highs = -highs, -lows
        low, high, escaped = self._widened(lows, highs, margin)
        if number in self.inputs.positive:
            logarithm, _, below = self._widened(np.log(lows), np.log(highs), margin)
            least = float(lows.min())
            floor = math.exp(logarithm)
            low = max(low, floor if margin is not None else max(floor, least / POSITIVE_FACTOR))
            escaped = escaped | (below & (lows < lows[~self.held_out].min()))
        if mirrored:
            low, high = -high, -low
        least, most = self.inputs.limits.get(number, (-math.inf, math.inf))
        # Polynomials before it leave the limits by their error.
        low, high = max(low, least - abs(least) * SLACK), min(high, most + abs(most) * SLACK)
        if number in self.inputs.functions:
            own = float(lows.min()), float(highs.max())
            low, high = _tamed(self.inputs.functions[number], own, (low, high))
        return MeasuredRange(low, high, self.inputs.values[number], escaped)

    def _widened(
        self, lows: Vector, highs: Vector, margin: float | None
    ) -> tuple[float, float, NDArray[np.bool_]]:
        """Return the range of values whose ends are known for every sample, and which samples left it before
        it was widened for them."""
        fitted = ~self.held_out
        low, high = float(lows[fitted].min()), float(highs[fitted].max())
        share = MARGIN if margin is None else margin
        # A constant input still needs a range.
        widening = share * (high - low) or max(abs(low), 1.0) * 1e-3
        low, high = low - widening, high + widening
        if margin is None:
            low = min(low, float(lows[fitted].mean() - DEVIATIONS * lows[fitted].std()))
            high = max(high, float(highs[fitted].mean() + DEVIATIONS * highs[fitted].std()))
        escaped = (lows < low) | (highs > high)
        if margin is None and escaped.any():
            low = min(low, float(lows.min()) - widening)
            high = max(high, float(highs.max()) + widening)
        return low, high, escaped


def _tamed(
    function: Function, measured: tuple[float, float], widened: tuple[float, float]
) -> tuple[float, float]:
    """Return a widened range without the parts at its ends where a function grows by more than
    `MOST_GROWTH`."""
    outcome = []
    with np.errstate(all="ignore"):
        within = np.abs(function(np.linspace(*measured, GRID)))
        # Of a function that is 0 on all samples, nothing is known.
        most = MOST_GROWTH * (float(within.max()) or 1.0)
        for inner, outer in zip(measured, widened, strict=True):
            shares = np.concatenate(([0.0], np.geomspace(2.0**-60, 1.0, GRID)))
            steps = inner + (outer - inner) * shares
            beyond = ~(np.abs(function(steps)) <= most)
            beyond[0] = False
            outcome.append(float(steps[int(beyond.argmax()) - 1]) if beyond.any() else outer)
    return outcome[0], outcome[1]


def predictions(outputs: Vector, *, signed: bool) -> NDArray[np.int64] | None:
    """Return what `ExactRun.predictions` describes."""
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] > 0, np.int64) if signed else None
    return np.asarray(outputs.argmax(1), np.int64)


def hold_out(count: int) -> NDArray[np.bool_]:
    """Select the held-out samples: every fifth, if there are at least fifty."""
    if count < LEAST_TO_HOLD_OUT:
        return np.zeros(count, np.bool_)
    return np.asarray(np.arange(count) % HOLD_OUT_EVERY == HOLD_OUT_EVERY - 1, np.bool_)


def require_moderate(values: Vector, what: str, first: int = 0) -> None:
    """Refuse values of samples, (rows, ...), beyond `MODERATE`.

    Args:
        first: number of the first row.

    Raises:
        EncodeError: with their size and rows.
    """
    sizes = np.abs(values).reshape(len(values), -1).max(axis=1, initial=0.0)
    if len(rows := np.flatnonzero(~(sizes <= MODERATE))):
        size = float(sizes.max())
        text = "infinity" if not np.isfinite(size) else f"{size:.2g}, and {MODERATE:g} is the most"
        where = numbered((first + rows).tolist())
        raise EncodeError(
            f"calibration data drive {what} to {text}, in {where}; scale the samples", code="samples"
        )


def run_exact(graph: Graph, samples: Vector) -> ExactRun:
    """Run a graph with its own activations.

    Args:
        samples: (count, features), flattened inputs.

    Raises:
        EncodeError: samples drive the input of an activation beyond `MODERATE`.
        ModelRefusedError: samples drive an activation out of the domain of its function.
    """
    active = {number: node for number, node in graph.nodes.items() if isinstance(node, Activation)}
    held_out = hold_out(len(samples))
    each = max(MAX_VALUES // max(int((~held_out).sum()), 1), 1)
    seen: dict[int, list[Vector]] = {number: [] for number in active}
    lows: dict[int, list[Vector]] = {number: [] for number in active}
    highs: dict[int, list[Vector]] = {number: [] for number in active}
    if not active:
        return ExactRun(samples, held_out, np.zeros((len(samples), 0)))
    outputs = []
    for chunk, values in graph.runs(samples):
        outputs.append(values[graph.output])
        for number, node in active.items():
            entering = values[node.operands[0]]
            require_moderate(entering, f"the input of {node.label}", chunk.start)
            if node.positive and not _defined(node, float(entering.min()), float(entering.max())):
                raise _refused(graph, samples, node)
            lows[number].append(entering.min(axis=1))
            highs[number].append(entering.max(axis=1))
            seen[number].append(entering[~held_out[chunk], :: -(-entering.shape[1] // each)].ravel())
        require_moderate(outputs[-1], "the model's output", chunk.start)
    low, high = ({n: np.concatenate(parts) for n, parts in ends.items()} for ends in (lows, highs))
    sides = {n: (float(low[n].min()), float(high[n].max())) for n in active}
    for number, node in active.items():
        if node.positive and not _defined(node, *sides[number]):
            raise _refused(graph, samples, node)
    positive = {n for n, node in active.items() if node.positive and (sides[n][0] > 0 or sides[n][1] < 0)}
    inputs = ActivationInputs(
        low,
        high,
        {number: np.concatenate(parts) for number, parts in seen.items()},
        frozenset(positive),
        {number: node.limits for number, node in active.items()},
        {number: node.function for number, node in active.items() if number not in positive},
    )
    return ExactRun(samples, held_out, np.concatenate(outputs), inputs)


def _defined(node: Activation, low: float, high: float) -> bool:
    """Whether a function that need not be defined below 0 is on a range. That of an inverse ends on one side
    of 0; that of a square root with max(x, 0) before it may go beyond."""
    if low > 0:
        return True
    least = np.finfo(np.float64).tiny
    points = [low, high] if high < 0 else [low - least, 0.0, max(high, least)]
    with np.errstate(all="ignore"):
        return bool(np.isfinite(node.function(np.asarray(points))).all())


def _refused(graph: Graph, samples: Vector, node: Activation) -> ModelRefusedError:
    with np.errstate(all="ignore"):
        entering = [values[node.operands[0]] for _, values in graph.runs(samples)]
        both = bool(np.isfinite(node.function(np.asarray([-1.0]))).all())
    low, high = (np.concatenate([end(each, axis=1) for each in entering]) for end in (np.min, np.max))
    below, above = np.flatnonzero(low <= 0).tolist(), np.flatnonzero(high >= 0).tolist()
    rows = above if both and len(above) < len(below) else below
    ends = float(low.min()), float(high.max())
    return ModelRefusedError([out_of_domain(node.label, *ends, rows, both=both, total=node.total)])
