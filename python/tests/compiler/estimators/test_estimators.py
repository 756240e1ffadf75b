"""Every estimator of scikit-learn compiles, or is refused by name, with the reason and a way out."""

import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.approximating import approximate
from keywright.compiler.front_ends.estimator_refusals import FAILED, FORMS, OF_NEW, PARTS, in_its_words
from keywright.compiler.front_ends.model_source import to_source
from keywright.errors import ModelRefusedError
from sklearn.decomposition import NMF
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import all_estimators
from sklearn.utils._test_common.instance_generator import _construct_instances

CLASSES = dict(all_estimators())
OTHER_SAMPLES = {
    *("CountVectorizer", "DictVectorizer", "FrozenEstimator", "KernelCenterer", "LabelBinarizer"),
    *("LabelEncoder", "MultiLabelBinarizer", "SparseCoder", "TfidfVectorizer"),
}
"""Estimators that are not fitted to a table of numbers."""

OF_LABELS = {"NeighborhoodComponentsAnalysis", "SequentialFeatureSelector"}
"""Transformers that are fitted to labels."""

OPERATORS = {schema.name for schema in onnx.defs.get_all_schemas()} - CLASSES.keys()
WAYS_OUT = re.compile(r"; (fit|use|compile|search|run) ")
RNG = np.random.default_rng(0)
SAMPLES = RNG.uniform(0.2, 1.2, (24, 4))
SCORES = SAMPLES @ [1.0, -1.0, 0.5, 0.2]


def refusal_of(model: Any, samples: Any = SAMPLES) -> str | None:
    """The text by which an estimator is refused; None if it can be approximated."""
    try:
        with in_its_words(model), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            approximate(to_source(model, samples), compiler.Fit(calibration=samples, error=1e9))
    except ModelRefusedError as refusal:
        (text,) = map(str, refusal.exceptions)
        return text
    return None


def require_words(text: str, name: str) -> None:
    assert name in text
    assert WAYS_OUT.search(text), text
    assert not OPERATORS & set(re.findall(r"[A-Za-z]+", text)), text
    assert "node" not in text


@pytest.mark.parametrize(
    "name",
    [
        name
        if FORMS.get(name, (PARTS,))[0] != PARTS or not any(hasattr(kind, method) for method in OF_NEW)
        else pytest.param(name, marks=pytest.mark.full)
        for name, kind in CLASSES.items()
        if name not in OTHER_SAMPLES
    ],
)
def test_an_estimator_compiles_or_is_refused_in_its_own_words(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = next(iter(_construct_instances(CLASSES[name])))
    tags = model.__sklearn_tags__()
    labels = (np.argsort(SCORES) % 2).astype(int)
    target = labels if tags.estimator_type == "classifier" or name in OF_LABELS else SCORES + 2
    if tags.target_tags.multi_output and not tags.target_tags.single_output:
        target = np.stack([target, target[::-1]], axis=1)
    samples = SAMPLES[:, 0] if name == "IsotonicRegression" else SAMPLES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(samples, target)
    text = refusal_of(model)
    if text is not None:
        require_words(text, name)


LABELS = (SCORES > 0.3).astype(int)
HIDDEN = {
    "KNeighborsClassifier": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "GaussianProcessRegressor": GaussianProcessRegressor(optimizer=None),
    "KNNImputer": make_pipeline(KNNImputer(), LogisticRegression()),
    "SVR": SVR(epsilon=9.0),
    "NMF": make_pipeline(NMF(2, max_iter=9, tol=1.0), Ridge()),
    "StackingClassifier": StackingClassifier([("a", RandomForestClassifier(2)), ("b", SVC())], cv=2),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_the_part_that_has_no_form_is_named(name: str) -> None:
    text = refusal_of(
        HIDDEN[name].fit(SAMPLES, SCORES if name[-1] == "R" or name.endswith("Regressor") else LABELS)
    )
    assert text is not None
    require_words(text, name)
    assert FORMS.get(name, (FAILED,))[0] in text


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), RandomForestClassifier(), make_pipeline(SimpleImputer(), Ridge()), SVC()],
    ids=lambda model: type(model).__name__,
)
def test_an_estimator_before_its_fit_is_refused(model: Any) -> None:
    text = refusal_of(model)
    assert text is not None
    require_words(text, type(model).__name__)
    assert "is not fitted" in text


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (SVC(kernel=lambda a, b: a @ b.T), "kernel=<lambda>"),
        (SVR(kernel="precomputed"), "kernel='precomputed'"),
        (make_pipeline(Normalizer("max"), Ridge()), "norm='max'"),
    ],
    ids=["callable", "precomputed", "largest"],
)
def test_a_parameter_without_a_form_is_named(model: Any, parameter: str) -> None:
    samples = SAMPLES @ SAMPLES.T if parameter.endswith("'precomputed'") else SAMPLES
    text = refusal_of(model.fit(samples, LABELS), samples)
    assert text is not None
    assert parameter in text


def test_estimators_of_the_table_exist() -> None:
    assert set(FORMS) <= set(CLASSES)
