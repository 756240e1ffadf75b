"""What is refused, and that it is refused by counts."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.trees.ensemble import MAX_TREES, Ensemble, Features, Nodes, joined
from keywright.errors import ModelRefusedError
from keywright.errors.engine import EncodeError
from keywright.errors.network import RefusalError
from sklearn.datasets import make_regression
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from tests.compiler.trees.fitted import VALUES, fitted, random_ensemble

TARGET = compiler.Target(slots=8192, levels=8)


def source(name: str) -> tuple[Any, Any]:
    model, samples = fitted(name)
    return to_source(model), samples


def refused(model: Any, fit: compiler.Fit, match: str, code: str) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(model, TARGET, fit)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == code
    assert match in str(reason)


def test_private_thresholds_need_calibration_data() -> None:
    model, _ = source("forest")
    refused(model, compiler.Fit(), "calibration=", "activations")


def test_an_accuracy_of_values_is_refused() -> None:
    model, samples = source("forest of values")
    refused(model, compiler.Fit(calibration=samples, accuracy=0.9), "error=", "labels")


def test_an_accuracy_that_bins_miss_is_refused() -> None:
    model, samples = source("forest of three labels")
    fit = compiler.Fit(calibration=samples, accuracy=1.0, bins=2)
    refused(model, fit, "bins=", "accuracy")
    model, samples = source("forest of values")
    refused(model, compiler.Fit(calibration=samples, error=1e-6), "bins=", "accuracy")


def test_methods_of_activations_are_refused() -> None:
    model, samples = source("forest")
    fit = compiler.Fit(calibration=samples, activations={"relu": "chebyshev:7"})
    refused(model, fit, "leave activations= out", "activation")


def test_samples_of_another_width_are_refused() -> None:
    model, samples = source("forest")
    with pytest.raises(EncodeError, match=r"\(count, 6\)", check=lambda error: error.code == "samples"):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples[:, :5]))
    model, samples = source("boosting")
    wrong = samples.copy()
    wrong[3, 2] = np.nan
    with pytest.raises(
        EncodeError, match="1 values that are not finite", check=lambda error: error.code == "samples"
    ):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=wrong))


def test_a_million_trees_are_refused_before_anything_of_their_size_is_made() -> None:
    one = random_ensemble(np.random.default_rng(0), 1, 3, 4)
    leaf = np.full(MAX_TREES + 1, -1, np.int64)
    none = np.zeros((len(leaf), 1))
    with pytest.raises(
        RefusalError,
        match="65537 trees, but 65536 are allowed; fit fewer",
        check=lambda error: error.code == "size",
    ):
        Ensemble(
            Features(4),
            np.arange(len(leaf)),
            Nodes(leaf, none[:, 0], leaf, leaf, leaf < 0, none),
            one.base,
            one.last,
        )
    tree = Nodes(leaf[:1], np.zeros(1), leaf[:1], leaf[:1], leaf[:1] < 0, np.zeros((1, 1)))
    trees = [tree] * 1_000_000
    tracemalloc.start()
    with pytest.raises(RefusalError, match="1000000 trees", check=lambda error: error.code == "size"):
        joined(trees)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000  # their lengths have 8 MB, one array for each would have 100


@pytest.mark.parametrize("change", ["cycle", "shared", "outside", "feature", "leaf", "threshold"])
def test_nodes_that_are_no_trees_are_refused(change: str) -> None:
    trees = random_ensemble(np.random.default_rng(1), 1, 5, 4)
    inner = np.flatnonzero(trees.nodes.feature >= 0)
    named = {name: getattr(trees.nodes, name).copy() for name in ("left", "feature", "values", "threshold")}
    if change == "cycle":
        named["left"][inner[-1]] = 0
    elif change == "shared":
        named["left"][inner[0]] = trees.nodes.right[inner[0]]
    elif change == "outside":
        named["left"][inner[0]] = 1 << 40
    elif change == "feature":
        named["feature"][inner[0]] = 4
    elif change == "leaf":
        named["values"][0] = np.nan
    else:
        named["threshold"][[node for node in inner if node not in trees.nodes.members]] = np.inf
    with pytest.raises(
        RefusalError, match=r"tree|compares|finite", check=lambda error: error.code == "model"
    ):
        replace(trees, nodes=replace(trees.nodes, **named))


def test_parts_of_estimators_without_an_encrypted_form_are_named() -> None:
    samples, values = make_regression(60, 4, random_state=0)
    model = GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(samples, values)
    with pytest.raises(
        ModelRefusedError, match="GradientBoostingRegressor with init = LinearRegression"
    ) as caught:
        to_source(model)
    reason = caught.value.exceptions[0]
    assert isinstance(reason, RefusalError)
    assert reason.code == "attribute"


@pytest.mark.parametrize("options", [{"thresholds": "secret"}, {"bins": 1}, {"bins": 1 << 20}])
def test_options_that_do_not_exist_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"thresholds='secret' is not one of|bins must"):
        compiler.Fit(calibration=VALUES, **options)
