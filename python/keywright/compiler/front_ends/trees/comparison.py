"""Compares trees that were read of a fitted object with the object itself, on samples with special values."""

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from keywright.compiler.front_ends.feature_names import as_fitted
from keywright.compiler.front_ends.scikit_learn.comparison import own_answers
from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.compiler.trees.last_step import Sums
from keywright.errors.network import RefusalError
from keywright.errors.refusals.exports import other_trees
from keywright.program.arrays import Vector, table_names
from keywright.program.client.samples import in_order, some_samples

from .scikit_learn import with_places

SAMPLES = 32
"""Samples of the calibration data in which special values are put."""

FINE = 2.0**-40
"""Step of scores, as a share of the largest, to which the client's part rounds them here."""

DIFFERENT = 2.0**-12
"""The least difference, as a share of the largest value, that single precision does not explain."""

ALWAYS = (0.0, -1.0, 1.0, -0.5, 0.5, 1.5)
"""Values that libraries may read as missing or as another category, whatever the samples are."""

LARGEST = 1e30
"""Thresholds that split off missing values alone are as large as a number can be."""


def require_same(model: Any, trees: Ensemble, example: Any = None) -> None:
    """Refuse trees that compute something else than the object that they were read of, as they do where a
    parameter that the trees do not hold changes predictions: which value is missing, for example. It
    compares the samples of an example, and the same with some features missing, 0, far outside, or equal to
    a number among the object's parameters.

    Raises:
        RefusalError: names a sample and both predictions.
    """
    base = _base(trees, example)
    if base is None:
        return  # the compiler refuses such calibration data
    fixed = [place for place, _ in trees.reads.categories if place is not None and trees.reads.coded]
    _require_same(model, trees, *_samples(base, _special(model, trees, base), fixed))


def require_same_encoded(model: Any, source: EncodedEnsemble, example: Any = None) -> None:
    """Refuse trees behind first steps that compute something else than the object that they were read of:
    the whole on the samples of an example, and the trees alone as `require_same` does.

    Raises:
        RefusalError: names a sample and both predictions.
    """
    last = model
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    last = with_places(last)
    if example is None:
        return require_same(last, source.trees)
    few = some_samples(example, SAMPLES)
    features, _ = source.steps.features(few)
    require_same(last, source.trees, features)
    return _require_same(model, source.trees, features, [None] * len(features), as_fitted(model, few))


def _require_same(
    model: Any, trees: Ensemble, samples: Vector, special: Sequence[float | None], given: Any = None
) -> None:
    """Refuse trees that compute something else for samples than an object for those given to it, by default
    the same.

    Raises:
        RefusalError: names a sample, with the special value in it, and both predictions.
    """
    given = samples if given is None else given
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        own, expected = _answers(trees, samples), _own_answers(model, trees, given)
    for values, target in zip(own, expected, strict=False):
        if values.shape[1] == 2 and target.shape[1] == 1:
            values = values[:, 1:]  # the one score of two labels is that of the second
        if values.shape != target.shape:
            kind = type(model).__qualname__
            raise RefusalError(
                f"the trees of {kind} give values of shape {values.shape[1:]} for a sample, and its own "
                f"predictions have {target.shape[1:]}",
                code="export",
                model=kind,
            )
        apart = np.abs(values - target).max(axis=1)
        largest = np.abs(target[np.isfinite(target)]).max(initial=0.0)
        # What is no number on one side alone is a difference too.
        other = ~(apart <= DIFFERENT * largest) & ~np.all((values == target) | (values != values), axis=1)
        if other.any():
            row = int(np.argmax(other))
            raise other_trees(
                type(model).__qualname__,
                special[row],
                float(values[row, np.argmax(np.abs(values[row] - target[row]))]),
                float(target[row, np.argmax(np.abs(values[row] - target[row]))]),
            )


