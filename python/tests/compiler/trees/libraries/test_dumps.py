"""JSON forms of XGBoost and LightGBM: small ones written here, as their versions 3.x and 4.x write them."""

from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.trees import lightgbm, xgboost
from keywright.compiler.front_ends.trees.encoding import require_places
from keywright.compiler.trees.quantising import quantise
from keywright.errors import ModelRefusedError
from keywright.errors.network import OutOfRangeError, RefusalError
from tests.compiler.trees.fitted import answers

NAN = np.nan


def xgboost_dump(objective: str = "binary:logistic", **changes: Any) -> dict[str, Any]:
    """x0 < 0.5, or missing, goes to the left; x1 in {1, 3} to the right; a tree of one leaf."""
    first = {
        "left_children": [1, 3, -1, -1, -1],
        "right_children": [2, 4, -1, -1, -1],
        "split_indices": [0, 1, 0, 0, 0],
        "split_conditions": [0.5, 0.0, 2.0, -1.0, 0.25],
        "default_left": [1, 0, 0, 0, 0],
        "categories": [1, 3],
        "categories_nodes": [1],
        "categories_segments": [0],
        "categories_sizes": [2],
        "tree_param": {"size_leaf_vector": "1"},
    }
    second = {
        "left_children": [-1], "right_children": [-1], "split_indices": [0], "split_conditions": [0.125],
        "default_left": [0],
    }  # fmt: skip
    learner = {
        "learner_model_param": {"base_score": "[2.5E-1]", "num_class": "0", "num_feature": "2"},
        "objective": {"name": objective},
        "gradient_booster": {"name": "gbtree", "model": {"trees": [first, second], "tree_info": [0, 0]}},
    }
    return {"learner": learner | changes}


def lightgbm_dump(objective: str = "binary sigmoid:1", **changes: Any) -> dict[str, Any]:
    """x0 <= 0.5, or missing, goes to the left; then x1 in {1, 3}; a tree of one leaf."""
    categorical = {
        "split_feature": 1, "threshold": "1||3", "decision_type": "==", "default_left": False,
        "missing_type": "None", "left_child": {"leaf_value": 0.25}, "right_child": {"leaf_value": -1.0},
    }  # fmt: skip
    root = {
        "split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": True,
        "missing_type": "NaN", "left_child": categorical, "right_child": {"leaf_value": 2.0},
    }  # fmt: skip
    trees = [
        {"num_leaves": 3, "tree_structure": root | changes},
        {"num_leaves": 1, "tree_structure": {"leaf_value": 0.125}},
    ]
    return {
        "objective": objective, "num_tree_per_iteration": 1, "max_feature_idx": 1, "average_output": False,
        "tree_info": trees,
    }  # fmt: skip


SAMPLES = np.asarray(
    [[0.0, 1.0], [0.0, 2.0], [0.5, 1.0], [0.5, 0.0], [0.75, 3.0], [NAN, 3.0], [NAN, 0.0], [0.25, NAN]]
)


def scores(trees: Any) -> Any:
    model = quantise(trees, compiler.Fit(thresholds="public"))
    return answers(model, SAMPLES)


def test_xgboost_is_strict_at_its_threshold_and_sends_members_to_the_right() -> None:
    sums = np.asarray([0.25, -1.0, 2.0, 2.0, 2.0, 0.25, -1.0, 0.25]) + 0.125 + np.log(1 / 3)
    leaves = scores(xgboost.of_dump(xgboost_dump()))
    assert np.allclose(leaves["probabilities"][:, 1], 1 / (1 + np.exp(-sums)), atol=1e-5)
    assert leaves["label"].tolist() == (sums > 0).astype(int).tolist()
    plain = xgboost_dump("reg:squarederror")
    assert np.allclose(
        scores(xgboost.of_dump(plain))["variable"][:, 0], sums - np.log(1 / 3) + 0.25, atol=1e-5
    )
    counts = scores(xgboost.of_dump(xgboost_dump("count:poisson")))["variable"][:, 0]
    assert np.allclose(counts, np.exp(sums - np.log(1 / 3)) * 0.25, atol=1e-4)


