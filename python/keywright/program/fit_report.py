"""The fit report of a program: how polynomials change the outputs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from keywright._units import quantity

FEW_HELD_OUT = 20
"""With fewer held-out samples the share of equal predictions is coarser than 5 %."""

DEFAULT_CHANGE = 1 / 16
"""Default bound on the change of an output, as a share of the largest output, or of half its own range;
larger ones are warned of."""

WARNED_SHARE = 0.01
"""A change of a value by a larger share of its spread, or of an answer behind the last steps by a larger
share of half its range, is warned of."""

MOST_OF_SPREAD = 1 / 10
"""By default, export, polynomials and encryption together change none of these by a larger share."""

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


COMPARED = 4096
"""Calibration samples that are compared with an estimator at most."""


@dataclass(frozen=True)
class Jumps:
    """Samples whose scores are so near a step, such as Floor or a comparison, that errors of the scores may
    take an output across it.

    Attributes:
        near: number of such samples.
        samples: number of samples that were looked at.
        largest: how far the output jumps at most.
        steps: operators that it jumps at.
    """

    near: int = 0
    samples: int = 0
    largest: float = 0.0
    steps: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of such samples."""
        return self.near / self.samples if self.samples else 0.0

    def __str__(self) -> str:
        return (
            f"{self.near} of {quantity(self.samples, 'sample')} looked at are within these errors of a "
            f"step of {', '.join(self.steps)}, where it jumps by up to {self.largest:.2g}"
        )


@dataclass(frozen=True)
class AnswerDifference:
    """The difference of one of a model's outputs, behind the last steps of the client, from the model's own.

    Attributes:
        name: of the output.
        largest_change: the largest absolute difference.
        spread: half the range of the model's own.
        bound: a larger change is warned of.
        jumps: what errors may do where the output is no continuous function of the scores.
    """

    name: str
    largest_change: float
    spread: float
    bound: float
    jumps: Jumps = Jumps()

    @property
    def large(self) -> bool:
        """Whether the output changes by more than the bound, or jumps on more than a few samples."""
        return not self.largest_change <= self.bound or self.jumps.share > 1 - LEAST_AGREEMENT

    def __str__(self) -> str:
        jumps = f"; {self.jumps}" if self.jumps.near else ""
        return (
            f"{self.name} off by {self.largest_change:.2g} at most (half its range {self.spread:.3g}){jumps}"
        )


@dataclass(frozen=True)
class OutputDifference:
    """The difference between the outputs of a program and the outputs of its model.

    Attributes:
        largest_change, mean_change: of the absolute differences of all outputs.
        largest_output: largest absolute output of the model, for comparison.
        agreement: share of samples with equal predictions: the index of the largest output, or the sign of a
            single output that the client turns into a label; None for another single output.
        spread: of most values of an output of the model, the largest one, of trees; 0 if it was not measured.
        share: the largest change as a share of the size by which its output is judged; 0 if it was not
            measured. Of a score of labels that is the largest output, of others half the output's own range.
        of_spread: the largest change as a share of the spread of its output; 0 for scores of labels, where
            `accuracy` or `error` say what is allowed, and if it was not measured.
        answers: how the model's own outputs differ that are no labels, behind the client's last steps. The
            other figures are about the scores before these, which the program computes.
    """

    largest_change: float
    mean_change: float
    largest_output: float
    agreement: float | None
    spread: float = 0.0
    share: float = 0.0
    of_spread: float = 0.0
    answers: tuple[AnswerDifference, ...] = ()


@dataclass(frozen=True)
class ExportDifferences:
    """How an ONNX model in real numbers differs from what it was exported from, on calibration samples.

    Attributes:
        rounding: from the integers of a quantised model; None for other models.
        estimator: from the predictions of an estimator of scikit-learn; empty for models from elsewhere.
        equal_labels: share of samples to which that estimator gives the same labels; None without labels.
        uncompared: which outputs were not compared with those of the module of PyTorch, and why; empty if all
            were, or for models from elsewhere.
    """

    rounding: OutputDifference | None = None
    estimator: tuple[AnswerDifference, ...] = ()
    equal_labels: float | None = None
    uncompared: str = ""


