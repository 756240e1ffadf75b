"""What enters each activation, measured on calibration data."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright.nn.errors import InvalidSamplesError
from keywright.nn.graph.graph import Activation, Graph
from keywright.nn.graph.sparse import Vector

HOLD_OUT_EVERY = 5
LEAST_TO_HOLD_OUT = 50
MARGIN = 0.1
"""Share of its width by which a range is widened on both sides, at least, where no other is asked for."""

DEVIATIONS = 8.0
"""How many standard deviations above their mean the largest values of samples may be where no margin is asked
for: extremes of many values follow Gumbel's distribution, of which 2e-5 is beyond."""

MAX_VALUES = 1 << 13
"""Values of an activation that polynomials are fitted to; of more, evenly spread ones are taken."""


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """What enters one activation.

    Attributes:
        low, high: the range, widened by the margin.
        values: some or all of the values in it.
        escaped: which samples left the range before it was widened for them.
    """

    low: float
    high: float
    values: Vector
    escaped: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ExactRun:
    """The model in the clear on calibration data.

    Attributes:
        samples: (count, features).
        held_out: which of them are, (count,).
        outputs: of the model, (count, outputs); (count, 0) where it has no activations, and nothing to
            compare.
        lows, highs: of what enters each activation, for each sample.
        values: what enters each activation for samples that are not held out, or some of it.
        positive: activations that are for values above 0 alone, whose ranges are widened by factors.
        signed: whether a single output's sign is the model's prediction.
    """

    samples: Vector
    held_out: NDArray[np.bool_]
    outputs: Vector
    lows: dict[int, Vector]
    highs: dict[int, Vector]
    values: dict[int, Vector]
    positive: frozenset[int] = frozenset()
    signed: bool = False

    def predictions(self, outputs: Vector) -> NDArray[np.int64] | None:
        """Of outputs, (count, n): the numbers of the largest, or signs; None where a single output is a
        value."""
        return predictions(outputs, signed=self.signed)

    @property
    def compared(self) -> NDArray[np.bool_]:
        """The samples that figures are of: those held out, or all."""
        return self.held_out if self.held_out.any() else np.ones_like(self.held_out)

    def ranges(self, margin: float | None) -> dict[int, MeasuredRange]:
        """Of each activation, on the samples that are not held out and widened by a share of its width on
        both sides. None takes `MARGIN` or what `DEVIATIONS` say, whichever is more, and widens a range
        further where a sample that is held out leaves it."""
        return {number: self._range(number, margin) for number in self.lows}

    def input_range(self, margin: float | None) -> tuple[float, float]:
        """Of all inputs, widened as the others are."""
        low, high, _ = self._widened(self.samples.min(axis=1), self.samples.max(axis=1), margin)
        return low, high

    def _range(self, number: int, margin: float | None) -> MeasuredRange:
        lows, highs = self.lows[number], self.highs[number]
        if number in self.positive:
            low, high, escaped = self._widened(np.log(lows), np.log(highs), margin)
            return MeasuredRange(math.exp(low), math.exp(high), self.values[number], escaped)
        low, high, escaped = self._widened(lows, highs, margin)
        return MeasuredRange(low, high, self.values[number], escaped)

    def _widened(
        self, lows: Vector, highs: Vector, margin: float | None
    ) -> tuple[float, float, NDArray[np.bool_]]:
        """The range of values whose ends are known for every sample, and who left it before it was widened
        for them."""
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


def predictions(outputs: Vector, *, signed: bool) -> NDArray[np.int64] | None:
    """What `ExactRun.predictions` gives."""
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] > 0, np.int64) if signed else None
    return np.asarray(outputs.argmax(1), np.int64)


def hold_out(count: int) -> NDArray[np.bool_]:
    """Which of so many samples are held out: every fifth, where there are at least fifty."""
    if count < LEAST_TO_HOLD_OUT:
        return np.zeros(count, np.bool_)
    return np.asarray(np.arange(count) % HOLD_OUT_EVERY == HOLD_OUT_EVERY - 1, np.bool_)


def run_exact(graph: Graph, samples: Vector) -> ExactRun:
    """Run a graph with its own activations.

    Args:
        samples: (count, features), flattened inputs.

    Raises:
        InvalidSamplesError: samples drive the input of an activation out of the finite numbers.
    """
    active = {number: node for number, node in graph.nodes.items() if isinstance(node, Activation)}
    held_out = hold_out(len(samples))
    each = max(MAX_VALUES // max(int((~held_out).sum()), 1), 1)
    seen: dict[int, list[Vector]] = {number: [] for number in active}
    lows: dict[int, list[Vector]] = {number: [] for number in active}
    highs: dict[int, list[Vector]] = {number: [] for number in active}
    if not active:
        return ExactRun(samples, held_out, np.zeros((len(samples), 0)), {}, {}, {})
    outputs = []
    for chunk, values in graph.runs(samples):
        outputs.append(values[graph.output])
        for number, node in active.items():
            entering = values[node.operands[0]]
            if not np.isfinite(entering).all():
                raise InvalidSamplesError(
                    f"calibration data drive the input of {node.label} out of the finite numbers"
                )
            if node.positive and entering.min() <= 0:
                raise InvalidSamplesError(
                    f"calibration data drive {entering.min():.6g} into {node.label}, which takes "
                    "values above 0"
                )
            lows[number].append(entering.min(axis=1))
            highs[number].append(entering.max(axis=1))
            seen[number].append(entering[~held_out[chunk], :: -(-entering.shape[1] // each)].ravel())
    return ExactRun(
        samples,
        held_out,
        np.concatenate(outputs),
        {number: np.concatenate(found) for number, found in lows.items()},
        {number: np.concatenate(found) for number, found in highs.items()},
        {number: np.concatenate(found) for number, found in seen.items()},
        frozenset(number for number, node in active.items() if node.positive),
    )
