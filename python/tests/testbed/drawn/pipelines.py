"""Draws scikit-learn pipelines of the estimators that compile."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import (
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    feature_selection,
    linear_model,
    mixture,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)

from .drawing import Array

Draw = Callable[[np.random.Generator], Any]

SCALERS: list[Draw] = [
    lambda _: preprocessing.StandardScaler(),
    lambda _: preprocessing.MinMaxScaler(),
    lambda _: preprocessing.MaxAbsScaler(),
    lambda _: preprocessing.RobustScaler(),
    lambda r: decomposition.PCA(int(r.integers(1, 4)), whiten=bool(r.integers(2))),
    lambda r: decomposition.IncrementalPCA(int(r.integers(1, 4))),
    lambda r: decomposition.TruncatedSVD(int(r.integers(1, 4))),
    lambda _: preprocessing.PolynomialFeatures(2, interaction_only=True),
    lambda r: feature_selection.SelectKBest(k=int(r.integers(1, 4))),
    lambda _: feature_selection.VarianceThreshold(),
    lambda _: preprocessing.FunctionTransformer(),
]
REGRESSORS: list[Draw] = [
    lambda _: linear_model.LinearRegression(),
    lambda r: linear_model.Ridge(float(r.uniform(0.1, 10))),
    lambda _: linear_model.Lasso(0.01),
    lambda _: linear_model.ElasticNet(0.01),
    lambda _: linear_model.BayesianRidge(),
    lambda _: linear_model.HuberRegressor(max_iter=2000),
    lambda _: linear_model.Lars(),
    lambda _: linear_model.TweedieRegressor(power=0),
    lambda _: svm.LinearSVR(max_iter=10000),
    lambda r: svm.SVR(kernel=str(r.choice(["linear", "poly", "rbf"])), degree=2),
    lambda _: cross_decomposition.PLSRegression(1),
    lambda r: neural_network.MLPRegressor(
        hidden_layer_sizes=(int(r.integers(2, 6)),), activation="tanh", max_iter=3000
    ),
]
CLASSIFIERS: list[Draw] = [
    lambda _: linear_model.LogisticRegression(),
    lambda _: linear_model.RidgeClassifier(),
    lambda _: linear_model.SGDClassifier(loss="log_loss"),
    lambda _: linear_model.Perceptron(),
    lambda _: svm.LinearSVC(max_iter=10000),
    lambda r: svm.SVC(kernel=str(r.choice(["linear", "poly", "rbf"])), degree=2),
    lambda _: discriminant_analysis.LinearDiscriminantAnalysis(),
    lambda _: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    lambda _: naive_bayes.GaussianNB(),
    lambda r: neural_network.MLPClassifier(
        hidden_layer_sizes=(int(r.integers(2, 6)),), activation="logistic", max_iter=3000
    ),
]
DENSITIES: list[Draw] = [
    lambda _: mixture.GaussianMixture(2),
    lambda _: svm.OneClassSVM(kernel="linear"),
    lambda _: linear_model.SGDOneClassSVM(),
]


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A fitted pipeline, and typical samples."""

    model: Any
    samples: Array

    @property
    def name(self) -> str:
        """Its steps."""
        return " > ".join(type(step).__name__ for _, step in self.model.steps)


def drawn(seed: int) -> Pipeline:
    """Return a fitted pipeline of up to two transformers and an estimator, on features of any size. Steps
    that do not fit each other, such as three components of one feature, are drawn again."""
    for attempt in range(20):
        try:
            return _drawn(seed, np.random.default_rng([seed, 3, *[attempt] * (attempt > 0)]))
        except ValueError:
            continue
    raise AssertionError(f"no steps of seed {seed} can be fitted")


def _drawn(seed: int, rng: np.random.Generator) -> Pipeline:
    samples = rng.normal(size=(80, 4)) * 10.0 ** rng.uniform(-3, 3, 4) + rng.normal(size=4)
    standard = (samples - samples.mean(axis=0)) / samples.std(axis=0)
    target = standard @ rng.normal(size=4) + 0.3 * standard[:, 0] ** 2 + 0.1 * rng.normal(size=80)
    kind = int(rng.integers(5))
    ends = CLASSIFIERS if kind < 2 else REGRESSORS if kind < 4 else DENSITIES
    if ends is CLASSIFIERS:
        classes = int(rng.integers(2, 4))
        labels = np.digitize(target, np.quantile(target, np.arange(1, classes) / classes))
        names = np.asarray(["low", "middle", "high"])
        target = names[labels] if rng.random() < 0.5 else labels
    elif ends is REGRESSORS:
        target = target * 10.0 ** rng.uniform(-3, 3) + rng.normal()
    steps = [SCALERS[int(rng.integers(len(SCALERS)))](rng) for _ in range(int(rng.integers(3)))]
    if ends is not CLASSIFIERS and ends is not REGRESSORS:
        steps = [step for step in steps if not isinstance(step, feature_selection.SelectKBest)]
    # Values of any size are for linear models: the others are fitted to standardised ones.
    steps = [preprocessing.StandardScaler(), *steps] if rng.random() < 0.7 else steps
    last = ends[int(rng.integers(len(ends)))](rng)
    if "random_state" in last.get_params():
        last.set_params(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline.make_pipeline(*steps, last).fit(samples, target)
    return Pipeline(model, samples)