def _base(trees: Ensemble, example: Any) -> Vector | None:
    """Return samples to begin with, (count, features); None if an example is no table of as many numbers."""
    if example is None:  # values on both sides of thresholds
        rng, chosen = np.random.default_rng(0), np.zeros((SAMPLES, trees.features))
        for feature in np.unique(trees.nodes.feature[trees.nodes.feature >= 0]):
            known = np.clip(trees.nodes.threshold[trees.nodes.feature == feature], -LARGEST, LARGEST)
            chosen[:, feature] = rng.choice(np.concatenate([known, 1 + 2 * known]), SAMPLES)
        return chosen
    few: Any = some_samples(example if table_names(example) is not None else np.asarray(example), SAMPLES)
    if (names := table_names(few)) is not None:
        few = in_order(few, trees.names or tuple(map(str, names)))
    try:
        samples = np.asarray(few, np.float64)
    except (TypeError, ValueError):
        return None
    return samples if samples.ndim == 2 and samples.shape[1] == trees.features and len(samples) else None


def _special(model: Any, trees: Ensemble, base: Vector) -> list[Vector]:
    """Return values to put in place of features, each (features,)."""
    known = (
        base[np.isfinite(base).all(axis=1)] if np.isfinite(base).all(axis=1).any() else np.zeros_like(base)
    )
    low, high = known.min(axis=0), known.max(axis=0)
    span = 1 + high - low
    own = [
        float(value)
        for value in (model.get_params(deep=False).values() if hasattr(model, "get_params") else ())
        if isinstance(value, numbers.Real) and math.isfinite(value)
    ]
    outcome = [low - span, high + span]
    outcome += [np.full(trees.features, value) for value in dict.fromkeys([*ALWAYS, *own])]
    return [np.full(trees.features, np.nan), *outcome] if trees.missing else outcome


def _samples(
    base: Vector, special: list[Vector], fixed: Sequence[int] = ()
) -> tuple[Vector, list[float | None]]:
    """Return samples as they are and with some features replaced, and of each what was put in: the special
    value, None for several. Fixed features are replaced only by missing values."""
    rng, (count, width) = np.random.default_rng(0), base.shape
    rows, what = [base], [cast("float | None", None)] * count
    for values in special:
        # Half of the features, or one of them.
        chosen = rng.random((count, width)) < 0.5
        chosen[::2] = np.arange(width) == rng.integers(width, size=(len(chosen[::2]), 1))
        chosen[:, fixed] &= not np.isfinite(values).all()  # of categories, clients give nothing but places
        rows.append(np.where(chosen, values, base))
        alike = bool(np.all((values == values[0]) | (values != values)))
        what += [float(values[0]) if alike else None] * count
    return np.concatenate(rows), what


def _answers(trees: Ensemble, samples: Vector) -> list[Vector]:
    """Return the outputs of trees that are no labels, each (count, values)."""
    scores = trees.scores(samples)
    step = np.full(trees.outputs, FINE * (np.abs(trees.nodes.values).max(initial=0.0) or 1.0))
    part = trees.last.client_part(Sums(trees.base, np.zeros(trees.outputs), step, trees.factor))
    results = part.run(scores.reshape(-1, *part.shape))
    if trees.last.labels is not None:
        results.pop(trees.last.label, None)
    return [np.asarray(each, np.float64).reshape(len(samples), -1) for each in results.values()]


def _own_answers(model: Any, trees: Ensemble, samples: Any) -> list[Vector]:
    """Return the predictions of a fitted object, each (count, values)."""
    try:
        if hasattr(model, "inplace_predict"):  # a booster of XGBoost
            results = [model.inplace_predict(samples, validate_features=False)]
            if trees.outputs > 1 and results[0].ndim == 1:  # the labels of multi:softmax
                sums = model.inplace_predict(samples, predict_type="margin", validate_features=False)
                shares = np.exp(sums - sums.max(axis=1, keepdims=True))
                results = [shares / shares.sum(axis=1, keepdims=True)]
        elif not hasattr(model, "get_params"):  # one of LightGBM
            results = [model.predict(samples)]
        else:
            results = own_answers(model, samples)[1]
    except Exception as error:
        raise RefusalError(
            f"{type(model).__qualname__} does not predict what its trees take: {error}; fit it again with "
            "the installed version of its library",
            code="export",
            model=type(model).__qualname__,
        ) from error
    return [np.asarray(each, np.float64).reshape(len(samples), -1) for each in results]
