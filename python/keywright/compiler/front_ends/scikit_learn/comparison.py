"""Compares an exported estimator with the estimator itself, in double precision."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.front_ends.estimator_refusals import differing, not_computed, not_taken
from keywright.compiler.front_ends.reference import runtime_session
from keywright.program.client.small_model import reference_evaluator

DIFFERENT = 2.0**-6
"""The least difference, as a share of the spread of an output, that roundings do not explain."""

CONSTANT = 1e-5
"""Spreads of probabilities and of features below this share of the largest are not looked at: single
precision hardly shows them. Values are compared by any spread."""

ROUNDED = 2.0**-40
"""Values that vary by less than this share of their size are constant but for roundings."""

NEAR, DRAWS = 2.0**-20, 4
"""Samples on a step of the estimator, such as one of an isotonic calibration, are those whose answer changes
if they move by this share of the spread of each feature, in one of four random directions or back."""

MOST_ON_STEPS = 1 / 4
"""If more samples than this share are on steps, the estimator is no function with steps but an
ill-conditioned one, and none is left out."""


def require_same(
    model: Any,
    exported: onnx.ModelProto,
    feeds: Mapping[str, np.ndarray[Any, Any]],
    samples: Any,
    most: float = DIFFERENT,
) -> float:
    """Refuse an exported estimator that computes something else than the estimator, and return the largest
    difference of a value as a share of its spread; 0 if there is nothing to compare, infinity if nothing
    here evaluates the export. Samples on a step of the estimator, and labels that are ties, are not compared.

    Args:
        feeds, samples: what both take.
        most: allowed difference, as a share of the spread; with a larger one than `DIFFERENT`, also the share
            of the labels that may differ.

    Raises:
        ModelRefusedError: with a `RefusalError`.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            own = own_answers(model, samples)
        except Exception as error:
            if most > DIFFERENT:
                return 0.0  # moved samples need not be in the domain of the estimator
            raise not_taken(model, error) from error
        try:
            outcome = evaluated(_without_maps(exported), feeds)
        except RuntimeError as error:
            raise not_computed(model, exported.producer_name) from error
        if outcome is None:
            return math.inf
        try:
            return _share(model, outcome, own, samples, most)
        except _DifferentError as different:
            raise differing(model, str(different), exported.producer_name) from None


class _DifferentError(Exception):
    """Says where an exported estimator differs."""


def evaluated(
    exported: onnx.ModelProto, feeds: Mapping[str, np.ndarray[Any, Any]]
) -> list[NDArray[Any]] | None:
    """Return the outputs of an exported model, by ONNX's reference implementation, or else by onnxruntime;
    None if both lack an operator, or the latter is not installed. Samples are computed
    together, or alone where a model takes one.

    Raises:
        RuntimeError: the model cannot be computed.
    """
    count = len(next(iter(feeds.values()), ()))
    alone = [{name: each[row : row + 1] for name, each in feeds.items()} for row in range(count)]
    failure: Exception | None = None
    for runner in (reference_evaluator, runtime_session):
        try:
            evaluator = runner(exported)
        except Exception:  # noqa: BLE001 - it lacks an operator, each with an error of its own
            continue
        for batches in ([dict(feeds)], alone):
            try:
                parts: list[Any] = [evaluator.run(None, each) for each in batches]
                columns = [[np.atleast_1d(each) for each in column] for column in zip(*parts, strict=True)]
                return [np.concatenate(column) for column in columns]
            except Exception as error:  # noqa: BLE001 - not all rules of the reference implementation are right
                failure = error
    if failure is None:
        return None
    raise RuntimeError(" ".join(str(failure).split())[:300]) from failure


