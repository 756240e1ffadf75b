"""How closely a quantised ensemble follows its model on calibration data: every label, and every output
beside the spread of most of its values, at the ends of its range as well as in the middle."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.program.arrays import Vector

LEAST_AGREEMENT = 0.995
"""More bins are tried while fewer labels of the calibration data stay the same."""

WARNED_LABEL, REFUSED_LABEL = 0.02, 0.1
"""More bins are tried, and then it is warned or refused, while a label loses more than this share of its
samples, or gets so many samples of others. A single sample is refused only if it is all of its label."""

WARNED_MEAN, REFUSED_MEAN = 0.02, 0.1
"""The same for the mean change of an output, as a share of its spread."""

WARNED_GROUP, REFUSED_GROUP = 0.1, 0.5
"""The same for the mean change of a group of samples with outputs of similar size, as a share of its distance
from the median, or of the spread if that is more: a group that changes by 1 is lost among the others."""

WARNED_LARGEST = 0.01
"""A change of a single output by a larger share of its spread is warned of, with its size."""

GROUPS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Where samples, ordered by an output, are divided into groups; the `TAIL` at each end is a further one."""

TAIL, LEAST_IN_TAIL = 0.005, 3

WITHIN = (0.16, 0.84)
"""Quantiles that are one standard deviation from the mean of a normal distribution."""

CONSTANT = 2.0**-44
"""An output that varies by less than this share of its size is constant."""

MOST_NAMED = 3
"""Labels or outputs that a text names; it counts the others."""


@dataclass(frozen=True)
class Closeness:
    """What quantising changes.

    Attributes:
        warned, refused: changes that are warned of, and those that are refused by default.
        agreement: share of equal labels; None for values.
        change: the largest change of an output.
    """

    warned: Sequence[str]
    refused: Sequence[str]
    agreement: float | None
    change: float

    @property
    def follows(self) -> bool:
        """Whether no more bins are needed."""
        return not self.warned and (self.agreement is None or self.agreement >= LEAST_AGREEMENT)


def of_labels(result: NDArray[np.int64], expected: NDArray[np.int64], labels: NDArray[Any]) -> Closeness:
    """Compare the labels of the quantised model with those of the model, (count,)."""
    warned, refused = [], []
    for label in np.union1d(result, expected):
        mine = expected == label
        samples, kept = int(mine.sum()), int((mine & (result == label)).sum())
        extra = int((~mine & (result == label)).sum())
        lost = max(samples - kept, extra) / max(samples, 1)
        text = f"label {labels[int(label)]} keeps {kept} of its {samples} calibration samples"
        if samples - kept < extra:
            text = f"{text} and gets {extra} of others"
        if lost > WARNED_LABEL:
            warned.append((lost, text))
        if lost > REFUSED_LABEL and (kept == 0 or max(samples - kept, extra) > 1):
            refused.append((lost, text))
    agreement = float((result == expected).mean()) if len(expected) else None
    return Closeness(_named(warned), _named(refused), agreement, 0.0)


def of_values(result: Vector, expected: Vector) -> Closeness:
    """Compare the outputs of the quantised model with those of the model, (count, outputs)."""
    warned, refused = [], []
    changes = np.abs(result - expected)
    for output, change in enumerate(changes.T):
        values = expected[:, output]
        spread = spread_of(values)
        share = float(change.mean()) / spread
        text = (
            f"output {output} changes by {change.mean():.3g} in the mean of the calibration samples, "
            f"{share:.2g} times the spread of most of its values, {spread:.3g}"
        )
        if share > WARNED_MEAN:
            warned.append((share / WARNED_MEAN, text))
        if share > REFUSED_MEAN:
            refused.append((share / REFUSED_MEAN, text))
        middle = float(np.median(values))
        for group in _groups(values):
            distance = max(float(np.abs(values[group] - middle).mean()), spread)
            share = float(change[group].mean()) / distance
            text = (
                f"of the {len(group)} calibration samples with output {output} from "
                f"{values[group].min():.9g} to {values[group].max():.9g}, it changes by "
                f"{change[group].mean():.3g} in the mean"
            )
            if share > WARNED_GROUP:
                warned.append((share / WARNED_GROUP, text))
            if share > REFUSED_GROUP:
                refused.append((share / REFUSED_GROUP, text))
    return Closeness(_named(warned), _named(refused), None, float(changes.max(initial=0.0)))


def largest_change(result: Vector, expected: Vector, *, shares: bool) -> list[str]:
    """Describe the largest change of an output beside its spread, if it is not small. No more bins are tried
    because of it: with any number, a threshold is rounded to one side of some value.

    Args:
        shares: whether the outputs are scores or probabilities of labels, which are judged by their range.
    """
    changes = np.abs(result - expected).max(axis=0, initial=0.0)
    sizes = [float(np.ptp(old)) or 1.0 if shares else spread_of(old) for old in expected.T]
    worst = int(np.argmax(changes / sizes))
    share = changes[worst] / sizes[worst]
    if share <= WARNED_LARGEST:
        return []
    what, size = ("a score", "its range") if shares else ("an output", "the spread of the outputs")
    change = f"{changes[worst]:.3g}, {share:.2g} times {size}, {sizes[worst]:.3g}"
    return [f"rounding changes {what} of a calibration sample by up to {change}"]


def spread_of(values: Vector) -> float:
    """Return the spread of most values, (count,): half the distance of two quantiles, which a few large
    values do not change. If most values are equal, it is the mean distance from the median; if all are, their
    size."""
    low, high = np.quantile(values, WITHIN)
    size = float(np.abs(values).max(initial=0.0))
    for spread in (float(high - low) / 2, float(np.abs(values - np.median(values)).mean())):
        if spread > CONSTANT * size:
            return spread
    return size or 1.0


def _groups(values: Vector) -> Iterator[NDArray[np.int64]]:
    """Yield the samples of each group, at least one; equal values of an end are together."""
    order = np.argsort(values, kind="stable")
    ascending, count = values[order], len(values)
    tail = min(max(int(np.ceil(TAIL * count)), LEAST_IN_TAIL), count)
    inner = [int(share * count) for share in GROUPS]
    first = int(np.searchsorted(ascending, ascending[tail - 1], side="right"))
    last = int(np.searchsorted(ascending, ascending[count - tail], side="left"))
    ends = [0, first, *(place for place in inner if first < place < last), max(first, last), count]
    for start, end in pairwise(ends):
        if start < end:
            yield order[start:end]


def _named(texts: list[tuple[float, str]]) -> list[str]:
    """Return the texts of the largest losses, and the number of the others."""
    ordered = [text for _, text in sorted(texts, key=lambda entry: -entry[0])]
    rest = len(ordered) - MOST_NAMED
    return [*ordered[:MOST_NAMED], *([f"{rest} more do so"] if rest > 0 else [])]
