"""The predicted error of an encrypted run, compared with the spread of each output."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keywright._units import numbered, rounded_up
from keywright.compiler.activations.answers import answer_differences, changed_answers, shares_of
from keywright.compiler.activations.fit import Fit
from keywright.compiler.activations.polynomial_choice import escaping
from keywright.compiler.activations.spread import half_range_of, outliers_of, spread_of
from keywright.compiler.approximating import ApproximatedModel
from keywright.errors import ParameterError
from keywright.model.exchange.interface import FRACTION_BITS
from keywright.plan.keys.execution import PlanExecution
from keywright.program.client.jumps import rows_to_look_at, within
from keywright.program.client.last_steps import ClientPart
from keywright.program.fit_report import MOST_OF_SPREAD, WARNED_SHARE, AnswerDifference
from keywright.program.program import Program
from keywright.runtime import simulate
from keywright.runtime.simulation.simulate import FACTOR

from .label_rule import LabelRule

SAMPLES = 4
"""Calibration samples that are simulated at least, or a batch of them if that is more."""

MOST_SAMPLES = 64
"""Calibration samples that are simulated at most, or a batch of them if that is more."""

WORK = 1.0
"""Predicted seconds of encrypted batches for which more samples than the least are simulated."""

REPETITIONS = 2

UNEVEN = 100.0
"""Ratio of the largest feature to the median one from which their sizes count as the cause of errors."""


@dataclass(frozen=True, eq=False)
class Outliers:
    """Rows of the calibration data with a value far from the others of its feature, and features far larger
    than others.

    Attributes:
        rows: indices of the rows.
        distance: of the furthest value from the median of its feature, in spreads of the feature.
        unevenness: ratio of the largest feature to the median one, each by its largest absolute value.
    """

    rows: tuple[int, ...] = ()
    distance: float = 0.0
    unevenness: float = 1.0

    def __str__(self) -> str:
        return (
            f"outliers in {numbered(self.rows)} of the calibration data, up to {self.distance:.2g} times as "
            "far from the median as ordinary values, leave these few bits"
        )


@dataclass(frozen=True, eq=False)
class Labels:
    """Calibration samples whose prediction may change under encryption.

    Attributes:
        undecided: those whose prediction errors of the predicted size may change, although it is no tie.
        ties: those whose best outputs are equal in the model itself.
        samples: number of samples with a prediction.
        kept: share of them whose prediction neither polynomials nor errors of that size change.
        rule: how predictions follow from outputs.
    """

    undecided: int
    ties: int
    samples: int
    kept: float
    rule: LabelRule


@dataclass(frozen=True)
class Simulated:
    """What errors were predicted on.

    Attributes:
        samples: number of simulated samples.
        batch: samples that share ciphertexts.
        rounded: the largest error that clients remove, because they round scores of trees.
        constant: outputs that are constant there; the spread of such a one is its size, or 1 if it is 0.
    """

    samples: int
    batch: int
    rounded: float = 0.0
    constant: frozenset[int] = frozenset()

    def __str__(self) -> str:
        shared = "one sample" if self.batch == 1 else f"{self.batch} samples"
        return f"predicted on {self.samples} calibration samples, with {shared} at a time in ciphertexts"


@dataclass(frozen=True, eq=False)
class Answers:
    """The model's outputs that are no labels, behind the client's last steps.

    Attributes:
        part: the last steps.
        differences: how errors of up to `FACTOR` times the predicted ones change each output.
        change: the largest of these changes, and by export and polynomials, together.
        shares: the same of each output with the predicted errors themselves, as a share of its range, by
            name; what may jump does not count.
    """

    part: ClientPart
    differences: tuple[AnswerDifference, ...]
    change: float
    shares: Mapping[str, float]

    @property
    def large(self) -> str:
        """Outputs that change much, or jump; empty without any."""
        named = [str(each) for each in self.differences if each.large or each.jumps.near]
        if not named:
            return ""
        return f"; behind the client's last steps, errors of up to {FACTOR} times that put {', '.join(named)}"

    def may_change(self, scores: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the samples, by their scores, of which an output may jump or change much."""
        bounds = {each.name: each.bound for each in self.differences}
        return within(self.part, scores, errors, bounds)


