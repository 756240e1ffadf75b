"""Quantised ensembles follow their library on calibration samples and on new ones, label by label and at the
ends of the outputs, or it is said that they do not: all kinds of ensembles, all kinds of data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.trees.bins import private_bins
from keywright.compiler.trees.calibration.closeness import of_labels, of_values, spread_of
from keywright.compiler.trees.leaves import STEP_BITS
from keywright.compiler.trees.quantising import QuantisedEnsemble, quantise
from keywright.errors import ModelRefusedError
from sklearn import ensemble, tree
from tests.matrices import cells

from .fitted import Array, answers, ensemble_of, own

COUNT, NEW = 600, 1000

Make = Callable[[], Any]
LABELS: dict[str, Make] = {
    "tree": lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    "weighted tree": lambda: tree.DecisionTreeClassifier(
        max_depth=5, class_weight="balanced", random_state=0
    ),
    "forest": lambda: ensemble.RandomForestClassifier(8, max_depth=5, random_state=0),
    "grown forest": lambda: ensemble.RandomForestClassifier(10, random_state=0),
    "extra trees": lambda: ensemble.ExtraTreesClassifier(8, max_depth=6, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0),
    "histogram boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0),
}
VALUES: dict[str, Make] = {
    "tree of values": lambda: tree.DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest of values": lambda: ensemble.RandomForestRegressor(8, max_depth=5, random_state=0),
    "extra trees of values": lambda: ensemble.ExtraTreesRegressor(8, max_depth=6, random_state=0),
    "boosting of values": lambda: ensemble.GradientBoostingRegressor(n_estimators=8, random_state=0),
    "histogram boosting of values": lambda: ensemble.HistGradientBoostingRegressor(
        max_iter=8, random_state=0
    ),
}
ANOMALIES: dict[str, Make] = {"isolation forest": lambda: ensemble.IsolationForest(20, random_state=0)}
SEVERAL = ("tree of values", "forest of values", "extra trees of values")
LABEL_CASES, TARGETS = ("three", "rare"), ("plain", "rare", "log-normal")
REFUSED = ("boosting", "boosting of values")
"""Models that refuse missing values."""


def drawn(kind: str, count: int, rng: np.random.Generator) -> Array:
    """Samples of a kind."""
    samples = rng.normal(size=(count, 4))
    match kind:
        case "missing":
            samples[rng.random(samples.shape) < 0.1] = np.nan
        case "whole numbers":
            samples = rng.integers(0, [2, 5, 40, 1000], size=(count, 4)).astype(float)
        case "a constant":
            samples[:, 1] = 7.0
        case "heavy tails":
            samples = rng.standard_cauchy(size=(count, 4))
        case "duplicates":
            samples = np.round(samples[rng.integers(0, max(count // 4, 1), count)], 1)
        case "a billion":
            samples = 1e9 + rng.random((count, 4))
    return samples


KINDS = ("normal", "missing", "whole numbers", "a constant", "heavy tails", "duplicates", "a billion")


def taken(models: dict[str, Make], targets: tuple[str, ...]) -> list[Any]:
    """Models with each kind of samples that they take and each target."""
    without = {(name, "missing", target) for name in REFUSED for target in targets}
    return cells([*models], KINDS, targets, without=without)


def signal(samples: Array) -> Array:
    """A function of samples, at most a few units wide for most."""
    filled = np.nan_to_num(samples)
    scaled = (filled - np.median(filled, axis=0)) / np.maximum(filled.std(axis=0), 1e-9)
    return np.asarray(scaled[:, 0] + 0.5 * scaled[:, 2] ** 2 - 0.3 * scaled[:, 3])


def expected_of(kind: str, values: Array) -> Array:
    """Labels of a kind, from values."""
    match kind:
        case "three":
            return np.array(["a", "b", "c"])[np.digitize(values, np.quantile(values, [0.3, 0.8]))]
        case _:  # rare labels
            return np.digitize(values, np.quantile(values, [0.3, 0.985]))


def losses(result: Array, expected: Array) -> dict[Any, float]:
    """The share of its samples that every label loses or gets."""
    return {
        label: max(
            ((expected == label) & (result != label)).sum(), ((expected != label) & (result == label)).sum()
        )
        / max((expected == label).sum(), 1)
        for label in np.union1d(result, expected)
    }


def decided(given: dict[str, Array]) -> Array:
    """Samples whose label the library does not decide by rounding."""
    values = given.get("probabilities")
    if values is None or values.shape[1] < 2:
        return np.ones(len(given["label"]), bool)
    second, best = np.partition(values, -2, axis=1)[:, -2:].T
    return np.asarray(best - second > 1e-4)


def accepted(model: Any, samples: Array) -> QuantisedEnsemble | None:
    """The quantised ensemble; None if it is refused for the right reasons."""
    refusal = None
    try:
        return quantise(ensemble_of(model), compiler.Fit(calibration=samples))
    except ModelRefusedError as error:
        refusal = error
    assert refusal.codes <= {"accuracy", "ranges"}
    return None


def followed_by_labels(model: Any, samples: Array, new: Array) -> bool:
    """Whether a model is accepted; if so, that its labels are kept or a warning says otherwise."""
    trees = accepted(model, samples)
    if trees is None:
        return False
    report = trees.report
    assert report is not None
    exact, result = own(model, samples), answers(trees, samples)
    sure, held = decided(exact), trees.held_out
    assert len(held) == len(samples)
    share = float((exact["label"] == result["label"])[held].mean())
    assert report.outputs.agreement is not None
    assert abs(report.outputs.agreement - share) <= (~sure[held]).mean() + 1e-12
    if not any(word in warning for warning in report.warnings for word in ("keeps", "held-out")):
        lost = losses(result["label"][sure], exact["label"][sure])
        assert max(lost.values(), default=0.0) <= 0.02 + 1e-9, lost
        assert share >= 0.98 - (~sure[held]).mean()
    if not report.warnings:
        limited, binning = new[:, trees.binning.limited], trees.binning
        kept = ~((limited < binning.low) | (limited > binning.high)).any(axis=1)
        exact, result = own(model, new[kept]), answers(trees, new[kept])
        sure = decided(exact)
        names, counts = np.unique(own(model, samples)["label"], return_counts=True)
        calibrated = dict(zip(names.tolist(), counts.tolist(), strict=True))
        for label, loss in losses(result["label"][sure], exact["label"][sure]).items():
            assert loss <= 0.1 + 3 / calibrated[label], (label, loss)
    return True


@pytest.mark.parametrize(("name", "kind", "labels"), taken(LABELS, LABEL_CASES))
def test_labels_are_kept_or_it_is_said(name: str, kind: str, labels: str) -> None:
    rng = np.random.default_rng(35)
    samples, new = drawn(kind, COUNT, rng), drawn(kind, NEW, rng)
    model = LABELS[name]().fit(samples, expected_of(labels, signal(samples)))
    assert followed_by_labels(model, samples, new) or labels == "rare"


@pytest.mark.parametrize("kind", KINDS)
def test_anomalies_are_kept_or_it_is_said(kind: str) -> None:
    rng = np.random.default_rng(35)
    samples, new = drawn(kind, COUNT, rng), drawn(kind, NEW, rng)
    for contamination in ("auto", 0.01):
        model = ensemble.IsolationForest(n_estimators=20, contamination=contamination, random_state=0).fit(
            samples
        )
        followed_by_labels(model, samples, new)


@pytest.mark.parametrize(("name", "kind", "target"), taken(VALUES, TARGETS))
def test_values_are_kept_or_it_is_said(name: str, kind: str, target: str) -> None:
    rng = np.random.default_rng(36)
    samples = drawn(kind, COUNT, rng)
    values = signal(samples)
    expected = {
        "plain": values,
        "rare": values + 50.0 * (values > np.quantile(values, 0.99)),
        "log-normal": np.exp(np.minimum(values, 20)),
    }[target]
    if name in SEVERAL:
        expected = np.stack((expected, 1e-6 * values), axis=1)
    model = VALUES[name]().fit(samples, expected)
    trees = accepted(model, samples)
    if trees is None:
        assert target != "plain" or kind in ("heavy tails", "a billion")
        return
    assert trees.report is not None
    exact, result = own(model, samples)["variable"], answers(trees, samples)["variable"]
    if not any("mean" in warning for warning in trees.report.warnings):
        for new, old in zip(result.T, exact.T, strict=True):
            change, spread = np.abs(new - old), spread_of(old)
            assert change.mean() <= 0.0201 * spread
            order = np.argsort(old)
            for end in (order[:3], order[-3:]):  # what is rarest
                distance = max(spread, np.abs(old[end] - np.median(old)).mean())
                assert change[end].mean() <= 0.101 * distance * max((old == old[end[1]]).sum() / 3, 1)
    if not any("up to" in warning for warning in trees.report.warnings):
        for new, old in zip(result.T, exact.T, strict=True):
            assert np.abs(new - old).max() <= 0.2501 * spread_of(old)


@pytest.mark.parametrize(
    ("name", "offset", "scale"), cells([*VALUES], (0.0, 1e3, 1e9, -1e12), (1e-9, 1e-3, 1.0, 1e9))
)
def test_an_offset_of_the_target_costs_no_precision(name: str, offset: float, scale: float) -> None:
    samples = np.random.default_rng(37).normal(size=(300, 4))
    model = VALUES[name]().fit(samples, offset + scale * signal(samples))
    source = ensemble_of(model)
    trees = len(source.roots)
    values = source.nodes.values[source.nodes.feature < 0] * source.factor
    public = quantise(source, compiler.Fit(calibration=samples, thresholds="public"))
    private = quantise(source, compiler.Fit(calibration=samples, bins=16))
    represented = private_bins(source, samples[~private.held_out], 16).quantised(samples)
    for quantised, given in ((public, samples), (private, represented)):
        expected = model.predict(given)
        result = answers(quantised, samples)["variable"].ravel()
        # Half a step of each tree, which is at most 2^(1 - STEP_BITS) of the range of all trees.
        step = (
            trees * np.ptp(values) * trees * 2.0**-STEP_BITS
            if trees > 1
            else np.ptp(values) * 2.0**-STEP_BITS
        )
        rounding = 16 * np.spacing(np.abs(expected).max()) * trees
        assert (
            np.abs(result - expected).max() <= min(step, 2.0**-14 * max(np.ptp(expected), 1e-300)) + rounding
        )


def test_a_lost_label_is_refused_and_named() -> None:
    rng = np.random.default_rng(4)
    samples = rng.normal(size=(2000, 4))
    model = tree.DecisionTreeClassifier(max_depth=6, random_state=0)
    model.fit(samples, np.where(np.abs(samples[:, 0]) < 0.004, "rare", "usual"))
    assert 0 < (model.predict(samples) == "rare").sum() < 20
    source = ensemble_of(model)
    # The rare samples are all held out, and without the values around them no edge is close to these.
    usual = samples[np.abs(samples[:, 0]) > 0.5][:80].reshape(20, 4, 4)
    rare = samples[np.abs(samples[:, 0]) < 0.004]
    rare = np.concatenate([rare + shift * np.eye(4)[1] for shift in (0.0, 1e-3, 2e-3, 3e-3)])[:20, None]
    shown = np.concatenate((usual[: len(rare)], rare), axis=1).reshape(-1, 4)
    with pytest.raises(ModelRefusedError, match=r"label rare keeps 0 of its \d+ calibration") as caught:
        quantise(source, compiler.Fit(calibration=shown))
    assert caught.value.codes == {"accuracy"}


def test_labels_of_one_sample_are_warned_of_and_lost_ones_refused() -> None:
    labels = np.asarray(["a", "b"])
    expected = np.repeat([0, 1], [990, 10])
    assert of_labels(expected, expected, labels).follows
    one = expected.copy()
    one[-1] = 0
    close = of_labels(one, expected, labels)
    assert close.warned == ["label b keeps 9 of its 10 calibration samples"]
    assert not close.refused
    two = expected.copy()
    two[:2] = 1
    assert of_labels(two, expected, labels).refused == [
        "label b keeps 10 of its 10 calibration samples and gets 2 of others"
    ]
    gone = of_labels(np.zeros(1000, int), np.repeat([0, 1], [999, 1]), labels)
    assert gone.refused == ["label b keeps 0 of its 1 calibration samples"]
    assert gone.agreement == 0.999


def test_values_of_a_rare_kind_are_not_hidden_by_their_own_spread() -> None:
    rng = np.random.default_rng(5)
    expected = rng.normal(size=(1000, 1))
    expected[:4] = 1000.0
    result = expected.copy()
    result[:4] = 0.0
    assert 0.9 < spread_of(expected[:, 0]) < 1.1 < expected.std()
    close = of_values(result, expected)
    assert any("1000" in text for text in close.refused)
    several = np.concatenate((expected * 1e9, rng.normal(size=(1000, 1))), axis=1)
    other = several.copy()
    other[:, 1] += 0.2
    assert any("output 1 changes" in text for text in of_values(other, several).refused)
    assert of_values(several, several).follows
    constant = np.full((50, 1), 1e9)
    assert of_values(constant, constant).follows
