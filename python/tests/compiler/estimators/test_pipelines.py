"""Pipelines of scikit-learn that begin with imputers and encoders: transformers times estimators, against
scikit-learn's own predictions; and estimators that consist of several linear ones."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import EncodeError, ModelRefusedError
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import numpy_helper
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from tests.matrices import cells

RNG = np.random.default_rng(21)
SORTED = np.sort(np.random.default_rng(22).normal(size=(400, 3)), axis=0)
"""Samples whose first rows say nothing of the others."""


def clipping() -> Any:
    return make_pipeline(MaxAbsScaler(clip=True), Ridge()).fit(SORTED, SORTED[:, 0] ** 3)


def weighted() -> Any:
    parts = [("a", SimpleImputer(), [0]), ("b", "passthrough", [1])]
    columns = ColumnTransformer(parts, transformer_weights={"b": 3})
    return make_pipeline(columns, Ridge()).fit(SORTED, SORTED[:, 0])


@pytest.mark.parametrize("make", [clipping, weighted])
def test_what_exporters_leave_out_is_refused_wherever_it_shows(make: Callable[[], Any]) -> None:
    """Neither the first rows of sorted data nor any of them show it."""
    with pytest.raises(ModelRefusedError):
        kw.compile(make(), SORTED)


COUNT = 120
TARGET = compiler.Target(slots=1024, levels=40)
NUMBERS = RNG.normal(size=(COUNT, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
GAPS = np.where(RNG.random(NUMBERS.shape) < 0.15, np.nan, NUMBERS)
CODES = RNG.integers(0, 4, (COUNT, 2)) * 2.5
CITIES = np.asarray(["Rome", "Oslo", "Lima", "Bonn"], object)[RNG.integers(0, 4, COUNT)]
SIZES = np.asarray(["S", "M", "L"], object)[RNG.integers(0, 3, COUNT)]
TEXTS = np.stack((CITIES, SIZES), axis=1)
HOLES = TEXTS.copy()
HOLES[RNG.random(TEXTS.shape) < 0.1] = None
MIXED = np.concatenate((NUMBERS.astype(object), TEXTS), axis=1)
CUT = np.concatenate((GAPS.astype(object), HOLES), axis=1)
LABELS = np.where(NUMBERS[:, 0] + (CITIES == "Oslo") + CODES[:, 0] / 5 > 1, "yes", "no")
VALUES = NUMBERS[:, 1] + 2 * (SIZES == "M")
PLACES = {"numbers": [0, 1, 2], "texts": [3, 4]}


def table(numbers: Any, texts: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [(name, step, PLACES[name]) for name, step in (("numbers", numbers), ("texts", texts))]
    )


Case = tuple[Callable[[], Any], Any]
TRANSFORMERS: dict[str, Case] = {
    "SimpleImputer": (SimpleImputer, GAPS),
    "SimpleImputer, median and indicator": (
        lambda: SimpleImputer(strategy="median", add_indicator=True),
        GAPS,
    ),
    "SimpleImputer of a number": (lambda: SimpleImputer(missing_values=2.5, strategy="mean"), CODES),
    "imputer and scaler": (lambda: make_pipeline(SimpleImputer(), StandardScaler()), GAPS),
    "scaler and imputer": (lambda: make_pipeline(StandardScaler(), SimpleImputer()), GAPS),
    "imputer, scalers and PCA": (
        lambda: make_pipeline(SimpleImputer(), RobustScaler(), MaxAbsScaler(), PCA(2, whiten=True)),
        GAPS,
    ),
    "MissingIndicator": (lambda: make_union(SimpleImputer(), MissingIndicator()), GAPS),
    "OneHotEncoder of numbers": (OneHotEncoder, CODES),
    "OneHotEncoder, drop": (lambda: OneHotEncoder(drop="first"), TEXTS),
    "OneHotEncoder, infrequent": (
        lambda: OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
        TEXTS,
    ),
    "OneHotEncoder of texts": (lambda: OneHotEncoder(handle_unknown="ignore"), TEXTS),
    "OrdinalEncoder": (OrdinalEncoder, TEXTS),
    "OrdinalEncoder, unknown": (
        lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TEXTS,
    ),
    "OrdinalEncoder of numbers": (OrdinalEncoder, CODES),
    "TargetEncoder": (lambda: TargetEncoder(random_state=0), TEXTS),
    "KBinsDiscretizer": (lambda: KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), NUMBERS),
    "KBinsDiscretizer, ordinal": (
        lambda: KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        NUMBERS,
    ),
    "KBinsDiscretizer, kmeans": (lambda: KBinsDiscretizer(3, strategy="kmeans", random_state=0), NUMBERS),
    "Binarizer": (lambda: Binarizer(threshold=0.5), NUMBERS),
    "MinMaxScaler, clip, and imputer": (
        lambda: make_pipeline(SimpleImputer(), MinMaxScaler(clip=True)),
        GAPS,
    ),
    "PowerTransformer": (PowerTransformer, NUMBERS),
    "FunctionTransformer": (lambda: FunctionTransformer(np.exp), NUMBERS),
    "PolynomialFeatures": (lambda: make_pipeline(SimpleImputer(), PolynomialFeatures(2)), GAPS),
    "selection": (
        lambda: make_pipeline(SimpleImputer(), VarianceThreshold(0.1), SelectKBest(k=2)),
        GAPS,
    ),
    "table": (lambda: table(StandardScaler(), OneHotEncoder()), MIXED),
    "table with gaps": (
        lambda: table(
            make_pipeline(SimpleImputer(), KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")),
            make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder()),
        ),
        CUT,
    ),
    "table with missing texts": (lambda: table(SimpleImputer(), OneHotEncoder()), CUT),
    "table, rest passes": (
        lambda: ColumnTransformer([("c", OneHotEncoder(), [3, 4])], remainder=SimpleImputer()),
        MIXED,
    ),
    "union of tables": (
        lambda: FeatureUnion(
            [("a", table("drop", OrdinalEncoder())), ("b", table("passthrough", OneHotEncoder()))]
        ),
        MIXED,
    ),
}
ESTIMATORS: dict[str, tuple[Callable[[], Any], Any]] = {
    "LogisticRegression": (lambda: LogisticRegression(max_iter=1000), LABELS),
    "Ridge": (Ridge, VALUES),
    "RandomForestClassifier": (lambda: RandomForestClassifier(5, max_depth=3, random_state=0), LABELS),
    "VotingClassifier": (
        lambda: VotingClassifier([("a", LogisticRegression(max_iter=1000)), ("b", LinearSVC())]),
        LABELS,
    ),
}


def fitted(estimator: Any, samples: Any, expected: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(samples, expected)


def compare(estimator: Any, program: compiler.Program, outputs: NDArray[np.float64], samples: Any) -> None:
    """Compare outputs with scikit-learn's own."""
    expected = estimator.predict(samples)
    answers = program.answers(outputs)
    if not hasattr(estimator, "classes_"):
        answer = next(iter(answers.values())) if answers else outputs
        scale = np.abs(expected).max()
        np.testing.assert_allclose(answer.reshape(expected.shape), expected, atol=2e-3 * max(scale, 1))
        return
    label, *others = answers.values()
    assert np.array_equal(label.ravel(), expected)
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(others[0], estimator.predict_proba(samples), atol=2e-3)


