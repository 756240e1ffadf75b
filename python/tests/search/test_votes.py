"""scikit-learn's neighbours and clusters, encrypted."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keywright import search
from keywright._reading.sealed import with_digest
from keywright.errors import FormatError, ParameterError, SearchError
from numpy.typing import NDArray

sklearn = pytest.importorskip("sklearn")
from keywright.compiler.front_ends.estimator_refusals import FORMS  # noqa: E402
from sklearn import neighbors  # noqa: E402
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.neighbors import (  # noqa: E402
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
    NearestNeighbors,
    RadiusNeighborsClassifier,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
SAMPLES = X[::10] + 0.05


UNLIKE = (np.random.default_rng(8).normal(size=(90, 3)), np.arange(90) % 3)
"""Samples of classes that overlap, with which any other weights give other predictions."""


def weighted() -> Any:
    weights = {"w": np.array([1.0, 20, 3])}
    return KNeighborsClassifier(3, metric="minkowski", metric_params=weights).fit(*UNLIKE)


def with_priors() -> Any:
    samples, labels = UNLIKE
    skewed = np.r_[np.arange(len(labels)), np.flatnonzero(labels == 0).repeat(9)]
    return NearestCentroid(priors="empirical").fit(samples[skewed], labels[skewed])


@pytest.mark.parametrize("make", [weighted, with_priors])
def test_estimators_that_do_more_than_search_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(SearchError, match="nearest vectors alone") as refused:
        search.from_estimator(make(), radius=10)
    assert refused.value.code == "estimator"


def test_a_vote_of_another_index_is_refused() -> None:
    with pytest.raises(FormatError, match="different models"):
        search.Vote(1, "uniform", [0, 1]).decide([2], np.ones(1))


def predictions(estimator: Any, radius: float | None = None) -> list[Any]:
    index, vote = search.from_estimator(estimator, radius=radius, levels=1000)
    vote = search.Vote.from_bytes(vote.to_bytes())
    client = search.Client(index.directory())
    keys, out = client.keys(), []
    for sample in SAMPLES:
        query = client.query(sample)
        out.append(vote.predict(query, index.answer(query.data, keys)))
    return out


@pytest.mark.parametrize(
    ("weights", "metric"), [("uniform", "minkowski"), ("uniform", "cosine"), ("distance", "minkowski")]
)
@pytest.mark.filterwarnings("ignore:rounding to 1,000 levels changes 2.0%:UserWarning")
def test_neighbours_vote_like_scikit_learn(weights: str, metric: str) -> None:
    estimator = KNeighborsClassifier(5, weights=weights, metric=metric).fit(X, NAMES[Y])
    assert predictions(estimator) == estimator.predict(SAMPLES).tolist()


def test_neighbours_average_like_scikit_learn() -> None:
    estimator = KNeighborsRegressor(4, weights="distance").fit(X[:, :3], X[:, 3])
    index, vote = search.from_estimator(estimator, levels=1000)
    client = search.Client(index.directory())
    query = client.query(SAMPLES[3, :3])
    mean = vote.predict(query, index.answer(query.data, client.keys()))
    assert mean == pytest.approx(estimator.predict(SAMPLES[3:4, :3])[0], abs=0.02)


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_clusters_are_those_of_scikit_learn(kind: Any) -> None:
    estimator = kind(3, random_state=1, n_init=3).fit(X)
    assert predictions(estimator, radius=6.0) == estimator.predict(SAMPLES).tolist()


def test_the_nearest_centroid_is_that_of_scikit_learn() -> None:
    estimator = NearestCentroid().fit(X, Y)
    assert predictions(estimator, radius=6.0) == estimator.predict(SAMPLES).tolist()


def agreement(model: Any, **options: Any) -> float:
    share = search.from_estimator(model, **options)[1].agreement
    assert share is not None
    return share


def outweighed(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return samples and targets. Rounding changes predictions where one feature or a few samples outweigh
    the others, or where all samples have nearly one direction."""
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(1000, 5)) * 10.0 ** rng.uniform(0, 3, 5)
    if seed % 2:
        samples = np.exp(samples / samples.std(axis=0) * rng.uniform(0.5, 1.5))
    return samples + rng.choice([0, 1e3]), samples / samples.std(axis=0) @ rng.normal(size=5)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.filterwarnings("ignore:rounding:UserWarning")
