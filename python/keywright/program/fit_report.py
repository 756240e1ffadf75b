"""The fit report of a program: how polynomials change the outputs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

FEW_HELD_OUT = 20
"""With fewer held-out samples the share of equal predictions is coarser than 5 %."""

DEFAULT_CHANGE = 1 / 16
"""Default bound on the change of an output, as a share of the largest output; larger ones are warned of."""

LEAST_AGREEMENT = 0.98
"""A smaller share of equal predictions is warned of."""


@dataclass(frozen=True)
class FittedActivation:
    """How polynomials approximate one function.

    Attributes:
        label: function and ONNX node.
        method: "chebyshev:DEGREE", "minimax:BITS" or "stored".
        degrees: of the polynomials, in order of evaluation.
        low, high: the range of the approximation, in the model's own numbers.
        max_error: bound on the distance from the function on that range.
        rms_error: root mean square error on the calibration data.
    """

    label: str
    method: str
    degrees: tuple[int, ...]
    low: float
    high: float
    max_error: float
    rms_error: float

    @property
    def looseness(self) -> float:
        """Return the root mean square error as a share of the range's width."""
        return self.rms_error / (self.high - self.low)


@dataclass(frozen=True)
class OutputDifference:
    """The difference between the outputs of a program and the outputs of its model.

    Attributes:
        largest_change, mean_change: of the absolute differences of all outputs.
        largest_output: largest absolute output of the model, for comparison.
        agreement: share of samples with equal predictions: the index of the largest output, or the sign of a
            single output that the client turns into a label; None for another single output.
        spread: of most values of an output of the model, the largest one, of trees; 0 if it was not measured.
    """

    largest_change: float
    mean_change: float
    largest_output: float
    agreement: float | None
    spread: float = 0.0


@dataclass(frozen=True)
class FitReport:
    """How a program in the clear differs from the model that it was compiled from.

    The report excludes the error of encryption. Both networks are run in the clear on calibration samples. If
    some samples were held out, the figures are for these alone: no coefficient was fitted to them.

    Attributes:
        activations: one entry for each approximated function; without any, the program computes the model's
            own function.
        samples: number of calibration samples.
        held_out: number of held-out samples; 0 if there are too few samples.
        escaped: held-out samples with a value outside a range measured on the other samples and widened by
            the margin, before the range was widened further for them.
        outputs: how the outputs differ.
        bins: of the feature with most of them, if the thresholds of trees were rounded to the edges of bins;
            otherwise 0.
        remarks: warnings about trees: what rounding changes, and what the calibration data leave open.
    """

    activations: tuple[FittedActivation, ...]
    samples: int
    held_out: int
    escaped: int
    outputs: OutputDifference
    bins: int = 0
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.activations and not self.bins:
            return "no activation is replaced: the program computes the model's own function"
        kind = "held-out calibration samples" if self.held_out else "calibration samples, none held out"
        share = "" if self.outputs.agreement is None else f"{self.outputs.agreement:.2%} equal predictions, "
        rounded = f"thresholds rounded to the edges of at most {self.bins} bins; " if self.bins else ""
        return (
            f"{rounded}program in the clear against the model, {self.compared} {kind}: {share}outputs off by "
            f"{self.outputs.mean_change:.2g} in the mean and {self.outputs.largest_change:.2g} at most "
            f"(largest output {self.outputs.largest_output:.3g}); errors of encryption come on top"
        )

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON, with the differences of outputs among the rest."""
        entry = asdict(self)
        outputs, bins = entry.pop("outputs"), entry.pop("bins")
        if not self.outputs.spread:
            del outputs["spread"]
        if not self.remarks:
            del entry["remarks"]
        return {**entry, **outputs, "bins": bins}

    @property
    def compared(self) -> int:
        """Number of samples that the figures are for."""
        return self.held_out or self.samples

    @property
    def unseen_risk(self) -> float:
        """Bound on the probability that a sample like those of the calibration leaves a range before it is
        widened: one more sample exceeds each end of each range with probability 1 / (samples + 1)."""
        fitted = self.samples - self.held_out
        return min(1.0, 2 * len(self.activations) / (fitted + 1))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the reliability of the figures."""
        if not self.activations:
            return self.remarks
        results = []
        if self.held_out == 0:
            results.append(
                f"{self.samples} calibration samples are too few to hold some out, so the figures are for "
                "the samples that the polynomials were fitted to; give at least 50"
            )
        elif self.held_out < FEW_HELD_OUT:
            results.append(f"only {self.held_out} samples were held out; give at least {5 * FEW_HELD_OUT}")
        if self.escaped:
            results.append(
                f"{self.escaped} of {self.held_out} held-out samples left the ranges measured on the "
                "others, which were widened for them; there are too few calibration samples, or a few "
                "unlike the rest"
            )
        if self.unseen_risk > 0.5:
            results.append(
                f"{self.samples} calibration samples are few for {len(self.activations)} activations: a "
                f"new sample exceeds a measured range with a probability of up to {self.unseen_risk:.0%}, "
                "and only the margin keeps it inside"
            )
        missed = self._missed
        if missed:
            results.append(f"{' and '.join(missed)}; the loosest fit is {loosest(self.activations)}")
        return tuple(results)

    @property
    def _missed(self) -> list[str]:
        """How the program differs more from the model than by default it may."""
        missed, outputs = [], self.outputs
        if not outputs.largest_change <= DEFAULT_CHANGE * outputs.largest_output:
            missed.append(
                f"an output changes by {outputs.largest_change:.3g}, above a sixteenth of the largest "
                f"output, {outputs.largest_output:.3g}"
            )
        if outputs.agreement is not None and outputs.agreement < LEAST_AGREEMENT:
            missed.append(f"{1 - outputs.agreement:.1%} of the predictions differ from those of the model")
        return missed


def loosest(activations: Sequence[FittedActivation]) -> str:
    """Describe the activation with the largest error, relative to its range, on the calibration data."""
    worst = max(activations, key=lambda fitted: fitted.looseness)
    return (
        f"{worst.label}, {worst.method} on {worst.low:.3g} to {worst.high:.3g}, off by {worst.rms_error:.2g} "
        f"in the root mean square and {worst.max_error:.2g} at most"
    )
