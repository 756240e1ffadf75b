"""Special values in samples of every family of estimators: a model answers as its estimator, or refuses."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors import KeywrightError
from numpy.typing import NDArray
from sklearn import preprocessing as pre
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC
from tests.matrices import cells

Array = NDArray[Any]

RNG = np.random.default_rng(31)
COUNT = 200
SAMPLES = np.c_[
    np.round(RNG.normal(size=(COUNT, 2)) * 16) / 8, RNG.integers(0, 4, COUNT)
]  # exact in any precision
REAL = SAMPLES @ [1.0, 0.3, 0.5] + 0.1 * RNG.normal(size=COUNT)
TWO = (np.median(REAL) < REAL).astype(int)
THREE = np.array(["low", "middle", "high"])[np.digitize(REAL, np.quantile(REAL, [0.3, 0.7]))]

TOLERANCE = 1e-3
"""Share of the largest answer: encryption and rounded leaves change less."""


def columns(*steps: Any) -> Any:
    """Transformers of the third column, beside two that are scaled."""
    encoded = ColumnTransformer(
        [("scaled", pre.StandardScaler(), [0, 1]), ("third", make_pipeline(*steps), [2])]
    )
    return make_pipeline(encoded, Ridge())


def most_frequent() -> SimpleImputer:
    return SimpleImputer(strategy="most_frequent")


FAMILIES: dict[str, tuple[Callable[[], Any], Array | None]] = {
    "linear": (LinearRegression, REAL),
    "logistic": (LogisticRegression, TWO),
    "support vectors": (lambda: make_pipeline(pre.StandardScaler(), LinearSVC()), THREE),
    "calibrated": (lambda: CalibratedClassifierCV(LinearSVC(), cv=2), TWO),
    "discriminant": (LinearDiscriminantAnalysis, THREE),
    "means": (lambda: PoissonRegressor(alpha=1), np.exp(REAL / 3)),
    "components": (lambda: make_pipeline(PCA(2, whiten=True), Ridge()), REAL),
    "transformer": (lambda: PCA(2), None),
    "partial squares": (lambda: PLSRegression(2), REAL),
    "clusters": (lambda: KMeans(3, n_init=1, random_state=0), None),
    "votes": (lambda: VotingRegressor([("a", Ridge()), ("b", Lasso(0.1))]), REAL),
    "chosen columns": (lambda: make_pipeline(SelectKBest(f_regression, k=2), Ridge()), REAL),
    "categories": (lambda: make_pipeline(pre.OrdinalEncoder(), CategoricalNB()), THREE),
    "imputed": (lambda: make_pipeline(SimpleImputer(add_indicator=True), Ridge()), REAL),
    "imputed -1": (lambda: make_pipeline(SimpleImputer(missing_values=-1), Ridge()), REAL),
    "indicator": (
        lambda: make_pipeline(make_union(MissingIndicator(features="all"), SimpleImputer()), Ridge()), REAL,
    ),
    "one-hot": (lambda: columns(pre.OneHotEncoder()), REAL),
    "one-hot of known": (lambda: columns(pre.OneHotEncoder(handle_unknown="ignore")), REAL),
    "imputed one-hot": (lambda: columns(most_frequent(), pre.OneHotEncoder()), REAL),
    "imputed one-hot of known": (
        lambda: columns(most_frequent(), pre.OneHotEncoder(handle_unknown="ignore")), REAL,
    ),
    "one-hot of a function": (lambda: columns(pre.FunctionTransformer(np.abs), pre.OneHotEncoder()), REAL),
    "numbers of categories": (
        lambda: columns(pre.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)), REAL,
    ),
    "means of categories": (lambda: columns(pre.TargetEncoder()), REAL),
    "bins": (lambda: columns(pre.KBinsDiscretizer(3)), REAL),
    "numbers of bins": (lambda: columns(pre.KBinsDiscretizer(3, encode="ordinal", strategy="uniform")), REAL),
    "bits": (lambda: columns(pre.Binarizer(threshold=1.5)), REAL),
    "powers": (lambda: columns(pre.PowerTransformer()), REAL),
    "forest": (lambda: RandomForestRegressor(3, max_depth=3, random_state=0), REAL),
    "boosting": (lambda: HistGradientBoostingRegressor(max_iter=3), REAL),
}  # fmt: skip
TREES = frozenset(["forest", "boosting"])

VALUES: dict[str, Any] = {
    "NaN": np.nan, "infinity": np.inf, "-infinity": -np.inf, "-0": -0.0, "subnormal": 5e-324, "huge": 1e300,
    "above single precision": 3.5e38, "2^53 + 2": 2.0**53 + 2, "-1": -1.0, "fraction": 1.5, "unknown": 9.0,
    "a text": "x", "a number as text": "1.0", "a truth value": True, "a date": dt.date(2020, 1, 1),
    "bytes": b"1",
}  # fmt: skip
"""What is put into one column of a few samples."""

KINDS: dict[str, Callable[[Array], Any]] = {
    "int64": lambda rows: np.round(rows).astype(np.int64),
    "float16": lambda rows: np.round(rows).astype(np.float16),
    "float32": lambda rows: rows.astype(np.float32),
    "long double": lambda rows: rows.astype(np.longdouble),
    "other byte order": lambda rows: rows.astype(">f8"),
    "by columns": np.asfortranarray,
    "backwards": lambda rows: rows[::-1],
    "strided": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "objects": lambda rows: rows.astype(object),
    "texts": lambda rows: rows.astype(str),
    "dates": lambda rows: np.full(rows.shape, "2020-01-01", "M8[D]"),
    "complex": lambda rows: rows.astype(complex),
    "masked": lambda rows: np.ma.masked_greater(rows, 1.0),
    "lists": lambda rows: rows.tolist(),
    "too wide": lambda rows: np.c_[rows, rows],
    "too narrow": lambda rows: rows[:, :2],
}
"""What all samples are turned into."""


@cache
def fitted(name: str) -> tuple[Any, kw.Model]:
    make, target = FAMILIES[name]
    estimator = make().fit(SAMPLES, target)
    options: Any = {"thresholds": "public"} if name in TREES else {}
    return estimator, kw.compile(estimator, SAMPLES, **options)


def special(what: str) -> list[Any]:
    """Samples with a value in the first or the last column, or all of a kind."""
    rows = SAMPLES[:8]
    if what in KINDS:
        return [KINDS[what](rows)]
    value, result = VALUES[what], []
    for column in (0, 2):
        changed = rows.astype(np.float64 if isinstance(value, float) else object)
        changed[::3, column] = value
        result.append(changed)
    return result


def own(estimator: Any, samples: Any) -> Array:
    """The estimator's values; probabilities or scores of one with labels."""
    names: tuple[str, ...] = ("predict_proba", "decision_function", "predict", "transform")
    if isinstance(estimator, KMeans):
        names = ("transform",)
    method = next(getattr(estimator, name) for name in names if hasattr(estimator, name))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(method(samples), np.float64).reshape(len(samples), -1)


@pytest.mark.parametrize(("name", "what"), cells([*FAMILIES], [*VALUES, *KINDS]))
def test_a_model_answers_as_its_estimator_or_refuses(name: str, what: str) -> None:
    estimator, model = fitted(name)
    for samples in special(what):
        try:
            outputs = model.simulate(samples, repetitions=1).outputs
        except KeywrightError:
            continue
        answers = model.answers(outputs)
        values = [each for each in answers.values() if np.asarray(each).dtype.kind == "f"] or [outputs]
        given = np.asarray(values[-1], np.float64).reshape(len(samples), -1)
        expected = own(estimator, samples)  # what the estimator refuses, the model has refused
        if given.shape[1] == 2 and expected.shape[1] == 1:
            given = given[:, 1:]
        assert given.shape == expected.shape
        assert np.abs(given - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_takes_what_says_the_same_numbers(name: str) -> None:
    """The refusals above are none of samples as they were."""
    _, model = fitted(name)
    for what in ("-0", "float32", "by columns", "backwards", "objects", "lists"):
        for samples in special(what):
            model.simulate(samples, repetitions=1)
