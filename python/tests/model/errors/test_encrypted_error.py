"""The stated error of encryption holds for other samples, at the batch and with the keys that `predict` uses,
and no prediction that it leaves decided changes."""

import warnings
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler.activations.spread import outliers_of, spread_of
from keywright.errors import ModelRefusedError
from keywright.model import Model
from keywright.runtime.simulation.simulate import FACTOR
from sklearn.base import RegressorMixin
from sklearn.cluster import KMeans
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tests.matrices import cells

Array = np.ndarray[Any, np.dtype[Any]]

# The largest of 64 measured errors is no larger draw than that of at least as many simulated ones: `FACTOR`
# is what `keywright.runtime.simulate` states.
COUNT, FEATURES, FRESH = 240, 5, 64

SILENT = 3 * FRESH / COUNT
"""If no prediction of the calibration data is undecided, fewer than 3 / COUNT of others are, with 95 %
confidence."""

UNITS = np.array([1e6, 1.0, 1e-3])
OFFSETS = np.array([0.0, 5e3, 0.0])

MODELS: dict[str, Any] = {
    "linear": LogisticRegression(),
    "three classes": LogisticRegression(),
    "rare class": LogisticRegression(),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "votes": SVC(kernel="linear", C=100),
    "polynomial": SVC(kernel="poly", C=300, degree=3),
    "perceptron": MLPClassifier((6,), activation="tanh", max_iter=60, random_state=0),
    "clusters": KMeans(4, n_init=1, random_state=0),
    "values of unlike units": LinearRegression(),
    "partial least squares": PLSRegression(2),
    "perceptron of values": MLPRegressor(
        hidden_layer_sizes=(6,), activation="tanh", max_iter=60, random_state=0
    ),
}
"""Of each kind, one that answers with labels, scores or values."""

CASES = cells([*MODELS], [1.0], [0.0, 1e3, 1e9])
CASES += cells(["scaled", "values of unlike units"], [1e-9, 1e12], [0.0])

REFUSED = {(kind, 1.0, 1e9) for kind in ("linear", "three classes", "rare class", "scaled")}
"""Cases that are refused for the error of encryption; another may be refused for its outliers alone."""


def targets_of(kind: str, samples: Array) -> Array:
    first, second, third, *_ = samples.T
    match kind:
        case "three classes" | "scaled" | "votes":
            return np.asarray(np.digitize(first + 0.3 * second, [-0.5, 0.5]))
        case "rare class":
            return np.asarray(np.digitize(first + 0.3 * second, [-0.5, 2.2]))
        case "values of unlike units" | "partial least squares" | "perceptron of values":
            values = np.stack([first + second, second - third, first * 0.5], axis=1)
            return np.asarray(values) * (UNITS if kind == "values of unlike units" else 1.0) + (
                OFFSETS if kind != "perceptron of values" else 0.0
            )
        case _:
            return np.asarray(first * second + 0.3 * third > 0, np.int64)


def compiled_or_refused(model: Any, calibration: Array) -> tuple[Model | None, ModelRefusedError | None]:
    try:
        return kw.compile(model, calibration), None
    except ModelRefusedError as refusal:
        return None, refusal


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "size", "outlier"), CASES)
def test_stated_errors_hold_for_other_samples(kind: str, size: float, outlier: float) -> None:
    """Outliers in the calibration data may lead to a refusal, never to a silent error."""
    samples = np.random.default_rng(3).normal(size=(COUNT, FEATURES))
    fresh = size * np.random.default_rng(4).normal(size=(FRESH, FEATURES))
    model = MODELS[kind].fit(size * samples, targets_of(kind, samples))
    calibration = size * samples
    if outlier:
        calibration[100, 0], calibration[57, 3] = outlier, -outlier
    compiled, refusal = compiled_or_refused(model, calibration)
    if compiled is None:
        assert outlier, str(refusal)
        assert refusal is not None
        assert refusal.codes <= {"precision", "accuracy", "depth", "placement", "export"}
        assert "precision" not in refusal.codes or "outliers in rows 57, 100" in str(refusal)
        return
    assert (kind, size, outlier) not in REFUSED
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outputs = compiled.predict(fresh)
        single = compiled.predict(fresh[:1]).ravel()
    used, planned = compiled.plan_batches(FRESH)
    stated, own = used.error_with(planned.execution), compiled.encrypted_error
    assert stated is not None
    assert own is not None
    clear = kw.runtime.run_clear(used.program, fresh).reshape(FRESH, -1)
    errors = np.abs(outputs.reshape(FRESH, -1) - clear)
    assert (errors.max(axis=0) <= FACTOR * stated.errors).all()
    # Outliers among the simulated samples have larger errors than others.
    assert outlier or (stated.errors <= FACTOR * errors.max(axis=0)).all()
    assert stated.share <= 0.1
    assert {str(each.message) for each in caught} >= set(stated.warnings_about(outputs))
    assert (np.abs(single - clear[0]) <= FACTOR * own.errors).all()
    assert (own.labels is None) == isinstance(model, RegressorMixin)
    if own.labels is not None:
        names = ("label", "output_label")
        (decrypted,), (exact,) = (
            [values for name, values in compiled.answers(each).items() if name in names]
            for each in (outputs, kw.runtime.run_clear(used.program, fresh))
        )
        changed = decrypted != exact
        assert set(np.flatnonzero(changed)) <= set(stated.undecided(outputs))
        if not stated.warnings:
            assert changed.sum() <= SILENT