@dataclass(frozen=True, eq=False)
class EncryptedError:
    """The errors that encryption adds to the outputs of a program, as predicted by
    `keywright.runtime.simulate` for one batch and one plan of keys. The largest errors of other samples are
    at most `FACTOR` times as large, if those are like the calibration data.

    Attributes:
        errors: the largest of each output, (outputs,).
        spread: of each output on the calibration data, (outputs,): the standard deviation, or half the
            distance of the quantiles of 16 % and 84 % if that is smaller.
        simulated: what they were predicted on.
        change: `FACTOR` times the largest error of each output and the largest change by polynomials, or from
            the estimator that the model was compiled from, together, (outputs,).
        labels: predictions that may change; None if the model has none.
        outliers: of the calibration data.
        answers: the model's outputs that are no labels, behind the client's last steps; None without any.
        whole: the largest error of each value and its largest change by export and polynomials, together, as
            a share of its spread, by the output's name; empty for scores of labels, and for trees, whose
            rounding is judged by itself.
    """

    errors: NDArray[np.float64]
    spread: NDArray[np.float64]
    simulated: Simulated
    change: NDArray[np.float64]
    labels: Labels | None = None
    outliers: Outliers = Outliers()
    answers: Answers | None = None
    whole: Mapping[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> int:
        """The output with the largest error as a share of its spread."""
        return int(np.argmax(self.errors / self.spread))

    @property
    def share(self) -> float:
        """The largest error as a share of the spread of its output."""
        return float(self.errors[self.worst] / self.spread[self.worst])

    @property
    def kept(self) -> float | None:
        """The share of calibration samples whose prediction neither polynomials nor errors of that size
        change; None if the model has no predictions."""
        return None if self.labels is None else self.labels.kept

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if the share is large, or if errors of that size may change a prediction."""
        return () if self.share <= WARNED_SHARE and not self._effect else (self._warning(self._effect),)

    def excess(self, fit: Fit) -> str | None:
        """Return what exceeds a fit, as the beginning of a message; None if the error is as small as it
        requires."""
        if not self.share <= fit.noise:
            return ""
        change = float(self.change.max()) if self.answers is None else self.answers.change
        if fit.error is not None and not change <= fit.error:
            where = "" if self.answers is None else ", behind the client's last steps,"
            return (
                f"export, polynomials and encryption change an output{where} by up to {change:.3g}, "
                f"{fit.error:g} is allowed (error=): "
            )
        if fit.accuracy is not None and self.kept is not None and self.kept < fit.accuracy:
            return (
                f"{self.kept:.4%} of the predictions stay the same under encryption, {fit.accuracy:.4%} are "
                "required (accuracy=): "
            )
        if fit.accuracy is None and fit.error is None and not fit.activations:
            return self._whole_excess(max(fit.noise, MOST_OF_SPREAD))
        return None

    def _whole_excess(self, most: float) -> str | None:
        """Return what `excess` does of export, polynomials and encryption together."""
        behind = {} if self.answers is None else self.answers.shares
        shares = {**self.whole, **behind}
        name = max(shares, key=shares.__getitem__, default="")
        if not shares or shares[name] <= most:
            return None
        where, of = (" behind the client's last steps", "range") if name in behind else ("", "spread")
        return (
            f"export, polynomials and encryption together change {name}{where} by up to {shares[name]:.2g} "
            f"times its {of}, {most:g} is allowed; noise={rounded_up(shares[name])} allows this, accuracy= "
            "says that predictions alone count, error= sets another limit: "
        )

    def warnings_about(self, outputs: NDArray[np.float64]) -> tuple[str, ...]:
        """Return a warning if the share is large, or if errors may have changed one of some predictions, or
        another output much.

        Args:
            outputs: decrypted, (count, *output_shape).
        """
        rows, effect = self.undecided(outputs), ""
        if len(rows):
            effect = f"; that may have changed the prediction of {numbered(rows.tolist())} of the samples"
        flat = outputs.reshape(len(outputs), -1)
        if self.answers is not None and len(rows := self.answers.may_change(flat, FACTOR * self.errors)):
            names = ", ".join(each.name for each in self.answers.differences)
            effect += (
                f"; behind the client's last steps, that may have changed {names} of "
                f"{numbered(rows.tolist())} of the samples much{self.answers.large}"
            )
        return () if self.share <= WARNED_SHARE and not effect else (self._warning(effect),)

    def undecided(self, outputs: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rows whose prediction may be another one without errors up to `FACTOR` times the
        predicted ones, (count,). There are none if the model has no predictions, or if its outputs are scores
        with ties of their own.

        Args:
            outputs: decrypted, (count, *output_shape).
        """
        if self.labels is None or (self.labels.ties and not self.labels.rule.of_last_steps):
            return np.zeros(0, np.int64)
        flat = outputs.reshape(len(outputs), -1)
        return np.flatnonzero(self.labels.rule.undecided(flat, FACTOR * float(self.errors.max())))

    @property
    def described(self) -> str:
        """The error, what it may change, and the rows of the calibration data that are its cause, if any."""
        return f"{self}{self._effect}{self._cause}"

    @property
    def _effect(self) -> str:
        effect, labels = "", self.labels
        if labels is not None and labels.undecided:
            share = f"{labels.undecided} of {labels.samples} calibration samples"
            effect = f"; that may change the prediction of {share}"
        if labels is not None and labels.ties and labels.rule.of_last_steps:
            effect += (
                f"; {labels.ties} of {labels.samples} calibration samples are ties, or so near a step that "
                "the model's own roundings decide their prediction, and encryption may decide otherwise"
            )
        return effect + self._amplified

    @property
    def _amplified(self) -> str:
        """Outputs that change much behind the client's last steps."""
        return "" if self.answers is None else self.answers.large

    @property
    def _cause(self) -> str:
        return f"; {self.outliers}" if self.outliers.rows else ""

    def _warning(self, effect: str) -> str:
        ways = ["parameters with a larger scale (parameters=)", *self.ways]
        return f"{self}{effect}{self._cause}; use {' or '.join(ways)}"

    @property
    def ways(self) -> list[str]:
        """Ways to smaller errors with the same parameters."""
        smaller = [] if self.simulated.batch == 1 else ["fewer samples in shared ciphertexts (batch=1)"]
        clipped = ["calibration data whose outliers are clipped or left out (calibration=)"]
        even = ["inputs of similar size, such as those of a scaler before the model"]
        return [
            *smaller,
            *(clipped if self.outliers.rows else []),
            *(even if self.outliers.unevenness > UNEVEN else []),
        ]

    def __str__(self) -> str:
        worst = self.worst
        rounded = self.simulated.rounded
        if rounded and not self.errors.any():
            return (
                f"encryption changes no output: clients round scores, and errors of up to {rounded:.2g} "
                f"are below half of what they round to, {self.simulated}"
            )
        spread = f"its spread of {self.spread[worst]:.3g}"
        if worst in self.simulated.constant:
            spread = (
                f"{self.spread[worst]:.3g} (it is constant on the calibration data, and its size, or 1 if it "
                "is 0, stands for its spread)"
            )
        return (
            f"encryption changes output {worst} by up to {self.errors[worst]:.2g}, {self.share:.2g} times "
            f"{spread}, {self.simulated}"
        )


def predict_error(
    model: ApproximatedModel, program: Program, plan: PlanExecution, entry: int | None = None
) -> EncryptedError | None:
    """Simulate calibration samples. Returns None if a bootstrap has no prediction.

    Args:
        entry: for thin clients, index of the bootstrap through which their ciphertexts enter.
    """
    chosen = _simulated(model, program)
    try:
        simulated = simulate(
            program,
            plan,
            model.samples[chosen].reshape(-1, *program.input.shape),
            repetitions=REPETITIONS,
            entry=entry,
            step=0.0 if entry is None else 2.0**-FRACTION_BITS,
        )
    except ParameterError as error:
        if error.code != "prediction":
            raise
        return None
    errors = simulated.errors.max(axis=(0, 1))
    rounded = 0.0
    if model.trees is not None:
        # Clients round scores to units. Other samples have errors of at most `FACTOR` times these.
        rounded = float(errors.max())
        errors = np.where(FACTOR * errors < model.trees.unit / 2, 0.0, errors)
    replaced, spread = model.approximate_outputs, spread_of(model.outputs)
    polynomials = np.abs(replaced - model.outputs).max(axis=0)
    whole: dict[str, float] = {}
    if model.trees is None and model.run.values:
        shares = np.maximum(polynomials / spread, _exported_share(model)) + errors / spread
        whole = {f"output {number}": share for number, share in enumerate(shares.tolist())}
    constant = frozenset(np.flatnonzero(half_range_of(model.outputs) == 0).tolist())
    rows, distance = outliers_of(model.samples)
    return EncryptedError(
        errors,
        spread,
        Simulated(len(chosen), program.batch, rounded, constant),
        FACTOR * errors + np.maximum(polynomials, _exported(model)),
        _labels(model, replaced, errors),
        Outliers(tuple(rows.tolist()), distance, _unevenness(model.samples)),
        _answers(model, replaced, errors, chosen),
        whole,
    )


def _unevenness(samples: NDArray[np.float64]) -> float:
    """Return the ratio of the largest feature to the median one of those that are not always 0."""
    sizes = np.abs(samples.reshape(len(samples), -1)).max(axis=0)
    sizes = sizes[sizes > 0]
    return float(sizes.max() / np.median(sizes)) if len(sizes) else 1.0


def _exported(model: ApproximatedModel) -> float:
    """Return the largest difference from the estimator that a model was compiled from, where the outputs are
    the estimator's own."""
    return 0.0 if model.output.client_part is not None else _from_estimator(model)


def _from_estimator(model: ApproximatedModel) -> float:
    return max((each.largest_change for each in model.run.export.estimator), default=0.0)


def _exported_share(model: ApproximatedModel) -> float:
    """Return the same as a share of the range of the estimator's own outputs."""
    own = model.run.export.estimator
    return max((each.largest_change / (2 * each.spread) for each in own if each.spread > 0), default=0.0)


def _answers(
    model: ApproximatedModel,
    replaced: NDArray[np.float64],
    errors: NDArray[np.float64],
    simulated: NDArray[np.int64],
) -> Answers | None:
    """Return how errors change the outputs behind the client's last steps; None without these, or where they
    round the errors away.

    Args:
        replaced: outputs of the program on the calibration data, (count, outputs).
        simulated: samples with large outputs, which are looked at too.
    """
    part = model.output.client_part
    if part is None or model.trees is not None:
        return None
    rows = np.union1d(rows_to_look_at(part, replaced, FACTOR * errors), simulated)
    differences = changed_answers(part, replaced[rows], FACTOR * errors, WARNED_SHARE)
    polynomials, _ = answer_differences(part, replaced[rows], model.outputs[rows], None, 0.0)
    before = max([_from_estimator(model), *(each.largest_change for each in polynomials)])
    after = max((each.largest_change for each in differences), default=0.0)
    ranges = {each.name: 2 * each.spread for each in differences if each.spread > 0}
    own = changed_answers(part, replaced[rows], errors, WARNED_SHARE)
    exported = 0.0 if part.deciding else _exported_share(model)
    first, second = shares_of(polynomials, ranges), shares_of(own, ranges)
    shares = {name: max(first.get(name, 0.0), exported) + second.get(name, 0.0) for name in ranges}
    return Answers(part, differences, before + after, shares) if differences else None


def _simulated(model: ApproximatedModel, program: Program) -> NDArray[np.int64]:
    """Return the calibration samples to simulate, (count,): in turn the next of the largest outputs, of the
    largest inputs, and of all. Samples that leave a range are left out: clients refuse them."""
    seconds = program.seconds
    batches = min(MOST_SAMPLES // program.batch, int(WORK / seconds) if seconds > 0 else MOST_SAMPLES)
    count = max(SAMPLES, program.batch * max(batches, 1))
    orders = [np.arange(len(model.samples))]
    for values in (np.abs(model.samples), np.abs(model.outputs)):
        size = values.mean(axis=0)
        orders.insert(0, np.argsort(-(values / np.where(size > 0, size, 1.0)).max(axis=1), kind="stable"))
    order = np.fromiter(dict.fromkeys(np.stack(orders, axis=1).ravel()), np.int64)[:count]
    inside = order[~escaping(model.graph, model.run.samples[order])]
    return inside if len(inside) else order


def _labels(
    model: ApproximatedModel, outputs: NDArray[np.float64], errors: NDArray[np.float64]
) -> Labels | None:
    """Return the predictions that errors may change; None if the model has no predictions.

    Args:
        outputs: of the program on the calibration data, (count, outputs).
    """
    if model.trees is not None and (
        model.trees.report is None or model.trees.report.outputs.agreement is None
    ):
        return None  # an ensemble of values
    rule = LabelRule(model.run, None if model.trees is not None else model.output.client_part)
    if rule.labels(outputs[:1]) is None:
        return None
    result, expected = model.run.predictions(outputs), model.run.predictions(model.outputs)
    ties = rule.ties(model.outputs)
    undecided = rule.undecided(outputs, float(errors.max()))
    kept = ~undecided if result is None or expected is None else (result == expected) & ~undecided
    return Labels(int((~ties & undecided).sum()), int(ties.sum()), len(outputs), float(kept.mean()), rule)