def test_the_stated_share_of_equal_predictions_is_that_of_other_samples(seed: int, kind: Any) -> None:
    samples, targets = outweighed(seed)
    labels = targets if kind is KNeighborsRegressor else (targets > 0).astype(float)
    metric, levels = ("euclidean", "cosine")[seed % 3 == 0], (40, 200, None)[seed % 4 % 3]
    model = kind(3 + seed, metric=metric).fit(samples[::2], labels[::2])
    radius = None if metric == "cosine" else 2 * np.linalg.norm(samples - samples.mean(axis=0), axis=1).max()
    own, others = (
        agreement(model, calibration=other, levels=levels, radius=radius, accuracy=0.0)
        for other in (None, samples[1::2])
    )
    # Four standard deviations of the difference of two shares of 500 samples.
    share = np.clip((own + others) / 2, 0.01, 0.99)
    assert abs(own - others) <= 4 * np.sqrt(2 * share * (1 - share) / 500)


@pytest.mark.filterwarnings("ignore:rounding:UserWarning")
def test_compared_predictions_are_those_of_answers() -> None:
    samples, targets = outweighed(1)
    model = KNeighborsClassifier(3).fit(samples[:300], np.sign(targets[:300]))
    index, vote = search.from_estimator(model, levels=60, accuracy=0)
    client = search.Client(index.directory())
    keys = client.keys()
    stated: list[float] = []
    for sample in samples[300:316]:
        query = client.query(sample)
        equal = vote.predict(query, index.answer(query.data, keys)) == model.predict(sample[None])[0]
        stated.append(agreement(model, levels=60, accuracy=0, calibration=sample[None]))
        assert stated[-1] == equal
    assert 0 < np.mean(stated) < 1


@pytest.mark.parametrize("target", [0.0, 0.1, -1.1, 1e12])
def test_averages_of_one_number_are_equal(target: float) -> None:
    samples, _ = outweighed(2)
    model = KNeighborsRegressor(5, weights="distance").fit(samples[:100], np.full(100, target))
    assert agreement(model, levels=40) == 1


@pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "brute"])
@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.filterwarnings("ignore:(rounding|the order):UserWarning")
def test_equal_distances_count_where_the_model_orders_them_otherwise(
    algorithm: str, repeats: int, kind: Any
) -> None:
    """Whole numbers have equal distances, and repeated rows are as far."""
    rng = np.random.default_rng(1)
    samples = np.repeat(rng.integers(0, 3, (600 // repeats, 3)), repeats, axis=0).astype(float)
    labels = rng.integers(0, 2, 600).astype(float)
    model = kind(3, algorithm=algorithm).fit(samples, labels)
    index, vote = search.from_estimator(model, accuracy=0)
    assert vote.agreement is not None
    asked = rng.integers(0, 3, (60, 3)).astype(float)
    client = search.Client(index.directory())
    keys, equal = client.keys(), []
    for sample, prediction in zip(asked, model.predict(asked), strict=True):
        query = client.query(sample)
        given = vote.predict(query, index.answer(query.data, keys))
        equal.append(abs(float(given) - prediction) < 0.05)
    # Four standard deviations of shares of 512 and of 60 samples, of which many are the same.
    assert np.mean(equal) >= vote.agreement - 4 * np.sqrt(0.25 / 60)
    if vote.agreement < 0.9 and algorithm != "brute":
        with pytest.raises(SearchError, match=r"the order of equal distances.*brute"):
            search.from_estimator(model)


def test_outliers_of_targets_hide_no_change() -> None:
    rng = np.random.default_rng(2)
    samples = rng.normal(size=(300, 3))
    samples[0] = 2e4
    targets = samples[:, 1].copy()
    targets[1] = 1e5
    with pytest.raises(SearchError, match="rounding to"):
        search.from_estimator(KNeighborsRegressor(3).fit(samples, targets))


def test_a_radius_covers_calibration_data_and_is_not_too_large() -> None:
    centres = NearestCentroid().fit(X, Y)
    index, _ = search.from_estimator(centres, calibration=X)
    for sample in X:
        index.quantisation.query(sample)
    with pytest.raises(SearchError, match=r"pass radius=\S*$"):
        search.from_estimator(centres, calibration=X, radius=1e5)
    with pytest.raises(SearchError, match="leave out calibration samples that are 2e"):
        search.from_estimator(KNeighborsClassifier(3).fit(X, Y), calibration=np.vstack([X, X[:1] + 1e6]))
    with pytest.raises(SearchError, match="not finite"):
        search.from_estimator(centres, calibration=np.full((3, 4), np.nan))
    with pytest.raises(SearchError, match="shape"):
        search.from_estimator(centres, calibration=X[0])


def test_equal_vectors_have_no_radius_of_rounding() -> None:
    one = KMeans(1, n_init=1, random_state=1).fit(X)
    with pytest.raises(ParameterError, match=r"stored vectors are equal.*calibration="):
        search.from_estimator(one)
    index, _ = search.from_estimator(one, calibration=X)
    index.quantisation.query(X[7])


def test_what_cannot_be_compared_is_refused() -> None:
    model = KNeighborsClassifier(3).fit(X, Y)
    for accuracy in (float("nan"), -1.0, 2.0):
        with pytest.raises(ParameterError, match="not a share"):
            search.from_estimator(model, accuracy=accuracy)
    with pytest.raises(SearchError, match="no samples"):
        search.from_estimator(model, calibration=X[:0])


def test_an_index_whose_rounding_changes_predictions_is_refused() -> None:
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(400, 4))
    samples[7, 0] = 3000
    model = KNeighborsClassifier(3).fit(samples, np.sign(samples[:, 1]))
    with pytest.raises(
        SearchError, match=r"changes .* of KNeighborsClassifier.*scale or transform"
    ) as refused:
        search.from_estimator(model)
    assert refused.value.code == "estimator"
    with pytest.warns(UserWarning, match="changes"):
        assert agreement(model, accuracy=0.1) < 0.9
    transformed = KNeighborsClassifier(3).fit(np.arcsinh(samples), np.sign(samples[:, 1]))
    assert agreement(transformed) > 0.99
    near = samples + np.array([0, 1e3, 0, 0])
    near[:, 0] = rng.normal(size=400)
    directions = KNeighborsClassifier(3, metric="cosine").fit(near, np.sign(samples[:, 2]))
    with pytest.raises(SearchError, match="vectors of norm 1, which have the same neighbours"):
        search.from_estimator(directions)
    units = near / np.linalg.norm(near, axis=1, keepdims=True)
    same = KNeighborsClassifier(3).fit(units, np.sign(samples[:, 2]))
    assert (same.predict(units) == directions.predict(near)).all()
    assert agreement(same) > 0.99


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (LogisticRegression(), "not a model of neighbours"),
        (NearestNeighbors().fit(X), r"no vote.*Index\.of"),
        (RadiusNeighborsClassifier().fit(X, Y), "within a radius"),
        (KNeighborsClassifier(), "not fitted"),
        (KMeans(2), "not fitted"),
        (BisectingKMeans(3, random_state=1).fit(X), "a tree of clusters.*fit KMeans"),
        (KNeighborsClassifier(metric="manhattan").fit(X, Y), "metric='manhattan'"),
        (KNeighborsClassifier(p=3).fit(X, Y), "has p=3,"),
        (KNeighborsClassifier(p=1).fit(X, Y), "has p=1,"),
        (KNeighborsClassifier(weights=np.sqrt).fit(X, Y), "which is code"),
        (KNeighborsClassifier().fit(X, np.stack([Y, Y], axis=1)), "several outputs"),
    ],
)
def test_other_models_are_refused(estimator: Any, match: str) -> None:
    with pytest.raises(SearchError, match=match, check=lambda error: error.code == "estimator"):
        search.from_estimator(estimator)


@pytest.mark.parametrize(
    "name", [name for name, (_, instead) in FORMS.items() if "keywright.search" in instead]
)
@pytest.mark.filterwarnings("ignore:rounding to 1,462 levels changes 1.3%:UserWarning")
def test_no_refusal_leads_in_a_circle(name: str) -> None:
    """What `keywright.compile` sends here is taken, or refused without a way back."""
    estimator = getattr(neighbors, name)()
    if "search.from_estimator" in FORMS[name][1] and name.startswith("K"):
        search.from_estimator(estimator.fit(X, Y))
        return
    with pytest.raises(SearchError, check=lambda error: "keywright.compile" not in str(error)):
        search.from_estimator(estimator.fit(X, Y))


@pytest.mark.parametrize(
    "change",
    [
        {"k": 9},
        {"k": 0},
        {"k": "1"},
        {"weights": "code"},
        {"mean": 1},
        {"labels": []},
        {"labels": [None]},
        {"labels": [float("inf")]},
        {"agreement": 1.5},
        {"agreement": "all"},
    ],
)
def test_a_vote_is_read_strictly(change: dict[str, object]) -> None:
    data = search.Vote(1, "uniform", ["a", 2]).to_bytes()
    assert search.Vote.from_bytes(data).labels == ["a", 2]
    with pytest.raises(FormatError):
        search.Vote.from_bytes(json.dumps(with_digest(json.loads(data) | change)).encode())
    with pytest.raises(FormatError):
        search.Vote.from_bytes(b"\xff" + data)