@pytest.mark.parametrize(("name", "last"), cells([*TRANSFORMERS], [*ESTIMATORS]))
def test_transformers_times_estimators(name: str, last: str) -> None:
    make, samples = TRANSFORMERS[name]
    estimator, expected = ESTIMATORS[last]
    pipeline = fitted(make_pipeline(make(), estimator()), samples, expected)
    fit = compiler.Fit(calibration=samples, thresholds="public" if "Forest" in last else "private")
    if "PCA" in name and "Forest" in last:
        with pytest.raises(ModelRefusedError, match="before trees"):
            compiler.compile_program(compiler.to_onnx(pipeline, samples), TARGET, fit)
        return
    program = compiler.compile_program(compiler.to_onnx(pipeline, samples), TARGET, fit)
    few = samples[:25]
    features, _ = program.features(few)
    compare(pipeline, program, run_clear(program, features), few)


def test_weights_behind_the_encoders_stay_with_the_server() -> None:
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2), LogisticRegression())
    fitted(pipeline, GAPS, LABELS)
    program = compiler.compile_program(
        compiler.to_onnx(pipeline, GAPS), TARGET, compiler.Fit(calibration=GAPS)
    )
    assert program.input.steps.first is not None
    assert program.output.client_part is not None
    held = [
        onnx.load_model_from_string(part)
        for part in (program.input.steps.first.data, program.output.client_part.data)
    ]
    numbers = {
        float(value)
        for model in held
        for tensor in model.graph.initializer
        for value in numpy_helper.to_array(tensor).ravel()
        if numpy_helper.to_array(tensor).dtype.kind == "f"
    }
    _, scaler, pca, last = (step for _, step in pipeline.steps)
    secret = [scaler.mean_, scaler.scale_, pca.components_, pca.mean_, last.coef_, last.intercept_]
    assert not numbers & {float(value) for array in secret for value in array.ravel()}
    assert set(pipeline[0].statistics_) <= numbers


