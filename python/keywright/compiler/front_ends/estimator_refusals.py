"""Refusals of scikit-learn's estimators: the estimator, the true reason, and the nearest one that has an
encrypted form."""

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from keywright.errors.network import ModelRefusedError, RefusalError

OF_THE_GRAPH = frozenset(["attribute", "batch", "dynamic_shape", "mask", "model", "operator"])
"""Codes of reasons against parts of an ONNX model, which the user of an estimator has not written."""

UNWRITTEN = "skl2onnx, by which estimators are read, has no form for it"
FAILED = "skl2onnx, by which estimators are read, cannot write it with these fitted values"
NEAREST = "it looks for the training samples nearest to a sample, and encrypted distances have no order"
UNCOMPUTED = "its prediction has steps that cannot be computed of encrypted values"
OF_CLIENTS = "it is no more than clients compute before they encrypt, or than they cannot"
IN_PIPELINES = (
    "skl2onnx, by which estimators are read, has no form for it as the last step inside another estimator",
    "put the steps before it in front: make_pipeline(StandardScaler(), OneVsRestClassifier(LinearSVC()))",
)
OTHER_SAMPLES = "it takes other samples than tables of columns"
LOOP = "it compares an encrypted sample with each training sample in a loop"
SOLVED = "its transform solves an optimisation problem for each sample"
CLUSTERED = "fit KMeans with as many clusters, or a classifier on the labels that it gives"
REDUCED = "fit PCA, TruncatedSVD or GaussianRandomProjection"
KERNEL = "fit an SVC or SVR with such a kernel, or PolynomialFeatures before a linear estimator"
BEFORE = (
    "run the pipeline up to and with it before the client, and compile the steps behind it for its output: "
    "kw.compile(pipeline[k:], calibration=...)"
)
PARTS = "it consists of several estimators, which are computed together only where each is linear"
ONE = "use linear parts such as LogisticRegression and Ridge, or a single estimator such as a forest"
UNFITTED = "it is not fitted", "fit it before"
ONE_CLASS = (
    "it was fitted to samples of one class, so that its answers do not depend on the sample",
    "fit it to two classes at least",
)
FAMILIES = {
    "linear_model": "a linear model",
    "neural_network": "an MLP",
    "svm": "an SVM",
    "ensemble": "trees",
    "tree": "trees",
}
"""What to fit instead of an estimator of another module of scikit-learn."""