def _share(
    model: Any,
    outcome: Any,
    own: tuple[NDArray[Any] | None, list[NDArray[np.float64]]],
    samples: Any,
    most: float,
) -> float:
    labels, targets = own
    count = len(targets[0] if labels is None else labels)
    results = [_matrix(each, count) for each in (outcome if labels is None else outcome[1:])]
    if len(results) == 1 and len(targets) > 1:
        targets = [np.concatenate(targets, axis=1)]
        results = [np.swapaxes(np.asarray(outcome[-1]), 0, 1).reshape(count, -1)] if count else results
    on_step = _OnSteps(model, samples, count)
    if labels is not None:
        given = _by_sample(np.asarray(outcome[0]), count)
        if given.shape != labels.shape:
            text = f"its labels have the shape {given.shape}, and those of predict {labels.shape}"
            raise _DifferentError(text)
        others = (given != labels) & _decided(model, samples, labels)
        if others.any():
            others &= ~on_step.labels
        if float(others.mean()) > (0 if most == DIFFERENT else most):
            raise _DifferentError(
                f"{others.mean():.0%} of its labels are not those of predict, and these are not ties"
            )
    share = 0.0
    for place, (values, target) in enumerate(zip(results, targets, strict=False)):
        if values.shape[1] == 2 and target.shape[1] == 1:
            values = values[:, 1:]  # the one score of two classes is that of the second
        if values.shape != target.shape:
            raise _DifferentError(
                f"its values have the shape {values.shape}, and those of {method_of(model)} {target.shape}"
            )
        apart, spread = np.abs(values - target), spread_of(target, labels is not None)
        if np.any(apart > most * spread):
            apart[on_step.values[place]] = 0.0
        largest = apart.max(axis=0)
        if np.any(largest > most * spread):
            worst = int(np.argmax(largest - most * spread))
            raise _DifferentError(
                f"it is off by {largest[worst]:.3g} from {method_of(model)}, whose spread is "
                f"{spread[worst]:.3g}"
            )
        known = spread > 0
        share = max(share, float((largest[known] / spread[known]).max(initial=0.0)))
    return share


def own_answers(model: Any, samples: Any) -> tuple[NDArray[Any] | None, list[NDArray[np.float64]]]:
    """Return an estimator's labels, (count, outputs), and its probabilities for each of these, or else its
    scores, (count, classes); None and its values, (count, values), for one without labels."""
    labelled = gives_labels(model)
    method = method_of(model)
    if not labelled:
        return None, [_matrix(getattr(model, method)(samples), len(samples))]
    labels = np.asarray(model.predict(samples))
    shares = getattr(model, method)(samples) if method != "predict" else []
    several = shares if isinstance(shares, list) else [shares]
    return labels.reshape(len(labels), -1), [_matrix(each, len(labels)) for each in several]


def gives_labels(model: Any) -> bool:
    """Whether an estimator gives labels."""
    return hasattr(model, "classes_") or hasattr(model, "decision_function")


def spread_of(target: NDArray[np.float64], shares: bool) -> NDArray[np.float64]:
    """Return the spread of each column, (columns,); of columns without one a share of their size, and of one
    sample its size.

    Args:
        shares: whether they are probabilities, which are compared with each other.
    """
    size = np.abs(target).max(axis=0)
    spread = target.std(axis=0) if len(target) > 1 else size
    if shares:
        spread = np.maximum(spread, CONSTANT * np.max(size, initial=0.0))
    return np.asarray(np.where(spread > ROUNDED * size, spread, CONSTANT * size), np.float64)


def method_of(model: Any) -> str:
    """Return the name of an estimator's method with which its outputs are compared."""
    names = ("predict_proba", "decision_function") if gives_labels(model) else ("predict", "transform")
    return next((name for name in names if hasattr(model, name)), "predict")


def _matrix(values: Any, count: int) -> NDArray[np.float64]:
    """Return values as (count, columns), also those that are dictionaries by class."""
    if hasattr(values, "toarray"):  # of SciPy
        values = values.toarray()
    if isinstance(values, list) and values and isinstance(values[0], dict):
        values = [list(row.values()) for row in values]
    return _by_sample(np.asarray(values, np.float64), count)


