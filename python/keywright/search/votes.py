"""Nearest neighbours and clusters of scikit-learn: the server has an index, and the client votes."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._reading.documents import Limits
from keywright._reading.records import number, read_object, refusing, whole
from keywright._reading.sealed import require_whole, with_digest
from keywright._units import quantity
from keywright.errors import FormatError, ParameterError, SearchError
from keywright.errors.choices import require_choice

from .client import Query, nearest
from .index import Index
from .quantisation import Metric, Quantisation, as_vectors, largest_levels, norms_of

FORMAT = "keywright-search-vote-3"
LIMITS = Limits(64 << 20, 1 << 22)

Weights = Literal["uniform", "distance"]
Label = int | float | str

QUERIES = 64
"""Points at which an estimator is compared with the vote of its vectors."""

COMPARED, PRODUCTS = 512, 1 << 24
"""Most samples whose predictions by exact and by rounded vectors are compared, and most distances for it."""

FEWEST = 32
"""Samples that are compared whatever the number of distances."""

UNLIKE = 0.1
"""Averages that differ by more than this share of the spread of most targets are not equal."""

LEAST_AGREEMENT, DEFAULT_ACCURACY = 0.99, 0.9
"""Of fewer equal predictions is warned; fewer than `accuracy` are refused."""

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
        agreement: share of samples whose predictions equal those of the model, as `from_estimator` measured
            it; None if it was not measured.
    """

    k: int
    weights: Weights
    labels: Sequence[Label]
    mean: bool = False
    agreement: float | None = None

    def __post_init__(self) -> None:
        require_choice("weights", self.weights, get_args(Weights))

    def predict(self, query: Query, answer: bytes) -> Label:
        """Return the prediction of the nearest rounded vectors, from the answer of their index: for a share
        `agreement` of queries like those that were compared, the model's own.

        Raises:
            FormatError, MismatchError: as for `Query.top`; FormatError: an id has no label.
        """
        ids, scores = query.top(answer, self.k)
        return self.decide(ids.tolist(), scores if query.metric == "euclidean" else 1 - scores)

    def nearest(self, distances: NDArray[np.float64]) -> Label:
        """Return the prediction from the distances of all vectors, of which equal ones keep their order."""
        ids = nearest(distances, self.k)
        return self.decide(ids.tolist(), distances[ids])

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
            "agreement": self.agreement,
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
            agreement = fields["agreement"]
            if agreement is not None and not 0 <= number(agreement, "agreement") <= 1:
                raise ValueError(f"its agreement is {agreement}, not a share")
            return cls(k, fields["weights"], labels, fields["mean"], agreement)


OTHERS = (
    dict.fromkeys(
        ("RadiusNeighborsClassifier", "RadiusNeighborsRegressor", "RadiusNeighborsTransformer"),
        ("takes all vectors within a radius, of which there may be any number", "fit one of the k nearest"),
    )
    | dict.fromkeys(
        ("KNeighborsTransformer", "NearestNeighbors"),
        ("has no vote of its nearest vectors", "search its vectors by Index.of"),
    )
    | {"BisectingKMeans": ("follows a tree of clusters, not the nearest centre", "fit KMeans")}
)
"""Why models of neighbours are refused that `keywright.compile` refuses, too, and what to do instead."""