@dataclass(frozen=True)
class FitReport:
    """How a program in the clear differs from the model that it was compiled from.

    The report excludes the error of encryption. Both networks are run in the clear on calibration samples. If
    some samples were held out, the figures are for these alone: no coefficient was fitted to them.

    Attributes:
        activations: one entry for each approximated function; without any, the program computes the function
            of the ONNX model, to which other models are exported.
        samples: number of calibration samples.
        held_out: number of held-out samples; 0 if there are too few samples.
        escaped: held-out samples with a value outside a range measured on the other samples and widened by
            the margin, before the range was widened further for them.
        outputs: how the outputs differ.
        bins: of the feature with most of them, if the thresholds of trees were rounded to the edges of bins;
            otherwise 0.
        export: how the ONNX model differs from what it was exported from.
        remarks: warnings about trees: what rounding changes, and what the calibration data leave open; or
            that the server computes nothing.
    """

    activations: tuple[FittedActivation, ...]
    samples: int
    held_out: int
    escaped: int
    outputs: OutputDifference
    bins: int = 0
    export: ExportDifferences = ExportDifferences()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        answers = ", ".join(map(str, self.outputs.answers))
        behind = f"; behind the client's last steps {answers}" if answers else ""
        same = self.export.equal_labels
        labels = [] if same is None else [f"{same:.2%} equal labels"]
        own = ", ".join([*labels, *map(str, self.export.estimator)])
        against = (
            f"; against the estimator itself, on the calibration samples (at most {COMPARED:,}), {own}"
            if own
            else ""
        )
        rounded = "" if self.export.rounding is None else f"; {self._rounded}"
        apart = f"; of the ONNX model, {self.export.uncompared}" if self.export.uncompared else ""
        return self._compared_with_model + behind + against + rounded + apart

    @property
    def _rounded(self) -> str:
        """How the real numbers of a quantised model differ from its integers."""
        rounding = self.export.rounding
        assert rounding is not None
        share = rounding.agreement
        return (
            "the model is quantised, and the program computes with real numbers instead of integers: "
            + ("" if share is None else f"{share:.2%} equal predictions, ")
            + f"outputs off by {rounding.mean_change:.2g} on average and "
            f"{rounding.largest_change:.2g} at most (largest output {rounding.largest_output:.3g})"
        )

    @property
    def _compared_with_model(self) -> str:
        # Of trees with public thresholds, leaves are rounded.
        if not self.activations and not self.bins and not self.outputs.largest_change:
            return "no activation is replaced: the program computes the function of the ONNX model"
        kind = "held-out calibration samples" if self.held_out else "calibration samples, none held out"
        share = "" if self.outputs.agreement is None else f"{self.outputs.agreement:.2%} equal predictions, "
        rounded = f"thresholds rounded to the edges of at most {self.bins} bins; " if self.bins else ""
        what = "scores" if self.outputs.answers else "outputs"
        model = (
            "the model as exported, which is not the estimator,"
            if self._differently_labelled
            else "the model"
        )
        return (
            f"{rounded}unencrypted program compared with {model} on {self.compared} {kind}: {share}{what} "
            f"off by {self.outputs.mean_change:.2g} on average and {self.outputs.largest_change:.2g} at most "
            f"(largest {what[:-1]} {self.outputs.largest_output:.3g}); encryption adds its own error"
        )

    @property
    def _differently_labelled(self) -> bool:
        """Whether fewer labels are those of the estimator than are those of the model that was exported."""
        same, agreement = self.export.equal_labels, self.outputs.agreement
        return same is not None and agreement is not None and same < min(agreement, LEAST_AGREEMENT)

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON, with the differences of outputs among the rest."""
        entry = asdict(self)
        outputs, bins = entry.pop("outputs"), entry.pop("bins")
        for name in ("spread", "share", "of_spread", "answers"):
            if not outputs[name]:
                del outputs[name]
        export = entry.pop("export")
        entry |= {name: value for name, value in export.items() if value or value == 0.0}
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
        results = []
        if self.export.rounding is not None and (missed := _misses(self.export.rounding)):
            results.append(
                f"without the rounding of the model's integers, {' and '.join(missed)}; the report compares "
                "with the model in real numbers"
            )
        if self._differently_labelled:
            results.append(
                f"only {self.export.equal_labels:.2%} of the labels are those of the estimator itself"
            )
        if not (any(each.large for each in self.outputs.answers) or self.outputs.of_spread > WARNED_SHARE):
            results += [
                f"against the estimator itself, {each.name} changes by up to {each.largest_change:.3g}, "
                f"above {each.bound:.3g}"
                for each in self.export.estimator
                if not each.largest_change <= each.bound
            ]
        if not self.activations:
            return (*results, *self.remarks)
        if self.held_out == 0:
            results.append(
                f"{quantity(self.samples, 'calibration sample')}: too few to hold some out, so the figures "
                "are for the samples that the polynomials were fitted to; give at least 50"
            )
        elif self.held_out < FEW_HELD_OUT:
            few = quantity(self.held_out, "sample")
            results.append(f"only {few} held out; give at least {5 * FEW_HELD_OUT} in all")
        if self.escaped:
            results.append(
                f"{self.escaped} of {self.held_out} held-out samples left the ranges measured on the "
                "others, which were widened for them; there are too few calibration samples, or a few "
                "unlike the rest"
            )
        if self.unseen_risk > 0.5:
            results.append(
                f"only {quantity(self.samples, 'calibration sample')} for "
                f"{quantity(len(self.activations), 'activation')}: a "
                f"new sample exceeds a measured range with a probability of up to {self.unseen_risk:.0%}, "
                "and only the margin keeps it inside"
            )
        if missed := _misses(self.outputs):
            results.append(f"{' and '.join(missed)}; the loosest fit is {loosest(self.activations)}")
        if self.outputs.of_spread > WARNED_SHARE:
            alone = "" if self.outputs.agreement is None else ", or, if predictions alone count, by accuracy="
            results.append(
                f"polynomials change an output by up to {self.outputs.of_spread:.2g} times its spread; the "
                f"loosest fit is {loosest(self.activations)}; state what is allowed by error={alone}"
            )
        results += [
            f"behind the client's last steps, {each}; state what is allowed by error="
            for each in self.outputs.answers
            if each.large
        ]
        return tuple(results)


def _misses(outputs: OutputDifference) -> list[str]:
    """How outputs differ more than by default they may."""
    missed = []
    if not outputs.largest_change <= DEFAULT_CHANGE * outputs.largest_output:
        missed.append(
            f"an output changes by {outputs.largest_change:.3g}, above a sixteenth of the largest "
            f"output, {outputs.largest_output:.3g}"
        )
    elif outputs.share > DEFAULT_CHANGE:
        missed.append(f"an output changes by {outputs.share:.3g} times half of its range, above a sixteenth")
    return missed + _disagreement(outputs)


def _disagreement(outputs: OutputDifference) -> list[str]:
    if outputs.agreement is None or outputs.agreement >= LEAST_AGREEMENT:
        return []
    return [f"{1 - outputs.agreement:.1%} of the predictions differ from those of the model"]


def loosest(activations: Sequence[FittedActivation]) -> str:
    """Describe the activation with the largest error, relative to its range, on the calibration data."""
    worst = max(activations, key=lambda fitted: fitted.looseness)
    return (
        f"{worst.label}, {worst.method} on {worst.low:.3g} to {worst.high:.3g}, off by {worst.rms_error:.2g} "
        f"(root mean square) and {worst.max_error:.2g} at most"
    )