def _by_sample(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return values as (count, columns), or as (rows, columns) if ``count`` samples cannot have them."""
    return values.reshape(len(values) if values.size % count else count, -1)


class _OnSteps:
    """Which samples are on a step of an estimator, computed where something differs."""

    def __init__(self, model: Any, samples: Any, count: int) -> None:
        self._model, self._samples, self._count = model, samples, count
        self._known: tuple[NDArray[np.bool_], list[NDArray[np.bool_]]] | None = None

    @property
    def labels(self) -> NDArray[np.bool_]:
        """Of labels, (count, 1)."""
        return self._steps[0]

    @property
    def values(self) -> list[NDArray[np.bool_]]:
        """Of each output of values, (count,)."""
        return self._steps[1]

    @property
    def _steps(self) -> tuple[NDArray[np.bool_], list[NDArray[np.bool_]]]:
        if self._known is None:
            self._known = self._measured()
        return self._known

    def _measured(self) -> tuple[NDArray[np.bool_], list[NDArray[np.bool_]]]:
        labels, targets = own_answers(self._model, self._samples)
        first = np.zeros((self._count, 1), np.bool_)
        rest = [np.zeros(self._count, np.bool_) for _ in targets]
        if not (isinstance(self._samples, np.ndarray) and self._samples.dtype.kind == "f"):
            return first, rest
        rng, size = np.random.default_rng(0), NEAR * self._samples.std(axis=0)
        for _ in range(DRAWS):
            direction = size * rng.choice([-1.0, 1.0], self._samples.shape)
            for moved in (self._samples + direction, self._samples - direction):
                try:
                    others, values = own_answers(self._model, moved.astype(self._samples.dtype))
                except Exception:  # noqa: BLE001 (of any library: samples that the estimator refuses)
                    continue
                if labels is not None and others is not None:
                    first |= (others != labels).any(axis=1, keepdims=True)
                for known, near, target in zip(rest, values, targets, strict=True):
                    most = DIFFERENT / 4 * spread_of(target, labels is not None)
                    known |= (np.abs(near - target) > most).any(axis=1)
        return _few(first, rest)


def _few(
    first: NDArray[np.bool_], rest: list[NDArray[np.bool_]]
) -> tuple[NDArray[np.bool_], list[NDArray[np.bool_]]]:
    """Return what marks few samples; nothing in place of what marks many."""
    return (
        first & (first.mean() <= MOST_ON_STEPS),
        [each & (each.mean() <= MOST_ON_STEPS) for each in rest],
    )


def _without_maps(exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without the last nodes that turn probabilities into dictionaries."""
    maps = {node.output[0]: node.input[0] for node in exported.graph.node if node.op_type == "ZipMap"}
    if not maps:
        return exported
    plain = onnx.ModelProto()
    plain.CopyFrom(exported)
    kept = [node for node in plain.graph.node if node.op_type != "ZipMap"]
    for node in kept:
        node.input[:] = [maps.get(name, name) for name in node.input]
    del plain.graph.node[:]
    plain.graph.node.extend(kept)
    for output in plain.graph.output:
        if output.name in maps:
            output.CopyFrom(onnx.ValueInfoProto(name=maps[output.name]))
    return plain


def _decided(model: Any, samples: Any, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels, (count, outputs), roundings do not change: the best score exceeds the second by
    more than `DIFFERENT` of the largest."""
    if labels.shape[1] > 1 or not hasattr(model, "decision_function"):
        several = own_answers(model, samples)[1]
    else:
        several = [_matrix(model.decision_function(samples), len(labels))]
    columns = [_margins(each) > DIFFERENT * np.abs(each).max(initial=0.0) for each in several]
    if len(columns) not in (1, labels.shape[1]) or len(columns[0]) != len(labels):
        return np.ones(labels.shape, np.bool_)
    return np.broadcast_to(np.stack(columns, axis=1), labels.shape)


def _margins(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if scores.shape[1] < 2:
        return np.asarray(2 * np.abs(scores).sum(axis=1))
    ordered = np.sort(scores, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
