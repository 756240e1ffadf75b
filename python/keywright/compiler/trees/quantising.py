"""Quantises an ensemble, reports the effect, and returns its graph with the client's steps."""

from collections.abc import Mapping
from dataclasses import dataclass

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
from keywright.program.arrays import Vector, as_numbers
from keywright.program.client.client_part import ClientPart
from keywright.program.fit_report import MEAN_CHANGE, FitReport, OutputDifference
from keywright.program.operands.binning import Binning

from .bins import LADDER, Bins, private_bins, public_bins
from .ensemble import Ensemble
from .paths import Paths, paths

MOST_SAMPLES = 1024
"""Calibration samples that are run through the program in the clear; of more, first those held out."""

LEAST_LOG_SCALE = 38
"""Bits of the scale with which the errors of encryption are below half a step of the scores: see
`keywright.compiler.trees.paths.STEP_BITS`."""

LEAST_AGREEMENT = 0.995
"""By default, bins that change fewer labels of the calibration data suffice."""


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
    """

    graph: Graph
    binning: Binning
    client_part: ClientPart
    samples: Vector
    bits: Vector
    held_out: NDArray[np.bool_]
    report: FitReport | None
    largest: Mapping[int, float]


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
    if fit.thresholds == "public":
        bins = public_bins(ensemble)
    elif not len(samples):
        raise calibration_missing(["the bins of thresholds"])
    else:
        bins = _chosen(ensemble, fit, samples, held_out, exact)
    result = paths(ensemble, bins)
    report = None
    # Samples that are held out first: the report is about them.
    chosen = np.sort(np.argsort(~held_out, kind="stable")[:MOST_SAMPLES])
    samples, held_out, exact = samples[chosen], held_out[chosen], exact[chosen]
    bits = bins.binning.apply(samples)
    if len(samples):
        compared = held_out if held_out.any() else np.ones_like(held_out)
        outputs = np.concatenate([values[result.graph.output] for _, values in result.graph.runs(bits)])
        report = _report(ensemble, bins, outputs[compared], exact[compared], held_out)
    return QuantisedEnsemble(
        result.graph,
        bins.binning,
        _client_part(ensemble, result),
        samples,
        bits,
        held_out,
        report,
        result.largest,
    )


def _client_part(ensemble: Ensemble, result: Paths) -> ClientPart:
    return ensemble.last.client_part(result.base, abs(ensemble.factor) * result.step)


def _chosen(
    ensemble: Ensemble, fit: Fit, samples: Vector, held_out: NDArray[np.bool_], exact: Vector
) -> Bins:
    """Return the bins.

    Raises:
        RefusalError: they miss a required accuracy or error.
    """
    largest = float(np.abs(exact).max(initial=0.0))
    counts = LADDER if fit.bins is None else (fit.bins,)
    required = fit.accuracy is not None or fit.error is not None
    reached: tuple[float | None, float] = (None, 0.0)
    bins = private_bins(ensemble, samples[~held_out], counts[0])
    for count in counts:
        bins = private_bins(ensemble, samples[~held_out], count)
        change, agreement = _compared(ensemble, _scores(ensemble, bins.quantised(samples)), exact)
        if required:
            equal = agreement is None or agreement >= (fit.accuracy or 0.0)
            follows = equal and (fit.error is None or float(change.max()) <= fit.error)
        elif agreement is not None:
            follows = agreement >= LEAST_AGREEMENT
        else:
            follows = float(change.mean()) <= MEAN_CHANGE * largest
        if follows or (count == counts[-1] and not required):
            return bins
        reached = agreement, float(change.max())
    depth = paths(ensemble, bins).graph.depth()
    raise inaccurate(fit.accuracy, fit.error, *reached, depth, bins=counts[-1])


def _scores(ensemble: Ensemble, samples: Vector) -> Vector:
    return ensemble.base + ensemble.factor * ensemble.sums(samples)


def _compared(ensemble: Ensemble, scores: Vector, exact: Vector) -> tuple[Vector, float | None]:
    """Return the changes of scores, and the share of equal labels."""
    result, expected = ensemble.last.predictions(scores), ensemble.last.predictions(exact)
    agreement = None if result is None or expected is None else float((result == expected).mean())
    return np.abs(scores - exact), agreement


def _report(
    ensemble: Ensemble, bins: Bins, scores: Vector, exact: Vector, held_out: NDArray[np.bool_]
) -> FitReport:
    """Return the report, for the scores of the samples that are compared and those of the model."""
    change, agreement = _compared(ensemble, scores, exact)
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
            float(exact.std(axis=0).max()),
        ),
        bins=0 if bins.binning.thresholds else int(counts.max(initial=0)) + 1,
    )


def _samples(ensemble: Ensemble, calibration: ArrayLike | None) -> Vector:
    if calibration is None:
        return np.zeros((0, ensemble.features))
    samples = as_numbers(calibration, "calibration data")
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
