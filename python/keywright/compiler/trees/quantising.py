"""Quantises an ensemble, reports the effect, and returns its graph with the client's steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.compiler.activations.fit import Fit
from keywright.compiler.activations.ranges import hold_out
from keywright.compiler.graph.graph import Graph
from keywright.errors.engine import EncodeError
from keywright.errors.network import (
    ModelRefusedError,
    RefusalError,
    calibration_missing,
    inaccurate,
    no_labels,
    unknown_activation,
)
from keywright.program.arrays import Vector
from keywright.program.client.client_part import ClientPart
from keywright.program.fit_report import FitReport, OutputDifference
from keywright.program.operands.binning import Binning
from keywright.program.operands.normalisation import Normalisation

from .bins import LADDER, Bins, Coverage, coverage, private_bins, public_bins, resolution, used_features
from .closeness import Closeness, largest_change, of_labels, of_values, spread_of
from .ensemble import Ensemble
from .leaves import STEP_BITS, rounded_leaves
from .paths import paths

MOST_SAMPLES = 1024
"""Calibration samples that are run through the program in the clear; of more, first those held out."""

LEAST_LOG_SCALE = 38
"""Bits of the scale with which the errors of encryption are below half a step of the scores: see
`keywright.compiler.trees.leaves.STEP_BITS`."""

LEAST_RESOLUTION = 0.25
"""More bins are tried, and then it is warned, while thresholds fall into a smaller share of the bins than as many
values of the calibration data would: those are unlike the data that the model was trained on."""

REFUSED_OUTSIDE = 0.1
"""By default, models are refused with a larger share of thresholds outside the calibration data."""

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
    "that no label changes for a tenth of its samples, and no output by a tenth of its spread in the mean, or by "
    "half of what is special about a group of samples"
)
"""The default rule, in words."""

MOST_NAMED = 5
"""Features or labels that a warning names."""


@dataclass(frozen=True, eq=False)
class QuantisedEnsemble:
    """An ensemble as a graph on bits.

    Attributes:
        graph: from bits to scores.
        binning: the client's first step.
        client_part: the client's last step.
        samples: the calibration data, (count, features); (0, features) without.
        bits: of the calibration data, (count, bits).
        held_out: the samples that no edge depends on, (count,).
        report: the effect of quantising; None without calibration data.
        largest: bounds on the values of the graph.
        normalisation: of the program's result.
    """

    graph: Graph
    binning: Binning
    client_part: ClientPart
    samples: Vector
    bits: Vector
    held_out: NDArray[np.bool_]
    report: FitReport | None
    largest: Mapping[int, float]
    normalisation: Normalisation


def quantise(ensemble: Ensemble, fit: Fit) -> QuantisedEnsemble:
    """Return an ensemble on bits.

    With private thresholds and no given number of bins, the smallest number of `LADDER` is chosen with which
    the program follows the model on the calibration data as the fit requires.

    Raises:
        ModelRefusedError: too many comparisons, no calibration data for private thresholds, or no number
            of bins with which the program follows the model.
        EncodeError: calibration data of the wrong shape or not finite.
    """
    samples = _samples(ensemble, fit.calibration)
    held_out = hold_out(len(samples))
    try:
        return _quantised(ensemble, fit, samples, held_out)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason


def _quantised(
    ensemble: Ensemble, fit: Fit, samples: Vector, held_out: NDArray[np.bool_]
) -> QuantisedEnsemble:
    if fit.methods:
        raise unknown_activation(list(fit.methods), [])
    if fit.accuracy is not None and ensemble.last.labels is None:
        raise no_labels()
    exact = _scores(ensemble, samples)
    judge = _Judge(ensemble, samples, exact)
    coverage_ = None
    if fit.thresholds == "public":
        bins = public_bins(ensemble)
        if len(samples) and fit.accuracy is None and fit.error is None:
            _require_leaves(judge.closeness(samples))
    elif not len(samples):
        raise calibration_missing(["the bins of thresholds"])
    else:
        coverage_ = coverage(ensemble, samples)
        _require_coverage(coverage_, fit)
        bins = coverage_.within(_chosen(judge, fit, held_out))
    result = paths(ensemble, bins)
    report = None
    remarks = _remarks(judge, bins, coverage_, held_out) if len(samples) else ()
    # Samples that are held out first: the report is about them.
    chosen = np.sort(np.argsort(~held_out, kind="stable")[:MOST_SAMPLES])
    samples, held_out, exact = samples[chosen], held_out[chosen], exact[chosen]
    bits = bins.binning.apply(samples)
    if len(samples):
        compared = held_out if held_out.any() else np.ones_like(held_out)
        outputs = np.concatenate([values[result.graph.output] for _, values in result.graph.runs(bits)])
        scores = result.sums.rounded(outputs[compared])
        report = _report(ensemble, bins, scores, exact[compared], held_out, remarks)
    return QuantisedEnsemble(
        result.graph,
        bins.binning,
        ensemble.last.client_part(result.sums),
        samples,
        bits,
        held_out,
        report,
        result.largest,
        result.normalisation,
    )


class _Judge:
    """Compares an ensemble of rounded leaves and thresholds with the model."""

    def __init__(self, ensemble: Ensemble, samples: Vector, exact: Vector) -> None:
        """Take calibration samples, (count, features), and the model's scores, (count, outputs)."""
        self.ensemble, self.samples, self.exact = ensemble, samples, exact
        self.rounded = rounded_leaves(ensemble).within(ensemble)

    def closeness(self, quantised: Vector) -> Closeness:
        """Return what changes, if samples are these."""
        last, scores = self.ensemble.last, _scores(self.rounded, quantised)
        result, expected = last.predictions(scores), last.predictions(self.exact)
        warned, refused, agreement = list[str](), list[str](), None
        if result is not None and expected is not None and last.labels is not None:
            labels = of_labels(result, expected, last.labels)
            warned, refused, agreement = [*labels.warned], [*labels.refused], labels.agreement
        new, old = last.values_of(scores), last.values_of(self.exact)
        if new is not None and old is not None:
            values = of_values(new, old)
            warned, refused = [*warned, *values.warned], [*refused, *values.refused]
        change = float(np.abs(scores - self.exact).max(initial=0.0))
        return Closeness(warned, refused, agreement, change)


