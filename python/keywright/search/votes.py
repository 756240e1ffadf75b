"""Nearest neighbours and clusters of scikit-learn: the server has an index, and the client votes."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keywright._reading.documents import Limits
from keywright._reading.records import number, read_object, refusing, whole
from keywright._reading.sealed import require_whole, with_digest
from keywright.errors import FormatError, SearchError
from keywright.errors.choices import require_choice

from .client import Query
from .index import Index
from .quantisation import DEFAULT_LEVELS, Metric

FORMAT = "keywright-search-vote-2"
LIMITS = Limits(64 << 20, 1 << 22)

Weights = Literal["uniform", "distance"]
Label = int | float | str

QUERIES = 64
"""Points at which an estimator is compared with the vote of its vectors."""

DECIDED = 1e-6
"""Distances that differ by less, as a share of the largest number, may be ordered by rounding."""


@dataclass(frozen=True)
class Vote:
    """The last step of a model of neighbours, which its client does: data, no code. It is public to clients.

    Attributes:
        k: neighbours that vote.
        weights: "uniform", or "distance": by the inverse of the distance.
        labels: of every id of the index, from 0 on: a class, or a number to average.
        mean: whether the prediction is an average, not the most frequent class.
    """

    k: int
    weights: Weights
    labels: Sequence[Label]
    mean: bool = False

    def __post_init__(self) -> None:
        require_choice("weights", self.weights, get_args(Weights))

    def predict(self, query: Query, answer: bytes) -> Label:
        """Return the model's prediction for a query, from the answer of its index.

        Raises:
            FormatError, MismatchError: as for `Query.top`; FormatError: an id has no label.
        """
        ids, scores = query.top(answer, self.k)
        return self.decide(ids.tolist(), scores if query.metric == "euclidean" else 1 - scores)

    def decide(self, ids: Sequence[int], distances: NDArray[np.float64]) -> Label:
        """Return the prediction of the nearest neighbours, with their distances, (k,).

        Raises:
            FormatError: an id has no label.
        """
        if not all(0 <= i < len(self.labels) for i in ids):
            raise FormatError(
                f"the vote has labels of the ids from 0 to {len(self.labels) - 1}, and the index has "
                f"{max(ids)}: they are of different models; make both again, by from_estimator",
                code="field",
            )
        weights = np.ones(self.k)
        if self.weights == "distance":
            zero = distances <= 0
            weights = zero.astype(float) if zero.any() else 1 / distances
        labels = [self.labels[i] for i in ids]
        if self.mean:
            return float(np.average(np.array(labels, dtype=np.float64), weights=weights))
        classes: list[Label] = sorted(set(labels), key=lambda label: (isinstance(label, str), label))
        votes = [float(weights[[label == other for other in labels]].sum()) for label in classes]
        return classes[votes.index(max(votes))]

    def to_bytes(self) -> bytes:
        """Return the vote in JSON, for clients."""
        fields = {
            "format": FORMAT,
            "k": self.k,
            "weights": self.weights,
            "mean": self.mean,
            "labels": list(self.labels),
        }
        return json.dumps(with_digest(fields)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Vote":
        """Read the bytes of `to_bytes`.

        Raises:
            FormatError: they are not a vote.
        """
        with refusing("a vote", FormatError):
            fields = read_object(data, FORMAT, LIMITS)
            require_whole(fields)
            labels = fields["labels"]
            if not isinstance(labels, list) or not labels:
                raise ValueError("it has no list of labels")
            for label in labels:
                if not isinstance(label, str):
                    number(label, "a label")
            if fields["weights"] not in ("uniform", "distance") or not isinstance(fields["mean"], bool):
                raise ValueError("its weights or its mean are unknown")
            k = whole(fields["k"], "k")
            if not 1 <= k <= len(labels):
                raise ValueError(f"k is {k}, with {len(labels)} labels")
            return cls(k, fields["weights"], labels, fields["mean"])


OTHERS = dict.fromkeys(
    ("RadiusNeighborsClassifier", "RadiusNeighborsRegressor", "RadiusNeighborsTransformer"),
    ("takes all vectors within a radius, of which there may be any number", "fit one of the k nearest"),
) | dict.fromkeys(
    ("KNeighborsTransformer", "NearestNeighbors"),
    ("has no vote of its nearest vectors", "search its vectors by Index.of"),
)
"""Why models of neighbours are refused that `keywright.compile` refuses, too, and what to do instead."""


def from_estimator(
    estimator: Any, *, levels: int = DEFAULT_LEVELS, radius: float | None = None
) -> tuple[Index, Vote]:
    """Make an index and a vote of a fitted model of scikit-learn: `KNeighborsClassifier`,
    `KNeighborsRegressor`, `NearestCentroid`, `KMeans`, `MiniBatchKMeans` or `BisectingKMeans`.

    Args:
        estimator: the fitted model, with Euclidean distances or, for neighbours, cosines.
        levels: as for `Quantisation`.
        radius: as for `Index.of`: for distances, the largest distance of a query from the mean of the stored
            vectors. Centres of clusters are closer together than the data, so `KMeans` and `NearestCentroid`
            mostly need it.

    Returns:
        The server's index, with ids from 0 on, and the client's vote.

    Raises:
        SearchError: the model is of another kind, is not fitted, or has another metric or its own weights.
        SearchError, ParameterError: as for `Index.of`.
    """
    name = type(estimator).__name__
    if name in ("KNeighborsClassifier", "KNeighborsRegressor"):
        vectors, vote, metric = _neighbours(estimator, name)
    elif name == "NearestCentroid":
        if not np.array_equal(getattr(estimator, "priors", "uniform"), "uniform"):
            raise SearchError(
                f"{name} does not predict by its nearest vectors alone: it has priors; fit it without, or "
                "compile LinearDiscriminantAnalysis",
                code="estimator",
            )
        vectors, metric = _fitted(estimator, "centroids_", name), _metric(estimator.metric, 2, name)
        vote = Vote(1, "uniform", _plain(estimator.classes_, name))
    elif name in ("KMeans", "MiniBatchKMeans", "BisectingKMeans"):
        vectors, metric = _fitted(estimator, "cluster_centers_", name), "euclidean"
        vote = Vote(1, "uniform", list(range(len(vectors))))
    else:
        why, way = OTHERS.get(name, ("is not a model of neighbours or clusters", ""))
        way = way or "compile it with keywright.compile"
        raise SearchError(f"{name} {why}; {way}", code="estimator")
    index = Index.of(vectors, metric=metric, levels=levels, radius=radius)
    _require_same(estimator, np.asarray(vectors, np.float64), vote, metric)
    return index, vote


def _require_same(estimator: Any, vectors: NDArray[np.float64], vote: Vote, metric: Metric) -> None:
    """Refuse an estimator that predicts by something else than its nearest vectors, such as weighted
    features, priors, or a tree of clusters. Asked are points between its vectors that no rounding decides.

    Raises:
        SearchError: a prediction differs.
    """
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(vectors), (2, QUERIES))
    share = rng.uniform(0.1, 0.45, (QUERIES, 1))
    beside = rng.normal(size=(QUERIES, vectors.shape[1])) * vectors.std(axis=0)
    aside = rng.integers(0, 2, (QUERIES, 1)) * beside
    queries = vectors[first] * (1 - share) + vectors[second] * share + aside
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # arrays have no names of features
        expected = np.asarray(estimator.predict(queries)).ravel()
    size = float(np.abs(np.asarray(vectors, np.float64)).max(initial=1.0))
    for query, prediction in zip(queries, expected, strict=True):
        if metric == "euclidean":
            distances = np.linalg.norm(vectors - query, axis=1)
        else:
            norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
            distances = 1 - vectors @ query / np.where(norms > 0, norms, 1.0)
        order = np.argsort(distances, kind="stable")
        ids, nearest = order[: vote.k].tolist(), distances[order[: vote.k + 1]]
        least = DECIDED * (size if metric == "euclidean" else 1.0)
        if (vote.k < len(vectors) and nearest[vote.k] - nearest[vote.k - 1] < least) or nearest[0] < least:
            continue
        own = {vote.decide(ids, nearest[: vote.k] * factor) for factor in (1.0, 1 - DECIDED, 1 + DECIDED)}
        nudged = nearest[: vote.k] * (1 + DECIDED * rng.choice([-1, 1], vote.k))
        own.add(vote.decide(ids, nudged))
        if vote.mean:
            same = bool(np.isclose(float(next(iter(own))), float(prediction), rtol=1e-4, atol=1e-9))
        else:
            same = len(own) > 1 or prediction in own
        if not same:
            name = type(estimator).__name__
            raise SearchError(
                f"{name} does not predict by its nearest vectors alone: between the stored vectors {ids[:3]} "
                f"it gives {prediction!r}, and they give {next(iter(own))!r}; fit it without metric_params, "
                "priors and the like",
                code="estimator",
            )


def _neighbours(estimator: Any, name: str) -> tuple[Any, Vote, Metric]:
    vectors = _fitted(estimator, "_fit_X", name)
    if hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    own = getattr(estimator, "metric_params", None) or {}
    if set(own) - {"p"}:
        raise SearchError(
            f"{name} does not predict by its nearest vectors alone: it has metric_params={sorted(own)}; fit "
            "it on features that are scaled instead",
            code="estimator",
        )
    if estimator.weights not in ("uniform", "distance"):
        raise SearchError(
            f"{name} has weights={estimator.weights!r}, which is code; use 'uniform' or 'distance'",
            code="estimator",
        )
    targets = np.asarray(estimator._y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim != 1:
        raise SearchError(f"{name} has several outputs; fit one model for each", code="estimator")
    mean = name == "KNeighborsRegressor"
    labels = _plain(targets if mean else estimator.classes_[targets], name)
    metric = _metric(estimator.effective_metric_, estimator.p, name)
    if metric == "cosine" and estimator.weights == "distance":
        raise SearchError(
            f"{name} weighs by inverse cosine distances, which rounding decides where they are near 0; "
            "fit it with weights='uniform', or with Euclidean distances of vectors of norm 1",
            code="estimator",
        )
    return vectors, Vote(estimator.n_neighbors, estimator.weights, labels, mean), metric


def _fitted(estimator: Any, attribute: str, name: str) -> Any:
    value = getattr(estimator, attribute, None)
    if value is None:
        raise SearchError(f"this {name} is not fitted; call fit first", code="estimator")
    return value


def _metric(metric: object, p: float, name: str) -> Metric:
    if metric == "euclidean" or (metric in ("minkowski", "l2") and p == 2):
        return "euclidean"
    if metric == "cosine":
        return "cosine"
    given, way = f"metric={metric!r}", "one of them"
    if p != 2 and metric in ("chebyshev", "manhattan", "minkowski"):  # as which p is known
        given, way = f"p={p:g}", "p=2 or metric='cosine'"
    raise SearchError(
        f"{name} has {given}, and search has euclidean and cosine; fit it with {way}", code="estimator"
    )


def _plain(labels: Any, name: str) -> list[Label]:
    """Return labels as numbers and strings of JSON."""
    plain = np.asarray(labels).tolist()
    if not all(isinstance(label, int | float | str) and not isinstance(label, bool) for label in plain):
        raise SearchError(
            f"{name} has labels that are neither numbers nor strings; encode them first", code="estimator"
        )
    return list(plain)