FORMS: dict[str, tuple[str, str]] = {
    name: (why, instead)
    for names, why, instead in [
        (
            "KNeighborsClassifier KNeighborsRegressor",
            NEAREST,
            "search its samples by keywright.search.from_estimator, or fit an MLP, an SVC or an SVR",
        ),
        (
            "KNeighborsTransformer NearestNeighbors",
            NEAREST,
            "search its samples by keywright.search.Index.of",
        ),
        (
            "RadiusNeighborsClassifier RadiusNeighborsRegressor RadiusNeighborsTransformer",
            "it looks for all training samples within a radius, of which there may be any number",
            "fit a KNeighborsClassifier or KNeighborsRegressor for keywright.search, or an MLP",
        ),
        ("LabelPropagation LabelSpreading", LOOP, "fit an MLP or an SVC on the labels in transduction_"),
        (
            "KNNImputer",
            "clients fill gaps, and would get all samples that it was fitted to",
            f"use a SimpleImputer, or {BEFORE}",
        ),
        ("LocalOutlierFactor", NEAREST, "fit an IsolationForest or a OneClassSVM"),
        ("Isomap LocallyLinearEmbedding", NEAREST, "fit PCA"),
        ("KernelPCA", LOOP, "choose kernel='linear', 'poly' or 'sigmoid', or fit PCA"),
        ("KernelDensity", UNWRITTEN, "fit a GaussianMixture"),
        ("EllipticEnvelope", UNWRITTEN, "fit a GaussianMixture, an IsolationForest or a OneClassSVM"),
        ("NearestCentroid", UNWRITTEN, "fit a LinearDiscriminantAnalysis"),
        (
            "GaussianProcessClassifier GaussianProcessRegressor",
            LOOP,
            "fit an SVC or SVR, whose kernels have an encrypted form, or an MLP",
        ),
        (
            "QuadraticDiscriminantAnalysis",
            "skl2onnx writes it so that the answer to a sample depends on the others",
            "fit a LinearDiscriminantAnalysis, a GaussianNB or a GaussianMixture",
        ),
        ("AffinityPropagation Birch BisectingKMeans MeanShift", UNWRITTEN, CLUSTERED),
        (
            (
                "DictionaryLearning LatentDirichletAllocation MiniBatchDictionaryLearning MiniBatchNMF NMF "
                "MiniBatchSparsePCA SparsePCA SparseCoder"
            ),
            SOLVED,
            REDUCED,
        ),
        (
            "BernoulliRBM FactorAnalysis FastICA FeatureAgglomeration SparseRandomProjection",
            UNWRITTEN,
            REDUCED,
        ),
        (
            (
                "AdditiveChi2Sampler KernelCenterer KernelRidge Nystroem PolynomialCountSketch RBFSampler "
                "SkewedChi2Sampler"
            ),
            UNWRITTEN,
            KERNEL,
        ),
        ("CCA PLSCanonical PLSSVD", UNWRITTEN, "fit a PLSRegression"),
        (
            "DummyClassifier DummyRegressor",
            "its answers do not depend on the sample",
            "use them without encryption, or fit a LogisticRegression or LinearRegression",
        ),
        (
            (
                "CountVectorizer DictVectorizer FeatureHasher HashingVectorizer LabelBinarizer LabelEncoder "
                "MultiLabelBinarizer PatchExtractor TfidfVectorizer"
            ),
            OTHER_SAMPLES,
            BEFORE,
        ),
        ("QuantileTransformer", UNWRITTEN, BEFORE),
        ("SplineTransformer", UNWRITTEN, f"use a PolynomialFeatures or KBinsDiscretizer, or {BEFORE}"),
        ("RandomTreesEmbedding", "its output is the leaves of trees", "fit a RandomForest or ExtraTrees"),
        (
            "ClassifierChain RegressorChain",
            "each of its estimators reads the answers of those before",
            "fit a MultiOutputClassifier or MultiOutputRegressor of linear estimators",
        ),
        (
            "IsotonicRegression",
            "its pieces are of one number, and clients would compute all of them",
            "use it without encryption, or calibrate a classifier by it (CalibratedClassifierCV)",
        ),
        (
            "TransformedTargetRegressor",
            "its inverse transform is written only behind a linear regressor",
            "compile its regressor_, and apply transformer_.inverse_transform to the answers",
        ),
        ("OutputCodeClassifier", UNWRITTEN, "fit a OneVsRestClassifier of linear estimators"),
        ("SelfTrainingClassifier", UNWRITTEN, "compile its estimator_"),
        (
            (
                "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor "
                "CalibratedClassifierCV MultiOutputClassifier MultiOutputRegressor "
                "OneVsOneClassifier OneVsRestClassifier StackingClassifier StackingRegressor "
                "VotingClassifier VotingRegressor"
            ),
            PARTS,
            ONE,
        ),
    ]
    for name in names.split()
}
"""Why an estimator is refused, and what to use instead, by its class."""

OF_NEW = ("predict", "transform", "decision_function", "score_samples")
NOT_OF_NEW = {"cluster": CLUSTERED, "manifold": "fit PCA, or an MLPRegressor on embedding_"}
"""What to use instead of estimators that have none of these methods, by their module."""


def not_written(model: Any, error: Exception) -> ModelRefusedError:
    """Return the refusal of an estimator that its exporter cannot write, with the exporter's reason if the
    estimator is fitted and not known to have no form."""
    if _is_unfitted(model):
        return ModelRefusedError([_refusal(model, "", model, *UNFITTED)])
    text = " ".join(str(error).split()) or type(error).__name__
    parts = list(_parts(model, ""))
    named = [each for each in parts if f"{type(each[1]).__name__}'" in text]
    part = named[-1] if named else _guilty(parts)
    why, instead = _form(part[1])
    if "Option 'zipmap' not in" in text:  # which it asks of every classifier there
        why, instead = IN_PIPELINES
    elif why in ("", UNWRITTEN) and _parameter(part[1]) is None:
        short = f"skl2onnx cannot write it: {text[:300].rstrip('.')}{'...' if len(text) > 300 else ''}"
        why = UNWRITTEN if "Unable to find a" in text else FAILED if "node" in text else short
    return ModelRefusedError([_refusal(model, *part, why, instead)])


