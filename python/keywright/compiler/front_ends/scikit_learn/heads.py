"""Linear estimators and what consists of several of them: votes, stacks, calibration, several outputs."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright.errors.network import RefusalError

from .transformers import FUNCTIONS, write_transformer
from .writer import Writer

KINDS = frozenset([
    "AdaBoostClassifier", "CalibratedClassifierCV", "MultiOutputClassifier", "StackingClassifier",
    "StackingRegressor", "TransformedTargetRegressor", "VotingClassifier", "VotingRegressor",
])  # fmt: skip
"""Estimators that consist of others, by class."""

SOFTMAX = frozenset(["LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV"])
SIGMOID = frozenset(["SGDClassifier"])
CLASSIFIERS = SOFTMAX | SIGMOID | {"LinearSVC", "RidgeClassifier", "RidgeClassifierCV"}
"""Linear classifiers, whose weights the exporter would write in single precision."""


TRIED = 8
"""Samples on which the predictions of an estimator are compared with its weights."""

CLOSE, ROUNDED = 2.0**-20, 2.0**-40
"""Differences, as a share of what the weights give and of the predictions, that count as roundings."""


def is_head(estimator: Any, *, alone: bool = False) -> bool:
    """Whether an estimator consists of linear ones, or is a linear classifier if these are asked for too, and
    is written here. Regressors may have an exponential behind a linear function."""
    kind = type(estimator).__name__
    known = kind in KINDS or (alone and kind in CLASSIFIERS)
    return known and all(map(_link, _members(estimator)))


def write_head(writer: Writer, estimator: Any, value: str, width: int) -> list[tuple[str, str]]:
    """Return the outputs of an estimator of `is_head`, each a value and its name.

    Args:
        value: the features, (1, width).
    """
    if type(estimator).__name__ == "MultiOutputClassifier":
        labels, outputs = [], []
        for number, each in enumerate(estimator.estimators_):
            label, outcome = _answer(writer, each, value, width)
            labels.append(label)
            outputs.append((outcome, f"output_probability_{number}"))
        shape = writer.constant([-1, 1], np.int64)
        columns = [writer.add("Reshape", label, shape) for label in labels]
        return [(writer.add("Concat", *columns, axis=1), "output_label"), *outputs]
    if not hasattr(estimator, "classes_"):
        return [(_value(writer, estimator, value, width), "variable")]
    label, outcome = _answer(writer, estimator, value, width)
    return [(label, "output_label"), (outcome, "output_probability")]


def _answer(writer: Writer, estimator: Any, value: str, width: int) -> tuple[str, str]:
    """Return the label and the probabilities of a classifier. Labels of linear ones are those of the largest
    score: probabilities may be equal where scores are not."""
    if not _is_linear(estimator):
        outcome = _probabilities(writer, estimator, value, width)
        return _label(writer, estimator.classes_, outcome), outcome
    last, scores = _linear(writer, estimator, value, width)
    outcome = _shares(writer, last, scores)
    if len(last.classes_) == 2:
        scores = writer.add("Concat", writer.add("Neg", scores), scores, axis=1)
    return _label(writer, last.classes_, scores), outcome


def _members(estimator: Any) -> list[Any]:
    """Return the estimators that an estimator consists of; itself if it is one."""
    match type(estimator).__name__:
        case "CalibratedClassifierCV":
            own = [each.estimator for each in estimator.calibrated_classifiers_]
        case "StackingClassifier" | "StackingRegressor":
            own = [*estimator.estimators_, estimator.final_estimator_]
        case "TransformedTargetRegressor":
            own = [estimator.regressor_]
        case kind if kind in KINDS:
            own = list(estimator.estimators_)
        case _:
            return [estimator]
    return [each for member in own for each in _members(member)]


def _is_linear(estimator: Any) -> bool:
    return _link(estimator) == "identity"


def _link(estimator: Any) -> str:
    """Return which function of ``coef_`` an estimator, or the last step of a pipeline, predicts: "identity",
    "exp", or none, an empty text. Its predictions decide: not all that have ``coef_`` are linear."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not (hasattr(last, "coef_") and hasattr(last, "intercept_")) or hasattr(last, "support_vectors_"):
        return ""
    weights = np.atleast_2d(np.asarray(last.coef_, np.float64))
    samples = np.random.default_rng(0).normal(size=(TRIED, weights.shape[1]))
    linear = (samples / (1 + np.abs(weights).sum())) @ weights.T
    given = _predicted(last, samples / (1 + np.abs(weights).sum()))
    for name, inverse in (("identity", np.asarray), ("exp", np.log)):
        with np.errstate(all="ignore"):
            target, start = inverse(given), inverse(_predicted(last, np.zeros_like(samples)))
            apart = np.abs(target - start - linear).max()
            if apart <= CLOSE * np.abs(linear).max() + ROUNDED * np.abs(target).max():
                return name
    return ""