def _chosen(judge: _Judge, fit: Fit, held_out: NDArray[np.bool_]) -> Bins:
    """Return the bins.

    Raises:
        RefusalError: they miss a required accuracy or error, or the default.
    """
    counts = LADDER if fit.bins is None else (fit.bins,)
    required = fit.accuracy is not None or fit.error is not None
    for count in counts:
        bins = private_bins(judge.ensemble, judge.samples[~held_out], count)
        close = judge.closeness(bins.quantised(judge.samples))
        if required:
            equal = close.agreement is None or close.agreement >= (fit.accuracy or 0.0)
            follows = equal and (fit.error is None or close.change <= fit.error)
        else:
            follows = close.follows and resolution(judge.ensemble, bins) >= LEAST_RESOLUTION
        if follows:
            return bins
    if not required and (fit.bins is not None or not close.refused):
        return bins
    depth = paths(judge.ensemble, bins).graph.depth()
    default = None if required else f"{DEFAULT}, but {' and '.join(close.refused)}"
    raise inaccurate(
        fit.accuracy, fit.error, close.agreement, close.change, depth, default=default, bins=counts[-1]
    )


def _require_leaves(close: Closeness) -> None:
    """Refuse leaves of which a few are so large that rounding loses the others."""
    if close.refused:
        raise RefusalError(
            f"leaves are rounded to 2^-{STEP_BITS} of their range, and {' and '.join(close.refused)}; "
            f"{NARROWER}, or allow more (error=)",
            code="accuracy",
        )


def _require_coverage(found: Coverage, fit: Fit) -> None:
    """Refuse calibration data that are unlike those of the model."""
    allowed = fit.bins is not None or fit.accuracy is not None or fit.error is not None
    if not allowed and found.outside > REFUSED_OUTSIDE * found.comparisons:
        raise RefusalError(
            f"the calibration data are on one side of {found.outside} of {found.comparisons} comparisons of the "
            "trees, whose thresholds are outside them; give data like those that the model was trained on "
            "(calibration=), publish the thresholds (thresholds='public'), or fix the number of bins (bins=) "
            "for clients that refuse all other samples",
            code="ranges",
        )