def differing(model: Any, text: str, exporter: str = "") -> ModelRefusedError:
    """Return the refusal of an estimator that is exported as another function.

    Args:
        text: the difference.
        exporter: that wrote it; empty for this package.
    """
    _, instead = _form(_guilty(list(_parts(model, "")))[1])
    writes = f"{exporter}, by which estimators are read," if exporter else "the form in which it is read"
    why = f"{writes} {'writes' if exporter else 'is'} another function: {text}"
    return ModelRefusedError([_refusal(model, "", model, why, instead)])


def not_computed(model: Any, exporter: str) -> ModelRefusedError:
    """Return the refusal of an estimator whose exported form cannot be computed.

    Args:
        exporter: that wrote it; empty for this package.
    """
    part = _guilty(list(_parts(model, "")))
    why, instead = _form(part[1])
    why = why or (FAILED if exporter else "the form in which it is read cannot be computed")
    return ModelRefusedError([_refusal(model, *part, why, instead)])


def not_taken(model: Any, error: Exception) -> ModelRefusedError:
    """Return the refusal of an estimator that does not predict the calibration data, with its reason."""
    if _is_unfitted(model):
        return ModelRefusedError([_refusal(model, "", model, *UNFITTED)])
    why = f"its own {'predict' if hasattr(model, 'predict') else 'transform'} refuses the calibration data: "
    text = " ".join(str(error).split())[:300].rstrip(".")
    return ModelRefusedError(
        [_refusal(model, "", model, f"{why}{text}", "use calibration data that it takes (calibration=)")]
    )


def require_classes(model: Any) -> None:
    """Refuse a classifier that was fitted to one class.

    Raises:
        ModelRefusedError: names it.
    """
    for path, part in _parts(model, ""):
        classes = getattr(part, "classes_", None)
        if isinstance(classes, np.ndarray) and len(classes) == 1:
            raise ModelRefusedError([_refusal(model, path, part, *ONE_CLASS)])


def require_table(model: Any, shape: Sequence[int]) -> None:
    """Refuse an estimator whose samples are not rows of a table, for samples of such a shape.

    Raises:
        ModelRefusedError: it has a part that takes texts or mappings.
    """
    if len(shape) != 1:
        return
    for part in _parts(model, ""):
        why, instead = FORMS.get(type(part[1]).__name__, ("", ""))
        if why == OTHER_SAMPLES:
            raise ModelRefusedError([_refusal(model, *part, why, instead)])


@contextmanager
def in_its_words(model: object) -> Iterator[None]:
    """Replace reasons against the ONNX model of an estimator by reasons against the estimator. Those against
    other models stay as they are. An estimator before its fit lacks attributes."""
    try:
        yield
    except AttributeError as error:
        if not _is_unfitted(model):
            raise
        raise ModelRefusedError([_refusal(model, "", model, *UNFITTED)]) from error
    except ModelRefusedError as refusal:
        foreign = [each for each in refusal.reasons if _of_the_graph(each)]
        if not foreign or not _is_estimator(model):
            raise
        part = _guilty(list(_parts(model, "")))
        why, instead = _form(part[1])
        if not why and foreign[0].code == "model" and hasattr(model, "predict"):
            why = str(foreign[0])
        why = why or (UNCOMPUTED if hasattr(model, "predict") else OF_CLIENTS)
        others = [each for each in refusal.reasons if each not in foreign]
        raise ModelRefusedError([_refusal(model, *part, why, instead), *others]) from refusal


def _is_estimator(model: object) -> bool:
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(model, base.BaseEstimator)


