"""Trees behind what clients compute: categories of data frames, selections, encoders and imputers, against
the library's own predictions."""

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright._reading.documents import read_json
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.front_ends.trees import xgboost
from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.errors import EncodeError, ModelRefusedError
from keywright.program.client.first_steps import FirstSteps
from keywright.runtime import run_clear
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

COUNT, SHOWN = 300, 40
TARGET = compiler.Target(slots=2048, levels=30)
RNG = np.random.default_rng(3)
NUMBERS = RNG.normal(size=(COUNT, 5)) * [1, 20, 0.1, 3, 1]
LABELS = np.where(NUMBERS[:, 0] + NUMBERS[:, 1] / 20 > 0, "yes", "no")
VALUES = NUMBERS[:, 1] + 5 * (NUMBERS[:, 3] > 0)
CITIES = RNG.choice(["Rome", "Oslo", "Lima", "Bonn"], COUNT)
GRADES = RNG.choice([10, 20, 30], COUNT)
OF_BOTH = VALUES + 9 * (CITIES == "Oslo") - 7 * (GRADES == 20)


def check(model: Any, samples: Any, shown: Any) -> FirstSteps:
    """Compare a program in the clear with a model, and return its first steps."""
    source = to_source(model, samples)
    assert isinstance(source, EncodedEnsemble)
    fit = compiler.Fit(calibration=samples, thresholds="public")
    program = compiler.compile_program(compiler.approximate(source, fit), TARGET)
    answers = program.answers(run_clear(program, program.features(shown)[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(model.predict(shown))
    own = next(iter(answers.values())).ravel()
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(own, expected, atol=2e-5 * np.abs(expected).max())
    else:
        assert own.tolist() == expected.tolist()
    assert source.steps.to_json() == FirstSteps.read(source.steps.to_json()).to_json()
    return source.steps


SELECTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "k best": lambda score, last: SelectKBest(score, k=2),
    "percentile": lambda score, last: SelectPercentile(score, percentile=60),
    "variance": lambda score, last: VarianceThreshold(0.5),
    "of a model": lambda score, last: SelectFromModel(last),
    "recursive": lambda score, last: RFE(last, n_features_to_select=3),
    "two": lambda score, last: make_pipeline(
        VarianceThreshold(0.5), StandardScaler(), SelectKBest(score, k=2)
    ),
    "behind a scaler": lambda score, last: make_pipeline(StandardScaler(), SelectKBest(score, k=3)),
    "behind an imputer": lambda score, last: make_pipeline(SimpleImputer(), VarianceThreshold(0.5)),
}
"""Of the features that a function scores, or that a linear model weighs."""

TREES: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeRegressor(max_depth=4, random_state=0),
    "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(5, max_depth=4, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=6, random_state=0),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=6, max_depth=3),
    "isolation": lambda: IsolationForest(n_estimators=5, random_state=0),
}


@pytest.mark.parametrize("trees", TREES)
@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_before_trees(name: str, trees: str) -> None:
    labelled = trees == "forest"
    target, score = (LABELS, f_classif) if labelled else (VALUES, f_regression)
    select = SELECTIONS[name](score, LogisticRegression() if labelled else Ridge())
    model = make_pipeline(select, TREES[trees]()).fit(NUMBERS, target)
    check(model, NUMBERS, NUMBERS[:SHOWN])


def test_selected_features_are_read_encrypted() -> None:
    inner = make_pipeline(SelectKBest(f_regression, k=2), DecisionTreeRegressor(max_depth=3))
    model = make_pipeline(StandardScaler(), inner).fit(NUMBERS, VALUES)
    compiled = kw.compile(model, calibration=NUMBERS, thresholds="public")
    own = compiled.answers(compiled.predict(NUMBERS[:4]))
    np.testing.assert_allclose(own["variable"].ravel(), model.predict(NUMBERS[:4]), atol=1e-3)


def test_matrices_before_trees_are_refused_with_the_way_out() -> None:
    """Clients would get the components."""
    steps = StandardScaler(), PCA(3), VarianceThreshold(), DecisionTreeRegressor(max_depth=3)
    model = make_pipeline(*steps).fit(NUMBERS, VALUES)
    with pytest.raises(ModelRefusedError, match=r"step 'pca' .*kw\.compile\(pipeline\[k:\]"):
        kw.compile(model, calibration=NUMBERS)


def frame(**columns: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    table = {f"x{place}": each for place, each in enumerate(NUMBERS.T)} | {"city": CITIES, "grade": GRADES}
    result = pandas.DataFrame(table | columns)
    return result.astype({"city": "category", "grade": "category"})


def boosters() -> dict[str, Callable[[], Any]]:
    """Boosters that take columns of categories of a data frame."""
    known: dict[str, Callable[[], Any]] = {
        "histograms": lambda: HistGradientBoostingRegressor(
            max_iter=6, max_depth=4, categorical_features="from_dtype"
        ),
        "histograms of labels": lambda: HistGradientBoostingClassifier(
            max_iter=6, max_depth=4, categorical_features="from_dtype"
        ),
    }
    if find_spec("lightgbm"):
        options = {"min_child_samples": 5, "min_data_per_group": 5, "cat_smooth": 1, "verbose": -1}
        lightgbm: Any = import_module("lightgbm")
        known["lightgbm"] = lambda: lightgbm.LGBMRegressor(n_estimators=6, max_depth=4, **options)
    if find_spec("xgboost"):
        library: Any = import_module("xgboost")
        known["xgboost"] = lambda: library.XGBRegressor(n_estimators=6, max_depth=4, enable_categorical=True)
    return known


BOOSTERS = boosters()


def with_other(samples: Any, column: str, value: Any) -> Any:
    """Samples of which the first has another value in a column of categories."""
    other = samples.copy()
    other[column] = other[column].astype(object)
    other.loc[other.index[0], column] = value
    return other.astype({column: "category"})


@pytest.mark.parametrize("name", BOOSTERS)
def test_categories_of_data_frames(name: str) -> None:
    """In any order of columns, as texts or categories, known, unseen or missing; stored with the client."""
    samples = frame()
    target = np.where(OF_BOTH > 0, "yes", "no") if "labels" in name else OF_BOTH
    model = BOOSTERS[name]().fit(samples, target)
    steps = check(model, samples, samples[:SHOWN])
    plain = samples[:SHOWN].astype({"city": object, "grade": int})
    features, _ = steps.features(samples[:SHOWN])
    np.testing.assert_array_equal(steps.features(plain)[0], features)
    np.testing.assert_array_equal(steps.features(plain[[*reversed(plain.columns)]])[0], features)
    np.testing.assert_array_equal(steps.features(plain.iloc[0])[0], features[:1])
    check(model, samples, with_other(samples[:SHOWN], "city", None))
    for column, value in (("city", "Paris"), ("grade", 15)):
        other = with_other(samples[:SHOWN], column, value)
        if name == "xgboost":  # as the library itself
            with pytest.raises(EncodeError, match=f"column '{column}' has .*not one of"):
                steps.features(other)
        else:
            check(model, samples, other)
    with pytest.raises(EncodeError, match="column 'city' takes texts"):
        steps.features(plain.assign(city=1))
    wrong = samples.assign(grade=samples["grade"].astype(str).astype("category"))
    with pytest.raises(ModelRefusedError, match=r"column 'grade' .*holds text, .*categories 10, 20, 30"):
        to_source(model, wrong)


@pytest.mark.parametrize("name", BOOSTERS)
def test_categories_that_are_encrypted(name: str) -> None:
    samples = frame()
    target = np.where(OF_BOTH > 0, "yes", "no") if "labels" in name else OF_BOTH
    model = BOOSTERS[name]().fit(samples, target)
    compiled = kw.compile(model, calibration=samples)
    own = next(iter(compiled.answers(compiled.predict(samples[:4])).values())).ravel()
    expected = model.predict(samples[:4])
    if "labels" in name:
        assert own.tolist() == expected.tolist()
    else:
        assert np.abs(own - expected).max() < 0.5 * OF_BOTH.std()


@pytest.mark.parametrize("name", [each for each in BOOSTERS if "histograms" not in each])
def test_categories_without_their_columns_are_refused_with_the_way_out(name: str) -> None:
    """Numbers of categories and places cannot be distinguished in an array."""
    samples = frame()
    model = BOOSTERS[name]().fit(samples, OF_BOTH)
    codes = samples.assign(city=samples["city"].cat.codes, grade=samples["grade"].cat.codes)
    with pytest.raises(ModelRefusedError, match=r"data frame with columns of the dtype category"):
        to_source(model, codes.to_numpy(float))


def test_categories_that_a_booster_does_not_hold_are_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers such as 10 would be read as places; places themselves are taken."""
    if "xgboost" not in BOOSTERS:
        pytest.skip("xgboost is not installed")

    def without(data: Any, limits: Any) -> Any:
        document = read_json(data, limits)
        if isinstance(document, dict):
            document["learner"]["gradient_booster"]["model"].pop("cats")
        return document

    samples = frame()
    model = BOOSTERS["xgboost"]().fit(samples, OF_BOTH)
    codes = samples.assign(city=samples["city"].cat.codes, grade=samples["grade"].cat.codes)
    monkeypatch.setattr(xgboost, "read_json", without)
    with pytest.raises(ModelRefusedError, match=r"column 'city' .*cat\.codes"):
        to_source(model, samples)
    assert isinstance(to_source(model, codes), Ensemble)


def test_categories_by_their_places_in_arrays() -> None:
    """Histogram boosting takes columns of an array as categories, whatever their numbers."""
    samples = np.column_stack([NUMBERS, GRADES, RNG.choice([0.5, -2.0, 7.0], COUNT)])
    model = HistGradientBoostingRegressor(max_iter=6, categorical_features=[5, 6]).fit(samples, OF_BOTH)
    other = samples[:SHOWN].copy()
    other[0, 5:], other[1, 5:] = np.nan, 4.25
    for shown in (samples[:SHOWN], other):
        check(model, samples, shown)
    assert isinstance(to_source(model), EncodedEnsemble)  # its categories say all about its samples


@pytest.mark.parametrize("select", [False, True])
@pytest.mark.parametrize("trees", ["tree", "forest", "histograms"])
def test_encoders_before_trees(trees: str, select: bool) -> None:
    """A selection leaves columns of the encoders that nothing reads."""
    columns = ColumnTransformer(
        [("o", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["city"])],
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
        sparse_threshold=0,
    )
    samples = frame().astype({"city": object, "grade": int})
    steps = [columns, *([SelectKBest(f_regression, k=4)] if select else []), TREES[trees]()]
    model = make_pipeline(*steps).fit(samples, LABELS == "yes" if trees == "forest" else OF_BOTH)
    check(model, samples, samples[:SHOWN])


@pytest.mark.parametrize("name", [each for each in BOOSTERS if "histograms" not in each])
def test_boosters_behind_encoders(name: str) -> None:
    columns = ColumnTransformer([("o", OrdinalEncoder(), ["city"])], remainder="passthrough")
    samples = frame().astype({"city": object, "grade": int})
    model = make_pipeline(columns, BOOSTERS[name]()).fit(samples, OF_BOTH)
    check(model, samples, samples[:SHOWN])
