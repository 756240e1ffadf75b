"""The thresholds of trees on encrypted data: the model's own, or private ones, as few as the fit allows."""

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.fit import Fit
from keywright.errors.refusals.precision import calibration_missing, inaccurate

from .bins import Bins, private_bins, public_bins
from .calibration.coverage import Coverage, coverage
from .calibration.judging import DEFAULT, Judge, require_coverage
from .paths import paths

LADDER = (16, 32, 64, 128, 256)
"""Numbers of bins that are tried by default, in order."""

LAST_LADDER = (1024, 4096)
"""Numbers that are tried before a model is refused."""


def threshold_bins(judge: Judge, fit: Fit, held_out: NDArray[np.bool_]) -> tuple[Bins, Coverage | None]:
    """Return the bins between thresholds, and for private ones what the calibration data cover.

    Raises:
        RefusalError: private thresholds without calibration data, or they miss a required accuracy or error,
            or the default.
    """
    if fit.thresholds == "public":
        return public_bins(judge.ensemble), None
    if not len(judge.samples):
        raise calibration_missing(["the bins of thresholds"])
    covered = coverage(judge.ensemble, judge.samples)
    require_coverage(covered, fit)
    return covered.within(_chosen(judge, fit, held_out)), covered


def _chosen(judge: Judge, fit: Fit, held_out: NDArray[np.bool_]) -> Bins:
    """Return the bins.

    Raises:
        RefusalError: they miss a required accuracy or error, or the default.
    """
    required = fit.accuracy is not None or fit.error is not None
    counts = (fit.bins,) if fit.bins is not None else LADDER if required else (*LADDER, *LAST_LADDER)
    tried = _Candidate(judge, fit, held_out, counts[0])
    for count in counts[1:]:
        # The last numbers are tried only before a refusal.
        if tried.follows or (count > LADDER[-1] and not tried.close.refused):
            break
        tried = _Candidate(judge, fit, held_out, count)
    if tried.follows or not (required or tried.close.refused):
        return tried.bins
    close, depth = tried.close, paths(judge.ensemble, tried.bins).graph.depth()
    default = None if required else f"{DEFAULT}, but {' and '.join(close.refused)}"
    raise inaccurate(
        fit.accuracy, fit.error, close.agreement, close.change, depth, default=default, bins=tried.count
    )


class _Candidate:
    """A number of bins, and what it changes."""

    def __init__(self, judge: Judge, fit: Fit, held_out: NDArray[np.bool_], count: int) -> None:
        self.fit, self.count = fit, count
        self.bins = private_bins(judge.ensemble, judge.samples[~held_out], count)
        self.close = judge.closeness(self.bins.quantised(judge.samples))

    @property
    def follows(self) -> bool:
        """Whether it suffices: requirements replace the default, and a given number is taken as it is."""
        fit, close = self.fit, self.close
        if fit.accuracy is None and fit.error is None:
            return fit.bins is not None or close.follows
        equal = close.agreement is None or close.agreement >= (fit.accuracy or 0.0)
        return equal and (fit.error is None or close.change <= fit.error)