def test_a_table_is_an_array_a_mapping_or_a_data_frame(tmp_path: Path) -> None:
    pipeline = fitted(make_pipeline(table(StandardScaler(), OneHotEncoder()), Ridge()), MIXED, VALUES)
    names = ["a", "b", "c", "city", "size"]
    columns = {name: MIXED[:, place] for place, name in enumerate(names)}

    class Frame:
        def __init__(self, columns: dict[str, Any]) -> None:
            self.columns, self._given = list(columns), columns

        def __getitem__(self, name: str) -> Any:
            return self._given[name]

    model = kw.compile(pipeline, calibration=columns)
    shuffled = {name: columns[name][:2] for name in reversed(names)}
    model.save(tmp_path / "model")
    expected = pipeline.predict(MIXED[:2])
    client = kw.load_client(tmp_path / "model")
    for samples in (MIXED[:2], shuffled, Frame(shuffled)):
        features, _ = client.program.features(samples)
        np.testing.assert_allclose(run_clear(client.program, features).ravel(), expected, atol=1e-3)
    outputs = model.predict(shuffled)
    np.testing.assert_allclose(outputs.ravel(), expected, atol=1e-2)
    assert (
        model.predict({name: each[0] for name, each in columns.items()}).shape == model.program.output.shape
    )


@pytest.mark.parametrize("kind", [VotingRegressor, TransformedTargetRegressor, MultiOutputRegressor])
def test_texts_that_parts_of_an_estimator_encode_are_refused(kind: Any) -> None:
    """An encoder in front of the estimator says the same."""
    part = make_pipeline(table(StandardScaler(), OneHotEncoder()), Ridge())
    whole = kind([("a", part)]) if kind is VotingRegressor else kind(part)
    targets = np.stack([VALUES, VALUES], axis=1) if kind is MultiOutputRegressor else VALUES
    name = kind.__name__
    match = rf"{name} gets the column '.*', which holds texts; .*make_pipeline\(encoder, {name}"
    with pytest.raises(ModelRefusedError, match=match):
        compiler.to_onnx(whole.fit(MIXED, targets), MIXED)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"city": "Paris"}, "column 'city' has 'Paris', which is not one of the 4 categories"),
        ({"city": None}, "column 'city' has a missing value, which is not one"),
        ({"city": 7}, "column 'city' takes texts"),
        ({"a": "x"}, "column 'a' takes numbers"),
        ({"a": np.nan}, "no numbers: a value of the samples is missing"),
        ({"a": np.inf}, "not finite"),
    ],
)
def test_bad_rows_are_refused_before_any_key(change: dict[str, Any], text: str) -> None:
    names = ["a", "b", "c", "city", "size"]
    pipeline = fitted(make_pipeline(table(StandardScaler(), OneHotEncoder()), Ridge()), MIXED, VALUES)
    model = kw.compile(pipeline, calibration={name: MIXED[:, place] for place, name in enumerate(names)})
    row = dict(zip(names, MIXED[0], strict=True)) | change
    with pytest.raises(EncodeError, match=text, check=lambda error: error.code == "samples"):
        model.predict(row)
    del row["b"]
    with pytest.raises(
        EncodeError, match="lack the columns 'b'", check=lambda error: error.code == "samples"
    ):
        model.predict(row)


@pytest.mark.parametrize(
    ("step", "samples", "text"),
    [
        (FunctionTransformer(lambda x: x + 1), NUMBERS, "func=<lambda>, which is code of its own"),
        (QuantileTransformer(n_quantiles=10), GAPS, r"\(QuantileTransformer\) has no form for clients"),
    ],
)
def test_a_step_without_a_form_is_named_with_the_way_out(step: Any, samples: Any, text: str) -> None:
    pipeline = fitted(make_pipeline(step, SimpleImputer(), Ridge()), samples, VALUES)
    with pytest.raises(ModelRefusedError, match=text) as caught:
        kw.compile(pipeline, calibration=samples)
    assert "kw.compile(pipeline[k:]" in str(caught.value)


@pytest.mark.parametrize("step", [CountVectorizer(), TfidfVectorizer(), HashingVectorizer(n_features=16)])
def test_texts_are_refused_with_the_way_out(step: Any) -> None:
    texts = [
        " ".join(np.random.default_rng(seed).choice(["red", "blue", "fish", "cat", "moon"], 4))
        for seed in range(40)
    ]
    pipeline = make_pipeline(step, LogisticRegression()).fit(texts, ["red" in text for text in texts])
    trees = make_pipeline(step, RandomForestClassifier(3)).fit(texts, ["red" in text for text in texts])
    for each in (pipeline, trees):
        with pytest.raises(
            ModelRefusedError, match=r"other samples than tables.*kw\.compile\(pipeline\[k:\]"
        ):
            kw.compile(each, calibration=texts)
    vectors = pipeline[:1].transform(texts).toarray()
    model = kw.compile(pipeline[1:], calibration=vectors)
    assert model.answers(model.predict(vectors))["output_label"].tolist() == pipeline.predict(texts).tolist()


