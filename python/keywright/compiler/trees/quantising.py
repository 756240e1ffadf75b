"""Quantises an ensemble, reports the effect, and returns its graph with the client's steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Stated
from keywright.compiler.activations.fit import Fit
from keywright.compiler.activations.ranges import hold_out
from keywright.compiler.graph.graph import Graph
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.precision import no_labels, unknown_activation
from keywright.program.arrays import Vector, as_numbers, require_samples
from keywright.program.client.last_steps import ClientPart
from keywright.program.fit_report import FitReport, OutputDifference
from keywright.program.operands.binning import Binning
from keywright.program.operands.normalisation import Normalisation

from .bins import Bins
from .calibration.closeness import spread_of
from .calibration.judging import Judge, remarks, require_leaves, require_spread
from .ensemble import Ensemble
from .paths import Paths, paths
from .thresholds import threshold_bins

MOST_SAMPLES = 1024
"""Calibration samples that are run through the program in the clear; of more, first those held out."""

LEAST_LOG_SCALE = 38
"""Bits of the scale with which the errors of encryption are below half a step of the scores: see
`keywright.compiler.trees.leaves.STEP_BITS`."""


@dataclass(frozen=True, eq=False)
class QuantisedEnsemble(Stated):
    """An ensemble as a graph on bits.

    Attributes:
        paths: its graph, and how scores are made of it.
        binning: the client's first step.
        client_part: the client's last step.
        samples: the calibration data, (count, features); (0, features) without.
        held_out: the samples that no edge depends on, (count,).
        report: the effect of quantising; None without calibration data.
    """

    paths: Paths
    binning: Binning
    client_part: ClientPart
    samples: Vector
    held_out: NDArray[np.bool_]
    report: FitReport | None

    @property
    def graph(self) -> Graph:
        """The graph from bits to scores."""
        return self.paths.graph

    @property
    def largest(self) -> Mapping[int, float]:
        """Bounds on the values of the graph."""
        return self.paths.largest

    @property
    def normalisation(self) -> Normalisation:
        """The normalisation of the program's result."""
        return self.paths.normalisation

    @property
    def unit(self) -> Vector:
        """The unit to which the client rounds each score, (outputs,)."""
        return np.abs(self.paths.sums.unit)

    @cached_property
    def bits(self) -> Vector:
        """The bits of the calibration data, (count, bits)."""
        return self.binning.apply(self.samples)


def quantise(ensemble: Ensemble, fit: Fit) -> QuantisedEnsemble:
    """Return an ensemble on bits.

    With private thresholds and no given number of bins, the smallest number of `thresholds.LADDER` is chosen
    with which the program follows the model on the calibration data as the fit requires.

    Raises:
        ModelRefusedError: too many comparisons, no calibration data for private thresholds, or no number
            of bins with which the program follows the model.
        EncodeError: calibration data of the wrong shape or not finite.
    """
    samples = _samples(ensemble, fit.calibration)
    held_out = _held_out(samples)
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
    judge = Judge(ensemble, samples)
    if not len(samples):
        require_spread(ensemble, fit)
    elif fit.accuracy is None and fit.error is None:
        require_leaves(judge.closeness(samples))
    bins, covered = threshold_bins(judge, fit, held_out)
    result = paths(ensemble, bins)
    report = None
    warnings = remarks(judge, bins, covered, held_out) if len(samples) else []
    # Samples that are held out first: the report is about them.
    chosen = np.sort(np.argsort(~held_out, kind="stable")[:MOST_SAMPLES])
    samples, held_out, exact = samples[chosen], held_out[chosen], judge.exact[chosen]
    bits = bins.binning.apply(samples)
    if len(samples):
        compared = held_out if held_out.any() else np.ones_like(held_out)
        outputs = np.concatenate([values[result.graph.output] for _, values in result.graph.runs(bits)])
        scores = result.sums.rounded(outputs[compared])
        report = _report(ensemble, bins, scores, exact[compared], held_out, warnings)
    return QuantisedEnsemble(
        result,
        bins.binning,
        ensemble.last.client_part(result.sums),
        samples,
        held_out,
        report,
    )


def _report(
    ensemble: Ensemble,
    bins: Bins,
    scores: Vector,
    exact: Vector,
    held_out: NDArray[np.bool_],
    warnings: Sequence[str],
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
        remarks=tuple(warnings),
    )


def _held_out(samples: Vector) -> NDArray[np.bool_]:
    """Return which samples no edge depends on: all copies of a sample, or none."""
    _, first, which = np.unique(samples, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return hold_out(len(first))[place[which.ravel()]]


def _samples(ensemble: Ensemble, calibration: ArrayLike | None) -> Vector:
    if calibration is None:
        return np.zeros((0, ensemble.features))
    samples = as_numbers(calibration, "calibration data")
    require_samples(samples, (ensemble.features,), "calibration data")
    wrong = ~np.isfinite(samples) & ~(np.isnan(samples) & ensemble.missing)
    if wrong.any():
        raise EncodeError(
            f"calibration data hold {int(wrong.sum())} values that are not finite; remove them",
            code="samples",
        )
    return samples