def _predicted(last: Any, samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of a classifier, or the values of a regressor, (count, outputs)."""
    predict = last.decision_function if hasattr(last, "decision_function") else last.predict
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an array instead of a table with names
        return np.asarray(predict(samples), np.float64).reshape(len(samples), -1)


def _linear(writer: Writer, estimator: Any, value: str, width: int) -> tuple[Any, str]:
    """Return the last step of a linear estimator or of a pipeline, and its scores, (1, scores)."""
    if hasattr(estimator, "steps"):
        features = writer.columns_of(value, width)
        for name, step in estimator.steps[:-1]:
            features = write_transformer(writer, step, features, repr(name))
        value, estimator = writer.matrix(features), estimator.steps[-1][1]
    weights = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    offset = np.broadcast_to(np.ravel(estimator.intercept_), len(weights))
    if _is_linear(estimator):  # some subtract a mean before their weights
        offset = _predicted(estimator, np.zeros((1, weights.shape[1])))[0]
    outcome = writer.add("MatMul", value, writer.constant(weights.T))
    return estimator, writer.add("Add", outcome, writer.constant(offset[None]))


def _scores(writer: Writer, estimator: Any, value: str, width: int) -> str:
    """Return the decision function, (1, scores)."""
    return _linear(writer, estimator, value, width)[1]


def _value(writer: Writer, estimator: Any, value: str, width: int) -> str:
    """Return the prediction of a regressor, (1, outputs)."""
    match type(estimator).__name__:
        case "VotingRegressor":
            outcome = [_value(writer, each, value, width) for each in estimator.estimators_]
            return _mean(writer, outcome, estimator._weights_not_none)
        case "StackingRegressor":
            for each in estimator.estimators_:
                _require_linear(each)
            outcome = [_value(writer, each, value, width) for each in estimator.estimators_]
            outcome += [value] if estimator.passthrough else []
            joined = writer.add("Concat", *outcome, axis=1)
            total = len(estimator.estimators_) + (width if estimator.passthrough else 0)
            return _value(writer, estimator.final_estimator_, joined, total)
        case "TransformedTargetRegressor":
            return _inverse(writer, estimator, _value(writer, estimator.regressor_, value, width))
        case _:
            scores = _scores(writer, estimator, value, width)
            return scores if _is_linear(estimator) else writer.on_client(writer.add("Exp", scores))


def _require_linear(estimator: Any) -> None:
    """Refuse a member of a stack that predicts an exponential.

    Raises:
        RefusalError: names it.
    """
    for each in _members(estimator):
        if not _is_linear(each):
            kind = type(each.steps[-1][1] if hasattr(each, "steps") else each).__name__
            raise RefusalError(
                f"StackingRegressor stacks the predictions of {kind}, an exponential that clients compute "
                "and on which no server can go on; stack linear regressors, or use a VotingRegressor",
                code="export",
            )


def _inverse(writer: Writer, estimator: Any, value: str) -> str:
    """Return the inverse of a target's transformation."""
    transformer = estimator.transformer_
    kind = type(transformer).__name__
    if kind in ("StandardScaler", "RobustScaler"):
        offset = getattr(transformer, "mean_", getattr(transformer, "center_", None))
        if transformer.scale_ is not None:
            value = writer.add("Mul", value, writer.constant(transformer.scale_[None]))
        return value if offset is None else writer.add("Add", value, writer.constant(offset[None]))
    if kind == "MinMaxScaler":
        less = writer.add("Sub", value, writer.constant(transformer.min_[None]))
        return writer.add("Div", less, writer.constant(transformer.scale_[None]))
    function = getattr(transformer, "inverse_func", None)
    name = getattr(function, "__name__", repr(function))
    if kind != "FunctionTransformer" or getattr(np, name, None) is not function:
        what = f"inverse_func={name}" if kind == "FunctionTransformer" else f"transformer={kind}"
        raise RefusalError(
            f"TransformedTargetRegressor has {what}, which has no form for clients; compile its regressor_ "
            "and apply the inverse to the result",
            code="export",
        )
    if name == "expm1":
        value = writer.add("Sub", writer.on_client(writer.add("Exp", value)), writer.constant(1.0))
    elif name == "log1p":
        value = writer.add("Log", writer.add("Add", value, writer.constant(1.0)))
    elif name == "square":
        value = writer.add("Mul", value, value)
    elif name in FUNCTIONS:
        value = writer.add(FUNCTIONS[name], value)
    else:
        raise RefusalError(
            f"TransformedTargetRegressor has inverse_func={name}, which has no form for clients; compile its "
            "regressor_ and apply the inverse to the result",
            code="export",
        )
    return writer.on_client(value)


def _probabilities(writer: Writer, estimator: Any, value: str, width: int) -> str:
    """Return the probabilities of a classifier, (1, classes), or votes whose largest is its label."""
    match type(estimator).__name__:
        case "VotingClassifier":
            members = estimator.estimators_
            if estimator.voting == "soft":
                outcome = [_probabilities(writer, each, value, width) for each in members]
            else:
                outcome = [_vote(writer, each, value, width) for each in members]
            return _mean(writer, outcome, estimator._weights_not_none)
        case "AdaBoostClassifier":
            return _boosted(writer, estimator, value, width)
        case "StackingClassifier":
            return _stacked(writer, estimator, value, width)
        case "CalibratedClassifierCV":
            outcome = [_calibrated(writer, each, value, width) for each in estimator.calibrated_classifiers_]
            return _mean(writer, outcome, None)
        case _:
            last, scores = _linear(writer, estimator, value, width)
            return _shares(writer, last, scores)


def _shares(writer: Writer, estimator: Any, scores: str) -> str:
    """Return the probabilities of a linear classifier, or scores whose largest is its label."""
    kind, two = type(estimator).__name__, len(estimator.classes_) == 2
    apart = kind in SIGMOID or getattr(estimator, "solver", "") == "liblinear"
    if kind in SOFTMAX and not two and not apart:
        return writer.add("Softmax", scores, axis=1)
    if not hasattr(estimator, "predict_proba"):
        if not two:
            return scores
        return writer.add("Concat", writer.add("Neg", scores), scores, axis=1)
    if getattr(estimator, "loss", "") == "modified_huber":
        limited = writer.on_client(writer.add("Clip", scores, writer.constant(-1.0), writer.constant(1.0)))
        share = writer.add("Add", writer.add("Mul", limited, writer.constant(0.5)), writer.constant(0.5))
    else:
        share = writer.on_client(writer.add("Sigmoid", scores))
    return _both(writer, share) if two else _normalised(writer, share, len(estimator.classes_))


def _both(writer: Writer, share: str) -> str:
    rest = writer.add("Sub", writer.constant([[1.0]]), share)
    return writer.add("Concat", rest, share, axis=1)


def _normalised(writer: Writer, shares: str, count: int) -> str:
    """Return shares, (1, count), divided by their sum; equal ones if all are 0."""
    total = writer.add("ReduceSum", shares, writer.constant([1], np.int64), keepdims=1)
    none = writer.add("Equal", total, writer.constant([[0.0]]))
    uniform = writer.constant(np.full((1, count), 1 / count))
    safe = writer.add("Where", none, writer.constant([[1.0]]), total)
    return writer.add("Where", none, uniform, writer.add("Div", shares, safe))


def _vote(writer: Writer, estimator: Any, value: str, width: int) -> str:
    """Return a vote for the label of a classifier, (1, classes)."""
    outcome = _probabilities(writer, estimator, value, width)
    place = writer.add("ArgMax", outcome, axis=1, keepdims=1)
    return _hot(writer, place, len(estimator.classes_))


def _hot(writer: Writer, place: str, count: int) -> str:
    """Return ones at places, (1, 1), among zeros, (1, count)."""
    return writer.cast(writer.add("Equal", place, writer.constant(np.arange(count), np.int64)))


def _boosted(writer: Writer, estimator: Any, value: str, width: int) -> str:
    """Return the probabilities of AdaBoostClassifier: votes for labels, and a part against the others."""
    classes, total = len(estimator.classes_), float(np.sum(estimator.estimator_weights_))
    votes = [_vote(writer, each, value, width) for each in estimator.estimators_]
    weights = np.asarray(estimator.estimator_weights_)[: len(votes)]
    pro = _mean(writer, votes, weights * (len(votes) / total) / len(votes), total=1.0)
    # A vote counts 1 for its label and -1 / (classes - 1) for each other.
    share = classes / (classes - 1)
    scores = writer.add("Mul", pro, writer.constant(share))
    scores = writer.add("Sub", scores, writer.constant(1 / (classes - 1)))
    if classes == 2:
        # scikit-learn has one score, of which it takes the halves.
        return writer.add("Softmax", scores, axis=1)
    return writer.add("Softmax", writer.add("Div", scores, writer.constant(float(classes - 1))), axis=1)


def _stacked(writer: Writer, estimator: Any, value: str, width: int) -> str:
    outcome, total = [], 0
    for each, method in zip(estimator.estimators_, estimator.stack_method_, strict=True):
        two = len(each.classes_) == 2
        if method == "predict_proba":
            shares = _probabilities(writer, each, value, width)
            if two:
                shares = writer.add("Gather", shares, writer.constant([1], np.int64), axis=1)
            outcome.append(shares)
        elif method == "decision_function":
            outcome.append(_scores(writer, each, value, width))
        else:
            raise RefusalError(
                f"StackingClassifier stacks the labels of {type(each).__name__}, which are comparisons of "
                "encrypted values; choose stack_method='predict_proba' or 'decision_function'",
                code="export",
            )
        total += 1 if two else len(each.classes_)
    if estimator.passthrough:
        outcome.append(value)
        total += width
    joined = writer.add("Concat", *outcome, axis=1) if len(outcome) > 1 else outcome[0]
    return _probabilities(writer, estimator.final_estimator_, joined, total)


def _calibrated(writer: Writer, member: Any, value: str, width: int) -> str:
    """Return the calibrated probabilities of one member."""
    last, scores = _linear(writer, member.estimator, value, width)
    if not hasattr(last, "decision_function"):
        raise RefusalError(
            f"CalibratedClassifierCV is of {type(last).__name__}, which has no decision function; "
            "calibrate a linear classifier",
            code="export",
        )
    if member.method == "temperature":
        (scaling,) = member.calibrators
        two = len(member.classes) == 2
        both = writer.add("Concat", writer.add("Neg", scores), scores, axis=1) if two else scores
        beta = writer.constant(float(scaling.beta_))
        return writer.add("Softmax", writer.add("Mul", both, beta), axis=1)
    shares = []
    for place, calibrator in enumerate(member.calibrators):
        one = writer.add("Gather", scores, writer.constant([place], np.int64), axis=1)
        if hasattr(calibrator, "a_"):
            power = writer.add("Mul", one, writer.constant([[-float(calibrator.a_)]]))
            power = writer.add("Sub", power, writer.constant([[float(calibrator.b_)]]))
            shares.append(writer.on_client(writer.add("Sigmoid", power)))
        else:
            shares.append(_interpolated(writer, calibrator, one))
    if len(shares) == 1:
        return _both(writer, shares[0])
    return _normalised(writer, writer.add("Concat", *shares, axis=1), len(shares))


def _interpolated(writer: Writer, calibrator: Any, score: str) -> str:
    """Return an isotonic calibration: straight pieces between thresholds, constant beyond."""
    places = np.asarray(calibrator.X_thresholds_, np.float64)
    values = np.asarray(calibrator.y_thresholds_, np.float64)
    if len(places) == 1:
        return writer.add("Add", writer.add("Mul", score, writer.constant(0.0)), writer.constant(values[0]))
    # The sum over pieces of how much of each is below the score, times its slope.
    width = np.diff(places)
    share = writer.on_client(writer.add("Sub", score, writer.constant(places[None, :-1])))
    share = writer.add("Div", share, writer.constant(width[None]))
    share = writer.add("Clip", share, writer.constant(0.0), writer.constant(1.0))
    rise = writer.add("Mul", share, writer.constant(np.diff(values)[None]))
    total = writer.add("ReduceSum", rise, writer.constant([1], np.int64), keepdims=1)
    return writer.add("Add", total, writer.constant([[values[0]]]))


def _mean(
    writer: Writer, values: Sequence[str], weights: Sequence[float] | NDArray[Any] | None, total: float = 0.0
) -> str:
    given = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    shares = given / (total or given.sum())
    terms = [
        writer.add("Mul", each, writer.constant(float(share)))
        for each, share in zip(values, shares, strict=True)
    ]
    outcome = terms[0]
    for term in terms[1:]:
        outcome = writer.add("Add", outcome, term)
    return outcome


def _label(writer: Writer, classes: NDArray[Any], scores: str) -> str:
    """Return the class of the largest score, (1,)."""
    place = writer.add("ArgMax", scores, axis=1, keepdims=0)
    kind = np.asarray(classes).dtype.kind
    if kind in "OSU":
        known = np.asarray([str(each) for each in classes], object)
        return writer.add("Gather", writer.constant(known, object), place, axis=0)
    if kind == "f":
        return writer.add("Gather", writer.constant(classes), place, axis=0)
    return writer.add("Gather", writer.constant(classes, np.int64), place, axis=0)