@pytest.mark.parametrize(("columns", "step"), [([3, 4], OneHotEncoder()), ([0, 1], SimpleImputer())])
def test_columns_that_a_pipeline_drops(columns: list[int], step: Any) -> None:
    """Texts where only numbers are read, and numbers where only texts are."""
    pipeline = fitted(make_pipeline(ColumnTransformer([("some", step, columns)]), Ridge()), MIXED, VALUES)
    model = kw.compile(pipeline, calibration=MIXED)
    assert np.abs(np.ravel(model.predict(MIXED[:5])) - pipeline.predict(MIXED[:5])).max() < 1e-3
    assert model.predict(MIXED[0]).shape == (1,)


HEADS: dict[str, tuple[Any, Any]] = {
    "votes": (VotingClassifier([("a", LogisticRegression()), ("b", LinearSVC())], weights=[1, 2]), LABELS),
    "weighed probabilities": (
        VotingClassifier(
            [("a", LogisticRegression()), ("b", SGDClassifier(loss="log_loss", random_state=0))],
            voting="soft",
            weights=[1, 3],
        ),
        CITIES,
    ),
    "votes of pipelines": (
        VotingClassifier([("a", make_pipeline(StandardScaler(), LogisticRegression())), ("b", LinearSVC())]),
        SIZES,
    ),
    "mean of values": (VotingRegressor([("a", Ridge()), ("b", Ridge(100.0))]), VALUES),
    "isotonic of two": (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=3), LABELS),
    "isotonic": (CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=3), SIZES),
    "sigmoid": (CalibratedClassifierCV(LogisticRegression(), cv=3), SIZES),
    "temperature": (CalibratedClassifierCV(LogisticRegression(), method="temperature", cv=3), SIZES),
    "temperature of two": (CalibratedClassifierCV(LinearSVC(), method="temperature", cv=3), LABELS),
    "one calibrator": (CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=3), LABELS),
    "boosted": (AdaBoostClassifier(LogisticRegression(), n_estimators=4, random_state=0), SIZES),
    "boosted of two": (AdaBoostClassifier(LogisticRegression(), n_estimators=4, random_state=0), LABELS),
    "stacked values": (
        StackingRegressor([("a", Ridge()), ("b", Ridge(9.0))], Ridge(), passthrough=True),
        VALUES,
    ),
    "stacked scores": (
        StackingClassifier(
            [("a", LinearSVC()), ("b", LogisticRegression())],
            LogisticRegression(),
            stack_method="decision_function",
        ),
        LABELS,
    ),
    "logarithms": (
        TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1, check_inverse=False),
        np.abs(VALUES),
    ),
    "scaled targets": (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), VALUES),
}


@pytest.mark.parametrize("name", HEADS)
def test_estimators_of_several_linear_ones(name: str) -> None:
    estimator, expected = HEADS[name]
    fitted(estimator, NUMBERS, expected)
    model = kw.compile(estimator, calibration=NUMBERS)
    assert model.program.depth <= 2
    compare(estimator, model.program, model.simulate(NUMBERS[:20]).outputs, NUMBERS[:20])


def test_several_labels_at_once() -> None:
    expected = np.stack((SIZES, LABELS), axis=1)
    estimator = fitted(MultiOutputClassifier(LogisticRegression()), NUMBERS, expected)
    model = kw.compile(estimator, calibration=NUMBERS)
    answers = model.answers(model.simulate(NUMBERS[:20]).outputs)
    assert np.array_equal(answers["output_label"], estimator.predict(NUMBERS[:20]))
    for place, shares in enumerate(estimator.predict_proba(NUMBERS[:20])):
        np.testing.assert_allclose(answers[f"output_probability_{place}"], shares, atol=2e-3)


def test_a_stack_of_probabilities_is_evaluated_encrypted() -> None:
    estimator = StackingClassifier([("a", LogisticRegression())], LogisticRegression())
    fitted(estimator, NUMBERS, LABELS)
    program = compiler.compile_program(
        compiler.to_onnx(estimator, NUMBERS), TARGET, compiler.Fit(calibration=NUMBERS)
    )
    assert program.output.client_part is not None
    assert "MatMul" not in program.output.client_part.operators
    label = program.answers(run_clear(program, NUMBERS[:20]))["output_label"]
    assert (label == estimator.predict(NUMBERS[:20])).mean() > 0.9