def test_a_classifier_whose_score_is_no_logarithm_of_odds_takes_it_for_the_probability() -> None:
    sums, labels = (
        np.asarray([0.25, -1.0, 2.0, 2.0, 2.0, 0.25, -1.0, 0.25]) + 0.125,
        np.asarray(["no", "yes"]),
    )
    for objective in ("binary:logitraw", "reg:squarederror"):
        named = scores(xgboost.of_dump(xgboost_dump(objective), labels))
        assert np.allclose(named["probabilities"], np.stack([0.75 - sums, 0.25 + sums], axis=1), atol=1e-5)
        assert named["label"].tolist() == labels[(sums + 0.25 > 0.5).astype(int)].tolist()
    assert scores(lightgbm.of_dump(lightgbm_dump("regression"), labels))["label"].tolist() == [
        *("no", "no", "no", "no", "yes", "no", "no", "no")
    ]
    for read, dump in (
        (xgboost.of_dump, xgboost_dump("count:poisson")),
        (lightgbm.of_dump, lightgbm_dump("poisson")),
    ):
        with pytest.raises(ModelRefusedError, match="exponential is no probability"):
            read(dump, labels)


def test_several_labels_at_a_time_have_their_probabilities_and_no_label() -> None:
    dump = xgboost_dump()
    dump["learner"]["learner_model_param"]["num_target"] = "2"
    dump["learner"]["gradient_booster"]["model"]["tree_info"] = [0, 1]
    for labels in (None, np.arange(2)):
        outputs = scores(xgboost.of_dump(dump, labels))
        assert list(outputs) == ["variable"]
        assert outputs["variable"].shape == (len(SAMPLES), 2)
        assert ((outputs["variable"] > 0) & (outputs["variable"] < 1)).all()


def test_lightgbm_reads_the_smallest_numbers_as_zero() -> None:
    trees = lightgbm.of_dump(lightgbm_dump("regression", threshold=-lightgbm.ZERO))
    left, right = (trees.scores(np.asarray([[x, 0.0]]))[0, 0] for x in (-2e-35, 2.0))
    assert left != right == trees.scores(np.asarray([[-lightgbm.ZERO, 0.0]]))[0, 0]


@pytest.mark.parametrize("version", ["3.3", "3.4"])
def test_a_dart_booster_weights_its_trees(version: str) -> None:
    """Up to version 3.3 it is a booster of its own; from 3.4 on, its weights are beside the trees."""
    dump, weights = xgboost_dump("reg:squarederror"), {"weight_drop": [0.5, 2.0]}
    inner = dump["learner"]["gradient_booster"]
    if version == "3.3":
        dump["learner"]["gradient_booster"] = {"name": "dart", "gbtree": inner} | weights
    else:
        inner["model"] |= weights
    sums = np.asarray([0.25, -1.0, 2.0, 2.0, 2.0, 0.25, -1.0, 0.25]) * 0.5 + 0.25 + 0.25
    assert np.allclose(scores(xgboost.of_dump(dump))["variable"][:, 0], sums, atol=1e-5)


@pytest.mark.parametrize(
    "weights",
    [None, [], [0.5], [0.5] * 3, "ab", 5, {"0": 1, "1": 2}, [None, 1], ["1", "2"], [[1], [2]], [True, False],
     [float("nan"), 1], [1, float("inf")], [1e308, 1], [10**400, 1], [1 + 0j, 2]],
)  # fmt: skip
@pytest.mark.parametrize("version", ["3.3", "3.4"])
def test_weights_that_are_not_those_of_the_trees_are_refused(version: str, weights: Any) -> None:
    dump = xgboost_dump("reg:squarederror")
    inner = dump["learner"]["gradient_booster"]
    if version == "3.3":
        dump["learner"]["gradient_booster"] = {"name": "dart", "gbtree": inner, "weight_drop": weights}
    else:
        inner["model"]["weight_drop"] = weights
    with pytest.raises(ModelRefusedError, match="weight_drop of a booster"):
        xgboost.of_dump(dump)