def _remarks(
    judge: _Judge, bins: Bins, found: Coverage | None, held_out: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return the warnings."""
    last = judge.ensemble.last
    quantised = judge.samples if found is None else bins.quantised(judge.samples)
    missed = list(judge.closeness(quantised).warned)
    expected, values = last.predictions(judge.exact), last.values_of(judge.exact)
    if last.labels is None and values is not None:
        new = last.values_of(_scores(judge.rounded, quantised))
        largest = "" if new is None else largest_change(new, values)
        missed += [largest] if largest else []
    if held_out.any() and expected is not None:
        result = last.predictions(_scores(judge.rounded, quantised[held_out]))
        share = float((result == expected[held_out]).mean())
        if share < HELD_OUT_AGREEMENT:
            missed.append(f"{1 - share:.1%} of the predictions for held-out samples differ from the model's")
    results = [f"{' and '.join(missed)}; {NARROWER if found is None else MORE_BINS}"] if missed else []
    if found is None or not found.comparisons:
        return tuple(results)
    if found.outside:
        results.append(
            f"the calibration data are on one side of {found.outside} of {found.comparisons} comparisons, so "
            f"clients refuse samples outside the range of the calibration data in {_listed('feature', found.limited)}"
            "; give data that reach as far as those that the model was trained on"
        )
    if (share := resolution(judge.ensemble, bins)) < LEAST_RESOLUTION:
        results.append(
            f"thresholds fall into {share:.0%} of the bins into which values of the calibration data would: these "
            "hardly resolve the model; give data like those that it was trained on"
        )
    if last.labels is not None and expected is not None:
        absent = np.setdiff1d(np.arange(len(last.labels)), expected)
        if len(absent):
            results.append(
                f"no calibration sample has {_listed('label', last.labels[absent])}, so nothing is known of what "
                "rounding does to such samples; give samples of every label"
            )
    used = judge.samples[:, used_features(judge.ensemble)]
    distinct = len(np.unique(used, axis=0))
    if distinct < FEW_SAMPLES and not bins.whole:
        results.append(
            f"{distinct} distinct calibration samples are too few for quantiles, and to hold some out; give at "
            f"least {FEW_SAMPLES}"
        )
    return tuple(results)


def _listed(kind: str, named: Iterable[Any]) -> str:
    """Return the names of features or labels."""
    shown = [str(each) for each in named]
    rest = len(shown) - MOST_NAMED
    text = ", ".join(shown[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return f"{kind}{'s' if len(shown) > 1 else ''} {text}"


def _scores(ensemble: Ensemble, samples: Vector) -> Vector:
    return ensemble.base + ensemble.factor * ensemble.sums(samples)


def _report(
    ensemble: Ensemble,
    bins: Bins,
    scores: Vector,
    exact: Vector,
    held_out: NDArray[np.bool_],
    remarks: tuple[str, ...],
) -> FitReport:
    """Return the report, for the scores of the samples that are compared and those of the model."""
    change = np.abs(scores - exact)
    result, expected = ensemble.last.predictions(scores), ensemble.last.predictions(exact)
    agreement = None if result is None or expected is None else float((result == expected).mean())
    counts = np.bincount(bins.binning.columns)
    return FitReport(
        activations=(),
        samples=len(held_out),
        held_out=int(held_out.sum()),
        escaped=0,
        outputs=OutputDifference(
            float(change.max()),
            float(change.mean()),
            float(np.abs(exact).max()),
            agreement,
            max(spread_of(values) for values in exact.T),
        ),
        bins=0 if bins.binning.thresholds else int(counts.max(initial=0)) + 1,
        remarks=remarks,
    )


def _samples(ensemble: Ensemble, calibration: ArrayLike | None) -> Vector:
    if calibration is None:
        return np.zeros((0, ensemble.features))
    samples = np.asarray(calibration, np.float64)
    if samples.ndim != 2 or samples.shape[1] != ensemble.features or len(samples) == 0:
        raise EncodeError(
            f"calibration data have shape (count, {ensemble.features}), got {samples.shape}", code="samples"
        )
    wrong = ~np.isfinite(samples) & ~(np.isnan(samples) & ensemble.missing)
    if wrong.any():
        raise EncodeError(
            f"calibration data hold {int(wrong.sum())} values that are not finite; remove them",
            code="samples",
        )
    return samples
