"""Estimators and modules that are exported as they predict, or refused for what is in them."""

import re
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright.compiler.front_ends.to_onnx import to_onnx
from keywright.errors import ModelRefusedError
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, StackingRegressor, VotingRegressor
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, NuSVC

RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(120, 4)) + 5
TARGET = SAMPLES[:, 0] - 0.5 * SAMPLES[:, 2] + 0.2 * RNG.normal(size=120)
MEANS = np.exp(TARGET / 3)
THREE = np.digitize(TARGET, [2, 3])


def voting(*members: Any) -> VotingRegressor:
    return VotingRegressor([(str(place), each) for place, each in enumerate(members)])


REGRESSORS = {
    "an exponential in a vote": voting(PoissonRegressor(), LinearRegression()),
    "an exponential behind a scaler": voting(make_pipeline(StandardScaler(), GammaRegressor()), Ridge()),
    "a mean before weights": voting(PLSRegression(2), LinearRegression()),
    "a transformed exponential": TransformedTargetRegressor(
        PoissonRegressor(), func=np.sqrt, inverse_func=np.square
    ),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_of_ensembles_predict_with_their_links(name: str) -> None:
    model = kw.compile(REGRESSORS[name].fit(SAMPLES, MEANS), calibration=SAMPLES)
    outputs = model.simulate(SAMPLES[:20], repetitions=1).outputs
    (values,) = (model.answers(outputs) or {"": outputs}).values()
    np.testing.assert_allclose(np.ravel(values), np.ravel(REGRESSORS[name].predict(SAMPLES[:20])), rtol=1e-9)


def test_a_stack_names_the_exponential_in_it() -> None:
    stack = StackingRegressor([("a", PoissonRegressor()), ("b", Ridge())], Ridge()).fit(SAMPLES, MEANS)
    with pytest.raises(ModelRefusedError, match="stacks the predictions of PoissonRegressor"):
        kw.compile(stack, calibration=SAMPLES)


@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_a_discriminant_analysis_is_a_transformer(solver: str) -> None:
    pipeline = make_pipeline(LinearDiscriminantAnalysis(solver=solver), LogisticRegression())
    pipeline.fit(SAMPLES, THREE)
    model = kw.compile(pipeline, calibration=SAMPLES)
    answers = model.answers(model.simulate(SAMPLES, repetitions=1).outputs)
    assert (answers["output_label"] == pipeline.predict(SAMPLES)).all()


@pytest.mark.filterwarnings("ignore:The .probability. parameter")
@pytest.mark.parametrize("kind", [NuSVC, SVC])
def test_probabilities_of_three_classes_are_those_of_the_machine(kind: Any) -> None:
    """ONNX's reference implementation, which is compared and which clients run, couples pairs otherwise."""
    machine = kind(kernel="linear", probability=True, random_state=0).fit(SAMPLES, THREE)
    model = kw.compile(machine, calibration=SAMPLES)
    answers = model.answers(model.simulate(SAMPLES[:20], repetitions=1).outputs)
    np.testing.assert_allclose(
        answers["output_probability"], machine.predict_proba(SAMPLES[:20]), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("kind", [LinearRegression, Ridge, PoissonRegressor])
def test_regressors_without_an_intercept_are_written_in_double_precision(kind: Any) -> None:
    regressor = kind(fit_intercept=False).fit(SAMPLES, MEANS)
    assert type(regressor.intercept_) is float
    (source,) = to_onnx(regressor, SAMPLES).graph.input
    assert source.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


@pytest.mark.parametrize(
    ("network", "targets", "reason"),
    [
        (MLPRegressor(loss="poisson", max_iter=5), MEANS, "loss='poisson'"),
        (
            MLPClassifier(max_iter=5),
            np.stack([THREE > 0, THREE > 1], axis=1).astype(int),
            "one estimator for each label",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_no_network_is_advised_for_a_network(network: Any, targets: Any, reason: str) -> None:
    with pytest.raises(ModelRefusedError, match=reason) as refused:
        to_onnx(network.fit(SAMPLES, targets), SAMPLES)
    assert "an MLP," not in str(refused.value)


def test_one_class_is_named() -> None:
    with pytest.raises(ModelRefusedError, match="fitted to samples of one class"):
        kw.compile(RidgeClassifier().fit(SAMPLES, np.zeros(120, int)), calibration=SAMPLES)


def test_votes_and_pipelines_of_texts_are_compared() -> None:
    """What could not be evaluated once counted as equal: votes of many samples, and maps behind pipelines."""
    boosted = AdaBoostClassifier(LogisticRegression(), n_estimators=3).fit(SAMPLES, THREE)
    assert to_onnx(boosted, SAMPLES).graph.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosted, "predict_proba", lambda samples: np.full((len(samples), 3), 1 / 3))
        with pytest.raises(ModelRefusedError, match="another function: it is off by"):
            to_onnx(boosted, SAMPLES)
    texts = np.where(SAMPLES > 5, "up", "down").astype(object)
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(texts, THREE)
    assert to_onnx(pipeline, texts).graph.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline[-1], "predict_proba", lambda inner: np.full((inner.shape[0], 3), 1 / 3))
        with pytest.raises(ModelRefusedError, match="another function: it is off by"):
            to_onnx(pipeline, texts)


def test_an_estimator_that_predicts_no_number_names_the_samples() -> None:
    rooted = TransformedTargetRegressor(
        LinearRegression(), func=np.square, inverse_func=np.sqrt, check_inverse=False
    )
    rooted.fit(SAMPLES - 5, TARGET - 2.5)
    with np.errstate(invalid="ignore"):
        lost = np.flatnonzero(np.isnan(rooted.predict(2 * (SAMPLES - 5))))
    assert len(lost)
    with pytest.raises(ModelRefusedError, match=rf"\(NaN\) for calibration samples {lost[0]}"):
        kw.compile(rooted, calibration=2 * (SAMPLES - 5)[: lost[0] + 1])


@pytest.mark.parametrize("count", [1, 2])
def test_roundings_of_alike_predictions_are_no_change(count: int) -> None:
    model = LogisticRegression().fit(SAMPLES, TARGET > 2.5)
    report = kw.compile(model, calibration=np.tile(SAMPLES[:1], (count, 1))).report
    assert not any("against the estimator itself" in each for each in report.warnings)


def modules(torch: Any) -> dict[str, tuple[Any, str]]:
    """Modules that are no function of one sample, and what their refusals say."""
    nn = torch.nn

    class Of(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.layer, self.function, self.calls = nn.Linear(6, 3), function, 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.function(self, x)

    return {
        "random": (
            Of(lambda own, x: nn.functional.dropout(own.layer(x), 0.5)),
            "when it gets the same sample a second time",
        ),
        "state": (Of(lambda own, x: own.layer(x) * own.calls), "when it gets the same sample a second time"),
        "in place": (Of(lambda own, x: own.layer(x.mul_(2))), "changes its argument in place"),
        "count": (
            Of(lambda own, x: own.layer(x) * (1 if x.shape[0] == 1 else 2)),
            "it depends on the number of samples",
        ),
        "normalised": (
            nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3, track_running_stats=False)),
            "layer '1' normalises by the samples",
        ),
        "mean": (Of(lambda own, x: own.layer(x - x.mean(0))), "first axis is not that of samples"),
    }


NAMES = ["random", "state", "in place", "count", "normalised", "mean"]


@pytest.mark.parametrize("name", NAMES)
def test_modules_that_are_no_function_of_one_sample(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    cases = modules(torch)
    assert list(cases) == NAMES
    module, reason = cases[name]
    with pytest.raises(ModelRefusedError) as refused:
        to_onnx(module, SAMPLES[:, [0, 1, 2, 3, 0, 1]].astype(np.float32))
    assert re.search(reason, str(refused.value.exceptions[0]))