def test_lightgbm_takes_its_threshold_to_the_left() -> None:
    sums = np.asarray([0.25, -1.0, 0.25, -1.0, 2.0, 0.25, -1.0, -1.0]) + 0.125
    leaves = scores(lightgbm.of_dump(lightgbm_dump("binary sigmoid:2")))
    assert np.allclose(leaves["probabilities"][:, 1], 1 / (1 + np.exp(-2 * sums)), atol=1e-5)
    labels = np.asarray(["no", "yes"])
    named = scores(lightgbm.of_dump(lightgbm_dump(), labels))
    assert named["label"].tolist() == labels[(sums > 0).astype(int)].tolist()


def test_thresholds_of_lightgbm_have_all_their_digits() -> None:
    dump, exact = lightgbm_dump("regression", split_index=0, threshold=0.3), "0.30000000000000004"
    categorical = dump["tree_info"][0]["tree_structure"]["left_child"]
    categorical["split_index"] = 1
    trees = lightgbm.of_dump(dump, thresholds=[[exact, "0"], []])
    assert float(exact) in trees.nodes.threshold


def test_without_missing_values_lightgbm_reads_them_as_zero() -> None:
    sums = np.asarray([0.25, -1.0, 0.25, -1.0, 2.0, 0.25, -1.0, -1.0]) + 0.125
    zero = lightgbm_dump("regression", missing_type="None", default_left=False)
    assert np.allclose(scores(lightgbm.of_dump(zero))["variable"][:, 0], sums, atol=1e-5)


CATEGORIES = np.asarray([-1.5, -1.0, -0.5, -0.0, 0.0, 0.9, 1.0, 1.5, 1.999, 2.0, 2.5, 3.0, 3.75, 4.0, 1e30])
"""Values of the categorical feature."""


def categorical(read: Any, dump: dict[str, Any], members: str, **fit: Any) -> Any:
    """The values of trees with these members, for every value of the categorical feature."""
    if read is xgboost.of_dump:
        (first, _) = dump["learner"]["gradient_booster"]["model"]["trees"]
        first["categories"] = [int(each) for each in members.split("||")]
    else:
        dump["tree_info"][0]["tree_structure"]["left_child"]["threshold"] = members
    model = quantise(read(dump), compiler.Fit(**fit))
    return answers(model, np.stack([np.zeros(len(CATEGORIES)), CATEGORIES], axis=1))["variable"][:, 0]


@pytest.mark.parametrize("members", ["1||3", "0||2"])
def test_categories_lose_their_digits_after_the_point(members: str) -> None:
    """XGBoost takes no negative number for a category, LightGBM one above -1 for 0; both cut off digits."""
    known = [int(each) for each in members.split("||")]
    whole = np.trunc(CATEGORIES)
    values = categorical(lightgbm.of_dump, lightgbm_dump("regression"), members, thresholds="public")
    assert np.allclose(values, np.where(np.isin(whole, known), 0.375, -0.875), atol=1e-5)
    values = categorical(xgboost.of_dump, xgboost_dump("reg:squarederror"), members, thresholds="public")
    own = np.isin(whole, known) & (CATEGORIES >= 0)
    assert np.allclose(values, np.where(own, 0.625, -0.625), atol=1e-5)


