"""Names of columns decide which feature a number is, wherever a table enters, in all kinds of models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler, runtime, search
from keywright.client import RemoteModel
from keywright.compiler.front_ends.feature_names import feature_names, with_used_columns
from keywright.compiler.front_ends.model_source import to_source
from keywright.errors import FormatError, KeywrightError
from keywright.errors.engine import EncodeError
from keywright.model.served.manifest import Manifest
from keywright.program.client.samples import MISSING, converted
from keywright.program.program import Program
from numpy.typing import NDArray
from sklearn import ensemble, linear_model, neural_network, tree
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

NAMES = ["age", "income", "rooms"]
RNG = np.random.default_rng(8)
VALUES = np.round(RNG.normal(size=(120, 3)) * [1.0, 3.0, 0.5] + [0.0, 2.0, -1.0], 3)
GAPS = np.where(RNG.random(VALUES.shape) < 0.1, np.nan, VALUES)
REAL = VALUES @ [1.0, -2.0, 3.0]
LABEL = np.asarray(["low", "middle", "high"])[np.digitize(REAL, [-9.0, -5.0])]
CLASSES = np.round(np.abs(VALUES)) % 3
SHOWN = slice(0, 6)


class Frame:
    """What data frames of every library have; its order differs from the model's."""

    def __init__(self, columns: dict[Any, Any]) -> None:
        self.columns, self._given = list(columns), columns

    def __getitem__(self, name: Any) -> Any:
        return (
            self._given[name] if name in self.columns else Frame({k: v[name] for k, v in self._given.items()})
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.stack([np.asarray(each, dtype) for each in self._given.values()], axis=1)

    def head(self, count: int) -> Frame:
        return Frame({name: each[:count] for name, each in self._given.items()})


class Row:
    """A row of a data frame, which carries its names."""

    def __init__(self, values: dict[str, float]) -> None:
        self._given = values

    def keys(self) -> list[str]:
        return list(self._given)

    def __getitem__(self, name: str) -> float:
        return self._given[name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(list(self._given.values()), dtype)


def columns(values: NDArray[Any], names: list[Any]) -> dict[Any, Any]:
    """Return the columns of fitted values in another order, with one that no model knows: dates."""
    given = dict(zip(NAMES, values.T, strict=True)) | {"other": np.full(len(values), "2020-01-01", "M8[s]")}
    return {name: given[name] for name in names}


ORDERS = {
    "own": NAMES,
    "turned": ["rooms", "age", "income"],
    "with others": ["other", "income", "rooms", "age"],
}
FORMS: dict[str, Callable[[NDArray[Any]], Any]] = {"array": np.asarray}
for order, names in ORDERS.items():
    FORMS[f"mapping, {order}"] = partial(columns, names=list(names))
    FORMS[f"frame, {order}"] = partial(lambda values, names: Frame(columns(values, names)), names=list(names))
WRONG: dict[str, Callable[[NDArray[Any]], Any]] = {
    "lacks one": lambda values: Frame(columns(values, ["rooms", "income"])),
    "renamed": lambda values: Frame(dict(zip("abc", values.T, strict=True))),
    "counted": lambda values: Frame(dict(enumerate(values.T))),
    "a mapping that lacks one": lambda values: columns(values, ["rooms", "income"]),
    "dates": lambda values: columns(values, NAMES) | {"age": np.full(len(values), "2020-01-01", "M8[s]")},
    "another number of columns": lambda values: values[:, :2],
}

MODELS: dict[str, tuple[Any, NDArray[Any], NDArray[Any]]] = {
    "linear": (linear_model.Ridge(), VALUES, REAL),
    "several outputs": (
        MultiOutputRegressor(linear_model.Ridge()), VALUES, np.stack((REAL, -REAL**2), axis=1),
    ),
    "classifier": (linear_model.LogisticRegression(), VALUES, LABEL),
    "pipeline": (make_pipeline(StandardScaler(), linear_model.Ridge()), VALUES, REAL),
    "pipeline that imputes": (make_pipeline(SimpleImputer(), linear_model.Ridge()), GAPS, REAL),
    "columns by place": (
        make_pipeline(
            ColumnTransformer([("s", StandardScaler(), [1]), ("m", MinMaxScaler(), [0, 2])]),
            linear_model.Ridge(),
        ),
        VALUES, REAL,
    ),
    "encoder": (
        make_pipeline(
            ColumnTransformer([("o", OneHotEncoder(), [2])], remainder="passthrough"), linear_model.Ridge()
        ),
        CLASSES, CLASSES @ [1.0, -1.0, 2.0],
    ),
    "perceptron": (
        neural_network.MLPRegressor(
            hidden_layer_sizes=(4,), activation="identity", solver="lbfgs", random_state=0
        ),
        VALUES, REAL,
    ),
    "tree": (tree.DecisionTreeRegressor(max_depth=3), VALUES, REAL),
    "forest": (ensemble.RandomForestClassifier(4, max_depth=2, random_state=0), VALUES, LABEL),
    "boosting": (ensemble.GradientBoostingRegressor(n_estimators=4, max_depth=2), VALUES, REAL),
    "histograms": (ensemble.HistGradientBoostingRegressor(max_iter=3, max_depth=2), GAPS, REAL),
    "trees behind a scaler": (
        make_pipeline(StandardScaler(), tree.DecisionTreeRegressor(max_depth=3)), VALUES, REAL,
    ),
}  # fmt: skip
TREES = ("tree", "forest", "boosting", "histograms", "trees behind a scaler")
CASES: list[Any] = [(name, "private") for name in MODELS] + [("forest", "public")]
CASES += [pytest.param(name, "public", marks=pytest.mark.full) for name in TREES if name != "forest"]


def named(estimator: Any) -> Any:
    """Name the features of a fitted estimator, as fitting on a data frame does."""
    steps = [each for _, each in getattr(estimator, "steps", []) if each != "passthrough"]
    first = steps[0] if steps else estimator
    first.feature_names_in_ = np.asarray(NAMES, object)
    for _, each, places in getattr(first, "transformers_", []):
        each.feature_names_in_ = first.feature_names_in_[places]
    return estimator


def fitted(name: str) -> tuple[Any, NDArray[Any]]:
    estimator, values, target = MODELS[name]
    return named(estimator.fit(values, target)), values


def predicted(estimator: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Return predictions for arrays in the fitted order, of which scikit-learn warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(estimator.predict(values[SHOWN]))


def program_of(name: str, thresholds: Any, calibration: Any) -> Program:
    estimator = fitted(name)[0]
    calibration = with_used_columns(estimator, calibration)  # as `keywright.compile` does
    approximated = compiler.approximate(
        to_source(estimator, calibration), compiler.Fit(calibration=calibration, thresholds=thresholds)
    )
    return compiler.compile_program(approximated, compiler.Target(slots=1024, levels=30))


def run(program: Program, samples: Any) -> NDArray[np.float64]:
    return runtime.run_clear(program, program.features(samples)[0])


def test_nothing_is_asked_of_columns_that_a_model_does_not_take() -> None:
    """Nor are they taken out of a table that lacks a column, or of one of a model without names."""
    estimator, values = fitted("linear")
    table = columns(values, [*NAMES, "other"])
    model = kw.compile(estimator, calibration=table)
    assert np.abs(model.predict(table)[SHOWN, 0] - predicted(estimator, values)).max() < 1e-2
    lacking = columns(values, ["rooms", "other"])
    assert with_used_columns(estimator, lacking) is lacking
    assert with_used_columns(object(), table) is table
    assert with_used_columns(estimator, values) is values


@pytest.mark.parametrize(("name", "thresholds"), CASES)
def test_every_table_is_taken_by_its_names(name: str, thresholds: str, tmp_path: Path) -> None:
    """However calibration data and samples are given, also to a program that was written and read."""
    estimator, values = fitted(name)
    expected: Any = None
    for form, calibration in FORMS.items():
        program = program_of(name, thresholds, calibration(values))
        compiler.save(program, tmp_path / form)
        if expected is None:
            expected = run(program, values[SHOWN])
            if (thresholds == "public" or name not in TREES) and not hasattr(estimator, "classes_"):
                own = predicted(estimator, values).reshape(expected.shape)
                np.testing.assert_allclose(expected, own, atol=1e-3 * np.abs(own).max())
        for held in (program, compiler.load(tmp_path / form)):
            for samples in FORMS.values():
                np.testing.assert_allclose(run(held, samples(values[SHOWN])), expected, atol=1e-6)
        row = dict(zip(NAMES, values[1], strict=True))
        for single in (row, Row(dict(reversed(row.items()))), values[1]):
            features, alone = program.features(single)
            np.testing.assert_allclose(runtime.run_clear(program, features), expected[1:2], atol=1e-6)
            assert alone
        for samples in WRONG.values():
            with pytest.raises(EncodeError, match=r"columns|column 'age'|shape"):
                program.features(samples(values[SHOWN]))


@pytest.mark.parametrize(("name", "thresholds"), CASES)
def test_calibration_data_of_other_names_are_refused(name: str, thresholds: str) -> None:
    for wrong in WRONG.values():
        with pytest.raises(KeywrightError, match=r"columns|column 'age'|shape|features"):
            program_of(name, thresholds, wrong(MODELS[name][1]))


@pytest.mark.parametrize(
    ("name", "client"), [("linear", "slots"), ("linear", "thin"), ("encoder", "slots"), ("tree", "slots")]
)
def test_clients_take_tables_by_name(name: str, client: Any, tmp_path: Path) -> None:
    """Locally, from a folder, and of a service."""
    estimator, values = fitted(name)
    table = FORMS["frame, with others"](values)
    options: Any = {"thresholds": "public"} if name in TREES else {}
    model = kw.compile(estimator, calibration=table, client=client, **options)
    model.save(tmp_path / "model")
    turned = FORMS["frame, turned"](values[SHOWN])
    features, _ = model.program.features(values[SHOWN])
    manifest = Manifest.read(model.interface.encoded)
    remote = object.__new__(RemoteModel)
    remote.manifest, remote.program = manifest, None
    user = kw.load_client(tmp_path / "model")
    for result in (
        user.program.features(turned)[0],
        manifest.features(turned)[0],
        remote.check(turned),
        manifest.features(values[SHOWN])[0],
    ):
        np.testing.assert_array_equal(result, features)
    if client == "slots":
        np.testing.assert_allclose(
            model.simulate(turned, repetitions=1).outputs.ravel(),
            model.simulate(values[SHOWN], repetitions=1).outputs.ravel(), atol=1e-2,
        )  # fmt: skip
    for call in (model.predict, model.simulate, user.encrypt, user.guard, remote.check):
        with pytest.raises(EncodeError, match="lack the columns 'age'"):
            call(WRONG["lacks one"](values[SHOWN]))


@pytest.mark.parametrize(
    "dropping",
    [
        ColumnTransformer([("s", StandardScaler(), ["age", "rooms"])]),
        ColumnTransformer(
            [("s", StandardScaler(), ["age"]), ("d", "drop", ["price"])], remainder="passthrough"
        ),
        make_pipeline(ColumnTransformer([("i", SimpleImputer(), ["age", "rooms"])])),
    ],
)
@pytest.mark.parametrize("last", [linear_model.Ridge(), tree.DecisionTreeRegressor(max_depth=3)])
def test_columns_that_are_dropped_may_be_absent(dropping: Any, last: Any, tmp_path: Path) -> None:
    """As to the library itself; in arrays they have their place. Nothing is asked of their values."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=["age", "price", "rooms"])
    frame["price"] = pandas.Timestamp("2020-01-01")
    model = make_pipeline(clone(dropping), clone(last)).fit(frame, REAL)
    without, expected = frame.drop(columns="price"), model.predict(frame[:5])
    full = frame.assign(price=[None, *range(len(frame) - 1)])
    programs: list[Program] = []
    for calibration in (frame, without, full, full.to_numpy()):
        compiled = kw.compile(model, calibration=calibration)
        compiled.save(tmp_path / str(len(programs)))
        programs += [compiled.program, kw.load_client(tmp_path / str(len(programs))).program]
    tolerance = 1e-3 if isinstance(last, linear_model.Ridge) else 0.2 * np.ptp(REAL)
    for program in programs:
        for samples in (frame[:5], without[:5], full[:5], full[:5].to_numpy(), without[["rooms", "age"]][:5]):
            features, _ = program.features(samples)
            own = runtime.run_clear(program, features)
            own = next(iter(program.answers(own).values())) if program.answers(own) else own
            np.testing.assert_allclose(own.ravel(), expected, atol=tolerance)
        with pytest.raises(EncodeError, match="lack the columns 'age'"):
            program.features(without[["rooms"]][:5])
        with pytest.raises(EncodeError, match="array of shape"):
            program.features(VALUES[:5, :2])
        with pytest.raises(EncodeError, match="no rows"):
            program.features(frame[:0])


def test_encrypted_answers_follow_names() -> None:
    estimator, values = fitted("linear")
    outputs = kw.compile(estimator, calibration=values).predict(FORMS["frame, with others"](values[SHOWN]))
    np.testing.assert_allclose(outputs.ravel(), predicted(estimator, values), atol=1e-3)


def test_names_come_from_the_calibration_data_of_an_estimator_without() -> None:
    models: list[tuple[Any, Any]] = [
        (linear_model.Ridge(), "private"),
        (tree.DecisionTreeRegressor(max_depth=3), "public"),
    ]
    for model, thresholds in models:
        estimator = model.fit(VALUES, REAL)
        for names in (NAMES, [2, 0, 1]):
            frame = Frame(dict(zip(names, VALUES.T, strict=True)))
            approximated = compiler.approximate(
                to_source(estimator, frame), compiler.Fit(calibration=frame, thresholds=thresholds)
            )
            program = compiler.compile_program(approximated, compiler.Target(slots=1024, levels=30))
            turned = Frame(dict(reversed(list(zip(names, VALUES[SHOWN].T, strict=True)))))
            expected = estimator.predict(VALUES[SHOWN])
            np.testing.assert_allclose(run(program, turned).ravel(), expected, atol=1e-3)


def test_two_columns_of_one_name_are_refused() -> None:
    program = program_of("linear", "private", VALUES)
    frame = Frame(columns(VALUES[SHOWN], NAMES))
    frame.columns.append("age")
    with pytest.raises(EncodeError, match="several columns of the name 'age'"):
        program.features(frame)


class Booster:
    """The names of boosters: of XGBoost an attribute, of LightGBM a method, which replaces blanks."""

    def __init__(self, names: Any) -> None:
        self.feature_names = names


def test_names_of_objects() -> None:
    pipeline = make_pipeline("passthrough", StandardScaler(), linear_model.Ridge()).fit(VALUES, REAL)
    assert feature_names(pipeline) == ()
    assert feature_names(named(pipeline)) == tuple(NAMES)
    assert feature_names(Booster(NAMES)) == tuple(NAMES)
    assert feature_names(Booster(None)) == ()
    counted = type(
        "Booster", (), {"feature_name": lambda self: ["Column_0", "Column_1"], "__module__": "lightgbm.basic"}
    )
    assert feature_names(counted()) == ()
    blanks = type("Booster", (), {"feature_name": lambda self: ["a_b", "c"], "__module__": "lightgbm.basic"})
    assert feature_names(blanks(), {"c": 0, "a b": 1}) == ("a b", "c")
    assert feature_names(blanks()) == ("a_b", "c")


@pytest.mark.parametrize(
    "change",
    [
        ["age"],
        ["age", "age", "rooms"],
        ["age", "income", 7],
        ["age", "income", ""],
        ["age", "income", "x" * 1001],
    ],
)
def test_damaged_names_are_refused(change: Any) -> None:
    manifest = kw.compile(fitted("linear")[0], calibration=VALUES).interface
    assert manifest.input.steps.columns == tuple(NAMES)
    entry = json.loads(manifest.encoded)
    with pytest.raises(FormatError, match="column"):
        Manifest.read(json.dumps(entry | {"columns": change}).encode())


def test_neighbours_refuse_named_queries() -> None:
    index, _ = search.from_estimator(named(KNeighborsClassifier(3).fit(VALUES, LABEL)))
    client = search.Client(index.directory())
    for query in (Row(dict(zip(reversed(NAMES), VALUES[0], strict=True))), Frame(columns(VALUES[:1], NAMES))):
        with pytest.raises(KeywrightError, match="names"):
            client.query(query)


class NotAvailable:
    """Answers as ``pandas.NA`` does, which extension types hold for missing values."""

    def __repr__(self) -> str:
        return "<NA>"

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("missing", [None, np.nan, NotAvailable()], ids=repr)
def test_missing_texts_of_every_kind_are_missing(missing: object) -> None:
    values = np.array(["a", missing], object)
    assert converted(values, "text", "column 'c'").tolist() == ["a", MISSING]