def from_estimator(
    estimator: Any,
    *,
    levels: int | None = None,
    radius: float | None = None,
    calibration: ArrayLike | None = None,
    accuracy: float = DEFAULT_ACCURACY,
) -> tuple[Index, Vote]:
    """Make an index and a vote of a fitted model of scikit-learn: `KNeighborsClassifier`,
    `KNeighborsRegressor`, `NearestCentroid`, `KMeans` or `MiniBatchKMeans`.

    Rounding the vectors may change predictions, and so may the order of equal distances. Up to 512 samples
    are predicted by the model and by rounded vectors. Averages are equal if they differ by at most a tenth of
    the targets' spread, half the range of their middle 68 %.

    Args:
        estimator: the fitted model, with Euclidean distances or, for neighbours, cosines.
        levels: as for `Quantisation`; by default as many as answers have room for.
        radius: as for `Index.of`: for distances, the largest distance of a query from the mean of the stored
            vectors. By default, one and a half times that of the vectors and of `calibration`. Centres of
            clusters are closer together than the data, so `KMeans` and `NearestCentroid` need one of both.
        calibration: samples like those of clients, (count, dimension), not those of the fit. By default the
            model's own samples, with their own votes and without, or points between centres.
        accuracy: least share of equal predictions.

    Returns:
        The server's index, with ids from 0 on, and the client's vote, with the share of equal predictions.

    Raises:
        SearchError: the model is of another kind, is not fitted, or has another metric or its own weights, or
            rounding changes more predictions than `accuracy` allows.
        SearchError, ParameterError: as for `Index.of`; SearchError: there is no sample in `calibration`;
            ParameterError: `accuracy` is no share.

    Warns:
        UserWarning: rounding changes more than one in a hundred predictions.
    """
    if not 0 <= accuracy <= 1:
        raise ParameterError(
            f"accuracy={accuracy} is not a share of predictions from 0 to 1", what="accuracy", value=accuracy
        )
    name = type(estimator).__name__
    vectors, vote, metric = _read(estimator, name)
    samples, own = _samples(vectors, calibration, centres=not hasattr(estimator, "_fit_X"))
    most, reach, own_reach = largest_levels(vectors.shape[1], metric), 0.0, 0.0
    if metric == "euclidean" and samples.shape[1:] == vectors.shape[1:]:
        distances = norms_of(np.concatenate([vectors, samples]) - vectors.mean(axis=0))
        reach, own_reach = float(distances.max()), float(distances[: len(vectors)].max())
        # What is left of equal vectors is rounding.
        if radius is None and reach <= 1e-9 * float(norms_of(vectors).max()):
            raise ParameterError(
                "all stored vectors are equal, so they give no radius; pass calibration= or radius=",
                what="radius",
                value=reach,
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # predictions are judged instead of neighbours
        index = Index.of(
            vectors,
            metric=metric,
            levels=most if levels is None else levels,
            radius=1.5 * reach if radius is None and metric == "euclidean" else radius,
        )
    _require_same(estimator, vectors, vote, metric)
    agreement = _agreement(estimator, index.quantisation, vectors, vote, samples, own)
    _judge(name, agreement, index.quantisation, accuracy, most, (reach, own_reach))
    return index, replace(vote, agreement=agreement.share)


def _read(estimator: Any, name: str) -> tuple[NDArray[np.float64], Vote, Metric]:
    """Return the vectors of an estimator, what decides of them, and their metric."""
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
    elif name in ("KMeans", "MiniBatchKMeans"):
        vectors, metric = _fitted(estimator, "cluster_centers_", name), "euclidean"
        vote = Vote(1, "uniform", list(range(len(vectors))))
    else:
        why, way = OTHERS.get(name, ("is not a model of neighbours or clusters", ""))
        way = way or "compile it with keywright.compile"
        raise SearchError(f"{name} {why}; {way}", code="estimator")
    return np.asarray(vectors, np.float64), vote, metric


def _samples(
    vectors: NDArray[np.float64], calibration: ArrayLike | None, *, centres: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Return samples to compare, (count, dimension), and which stored vectors they are, if they are."""
    rng = np.random.default_rng(0)
    count = int(np.clip(PRODUCTS // len(vectors), FEWEST, COMPARED))
    if calibration is not None:
        given = as_vectors(calibration).astype(np.float64)
        if given.ndim != 2:
            raise SearchError(
                f"calibration has the shape {given.shape}, not (count, dimension)", code="shape"
            )
        if not np.isfinite(given).all():
            raise SearchError("calibration has numbers that are not finite; impute them", code="number")
        if not given.size:
            raise SearchError("calibration has no samples; pass some, or leave it out", code="shape")
        return given[:: max(1, -(-len(given) // count))], None
    if centres:
        return _between(vectors, rng, count, (0.0, 1.0)), None
    chosen = rng.permutation(len(vectors))[:count]
    return vectors[chosen], chosen


def _between(
    vectors: NDArray[np.float64], rng: np.random.Generator, count: int, shares: tuple[float, float]
) -> NDArray[np.float64]:
    """Return points between two vectors each."""
    first, second = rng.integers(0, len(vectors), (2, count))
    share = rng.uniform(*shares, (count, 1))
    points: NDArray[np.float64] = vectors[first] * (1 - share) + vectors[second] * share
    return points


@dataclass(frozen=True)
class _Agreement:
    """Shares of samples with equal predictions.

    Attributes:
        rounded: by rounded vectors and by the model.
        ordered: by exact vectors, of which equal distances have the order of an index, and by the model.
        alone: by rounded and by exact vectors, of stored samples without their own votes; 1 for others.
    """

    rounded: float
    ordered: float
    alone: float

    @property
    def share(self) -> float:
        return min(self.rounded, self.alone)


def _agreement(
    estimator: Any,
    quantisation: Quantisation,
    vectors: NDArray[np.float64],
    vote: Vote,
    samples: NDArray[np.float64],
    own: NDArray[np.int64] | None,
) -> _Agreement:
    """Compare predictions of samples, which are the stored vectors `own`, if they are.

    Raises:
        SearchError: a sample has another length, or is beyond the radius, as for `Client.query`.
    """
    queries, factors = zip(*(quantisation.query(sample) for sample in samples), strict=True)
    integers = np.empty((len(samples), len(vectors)), np.int64)
    start = 0
    for rows, addends in quantisation.vectors(vectors):
        # Products are below 2^53.
        products = np.asarray(queries, np.float64) @ rows.T.astype(np.float64)
        integers[:, start : start + len(rows)] = products.astype(np.int64) + (addends if len(addends) else 0)
        start += len(rows)
    unlike = 0.0
    if vote.mean:
        targets = np.asarray(vote.labels, np.float64)
        low, high = np.percentile(targets, (16, 84))
        unlike = UNLIKE * float(high - low) / 2 + float(np.finfo(np.float32).eps * np.abs(targets).max())

    def same(one: Any, other: Any) -> bool:
        return bool(abs(one - other) <= unlike) if vote.mean else bool(one == other)

    others = replace(vote, k=min(vote.k, len(vectors) - 1))
    equal = np.ones((len(samples), 3))
    for i, (sample, prediction) in enumerate(zip(samples, _predicted(estimator, samples), strict=True)):
        exact = _distances(vectors, sample, quantisation.metric)
        scores = quantisation.scores(integers[i], factors[i])
        rounded = scores if quantisation.metric == "euclidean" else 1 - scores
        equal[i, :2] = [same(vote.nearest(distances), prediction) for distances in (rounded, exact)]
        if own is not None and others.k:
            exact[own[i]] = rounded[own[i]] = np.inf
            equal[i, 2] = same(others.nearest(rounded), others.nearest(exact))
    return _Agreement(*equal.mean(axis=0).tolist())


def _predicted(estimator: Any, samples: NDArray[np.float64]) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # arrays have no names of features
        return np.asarray(estimator.predict(samples)).ravel()


def _judge(
    name: str,
    agreement: _Agreement,
    quantisation: Quantisation,
    accuracy: float,
    most: int,
    reaches: tuple[float, float],
) -> None:
    """Refuse or warn of an index that changes predictions.

    Args:
        most: levels of such an index.
        reaches: the largest distance from the mean of the stored vectors, of these and the samples together,
            and of these alone.
    """
    if agreement.share >= max(accuracy, LEAST_AGREEMENT):
        return
    cause = f"rounding to {quantity(quantisation.levels, 'level')}"
    way = "scale or transform its features before the fit, so that no feature or sample outweighs the others"
    if agreement.ordered <= agreement.share:
        cause = "the order of equal distances"
        way = (
            "leave repeated samples out, or fit it with algorithm='brute', which orders them as an index does"
        )
    elif quantisation.metric == "cosine":
        way = "fit it with Euclidean distances on vectors of norm 1, which have the same neighbours"
    elif quantisation.radius > 2 * reaches[0]:
        way = f"pass radius={1.5 * reaches[0]:.3g}"
    elif name.startswith("KNeighbors") and reaches[0] > 3 * reaches[1]:
        way = f"leave out calibration samples that are {reaches[0]:.3g} from the mean of the stored vectors"
    if agreement.ordered > agreement.share and quantisation.levels < most:
        way += f", or pass up to levels={most}"
    text = f"{cause} changes {1 - agreement.share:.1%} of the predictions of {name}"
    if agreement.share < accuracy:
        raise SearchError(
            f"{text}, and accuracy={accuracy:g} allows {1 - accuracy:.1%}; {way}", code="estimator"
        )
    warnings.warn(f"{text}; {way}", stacklevel=3)


def _distances(
    vectors: NDArray[np.float64], query: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    distances: NDArray[np.float64]
    if metric == "euclidean":
        distances = np.linalg.norm(vectors - query, axis=1)
    else:
        norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
        distances = 1 - vectors @ query / np.where(norms > 0, norms, 1.0)
    return distances


def _require_same(estimator: Any, vectors: NDArray[np.float64], vote: Vote, metric: Metric) -> None:
    """Refuse an estimator that predicts by something else than its nearest vectors, such as weighted
    features, priors, or a tree of clusters. Asked are points between its vectors that no rounding decides.

    Raises:
        SearchError: a prediction differs.
    """
    rng = np.random.default_rng(0)
    queries = _between(vectors, rng, QUERIES, (0.1, 0.45))
    beside = rng.normal(size=queries.shape) * vectors.std(axis=0)
    queries += rng.integers(0, 2, (QUERIES, 1)) * beside
    expected = _predicted(estimator, queries)
    size = float(np.abs(vectors).max(initial=1.0))
    for query, prediction in zip(queries, expected, strict=True):
        distances = _distances(vectors, query, metric)
        order = np.argsort(distances, kind="stable")
        ids, closest = order[: vote.k].tolist(), distances[order[: vote.k + 1]]
        least = DECIDED * (size if metric == "euclidean" else 1.0)
        if (vote.k < len(vectors) and closest[vote.k] - closest[vote.k - 1] < least) or closest[0] < least:
            continue
        own = {vote.decide(ids, closest[: vote.k] * factor) for factor in (1.0, 1 - DECIDED, 1 + DECIDED)}
        nudged = closest[: vote.k] * (1 + DECIDED * rng.choice([-1, 1], vote.k))
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
