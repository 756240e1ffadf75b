"""Chooses the cheapest polynomials with which a program follows its model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keywright._units import numbered
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.graph.graph import Activation, Domain, Graph, Multiply, Polynomial
from keywright.compiler.graph.piecewise import PiecewiseLinear
from keywright.compiler.graph.simplify import simplify
from keywright.compiler.placement.bounding import largest_and_outputs
from keywright.errors.refusals.precision import inaccurate, overflowing
from keywright.program.arrays import Vector
from keywright.program.client.jumps import moved
from keywright.program.client.last_steps import ClientPart
from keywright.program.fit_report import (
    DEFAULT_CHANGE,
    MOST_OF_SPREAD,
    WARNED_SHARE,
    AnswerDifference,
    FitReport,
    FittedActivation,
    OutputDifference,
    loosest,
)

from .answers import answer_differences, answer_ranges, largest_change, shares_of
from .fit import Fit
from .fitting import Approximation, fit_activation, replace_activations
from .ranges import ExactRun, MeasuredRange
from .spread import half_range_of, outliers_of, spread_of, without_outliers

LOOSEST_CHANGE = 1.0
"""Bound on the change of an output, as a share of the largest output, if only the share of equal predictions
is required: beyond it, the program computes another model, and results can exceed their ciphertexts."""

UNDECIDED = 1 / 256
"""By default, predictions whose two best outputs differ by less than this share of the largest output may
change. The model itself hardly separates them, and to preserve one of them could cost a deep network as much
as all the others."""

UNDECIDED_SIGN = 1 / 64
"""The same for a single output whose sign is the prediction: it is closer to 0 than this share. The share is
larger, because every sample near the class boundary is near 0."""

ENCRYPTED_SHARE = 1 / 16
"""Share of a required error that polynomials leave to encryption."""

DEFAULT_SHARE = (1 - ENCRYPTED_SHARE) * MOST_OF_SPREAD
"""By default, polynomials change no value by a larger share of its spread, and no output behind the client's
last steps by a larger share of its range."""

ANSWER_SHARE = 1 / 2
"""Change of an output behind the client's last steps, as a share of half its range, above which it is warned
of where a share of equal predictions is required."""


FIRST_SAMPLES = 4
"""Samples on which a choice is tried first: most choices are too coarse, and a few samples show it."""

OVERFLOW = 2.0**32
"""Requested polynomials are refused if they change an output by so many times the largest output."""

ESCAPED = 0.01
"""A value leaves a range if it is further outside than this share of its width."""

LARGEST = np.finfo(np.float64).max
"""The change of an output that is not a number."""

COARSEST, FINEST = 2, 40
"""Error targets are 2^-2 to 2^-40 of half a range, in steps of a quarter of a bit: less than the error of a
kink decreases from degree 23 to 31. Before the last, every function has the finest of its methods."""

FLATTEST, POINTS = 64.0, 257
"""A function that varies by less than this part of its range, such as one with a small factor behind it, is
judged by its values."""

SMOOTH = [Method("chebyshev", degree) for degree in (2, 3, 5, 7, 11, 15, 23, 31, 63, 127)]
POSITIVE = [*SMOOTH, *(Method("chebyshev", degree) for degree in (255, 511, 1023))]
"""Methods for functions of positive values, which are steep at the low end of a range that is widened by
factors, and for functions that jump."""
KINKED = [Method("chebyshev", degree) for degree in (2, 3, 5, 7, 11, 15, 23, 31, 63, 127, 255, 511, 1023)]
KINKED += [Method("minimax", bits) for bits in range(7, 15)]

Price = Callable[[Method], float]


@dataclass(frozen=True, eq=False)
class ReplacedActivations:
    """A graph without activations.

    Attributes:
        graph: simplified.
        fitted: the approximation of each activation.
        measured: the largest absolute value of each node on the calibration data, and the outputs there,
            (count, outputs); None if that was not needed for the choice.
    """

    graph: Graph
    fitted: tuple[FittedActivation, ...]
    measured: tuple[Mapping[int, float], Vector] | None = None


@dataclass(frozen=True)
class Requirement:
    """How closely a program must follow its model on calibration data.

    Attributes:
        accuracy: minimum share of equal predictions.
        error: maximum change of an output; of each, (outputs,), by default.
        undecided: predictions whose two best outputs are closer, or whose single output is closer to 0, may
            change; of each output, (outputs,), where labels are others than the index of the largest one, and
            may change if outputs move by half of it.
        answers: the range of each output behind the client's last steps, by name; None if `error` limits
            these outputs themselves.
    """

    accuracy: float
    error: float | Vector
    undecided: float | Vector = 0.0
    answers: Mapping[str, float] | None = None

    @staticmethod
    def of(fit: Fit, run: ExactRun, part: ClientPart | None) -> "Requirement":
        """Return the requirements of a fit, or the default ones. An output is judged by half of its own range
        without outliers: its distance from 0 may be a constant, and others may have another unit. Scores of
        labels are compared with each other, and judged by the largest of them, without outliers."""
        outputs, each = run.outputs, _sizes(run)
        largest = float(np.abs(outputs).max(initial=0.0))
        if fit.accuracy is None and fit.error is None:
            share = UNDECIDED_SIGN if outputs.shape[1] == 1 else UNDECIDED
            most = DEFAULT_CHANGE * each
            if outputs.size and run.values:
                most = np.minimum(most, DEFAULT_SHARE * spread_of(outputs))
            answers = answer_ranges(part, outputs) if outputs.size and part is not None else {}
            own = run.labels is not None and outputs.size and not run.scores
            sizes = np.abs(without_outliers(outputs)).max(axis=0, initial=0.0)
            size = each[0] if outputs.shape[1] == 1 else sizes if own else sizes.max(initial=0.0)
            return Requirement(1.0, most, share * size, answers)
        error = LOOSEST_CHANGE * largest if fit.error is None else (1 - ENCRYPTED_SHARE) * fit.error
        return Requirement(fit.accuracy or 0.0, error)


def answer_share(accuracy: float | None) -> float:
    """Return the share of half its range above which a change of an output behind the client's last steps is
    warned of, by the required share of equal predictions."""
    return WARNED_SHARE if accuracy is None else ANSWER_SHARE


def _sizes(run: ExactRun) -> Vector:
    """Return the size by which changes of each output are judged, (outputs,)."""
    outputs = run.outputs
    if not len(outputs) or run.scores:
        return np.full(outputs.shape[1], np.abs(without_outliers(outputs)).max(initial=0.0))
    ranges, largest = half_range_of(outputs), float(np.abs(outputs).max(initial=0.0))
    return np.where(ranges > 0, np.minimum(ranges, largest), largest)


def choose(
    graph: Graph, run: ExactRun, fit: Fit, price: Price, part: ClientPart | None = None
) -> ReplacedActivations:
    """Replace all activations of a graph by polynomials.

    For each activation without a requested method, the cheapest method is chosen whose error is below a share
    of half its range. The share is the same for all: the largest with which the program follows the model.
    Requested methods are used as they are; unless an accuracy or error is required, the others are chosen as
    if these were exact.

    Args:
        run: the graph's run on calibration data.
        price: returns the price of a method.
        part: the client's last steps; a required error limits the outputs behind them.

    Raises:
        RefusalError: no choice reaches the required accuracy or error, or the default one.
        RefusalError: the requested polynomials drive values to infinity.
        RefusalError: a method cannot approximate a function.
    """
    required = bool(run.inputs.lows) and (fit.accuracy is not None or fit.error is not None)
    search, target = _Search(graph, run.ranges(fit.ranges.margin), fit, price), Requirement.of(fit, run, part)
    part = None if fit.error is None and required else part
    best: ReplacedActivations | None = None
    for methods in search.candidates():
        best = search.replaced(methods | search.fixed if required else methods)
        if search.free or required:
            measured = _followed(best.graph, run, target, part)
            if measured is None:
                continue
            best = replace(best, measured=measured)
        if not required and search.fixed:
            best = search.replaced(methods | search.fixed)
            _require_bounded(best, run)
        return best
    assert best is not None
    outputs = outputs_of(best.graph, run.samples)
    changes, equal = _compare(outputs, run.outputs, run)
    behind = None if part is None else largest_change(part, outputs, run.outputs)
    share, default = None if equal is None else float(equal.mean()), None
    change, error = float(changes.max()) if behind is None else behind, fit.error
    if not required:
        error = min(max(change, 1 / LARGEST), LARGEST / 2) / (1 - ENCRYPTED_SHARE)
        name, limit, change = _furthest(outputs, run.outputs, changes.max(axis=0), target, part)
        default = (
            f"{name} within {limit:.3g} (a sixteenth of the largest score, or of half the range of a value "
            "and a tenth of its spread; a tenth of the range of an answer behind the client's last steps), "
            f"and every prediction that is decided by more than {np.max(target.undecided):.3g}"
        )
    rows = outliers_of(run.samples)[0].tolist()
    outliers = f", with outliers in {numbered(rows)} of the calibration data" if rows else ""
    raise inaccurate(
        fit.accuracy,
        error,
        share,
        change,
        best.graph.depth(),
        default=default,
        loosest=f"{loosest(best.fitted)}{outliers}",
    )


def _furthest(
    outputs: Vector, exact: Vector, changes: Vector, target: Requirement, part: ClientPart | None
) -> tuple[str, float, float]:
    """Return the output that is furthest beyond its default limit, that limit, and how much it changes.

    Args:
        changes: the largest of each output, (outputs,).
    """
    limits = np.broadcast_to(target.error, changes.shape)
    places = [(f"output {n}", float(limits[n]), float(change)) for n, change in enumerate(changes)]
    differences = () if part is None else answer_differences(part, outputs, exact, None, 0.0)[0]
    ranges = target.answers or {}
    named = shares_of(differences, ranges)
    places += [
        (each.name, DEFAULT_SHARE * ranges[each.name], each.largest_change)
        for each in differences
        if each.name in named
    ]
    return max(places, key=lambda place: place[2] / (place[1] or 1 / LARGEST))


def _require_bounded(chosen: ReplacedActivations, run: ExactRun) -> None:
    """Refuse requested polynomials with which outputs grow beyond any use on calibration data.

    Raises:
        RefusalError: names the first activation whose input leaves its range, or the one with
            the loosest fit.
    """
    changes, _ = _compare(outputs_of(chosen.graph, run.samples), run.outputs, run)
    change = float(changes.max(initial=0.0))
    if change <= OVERFLOW * float(np.abs(run.outputs).max(initial=0.0)):
        return
    guarded = _guarded(chosen.graph)
    reached = dict.fromkeys(chosen.graph.nodes, 0.0)
    for _, values in chosen.graph.runs(run.samples):
        for number, _, domain in guarded:
            entering = np.nan_to_num(values[number], nan=LARGEST)
            reached[number] = max(reached[number], domain.excess(entering))
    for number, label, _ in guarded:
        if reached[number] > ESCAPED:
            fitted = next(each for each in chosen.fitted if label.startswith(each.label))
            raise overflowing(fitted.label, fitted.method, fitted.low, fitted.high, change, reached[number])
    worst = max(chosen.fitted, key=lambda fitted: fitted.looseness)
    raise overflowing(worst.label, worst.method, worst.low, worst.high, change, None)


def _guarded(graph: Graph) -> list[tuple[int, str, Domain]]:
    """Return the values that have a range: number of the value, label of its reader, range."""
    return [
        (node.operands[0], node.label, node.domain)
        for node in graph.nodes.values()
        if isinstance(node, Multiply | Polynomial) and node.domain is not None
    ]


class _Search:
    """The methods to try, and the approximations made so far."""

    def __init__(self, graph: Graph, ranges: Mapping[int, MeasuredRange], fit: Fit, price: Price) -> None:
        self.graph, self.ranges = graph, ranges
        self.active = {n: node for n, node in graph.nodes.items() if isinstance(node, Activation)}
        self.fixed = {n: m for n, node in self.active.items() if (m := fit.method(node.operator, node.name))}
        self.free = [number for number in self.active if number not in self.fixed]
        self.smooth, self.kinked = sorted(SMOOTH, key=price), sorted(KINKED, key=price)
        self.positive = sorted(POSITIVE, key=price)
        self.approximations: dict[tuple[int, Method], Approximation] = {}
        self.missed: dict[int, dict[Method, float]] = {}

    def candidates(self) -> Iterator[dict[int, Method]]:
        """Yield methods of the activations without a requested one, from coarse to fine, each choice once."""
        before: dict[int, Method] | None = None
        for quarters in range(4 * COARSEST, 4 * FINEST + 1):
            share = 2.0 ** (-quarters / 4)
            table = {number: self._cheapest(number, share) for number in self.free}
            if table != before:
                yield table
            before = table

    def replaced(self, methods: Mapping[int, Method]) -> ReplacedActivations:
        """Return the graph with these polynomials; other activations stay as they are."""
        chosen = {number: self._approximation(number, method) for number, method in methods.items()}
        graph, fitted = replace_activations(self.graph, self.ranges, chosen)
        return ReplacedActivations(simplify(graph), tuple(fitted))

    def _cheapest(self, number: int, share: float) -> Method:
        """Return the cheapest method whose error is at most a share of half the range, or of the least value
        of an inverse, or else the finest."""
        measured, node = self.ranges[number], self.active[number]
        options = self.positive if node.positive else self.smooth
        if isinstance(node.function, PiecewiseLinear):
            options = self.kinked
        most = share * _unit(node, measured)
        for method in options:
            if self._approximation(number, method).max_error <= most:
                return method
        finest = min(options, key=lambda method: self._approximation(number, method).max_error)
        values = measured.values
        exact = np.asarray(node.function(values), np.float64)
        if self._approximation(number, finest).max_error < np.ptp(exact) / 4:
            return finest
        # The function jumps: near the jump no polynomial is close to it, so the measured values decide.
        errors = self._missed(number, exact)
        return next((m for m in self.positive if errors[m] <= most), min(errors, key=errors.__getitem__))

    def _missed(self, number: int, exact: Vector) -> dict[Method, float]:
        """Return the root mean square error of each method on the measured values."""
        if number not in self.missed:
            function, values = self.active[number].function, self.ranges[number].values
            self.missed[number] = {
                method: float(
                    np.sqrt(np.mean((self._approximation(number, method)(function, values) - exact) ** 2))
                )
                for method in self.positive
            }
        return self.missed[number]

    def _approximation(self, number: int, method: Method) -> Approximation:
        if (number, method) not in self.approximations:
            self.approximations[number, method] = fit_activation(
                self.active[number], self.ranges[number], method
            )
        return self.approximations[number, method]


def _unit(node: Activation, measured: MeasuredRange) -> float:
    """Return what errors of an approximation are compared with: half of the range, at most `FLATTEST` times
    half of that of its values; for an inverse its least value, because all values are factors of others."""
    if node.positive:
        first, last = node.function(np.asarray([measured.low, measured.high]))
        if measured.high < 0:
            first, last = abs(last), abs(first)
        if first > last > 0:
            return float(last)
    with np.errstate(all="ignore"):
        values = np.asarray(node.function(np.linspace(measured.low, measured.high, POINTS)), np.float64)
    steep = FLATTEST * float(np.ptp(values)) / 2
    half = (measured.high - measured.low) / 2
    return min(half, steep) if steep > 0 else half


def outputs_of(graph: Graph, samples: Vector) -> Vector:
    """Return the outputs of samples, (count, outputs)."""
    return np.concatenate([values[graph.output] for _, values in graph.runs(samples)])


def _compare(outputs: Vector, exact: Vector, run: ExactRun) -> tuple[Vector, NDArray[np.bool_] | None]:
    """Return the changes of outputs, (samples, outputs), and which predictions are equal; None if there are
    no predictions."""
    with np.errstate(over="ignore", invalid="ignore"):
        changes = np.nan_to_num(np.abs(outputs - exact), nan=LARGEST, posinf=LARGEST)
    result, target = run.predictions(outputs), run.predictions(exact)
    return changes, None if result is None or target is None else result == target


def margins(outputs: Vector) -> Vector:
    """Return the difference of the two best outputs, or the distance of a single one from 0."""
    if outputs.shape[1] == 1:
        return np.asarray(np.abs(outputs[:, 0]), np.float64)
    second, best = np.partition(outputs, -2, axis=1)[:, -2:].T
    return np.asarray(best - second, np.float64)


def escaping(graph: Graph, samples: Vector) -> NDArray[np.bool_]:
    """Return which samples leave a range of a graph, (count,): clients refuse them."""
    guarded = _guarded(graph)
    return np.concatenate([_escaped(guarded, values) for _, values in graph.runs(samples)])


def _escaped(guarded: Sequence[tuple[int, str, Domain]], values: Mapping[int, Vector]) -> NDArray[np.bool_]:
    left = [domain.left(values[number]) for number, _, domain in guarded]
    return np.any(left, axis=0) if left else np.zeros(len(next(iter(values.values()))), np.bool_)


def _stops(count: int) -> Iterator[int]:
    """Yield how many of the samples are judged before more are computed: few at first, in the end all."""
    stop = FIRST_SAMPLES
    while 4 * stop < count:
        yield stop
        stop *= 8
    yield count


class _Differs(Exception):
    """A graph does not follow the model."""


def _followed(
    graph: Graph, run: ExactRun, target: Requirement, part: ClientPart | None
) -> tuple[Mapping[int, float], Vector] | None:
    """Return `largest_and_outputs` if a graph follows the model, behind the last steps if they are given,
    otherwise None: a few samples show it of most graphs. A sample that errors of polynomials drive out of a
    later range has no answer: clients refuse it."""
    allowed = int((1 - target.accuracy) * len(run.samples) + 1e-9)
    guarded = _guarded(graph)

    def judged() -> Iterator[tuple[slice, Mapping[int, Vector]]]:
        missed = first = 0
        for stop in _stops(len(run.samples)):
            for chunk, values in graph.runs(run.samples[first:stop]):
                exact = run.outputs[first:stop][chunk]
                changes, equal = _compare(values[graph.output], exact, run)
                lost = _escaped(guarded, values)
                if equal is not None and not equal.all():
                    lost[~equal] |= _decided(exact[~equal], run, target, part)
                missed += int(lost.sum())
                if missed > allowed or not _close(values[graph.output], exact, changes, target, part):
                    raise _Differs
                yield chunk, values
            first = stop

    try:
        return largest_and_outputs(graph, judged())
    except _Differs:
        return None


def _decided(exact: Vector, run: ExactRun, target: Requirement, part: ClientPart | None) -> NDArray[np.bool_]:
    """Return which predictions of a model may not change, (count,).

    Args:
        exact: outputs of the model, (count, outputs).
    """
    if run.labels is None or part is None:
        return np.asarray(margins(exact) > target.undecided, np.bool_)
    return ~moved(part, exact, np.asarray(target.undecided) / 2).labels


def _close(
    outputs: Vector, exact: Vector, changes: Vector, target: Requirement, part: ClientPart | None
) -> bool:
    """Whether outputs change by no more than they may."""
    if target.answers is None:
        behind = None if part is None else largest_change(part, outputs, exact)
        return not np.any((changes if behind is None else behind) > target.error)
    if np.any(changes > target.error):
        return False
    differences = () if part is None else answer_differences(part, outputs, exact, None, 0.0)[0]
    return max(shares_of(differences, target.answers).values(), default=0.0) <= DEFAULT_SHARE


def report(
    outputs: Vector,
    run: ExactRun,
    fitted: Sequence[FittedActivation],
    fit: Fit,
    part: ClientPart | None = None,
) -> FitReport:
    """Report how replacing the activations changes the outputs.

    Args:
        outputs: by polynomials, (count, outputs).
        part: the client's last steps.
    """
    compared = run.compared
    answers: tuple[AnswerDifference, ...] = ()
    labels, of_spread = None, 0.0
    changes, sizes = np.zeros((1, run.outputs.shape[1] or 1)), _sizes(run) if fitted else np.ones(1)
    same: NDArray[np.bool_] | None = np.ones(1, np.bool_)
    if fitted:
        outputs = outputs[compared]
        changes, same = _compare(outputs, run.outputs[compared], run)
        share = answer_share(fit.accuracy)
        answers, labels = answer_differences(part, outputs, run.outputs[compared], fit.error, share)
        if fit.accuracy is None and fit.error is None and not run.scores:
            of_spread = float((changes.max(axis=0) / spread_of(run.outputs)).max())
    ranges = run.ranges(fit.ranges.margin).values()
    escaped = np.any([measured.escaped for measured in ranges], axis=0) if ranges else np.zeros(1, bool)
    return FitReport(
        activations=tuple(fitted),
        samples=len(run.samples),
        held_out=int(run.held_out.sum()),
        escaped=int(escaped.sum()),
        outputs=OutputDifference(
            float(changes.max()),
            float(changes.mean()),
            float(np.abs(run.outputs[compared]).max(initial=0.0)),
            labels if labels is not None or same is None else float(same.mean()),
            answers=answers,
            share=float((changes.max(axis=0) / np.where(sizes > 0, sizes, 1.0)).max()),
            of_spread=of_spread,
        ),
        export=run.export,
    )
