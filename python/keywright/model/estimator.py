"""Compares a model that was compiled from an estimator of scikit-learn with the estimator itself."""

import importlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.polynomial_choice import answer_share, outputs_of
from keywright.compiler.approximating import ApproximatedModel
from keywright.compiler.front_ends.estimator_refusals import not_taken
from keywright.compiler.front_ends.feature_names import as_fitted
from keywright.compiler.front_ends.scikit_learn.comparison import ROUNDED, method_of, own_answers
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.program.arrays import table_names
from keywright.program.client.samples import some_samples
from keywright.program.fit_report import COMPARED, AnswerDifference

SHOWN = 5
"""Samples that a message names."""

POLYNOMIALS = "its polynomials and its last steps are not close enough; fix finer ones (activations=)"
ROUNDINGS = (
    "its steps round numbers otherwise than the form of it that was compiled; run the steps before its last "
    "one before the client, and compile the last one for their output"
)
"""What an estimator and its program differ by, and what helps."""

CHUNK = 256
"""Samples that go through the last steps at a time."""


def with_estimator(
    approximated: ApproximatedModel,
    model: object,
    calibration: Any,
    accuracy: float | None = None,
    error: float | None = None,
) -> ApproximatedModel:
    """Return a model that knows how its outputs differ from those of the estimator that it was compiled from:
    from ``predict``, or from ``predict_proba`` if there are labels, in double precision and in the clear.
    Models from elsewhere are returned as they are.

    Args:
        calibration: the samples of the model's run, in their order.
        accuracy, error: that `keywright.compiler.Fit` requires, here of the estimator's own predictions.

    Raises:
        ModelRefusedError: the estimator does not take the samples, gives no number for one, or differs by
            more than required.
    """
    run = approximated.run
    if "sklearn" not in sys.modules or not isinstance(
        model, importlib.import_module("sklearn.base").BaseEstimator
    ):
        return approximated
    if not len(run.samples) or calibration is None:
        return approximated
    given = some_samples(calibration, COMPARED)
    few = as_fitted(model, given)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            labels, targets = own_answers(model, few)
    except Exception as reason:
        raise not_taken(model, reason) from reason
    _require_numbers(model, targets, calibration)
    outputs = outputs_of(approximated.graph, _entering(approximated, given))
    results: list[NDArray[Any]] = [outputs]
    same: float | None = None
    if (part := approximated.output.client_part) is not None:
        scores = outputs.reshape(-1, *part.shape)
        parts = [part.run(scores[start : start + CHUNK]) for start in range(0, len(scores), CHUNK)]
        answers = [np.concatenate([each[name] for each in parts]) for name in parts[0]]
        if labels is not None and len(answers) > len(targets):
            given_labels = answers[0].reshape(len(outputs), -1)
            if given_labels.shape == labels.shape:
                same = float((given_labels == labels).all(axis=1).mean())
        results = [each for each in answers if each.dtype.kind == "f" or labels is None]
        results = results[-len(targets) :] if targets else []
    differences = []
    for number, (values, target) in enumerate(zip(results, targets, strict=False)):
        own = np.asarray(values).reshape(len(outputs), -1)
        if own.shape == target.shape and target.size:
            apart = np.abs(np.asarray(own, np.float64) - target)
            half, size = float(np.ptp(target, axis=0).max() / 2), float(np.abs(target).max())
            # Of one sample, or of predictions that are all alike, the size is all that is known.
            half = half if half > ROUNDED * size else size
            name = method_of(model)
            differences.append(
                AnswerDifference(
                    name if len(targets) == 1 else f"{name}[{number}]",
                    float(apart.max()),
                    half,
                    answer_share(accuracy) * half if error is None else error,
                )
            )
    _require_close(model, differences, same, accuracy, error, polynomials=bool(approximated.fitted))
    export = replace(run.export, estimator=tuple(differences), equal_labels=same)
    return approximated.on_same_data(run=replace(run, export=export))


def _require_close(
    model: object,
    differences: Sequence[AnswerDifference],
    same: float | None,
    accuracy: float | None,
    error: float | None,
    *,
    polynomials: bool,
) -> None:
    """Refuse a model that is further from its estimator than required.

    Args:
        same: share of equal labels; None without labels.
        polynomials: whether some stand for functions.

    Raises:
        ModelRefusedError: names every difference above the requirement.
    """
    missed = [
        f"{each.name} changes by up to {each.largest_change:.3g}, above error={error:g}"
        for each in differences
        if error is not None and not each.largest_change <= error
    ]
    if accuracy is not None and same is not None and same < accuracy:
        missed.append(f"{same:.4%} of the labels are equal, below accuracy={accuracy:g}")
    if missed:
        kind = type(model).__qualname__
        raise ModelRefusedError(
            [
                RefusalError(
                    f"against {kind} itself, on the calibration data, {' and '.join(missed)}: "
                    + (POLYNOMIALS if polynomials else ROUNDINGS)
                    + ", or require less (accuracy=, error=)",
                    code="accuracy",
                    model=kind,
                )
            ]
        )


def _require_numbers(model: Any, targets: list[NDArray[np.float64]], calibration: Any) -> None:
    """Refuse an estimator whose own predictions for the calibration data are no numbers.

    Raises:
        ModelRefusedError: names the samples.
    """
    lost = np.flatnonzero(np.any([np.isnan(each).any(axis=1) for each in targets], axis=0))
    if not len(lost):
        return
    names = table_names(calibration)
    count = len(calibration if names is None else calibration[names[0]])
    rows = some_samples(np.arange(count), COMPARED)[lost]
    shown = ", ".join(map(str, rows[:SHOWN].tolist())) + (", ..." if len(rows) > SHOWN else "")
    kind = type(model).__qualname__
    raise ModelRefusedError(
        [
            RefusalError(
                f"{method_of(model)} of {kind} itself gives no number (NaN) for calibration samples {shown}; "
                "leave them out, or fit an estimator that is defined there",
                code="export",
                model=kind,
            )
        ]
    )


def _entering(approximated: ApproximatedModel, given: Any) -> NDArray[np.float64]:
    """Return what the graph takes for `some_samples` of the calibration data. Of trees, the run has the bits
    of fewer."""
    trees, run = approximated.trees, approximated.run
    if trees is None:
        return np.asarray(some_samples(run.samples, COMPARED), np.float64)
    features, _ = approximated.steps.read(given, (trees.samples.shape[1],))
    return trees.binning.apply(features.reshape(len(features), -1))
