"""Refusals and warnings of a quantised ensemble, by calibration data."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.fit import Fit
from keywright.compiler.trees.bins import Bins
from keywright.compiler.trees.ensemble import Ensemble
from keywright.compiler.trees.leaves import STEP_BITS, rounded_leaves
from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector

from .closeness import WARNED_MEAN, Closeness, largest_change, of_labels, of_values, spread_of
from .coverage import Coverage

REFUSED_OUTSIDE = 0.1
"""By default, models are refused with a larger share of thresholds outside the calibration data."""

LEAST_SPANNED = 0.25
"""A smaller share of the calibration data between the thresholds is warned of; see `Coverage.spanned`."""

FEW_SAMPLES = 50
"""Fewer distinct samples are warned of."""

HELD_OUT_AGREEMENT = 0.98
"""A smaller share of equal labels among the held-out samples is warned of."""

MORE_BINS = (
    "use more bins (bins=) with more calibration data, of which their edges are quantiles, or publish the "
    "thresholds, which are exact then (thresholds='public')"
)
"""What helps where rounded thresholds change outputs too much."""

NARROWER = "clip extreme targets, or fit their logarithm"
"""What helps where rounded leaves do."""

DEFAULT = (
    "that no label changes for a tenth of its samples, no output by a tenth of its spread in the mean, and "
    "no group of outputs by half of its distance from the others"
)
"""The default rule, in words."""

MOST_NAMED = 5
"""Features or labels that a warning names."""


class Judge:
    """Compares an ensemble of rounded leaves and thresholds with the model.

    Attributes:
        ensemble: the model.
        samples: calibration data, (count, features).
    """

    def __init__(self, ensemble: Ensemble, samples: Vector) -> None:
        self.ensemble, self.samples = ensemble, samples
        self._rounded = rounded_leaves(ensemble).within(ensemble)

    @cached_property
    def exact(self) -> Vector:
        """The model's scores of the samples, (count, outputs)."""
        return self.ensemble.scores(self.samples)

    def closeness(self, quantised: Vector) -> Closeness:
        """Return what changes if the samples become these."""
        last, scores = self.ensemble.last, self._rounded.scores(quantised)
        result, expected = last.predictions(scores), last.predictions(self.exact)
        warned, refused, agreement = list[str](), list[str](), None
        if result is not None and expected is not None and last.labels is not None:
            labels = of_labels(result, expected, last.labels)
            warned, refused, agreement = [*labels.warned], [*labels.refused], labels.agreement
        new, old = last.values_of(scores), last.values_of(self.exact)
        if new is not None and old is not None:
            values = of_values(new, old)
            warned, refused = [*warned, *values.warned], [*refused, *values.refused]
        changes = scores - self.exact if new is None or old is None else new - old
        change = float(np.abs(changes).max(initial=0.0))
        return Closeness(warned, refused, agreement, change)

    def changes(self, quantised: Vector, held_out: NDArray[np.bool_]) -> list[str]:
        """Return the changes that are warned of."""
        last, scores = self.ensemble.last, self._rounded.scores(quantised)
        results = list(self.closeness(quantised).warned)
        new, old = last.shares_of(scores), last.shares_of(self.exact)
        results += largest_change(new, old, shares=last.labels is not None)
        result, expected = last.predictions(scores), last.predictions(self.exact)
        if held_out.any() and result is not None and expected is not None:
            share = float((result == expected)[held_out].mean())
            if share < HELD_OUT_AGREEMENT:
                results.append(f"{1 - share:.1%} of the predictions for held-out samples differ")
        return results


def require_leaves(close: Closeness) -> None:
    """Refuse leaves of which a few are so large that rounding loses the others.

    Raises:
        RefusalError: names the outputs.
    """
    if close.refused:
        raise RefusalError(
            f"leaves are rounded to 2^-{STEP_BITS} of their range, and {' and '.join(close.refused)}; "
            f"{NARROWER}, or allow more (error=)",
            code="accuracy",
        )