def _is_unfitted(model: object) -> bool:
    if not _is_estimator(model):
        return False
    try:
        import_module("sklearn.utils.validation").check_is_fitted(model)
    except AttributeError:
        return True
    return False


def _of_the_graph(reason: RefusalError) -> bool:
    """Whether a reason is against a part of an ONNX model, and not against a parameter of an estimator."""
    return reason.code in OF_THE_GRAPH and reason.details.get("node") != ""


def _refusal(model: Any, path: str, part: Any, why: str, instead: str) -> RefusalError:
    kind = type(part).__qualname__
    steps = [type(step).__qualname__ for _, step in getattr(part, "steps", [])]
    where = f"{kind} of {', '.join(steps)}" if steps else kind
    if part is not model:
        where = f"{path} of {type(model).__qualname__}, {kind},"
    return RefusalError(
        f"{where} cannot be compiled: {why}; {instead}", code="export", model=type(model).__qualname__
    )


def _form(part: Any) -> tuple[str, str]:
    """Return why a part is refused, if that is known, and what to use instead."""
    known = _parameter(part) or FORMS.get(type(part).__name__)
    if known is None and not any(hasattr(part, name) for name in OF_NEW):
        instead = NOT_OF_NEW.get(_family(part)) or _others(part)
        return f"it has no {', '.join(OF_NEW[:-1])} or {OF_NEW[-1]} for new samples", instead
    return known or ("", _others(part) if hasattr(part, "predict") else BEFORE)


def _family(part: Any) -> str:
    """Return the module of scikit-learn that an estimator, or the last step of a pipeline, is of."""
    last = part.steps[-1][1] if getattr(part, "steps", None) else part
    return "".join(type(last).__module__.split(".")[1:2])


def _others(part: Any) -> str:
    """Return what to fit instead of an estimator, but for what it is."""
    *kinds, last = [each for each in dict.fromkeys(FAMILIES.values()) if each != FAMILIES.get(_family(part))]
    return f"fit {', '.join(kinds)} or {last}, or write its prediction as an ONNX model"


def _parameter(part: Any) -> tuple[str, str] | None:
    """Return why a parameter of a part is refused, and what to choose instead."""
    kernel = getattr(part, "kernel", None)
    if getattr(part, "norm", None) == "max":
        return "its norm='max' compares encrypted values", "use norm='l2' or norm='l1'"
    if getattr(part, "out_activation_", None) == "exp":
        return (
            "its loss='poisson' ends in an exponential, which skl2onnx does not write",
            "fit it with loss='squared_error' to the logarithm of the target",
        )
    binarizer = getattr(part, "_label_binarizer", None)
    if getattr(binarizer, "y_type_", "") == "multilabel-indicator" and len(part.classes_) == 2:
        return "skl2onnx writes its two labels as two classes of one", "fit one estimator for each label"
    if kernel == "precomputed" or inspect.isfunction(kernel):
        shown = getattr(kernel, "__name__", repr(kernel))
        return (
            f"its kernel={shown} is computed outside of it",
            "use kernel='linear', 'poly' or 'rbf'",
        )
    return None


def _guilty(parts: Sequence[tuple[str, Any]]) -> tuple[str, Any]:
    """Return the first part of an estimator that is known to have no form; the estimator if there is none."""
    known = [each for each in parts if type(each[1]).__name__ in FORMS or _parameter(each[1])]
    alone = [each for each in known if _form(each[1])[0] != PARTS]
    return (alone or known or parts)[0]


def _parts(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield an estimator and all that it consists of, with their places."""
    yield path, part
    named = [*getattr(part, "steps", []), *getattr(part, "transformer_list", [])]
    for name, step, *_ in [*named, *getattr(part, "transformers_", [])]:
        if not isinstance(step, str):
            yield from _parts(step, f"{path}{' of ' if path else ''}step {name!r}")
    members = list(np.asarray(getattr(part, "estimators_", []), object).ravel())
    members += [getattr(part, name) for name in ("final_estimator_", "regressor_") if hasattr(part, name)]
    for each in members:
        yield from _parts(each, path or "a part")