@pytest.mark.parametrize("read", [xgboost.of_dump, lightgbm.of_dump])
def test_private_bins_of_categories_end_where_the_next_begins(read: Any) -> None:
    dump = xgboost_dump("reg:squarederror") if read is xgboost.of_dump else lightgbm_dump("regression")
    samples = np.stack([np.repeat([-1.0, 1.0], 30), np.tile([0.0, 1.0, 2.0, 3.75, 5.0], 12)], axis=1)
    binning = quantise(read(dump), compiler.Fit(calibration=samples)).binning
    edges = binning.edges[binning.columns == 1]
    assert np.all((edges >= [0.999999, 1.999999, 2.999999, 3.999999, 4.999999]) & (edges < np.arange(1, 6)))
    # No category beyond all others is taken for the last one, whatever the nodes test.
    binning.require_limits(np.asarray([[0.0, 5.5], [0.0, NAN]]))
    with pytest.raises(OutOfRangeError, match=r"feature 1 of the trees takes values from 0 to 5\.999"):
        binning.require_limits(np.asarray([[0.0, 6.0]]))


@pytest.mark.parametrize("known", [[10, 20, 30], [1, 2, 3], ["a", "7"], ["é", "7"], [0.0, 0.5]])
def test_categories_of_a_frame_that_are_not_their_places_are_refused(known: list[Any]) -> None:
    """A frame with the categories 10, 20 and 30 is read as 0, 1 and 2 by the library, as 10, 20, 30 here."""
    texts = [str(each).encode() for each in known]
    ends, signed = np.cumsum([0, *map(len, texts)]).tolist(), np.frombuffer(b"".join(texts), np.int8).tolist()
    text = {"offsets": ends, "values": signed}
    encoding = text if isinstance(known[0], str) else {"type": 15, "values": known}
    dump = xgboost_dump()
    dump["learner"]["gradient_booster"]["model"]["cats"] = {"enc": [{"offsets": [], "values": []}, encoding]}
    trees = xgboost.of_dump(dump), lightgbm.of_dump(lightgbm_dump() | {"pandas_categorical": [[0, 1], known]})
    for each in trees:
        stored = [categories for _, categories in each.reads.categories]
        assert stored[-1] == known
        with pytest.raises(
            RefusalError, match=rf"a column = {known[0]}, {known[1]}.*dtype category.*cat\.codes"
        ):
            require_places(stored)


@pytest.mark.parametrize("known", [[0, 1, 2], ["low", "high"], [False, True]])
def test_categories_that_are_their_places_or_texts_are_taken(known: list[Any]) -> None:
    trees = lightgbm.of_dump(lightgbm_dump() | {"pandas_categorical": [known]})
    require_places([categories for _, categories in trees.reads.categories])


@pytest.mark.parametrize(
    ("dump", "match"),
    [
        (xgboost_dump("survival:cox"), "objective = survival:cox"),
        (xgboost_dump(gradient_booster={"name": "gblinear"}), "booster = gblinear"),
        (lightgbm_dump("regression sqrt"), "objective = regression sqrt"),
        (lightgbm_dump("custom"), "objective = custom"),
        (lightgbm_dump(missing_type="Zero"), "zero_as_missing=false"),
    ],
)
def test_what_has_no_encrypted_form_is_named(dump: dict[str, Any], match: str) -> None:
    read = xgboost.of_dump if "learner" in dump else lightgbm.of_dump
    with pytest.raises(ModelRefusedError, match=match) as caught:
        read(dump)
    reason = caught.value.exceptions[0]
    assert isinstance(reason, RefusalError)
    assert reason.code == "attribute"


def test_values_of_leaves_are_counted_before_they_are_made() -> None:
    dump = xgboost_dump("multi:softprob")
    dump["learner"]["learner_model_param"]["num_class"] = "100000000"
    with pytest.raises(ModelRefusedError, match="values of leaves") as caught:
        xgboost.of_dump(dump)
    assert caught.value.codes == {"size"}


@pytest.mark.parametrize("read", [xgboost.of_dump, lightgbm.of_dump])
@pytest.mark.parametrize("dump", [{}, {"learner": []}, {"tree_info": 3}, {"objective": "binary"}])
def test_another_object_is_refused(read: Any, dump: dict[str, Any]) -> None:
    with pytest.raises(ModelRefusedError, match="not a booster of") as caught:
        read(dump)
    assert caught.value.codes == {"model"}