def test_required_errors_hold_under_encryption() -> None:
    """A required error counts polynomials and encryption, at the batch of a prediction."""
    samples = np.random.default_rng(3).normal(size=(COUNT, FEATURES))
    model = SVC(kernel="poly", C=30, degree=3).fit(samples, targets_of("polynomial", samples))
    with pytest.raises(ModelRefusedError, match=r"0\.001 is allowed \(error=\)"):
        kw.compile(model, samples, error=1e-3)
    compiled = kw.compile(model, samples, error=0.1, noise=1.0)
    assert compiled.encrypted_error is not None
    assert compiled.encrypted_error.change.max() <= 0.1
    fresh = np.random.default_rng(4).normal(size=(FRESH, FEATURES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = compiled.predict(fresh)
    assert np.abs(outputs - kw.runtime.run_clear(compiled.program, fresh)).max() <= 0.1
    with pytest.raises(ModelRefusedError, match=r"\(error=\).*batch=1"):
        compiled.for_batch(FRESH)
    assert compiled.plan_batches(FRESH)[0].program.batch < FRESH
    with pytest.raises(ModelRefusedError, match=r"required \(accuracy=\).*batch=1"):
        kw.compile(model, samples, accuracy=1.0, noise=1.0, samples=FRESH)


def test_errors_are_stated_for_each_choice_of_keys() -> None:
    """Little memory takes other keys, which are judged for themselves."""
    samples = np.random.default_rng(3).normal(size=(COUNT, FEATURES))
    model = MODELS["three classes"].fit(samples, targets_of("three classes", samples))
    compiled = kw.compile(model, samples)
    assert len(compiled.candidates) > 1
    for candidate in compiled.candidates:
        stated = compiled.error_with(candidate)
        assert stated is not None
        assert stated is compiled.error_with(candidate)
        clear = kw.runtime.run_clear(compiled.program, samples[:4])
        planned = compiled.with_plan(candidate.plan)
        assert planned.encrypted_error is not None
        assert np.array_equal(planned.encrypted_error.errors, stated.errors)
        errors = np.abs(planned.predict(samples[:4]) - clear).reshape(4, -1).max(axis=0)
        assert (errors <= FACTOR * stated.errors).all()


def test_outliers_do_not_count_in_the_spread() -> None:
    outputs = np.random.default_rng(5).normal(size=(1000, 4))
    outputs[:2, 1] = 1e12
    outputs[:, 2] = 0
    outputs[:100, 2] = 1
    outputs[:, 3] = 7
    spread = spread_of(outputs)
    assert spread[:2] == pytest.approx([1, 1], rel=0.1)
    assert spread[2:] == pytest.approx([0.3, 7])
    rows, distance = outliers_of(outputs)
    assert rows.tolist() == [0, 1]
    assert distance == pytest.approx(1e12, rel=0.1)
    assert not len(outliers_of(outputs[:, [0, 2, 3]])[0])


@pytest.mark.parametrize("target", [0.0, 5.0])
def test_a_constant_output_has_no_spread(target: float) -> None:
    samples = np.random.default_rng(6).normal(size=(40, 3))
    model = kw.compile(LinearRegression().fit(samples, np.full(40, target)), samples)
    stated = model.report.encrypted_error
    assert stated is not None
    assert f"times {stated.spread[0]:g} (it is constant" in str(stated)


def test_warnings_name_the_predictions_that_may_have_changed() -> None:
    """Samples near the boundary of a class are named by their row, and others are not."""
    samples = np.random.default_rng(3).normal(size=(COUNT, FEATURES))
    model = MODELS["linear"].fit(samples, targets_of("linear", samples))
    calibration = samples.copy()
    calibration[[57, 100], 0] = 1e5, -1e5  # for errors above single precision, in which clients decide
    compiled = kw.compile(model, calibration)
    fresh = samples[:4].copy()
    fresh[2] -= model.decision_function(fresh[2:3]) * model.coef_[0] / (model.coef_[0] @ model.coef_[0])
    with pytest.warns(UserWarning, match="may have changed the prediction of row 2 of the samples"):
        compiled.predict(fresh)
    compiled.predict(samples[[0, 1, 3]])