def require_spread(ensemble: Ensemble, fit: Fit) -> None:
    """Refuse leaves that rounding may change by more than a small share of the spread of most of them, where
    no calibration data say what that changes.

    Raises:
        RefusalError: names the output, and the tree whose leaves are furthest apart.
    """
    leaves = rounded_leaves(ensemble)
    of, trees = np.where(ensemble.nodes.feature < 0, leaves.tree, -1), len(ensemble.roots)
    order = np.argsort(of, kind="stable")
    spread, widest = np.zeros(ensemble.outputs), np.zeros((trees, ensemble.outputs))
    for tree, rows in enumerate(np.split(order, np.searchsorted(of[order], np.arange(trees)))[1:]):
        own = ensemble.nodes.values[rows]
        widest[tree] = np.ptp(own, axis=0)
        spread += [
            spread_of(each) if high > 0 else 0.0 for each, high in zip(own.T, widest[tree], strict=True)
        ]
    if ensemble.last.labels is not None:
        spread[:] = spread.max(initial=0.0)
    lost = trees * leaves.step / 2
    allowed = WARNED_MEAN * spread if fit.error is None else np.full_like(spread, fit.error)
    wrong = np.flatnonzero(lost > allowed)
    if len(wrong):
        output = int(wrong[np.argmax((lost - allowed)[wrong])])
        raise RefusalError(
            f"leaves are rounded to 2^-{STEP_BITS} of their range, which changes output {output} by up to "
            f"{lost[output]:.3g}, while most leaves differ by {spread[output]:.3g}; those of tree "
            f"{int(widest[:, output].argmax())} are up to {widest[:, output].max():.3g} apart; give "
            f"calibration data, on which the changes are measured (calibration=), {NARROWER}, or allow more "
            "(error=)",
            code="accuracy",
        )


def require_coverage(coverage: Coverage, fit: Fit) -> None:
    """Refuse calibration data that are unlike those of the model, unless the fit says how close the program
    must be.

    Raises:
        RefusalError: counts the thresholds outside.
    """
    allowed = fit.bins is not None or fit.accuracy is not None or fit.error is not None
    if not allowed and coverage.outside > REFUSED_OUTSIDE * coverage.comparisons:
        raise RefusalError(
            f"the calibration data are on one side of {coverage.outside} of {coverage.comparisons} "
            "comparisons of the trees, whose thresholds are outside them; give data like those that the "
            "model was trained on (calibration=), publish the thresholds (thresholds='public'), or fix the "
            "number of bins (bins=) for clients that refuse all other samples",
            code="ranges",
        )


def remarks(judge: Judge, bins: Bins, coverage: Coverage | None, held_out: NDArray[np.bool_]) -> list[str]:
    """Return the warnings about a quantised ensemble.

    Args:
        coverage: None if the thresholds are public.
        held_out: the samples that no edge depends on, (count,).
    """
    last = judge.ensemble.last
    missed = judge.changes(judge.samples if coverage is None else bins.quantised(judge.samples), held_out)
    results = [f"{' and '.join(missed)}; {NARROWER if coverage is None else MORE_BINS}"] if missed else []
    if coverage is None or not coverage.comparisons:
        return results
    if coverage.outside:
        results.append(
            f"the calibration data are on one side of {coverage.outside} of {coverage.comparisons} "
            "comparisons, so clients refuse samples outside the range of these data in "
            f"{_listed('feature', coverage.limited)}; give data that reach as far as those that the "
            "model was trained on"
        )
    if coverage.spanned < LEAST_SPANNED:
        results.append(
            "the thresholds of features are close together beside the calibration data: "
            f"{coverage.spanned:.1%} as many values as usual are between them; give data like those that the "
            "model was trained on"
        )
    expected = last.predictions(judge.exact)
    if last.labels is not None and expected is not None:
        absent = np.setdiff1d(np.arange(len(last.labels)), expected)
        if len(absent):
            results.append(
                f"no calibration sample has {_listed('label', last.labels[absent])}, so nothing is known of "
                "what rounding does to such samples; give samples of every label"
            )
    distinct = len(np.unique(judge.samples, axis=0))
    if distinct < FEW_SAMPLES and not bins.whole:
        results.append(
            f"{distinct} distinct calibration samples are too few for quantiles; give at least {FEW_SAMPLES}"
        )
    return results


def _listed(kind: str, named: Iterable[Any]) -> str:
    """Return the names of features or labels."""
    shown = [str(each) for each in named]
    rest = len(shown) - MOST_NAMED
    text = ", ".join(shown[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return f"{kind}{'s' if len(shown) > 1 else ''} {text}"
