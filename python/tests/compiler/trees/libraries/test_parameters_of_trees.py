"""Parameters of fitted objects that change predictions and are not in the trees that are read of them: no one
is left out without a word."""

import json
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.front_ends.trees import estimators, lightgbm, xgboost
from keywright.compiler.trees.ensemble import Ensemble
from keywright.compiler.trees.quantising import quantise
from keywright.errors import ModelRefusedError
from keywright.errors.network import RefusalError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.compiler.trees.fitted import CASES, MISSING, REAL, TWO, VALUES, answers, fitted

from .test_dumps import lightgbm_dump, xgboost_dump


class OwnMissing(DecisionTreeClassifier):  # type: ignore[misc]
    """Reads a number as missing, as estimators of XGBoost do."""

    def __init__(self, missing: float = np.nan, max_depth: int = 4) -> None:
        super().__init__(max_depth=max_depth, random_state=0)
        self.missing = missing

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        return super().predict_proba(np.where(self.missing == X, np.nan, X), check_input)


class Limited(DecisionTreeRegressor):  # type: ignore[misc]
    """Predicts nothing above a limit."""

    def __init__(self, most: float = np.inf) -> None:
        super().__init__(max_depth=4)
        self.most = most

    def predict(self, X: Any, check_input: bool = True) -> Any:
        return np.minimum(super().predict(X, check_input), self.most)


@pytest.mark.parametrize("missing", [-999.0, 0.0, 12345.0])
def test_a_value_that_is_missing_is_found_though_no_sample_has_it(missing: float) -> None:
    model = OwnMissing(missing).fit(MISSING, TWO)
    for example in (VALUES[VALUES[:, 0] > 0], None):
        with pytest.raises(RefusalError, match="predicts something else than its trees"):
            to_source(model, example)
        with pytest.raises(RefusalError, match="predicts something else than its trees"):
            to_source(make_pipeline(StandardScaler(), OwnMissing(missing)).fit(MISSING, TWO), example)
    assert isinstance(to_source(OwnMissing().fit(MISSING, TWO), VALUES), Ensemble)


def test_another_prediction_of_ordinary_samples_is_found() -> None:
    with pytest.raises(RefusalError, match="predicts something else than its trees"):
        to_source(Limited(0.5).fit(VALUES, REAL), VALUES)
    assert isinstance(to_source(Limited().fit(VALUES, REAL), VALUES), Ensemble)


@pytest.mark.parametrize("name", CASES)
def test_objects_that_predict_what_their_trees_do_are_read(name: str) -> None:
    model, samples = fitted(name)
    assert isinstance(to_source(model, samples), Ensemble)


class Model:
    """Stands for an estimator of XGBoost or LightGBM."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters, self.booster_, self.best_iteration = parameters, self, -1
        vars(self).update(parameters)

    def get_params(self) -> dict[str, Any]:
        return self.parameters

    def get_booster(self) -> Any:
        return self

    def attr(self, name: str) -> None:
        return None

    def save_raw(self, form: str) -> bytes:
        return json.dumps(xgboost_dump()).encode()

    def dump_model(self, num_iteration: int) -> dict[str, Any]:
        dump = lightgbm_dump()
        root = dump["tree_info"][0]["tree_structure"]
        root["split_index"], root["left_child"]["split_index"] = 0, 1
        return dump

    def model_to_string(self, num_iteration: int) -> str:
        return "Tree=0\nthreshold=0.5 0\n\nTree=1\nthreshold=\n"


@pytest.mark.parametrize("missing", [-999, 0.0, np.inf])
def test_xgboost_has_no_missing_value_but_nan(missing: float) -> None:
    with pytest.raises(ModelRefusedError, match=r"replace the value by numpy\.nan before fit and predict"):
        xgboost.of_model(Model(missing=missing))
    for none in (np.nan, None):
        assert xgboost.of_model(Model(missing=none)).missing


def test_lightgbm_predicts_with_all_trees_and_with_constant_leaves() -> None:
    with pytest.raises(ModelRefusedError, match="pred_early_stop = True"):
        lightgbm.of_model(Model(pred_early_stop=True))
    assert lightgbm.of_model(Model(pred_early_stop=False)).missing
    linear = lightgbm_dump()
    leaf = {"leaf_value": 1.0, "leaf_const": 0.5, "leaf_features": [0], "leaf_coeff": [2.0]}
    linear["tree_info"][1]["tree_structure"] = leaf
    with pytest.raises(ModelRefusedError, match="linear_tree = True"):
        lightgbm.of_dump(linear)


PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "xgboost": [
        {}, {"base_score": 0.2}, {"scale_pos_weight": 5}, {"booster": "dart", "rate_drop": 0.5},
        {"num_parallel_tree": 3, "subsample": 0.5}, {"objective": "binary:logitraw"},
        {"objective": "reg:squarederror"},
        {"enable_categorical": True, "feature_types": ["q", "q", "q", "q", "q", "c"]},
    ],
    "lightgbm": [
        {}, {"use_missing": False}, {"sigmoid": 2.0}, {"boost_from_average": False},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, {"boosting_type": "dart"},
        {"objective": "cross_entropy"}, {"class_weight": "balanced"}, {"objective": "regression"},
    ],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*booster=dart. is deprecated:UserWarning")
@pytest.mark.parametrize(
    ("library", "parameters"), [(name, each) for name, several in PARAMETERS.items() for each in several]
)
def test_real_estimators_are_read_with_their_parameters(library: str, parameters: dict[str, Any]) -> None:
    module = pytest.importorskip(library)
    more = {"verbose": -1} if library == "lightgbm" else {"max_depth": 3}
    kind = module.LGBMClassifier if library == "lightgbm" else module.XGBClassifier
    model = kind(n_estimators=4, n_jobs=1, **more, **parameters).fit(VALUES, TWO)
    assert estimators.ensemble_of(model) is not None
    trees = to_source(model, VALUES)
    assert isinstance(trees, Ensemble)
    labels = answers(quantise(trees, compiler.Fit(thresholds="public")), VALUES)["label"]
    assert labels.tolist() == model.predict(VALUES).tolist()
    assert isinstance(to_source(model.booster_ if library == "lightgbm" else model.get_booster()), Ensemble)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_estimators_of_other_libraries_behind_scalers(library: str) -> None:
    module = pytest.importorskip(library)
    options = {"n_estimators": 5, "verbosity": 0 if library == "xgboost" else -1}
    kind = module.XGBClassifier if library == "xgboost" else module.LGBMClassifier
    model = make_pipeline(StandardScaler(), kind(**options)).fit(VALUES, TWO)
    source = to_source(model)
    assert isinstance(source, Ensemble)
    given = answers(quantise(source, compiler.Fit(thresholds="public")), VALUES)
    assert np.array_equal(given["label"], model.predict(VALUES))
    np.testing.assert_allclose(given["probabilities"], model.predict_proba(VALUES), atol=1e-5)


def test_boosters_that_predict_labels() -> None:
    xgb = pytest.importorskip("xgboost")
    labels = np.digitize(REAL, [-0.5, 0.5])
    options = {"objective": "multi:softmax", "num_class": 3, "max_depth": 2}
    booster = xgb.train(options, xgb.DMatrix(VALUES, labels), 3)
    source = to_source(booster)
    assert isinstance(source, Ensemble)
    given = answers(quantise(source, compiler.Fit(thresholds="public")), VALUES)
    assert np.array_equal(given["label"], booster.predict(xgb.DMatrix(VALUES)))
